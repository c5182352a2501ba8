/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a Toeplitz pass: memory, or the cycles of a multiprocessor for each tile. The figures are from
 * measurements on an H100. */
#include "conv/gpu/device.h"
#include "conv/plan/cost/stage_cost.h"
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>

/* Cycles of a multiprocessor for each copy of a thread, each instruction of a warp, and each plane of a tile. */
static const double copy = 0.65, single_copy = 2.4, transposed_copy = 0.44, store = 0.4, ldmatrix = 4.0, mma = 2.2,
                    plane = 60.0;

static double copies(const cf_toeplitz_config *c, const cf_toeplitz_access *a) {
    const double each = (double)cf_max(2, a->granule);
    if (c->last)
        return transposed_copy * 4.0 * cf_toeplitz_tile_of(a->rows, a->units, a->step).loaded;
    const double count = a->whole ? a->height * ceil(a->breadth / each)
                                  : cf_toeplitz_tile_of(a->rows, a->units, a->step).loaded * (8.0 / each);
    return (a->granule > 1 ? copy : single_copy) * count;
}

static double tile_cycles(const cf_toeplitz_config *c) {
    const double warps = c->warps;
    if (c->pass == CF_PASS_WEIGHTS)
        return plane + copies(c, &c->x) + copies(c, &c->y) +
               warps * c->across *
                   (ldmatrix * (c->shares + c->kernel[0] * ((c->reach + 1) / 2)) + mma * c->kernel[0] * c->reach);
    const double stores = warps * 16.0 * c->width, groups = warps * c->count * c->kernel[0];
    return plane + copies(c, &c->x) +
           (c->last ? transposed_copy * stores / 2.0 : store * stores / (double)cf_max(2, c->y.granule)) +
           groups *
               (ldmatrix * cf_toeplitz_window(c->blocks, c->stride[1], c->steps) / 2.0 + mma * c->steps * c->blocks) *
               (c->line ? 1.1 : 1.0);
}

void cf_toeplitz_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                         cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_toeplitz_config c;
    cf_stage_cost whole = cf_cost_definition(layer, pass);
    whole.seconds = cf_cost_of(device, whole.bytes, 0.0, 1.0).seconds;
    if (gpu && layer->batch > 0 &&
        cf_toeplitz_configure(layer, pass, &gpu->properties, false, &c) == CONV_FFT_SUCCESS) {
        const double clock = 0.89e3 * (double)gpu->properties.clock_khz,
                     tiles = (double)c.samples * (double)c.groups * (double)c.tiles_down * (double)c.tiles_across,
                     blocks = (double)c.grid[0] * (double)c.grid[1];
        /* With few blocks, multiprocessors are idle. */
        const double share = fmin(1.0, blocks / (double)gpu->properties.multiprocessors);
        whole.seconds =
            fmax(whole.seconds, device->stage_seconds + tiles * tile_cycles(&c) /
                                                            (share * clock * (double)gpu->properties.multiprocessors));
        if (cf_toeplitz_adds(&c))
            whole.seconds += device->stage_seconds;
    }
    cost[cf_cost_whole_passes[pass]] = whole;
}
