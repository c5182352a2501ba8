/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a spatial pass: memory, and the instructions of all warps. The figures are from measurements on an
 * H100. */
#include "conv/gpu/device.h"
#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/spectra.h"
#include "conv/spatial/spatial.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>

/* Instructions that a multiprocessor begins in a cycle, {signals, gradients of weights}: planes and signals of one axis
 * with channels last, and the same with channels first. */
static const double of_last[2] = {2.7, 1.7}, of_last_lines[2] = {2.7, 2.5}, of_planes[2] = {1.9, 1.6},
                    of_lines[2] = {2.4, 2.5};

/* The part of the shorter one of memory and instructions that does not overlap with the longer one. */
#define LINES_APART 0.3

static bool is_line(const cf_spatial_config *c) {
    return c->axis[1].outs * c->kernel[0] * c->kernel[1] == 1 && (c->last || c->down == 1);
}

static double cycles(const cf_spatial_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    /* With channels first, threads of one depth of taps work while the others wait. */
    const double sums = c->instructions * (weights && !c->last ? c->kernel[0] : 1);
    const bool line = is_line(c);
    const double *const rates = c->last ? (line ? of_last_lines : of_last) : line ? of_lines : of_planes;
    return (sums + c->tile_instructions) / rates[weights];
}

void cf_spatial_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                        cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_fold_desc fold;
    const cf_layer padded = cf_spatial_padded(layer, pass, gpu != NULL, &fold);
    cf_spatial_config c;
    cf_stage_cost whole = cf_cost_definition(layer, pass);
    if (cf_spatial_folds(layer, pass)) {
        const double bytes = cf_fold_bytes(&fold, layer->groups, layer->batch);
        cost[CF_STAGE_FOLD_GX] =
            cf_cost_of(device, 2.0 * bytes, bytes / (double)cf_dtype_bytes(layer->compute), device->flops);
    }
    if (device->ops->convolution_seconds) {
        const cf_convolution_desc desc = cf_spatial_describe(&padded, pass);
        whole.seconds = device->ops->convolution_seconds(device, &desc);
        cost[cf_cost_whole_passes[pass]] = whole;
        return;
    }
    whole.seconds = cf_cost_of(device, whole.bytes, 0.0, 1.0).seconds;
    if (gpu && layer->batch > 0 &&
        cf_spatial_configure(&padded, pass, &gpu->properties, false, &c) == CONV_FFT_SUCCESS) {
        const double processors = (double)gpu->properties.multiprocessors,
                     clock = 0.89e3 * (double)gpu->properties.clock_khz,
                     share = fmin(1.0, (double)c.grid[0] * (double)c.grid[1] / processors);
        const double working = cycles(&c) / (share * processors * clock);
        /* Threads of channels last wait for what they load, those of lines less. Tiles in shared memory are loaded
         * ahead. */
        whole.seconds =
            c.last ? fmax(whole.seconds, working) + (is_line(&c) ? LINES_APART : 1.0) * fmin(whole.seconds, working)
                   : fmax(whole.seconds, device->stage_seconds + working);
        if (cf_spatial_adds(&c))
            whole.seconds += device->stage_seconds;
    }
    cost[cf_cost_whole_passes[pass]] = whole;
}
