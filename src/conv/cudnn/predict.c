/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/cudnn/cudnn.h"
#include "conv/plan/cost/stage_cost.h"
#include "core/dtype.h"

/* It counts the bytes of the tensors and the operations of the definition. What another library's algorithm does
 * is not known. */
void cf_cudnn_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)device, (void)strategy;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const double bytes = cf_cost_elements(x) * (double)cf_dtype_bytes(layer->x.dtype) +
                         cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype) +
                         cf_cost_weight_bytes(layer, pass);
    cost[cf_cost_whole_passes[pass]] =
        cf_cost_unpredicted(bytes, 2.0 * cf_cost_elements(y) * cf_cost_elements(w) / (double)w[0]);
}
