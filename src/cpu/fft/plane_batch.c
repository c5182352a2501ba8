/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/fft/plane_batch.h"

#include "core/arith.h"
#include "core/dtype.h"

/* The three digits of a mixed-radix number, axis 2 fastest. */
static void split_digits(int64_t number, const int64_t extent[3], int64_t digit[3]) {
    digit[2] = number % extent[2];
    digit[1] = number / extent[2] % extent[1];
    digit[0] = number / extent[2] / extent[1];
}

static void set_range(cf_range *range, const cf_axis_window *a, int64_t tile, int64_t shift, int64_t phase,
                      int64_t *border) {
    const int64_t start = cf_window_start(a, tile, shift, phase);
    const int64_t from = cf_max(0, a->lower), to = cf_min(a->size, a->upper);
    /* Elements e with from <= start + e * step < to. */
    *range = (cf_range){.low = cf_max(0, -cf_floor_div(start - from, a->step)),
                        .high = cf_min(a->count, -cf_floor_div(start - to, a->step)),
                        .start = start};
    if (range->low >= range->high)
        range->low = range->high = 0;
    range->used_low = range->low;
    range->used_high = range->high;
    if (a->mode == CONV_FFT_PAD_ZEROS)
        return;
    range->border = border;
    range->used_low = a->count;
    range->used_high = cf_window_fill(a, tile, shift, phase, border);
    for (int64_t e = range->used_high - 1; e >= 0; --e)
        if (border[e] >= 0)
            range->used_low = e;
}

/* The three ranges of a run. Runs of one row in the sample and one phase have the same ones. */
static void set_ranges(cf_unit *unit, const cf_transform *t, cf_run *run) {
    const cf_axis_window *const axis = t->desc.window.axis;
    const int number = (int)(run - unit->run);
    if (number > 0 && run[-1].row == run->row && run[-1].phase == run->phase) {
        for (int a = 0; a < 3; ++a)
            run->range[a] = run[-1].range[a];
        return;
    }
    const int64_t tiles[3] = {axis[0].tiles, axis[1].tiles, axis[2].tiles};
    const int64_t shifts[3] = {axis[0].shifts, axis[1].shifts, axis[2].shifts};
    const int64_t phases[3] = {axis[0].phases, axis[1].phases, axis[2].phases};
    const int64_t all_tiles = cf_window_tiles(&t->desc.window);
    int64_t tile[3], shift[3], phase[3];
    split_digits(run->row % all_tiles, tiles, tile);
    split_digits(run->row / all_tiles, shifts, shift);
    split_digits(run->phase, phases, phase);
    int64_t *border = unit->borders + number * (axis[0].count + axis[1].count + axis[2].count);
    for (int a = 0; a < 3; ++a) {
        set_range(&run->range[a], &axis[a], tile[a], shift[a], phase[a], border);
        border += axis[a].count;
        unit->used_low[a] = cf_min(unit->used_low[a], run->range[a].used_low);
        unit->used_high[a] = cf_max(unit->used_high[a], run->range[a].used_high);
    }
}

/* The plane of a lane. The group counts from the block's first group. Row and column count from 0. */
typedef struct place {
    int64_t group, row, column;
} place;

static place place_of(const cf_call *call, int64_t plane, int64_t step) {
    const cf_spectrum *spectrum = &call->transform->desc.spectrum;
    const int64_t rows = call->block.rows / call->rows_per_plane;
    const int64_t line = plane / spectrum->columns;
    return (place){.group = line / rows,
                   .row = call->block.row + line % rows * call->rows_per_plane + step,
                   .column = plane % spectrum->columns};
}

/* Where the tensor element of a lane with all indices 0 is, in numbers. */
static int64_t offset_of(const cf_call *call, place at) {
    const cf_spectrum *spectrum = &call->transform->desc.spectrum;
    const cf_tensor *tensor = &call->transform->desc.tensor;
    const int64_t sample = at.row / spectrum->rows_per_sample, group = call->block.group + at.group;
    const int64_t element = (sample - call->origin.sample) * tensor->sample_stride +
                            at.column % spectrum->channels * tensor->channel_stride +
                            (group - call->origin.group) * tensor->group_stride;
    return element * call->transform->parts;
}

/* Add a lane to the last run, or start a run with it. Whether lanes are neighbours in the tensor never changes in a
 * run. */
static void add_to_runs(cf_unit *unit, const cf_call *call, place at, int lane) {
    const cf_spectrum *spectrum = &call->transform->desc.spectrum;
    const int64_t row = at.row % spectrum->rows_per_sample, phase = at.column / spectrum->channels;
    cf_run *run = unit->runs > 0 ? &unit->run[unit->runs - 1] : NULL;
    const bool adjacent = lane > 0 && unit->offset[lane] == unit->offset[lane - 1] + 1;
    if (run && run->row == row && run->phase == phase && (run->lanes == 1 || run->adjacent == adjacent)) {
        run->adjacent = adjacent;
    } else {
        run = &unit->run[unit->runs++];
        *run = (cf_run){.lane = lane, .row = row, .phase = phase};
        set_ranges(unit, call->transform, run);
    }
    ++run->lanes;
}

/* Add a lane to the last segment, or start a segment with it. */
static void add_to_segments(cf_unit *unit, const cf_call *call, place at, int lane) {
    const int64_t offset = at.group * call->block.group_stride + (at.row - call->block.row) * call->strides.row +
                           at.column * call->strides.column;
    cf_segment *segment = unit->segments > 0 ? &unit->segment[unit->segments - 1] : NULL;
    if (!segment || offset != segment->offset + segment->lanes) {
        segment = &unit->segment[unit->segments++];
        *segment = (cf_segment){.lane = lane, .offset = offset};
    }
    ++segment->lanes;
}

void cf_unit_set(cf_unit *unit, const cf_call *call, int64_t index, int64_t step, int thread) {
    const cf_transform *t = call->transform;
    const cf_spectrum *spectrum = &t->desc.spectrum;
    char *memory = (char *)(((uintptr_t)call->scratch + 63) & ~(uintptr_t)63) + (size_t)thread * t->thread_bytes;
    *unit = (cf_unit){.lanes = (int)cf_min(t->lanes, call->planes - index * t->lanes),
                      .used_low = {INT64_MAX, INT64_MAX, INT64_MAX},
                      .spectrum = call->block.data,
                      .stream = call->stream,
                      .tensor = (void *)call->tensor,
                      .bias = call->bias,
                      .accumulate = call->accumulate};
    unit->work = memory;
    for (int i = 0; i < 3; ++i) {
        unit->line[i] = memory + t->work_bytes + (size_t)i * t->line_bytes;
        unit->bin_stride[i] = call->strides.bin[i];
    }
    unit->borders = (int64_t *)(void *)(memory + t->work_bytes + 3 * t->line_bytes);
    for (int lane = 0; lane < unit->lanes; ++lane) {
        const place at = place_of(call, index * t->lanes + lane, step);
        unit->offset[lane] = offset_of(call, at);
        unit->channel[lane] = (call->block.group + at.group) * spectrum->channels + at.column % spectrum->channels;
        add_to_runs(unit, call, at, lane);
        add_to_segments(unit, call, at, lane);
    }
}
