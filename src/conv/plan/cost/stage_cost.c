/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/cost/stage_cost.h"

#include "conv/plan/family.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>

const cf_stage_kind cf_cost_whole_passes[CF_PASS_COUNT] = {CF_STAGE_CONVOLVE_Y, CF_STAGE_CONVOLVE_GX,
                                                           CF_STAGE_CONVOLVE_GW};

cf_stage_cost cf_cost_of(const cf_device *device, double bytes, double operations, double rate) {
    const double working = operations / rate, moving = bytes / device->bandwidth;
    return (cf_stage_cost){bytes, operations,
                           (device->is_gpu ? fmax(working, moving) : working + moving) + device->stage_seconds};
}

double cf_cost_elements(const int64_t extents[5]) {
    double product = 1.0;
    for (int i = 0; i < 5; ++i)
        product *= (double)extents[i];
    return product;
}

double cf_cost_plane_seconds(const cf_device *device, double points) {
    const cf_calibration *c = device->calibration;
    return c ? c->plane_point_seconds * fmax(0.0, points - c->plane_points) : 0.0;
}

cf_stage_cost cf_cost_weights(const cf_device *device, double spectra, double tensor, double number, double points) {
    return cf_cost_of(device, spectra + tensor, 2.5 * spectra / number * log2(points > 2 ? points : 2), device->flops);
}

double cf_cost_weight_bytes(const cf_layer *layer, int pass) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    return cf_cost_elements(w) * (double)cf_dtype_bytes(pass == CF_PASS_WEIGHTS ? layer->gw.dtype : layer->w.dtype);
}

double cf_cost_gy_bytes(const cf_layer *layer) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    return cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype);
}

cf_stage_cost cf_cost_gradients(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                const cf_strategy *weights) {
    const cf_strategy *const strategies[CF_PASS_COUNT] = {NULL, data, weights};
    cf_stage_cost both = {.bytes = -cf_cost_gy_bytes(layer)};
    for (int pass = CF_PASS_DATA; pass <= CF_PASS_WEIGHTS; ++pass) {
        cf_stage_cost cost[CF_STAGE_COUNT] = {{0}};
        strategies[pass]->family->predict(layer, device, pass, strategies[pass], cost);
        both.seconds += cost[cf_cost_whole_passes[pass]].seconds;
        both.bytes += cost[cf_cost_whole_passes[pass]].bytes;
    }
    return both;
}

cf_stage_cost cf_cost_definition(const cf_layer *layer, int pass) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    const double bytes = cf_cost_elements(x) * (double)cf_dtype_bytes(layer->x.dtype) +
                         cf_cost_elements(y) * (double)cf_dtype_bytes(layer->y.dtype) +
                         cf_cost_weight_bytes(layer, pass);
    return cf_cost_unpredicted(bytes, 2.0 * cf_cost_elements(y) * cf_cost_elements(w) / (double)w[0]);
}

cf_stage_cost cf_cost_unpredicted(double bytes, double operations) { return (cf_stage_cost){bytes, operations, -1.0}; }
