/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/long1d/long1d.h"

#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/spectra.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>

/* Tensors and the spectra of the weights go through memory once. Lines that no block holds go through it twice more, in
 * pieces. */
void cf_long1d_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                       cf_stage_cost cost[CF_STAGE_COUNT]) {
    cf_spectrum s[CF_OPERAND_COUNT];
    int64_t x[5], y[5], w[5];
    cf_strategy_spectra(layer, pass, strategy, s);
    cf_layer_extents(layer, x, y, w);
    const double points = (double)s[CF_X].basis[2], rows = (double)s[CF_X].rows, groups = (double)layer->groups;
    const double number = (double)cf_dtype_bytes(s[CF_X].dtype), line = 2.0 * number * (double)s[CF_X].bins;
    const double transforms = rows * groups * 2.0 * points * (2.5 * log2(points) + 1.0),
                 products = 8.0 * rows * groups * (double)s[CF_X].bins;
    const double pieces = points > 2.0 * CF_LONG1D_MAX_POINTS ? 4.0 * rows * groups * line : 0.0;
    const double bytes = cf_cost_elements(x) * (double)cf_dtype_bytes(layer->x.dtype) +
                         cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype) + pieces;
    const double spectra = groups * line;
    cf_stage_cost *const whole = &cost[cf_cost_whole_passes[pass]];
    *whole = cf_cost_of(device, bytes + spectra, transforms + products,
                        device->calibration->long1d_rate * device->fused_flops);
    /* Another kernel adds many slices. */
    const double blocks = groups * fmax(1.0, points / (2.0 * CF_LONG1D_MAX_POINTS)), running = device->threads / 16.0;
    if (pass == CF_PASS_WEIGHTS && fmin(rows, running / blocks) > CF_FEW_SLICES / 2)
        whole->seconds += device->stage_seconds;
    cost[pass == CF_PASS_WEIGHTS ? CF_STAGE_STORE_GW : CF_STAGE_LOAD_W] =
        cf_cost_weights(device, spectra, cf_cost_weight_bytes(layer, pass), number, points);
}
