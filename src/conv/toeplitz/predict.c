/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/cost/stage_cost.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/dtype.h"

#include <math.h>

void cf_toeplitz_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                         cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const double bytes = cf_cost_elements(x) * (double)cf_dtype_bytes(layer->x.dtype) +
                         cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype);
    cost[cf_cost_whole_passes[pass]] = cf_cost_of(device, bytes, 0.0, 1.0);
}
