/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a spatial pass: memory, and the instructions of all warps. The figures are from measurements on an
 * H100. */
#include "conv/gpu/device.h"
#include "conv/plan/cost/stage_cost.h"
#include "conv/plan/padded.h"
#include "conv/spatial/spatial.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>

/* Instructions that a multiprocessor begins in a cycle, {signals, gradients of weights}: planes and signals of one axis
 * with channels last, and the same with channels first. */
static const double of_last[2] = {2.7, 1.7}, of_last_lines[2] = {2.7, 2.5}, of_planes[2] = {1.9, 1.6},
                    of_lines[2] = {2.4, 2.5};

/* The part of the shorter one of memory and instructions that does not overlap with the longer one: lines. */
#define LINES_APART 0.3
#define PLANES_APART 0.5 /* the same for threads that walk down planes */

static bool is_line(const cf_spatial_config *c) {
    return c->exchanged || (c->axis[1].outs * c->kernel[0] * c->kernel[1] == 1 && (c->last || c->down == 1));
}

static double cycles(const cf_spatial_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    /* With channels first, threads of one depth of taps work while the others wait. */
    const double sums = c->instructions * (weights && !c->last ? c->kernel[0] : 1);
    const bool line = is_line(c);
    const double *const rates = c->last ? (line ? of_last_lines : of_last) : line ? of_lines : of_planes;
    return (sums + c->tile_instructions) / rates[weights];
}

/* memory: the seconds of its bytes. */
static double seconds_of(const cf_spatial_config *c, const cf_device *device, const cf_gpu *gpu, double memory) {
    const double processors = (double)gpu->properties.multiprocessors,
                 clock = 0.89e3 * (double)gpu->properties.clock_khz,
                 share = fmin(1.0, (double)c->grid[0] * (double)c->grid[1] / processors),
                 working = c->walks ? c->cycles / clock : cycles(c) / (share * processors * clock);
    /* Threads of channels last wait for what they load, those of lines and those that walk less. Tiles in shared
     * memory are loaded ahead. */
    const double apart = is_line(c) ? LINES_APART
                         : c->walks ? PLANES_APART
                                    : 1.0,
                 seconds = c->last ? fmax(memory, working) + apart * fmin(memory, working)
                                   : fmax(memory, device->stage_seconds + working);
    return seconds + (cf_spatial_adds(c) ? device->stage_seconds : 0.0);
}

void cf_spatial_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                        cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_fold_desc fold;
    const cf_layer padded = cf_layer_padded(layer, pass, gpu != NULL, &fold);
    cf_spatial_config c;
    cf_stage_cost whole = cf_cost_definition(layer, pass);
    if (cf_layer_folds(layer, pass)) {
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
    if (gpu && layer->batch > 0 && cf_spatial_configure(&padded, pass, &gpu->properties, false, &c) == CONV_FFT_SUCCESS)
        whole.seconds = seconds_of(&c, device, gpu, whole.seconds);
    cost[cf_cost_whole_passes[pass]] = whole;
}

double cf_spatial_saved_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                const cf_strategy *weights) {
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_spatial_config c;
    if (!gpu || layer->batch == 0 || cf_layer_folds(layer, CF_PASS_DATA) ||
        !cf_spatial_configure_walk(layer, CF_PASS_DATA, true, &gpu->properties, false, &c))
        return 0.0;
    const cf_stage_cost apart = cf_cost_gradients(layer, device, data, weights);
    return fmax(0.0, apart.seconds - seconds_of(&c, device, gpu, cf_cost_of(device, apart.bytes, 0.0, 1.0).seconds));
}
