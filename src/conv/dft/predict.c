/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a pass of family dft: memory, or the cycles of a multiprocessor for each plane. The figures are from
 * measurements on an H100. */
#include "conv/dft/dft.h"
#include "conv/gpu/device.h"
#include "conv/plan/cost/stage_cost.h"
#include "core/arith.h"

#include <math.h>

/* Cycles of a multiprocessor for each product, and for each eight frequencies of a plane besides: forward or gx, gw. */
static const double product[2] = {3.2, 3.4}, of_tile[2] = {55.0, 48.0};

/* Seconds before a block can begin its first plane, besides the time of two planes: the matrices, and the spectrum of
 * the taps. */
static const double first_plane = 8e-6;

/* Products of steps 1 to 4 for a plane that is read and computed, or of steps 1 and 2 for two planes that are read. */
static double plane_cycles(const cf_dft_config *c) {
    const cf_dft_geometry g = cf_dft_geometry_for(c);
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const double read = (double)(g.steps_x * g.read_eights + 2 * g.steps_y * g.eights),
                 computed = g.eights * g.out_eights + 2.0 * g.halves * g.out_eights;
    return g.tiles * (of_tile[weights] + product[weights] * (weights ? 2 * read : read + computed));
}

/* Cycles of a multiprocessor for a tile of 4,096 elements that is read and computed (forward, gx), or for two that are
 * read (gw). Tiles of 8,192 elements take more than twice as long, because a multiprocessor has one block. From
 * measurements on an H200. */
static const double of_tile_read[2] = {1840.0, 2010.0}, of_long_tile = 2.6;

/* Seconds of a pass over signals. A spectrum of w, or the taps of a slice, take about as long as a round. */
static double signal_seconds(const cf_dft_config *c, const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_dft_signal *s = &c->signal;
    const double together = weights ? s->lines / 2 : s->lines,
                 tile = of_tile_read[weights] * (s->radix > 8 ? of_long_tile : 1),
                 rounds = ceil((double)c->samples * s->tiles / (together * (double)c->grid[1])) + 1.0,
                 waves = ceil((double)c->grid[0] * (double)c->grid[1] / (double)s->blocks),
                 running = fmin(c->resident, ceil((double)s->blocks / (double)p->multiprocessors));
    return running * waves * rounds * together * tile / (1e3 * (double)p->clock_khz) + first_plane;
}

void cf_dft_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                    cf_stage_cost cost[CF_STAGE_COUNT]) {
    (void)strategy;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    cf_dft_config c;
    cf_stage_cost whole = cf_cost_definition(layer, pass);
    whole.seconds = cf_cost_of(device, whole.bytes, 0.0, 1.0).seconds;
    if (gpu && layer->batch > 0 && cf_dft_configure(layer, pass, &gpu->properties, false, &c) == CONV_FFT_SUCCESS) {
        if (c.signal.radix) {
            whole.seconds = fmax(whole.seconds, signal_seconds(&c, &gpu->properties)) + device->stage_seconds;
            if (cf_dft_adds(&c))
                whole.seconds += device->stage_seconds;
            cost[cf_cost_whole_passes[pass]] = whole;
            return;
        }
        const double clock = 0.89e3 * (double)gpu->properties.clock_khz,
                     processors = (double)gpu->properties.multiprocessors,
                     blocks = (double)c.grid[0] * (double)c.grid[1], together = c.teams * c.planes,
                     items = ceil((double)c.samples / (together * (double)c.grid[1])) * together;
        const double resident = fmin(blocks, processors * c.resident), waves = ceil(blocks / resident),
                     cycles = blocks * (items + 2.0) * plane_cycles(&c) / (fmin(processors, blocks) * clock);
        whole.seconds = fmax(whole.seconds, cycles) + waves * first_plane + device->stage_seconds;
        if (cf_dft_adds(&c))
            whole.seconds += device->stage_seconds;
    }
    cost[cf_cost_whole_passes[pass]] = whole;
}
