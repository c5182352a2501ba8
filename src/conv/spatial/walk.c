/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise layers whose threads walk down the rows (walk.cuh): which passes are computed so, and
 * how they are divided into blocks. */
#include "conv/spatial/spatial.h"

#include "conv/plan/padded.h"
#include "core/arith.h"

#include <math.h>

enum {
    MAX_COLUMNS = 16, /* taps of a row */
    THREADS = 128,    /* of a block, about */
    MAX_LANES = 64,
    MAX_ROWS = 4,         /* outputs of a step down a plane */
    MAX_LINE_ROWS = 16,   /* the same along a signal */
    MAX_STRIP = 8,        /* outputs of a step across */
    MAX_PRODUCTS = 800,   /* of a step; more compile slowly, and run slower */
    FEW_TAPS = 9,         /* of a plane */
    LEAST_HEIGHT = 3,     /* rows of outputs for each row that a segment computes in vain */
    OTHER_REGISTERS = 44, /* addresses and counters */
    MORE_REGISTERS = 24,  /* the same, of kernels that sum taps */
    SIGNAL_REGISTERS = 168,
    WEIGHT_REGISTERS = 240,
    START = 1500,  /* cycles before a block computes, about */
    LATENCY = 1000 /* cycles until loads arrive from busy memory, about */
};

static bool is_trivial(const cf_axis *a) { return a->input == 1 && a->kernel == 1 && a->output == 1; }

static void exchange(int64_t *a, int64_t *b) {
    const int64_t old = *a;
    *a = *b;
    *b = old;
}

cf_layer cf_spatial_exchanged(const cf_layer *layer) {
    cf_layer turned = *layer;
    cf_tensor *const tensors[] = {&turned.x, &turned.y, &turned.w, &turned.gw};
    turned.axis[1] = layer->axis[2];
    turned.axis[2] = layer->axis[1];
    for (int i = 0; i < 4; ++i)
        exchange(&tensors[i]->axis_stride[1], &tensors[i]->axis_stride[2]);
    return turned;
}

static bool can_walk(const cf_layer *layer) {
    const bool has_columns = layer->x.axis_stride[2] == 1 && layer->y.axis_stride[2] == 1 &&
                             layer->axis[1].mode == CONV_FFT_PAD_ZEROS && layer->axis[2].mode == CONV_FFT_PAD_ZEROS;
    return (cf_layer_is_last(layer) || has_columns) && layer->in_channels == 1 && layer->out_channels == 1 &&
           is_trivial(&layer->axis[0]) && layer->axis[0].pad_before == 0 && layer->x.dtype == CONV_FFT_FP32 &&
           layer->y.dtype == CONV_FFT_FP32;
}

/* Channels first: columns of a signal that can be loaded at once, if strips begin at multiples of `advance`. */
static int together_of(const cf_layer *layer, const cf_tensor *t, int64_t columns, int advance, bool any_alignment) {
    int64_t all = columns | advance | t->axis_stride[1];
    if (layer->batch > 1)
        all |= t->sample_stride;
    if (layer->groups > 1)
        all |= t->group_stride;
    return any_alignment || all % 2 != 0 ? 1 : all % 4 != 0 ? 2 : 4;
}
static void set_together(cf_spatial_config *c, const cf_layer *layer, bool any_alignment) {
    const cf_axis *const columns = &layer->axis[2];
    const int of_x = c->axis[2].transposed ? c->axis[2].outs : cf_spatial_advance(c->axis[2]),
              of_y = c->axis[2].transposed ? cf_spatial_advance(c->axis[2]) : c->axis[2].outs,
              x = together_of(layer, &layer->x, columns->input, of_x, any_alignment),
              y = together_of(layer, &layer->y, columns->output, of_y, any_alignment);
    c->together[0] = c->axis[2].transposed ? y : x;
    c->together[1] = c->axis[2].transposed ? x : y;
}

/* Registers of a thread: rows of sums or of another signal; inputs, also those of the next step; taps or their sums. */
static int registers_of(const cf_spatial_config *c) {
    const cf_spatial_axis y = c->axis[1], x = c->axis[2];
    const bool sums = c->pass == CF_PASS_WEIGHTS || c->both;
    const int held = (cf_spatial_behind(y) + y.outs) * x.outs * (c->both ? 2 : 1),
              inputs = 2 * cf_spatial_advance(y) * cf_spatial_window(x) + (sums ? y.outs * x.outs : 0),
              has_taps = c->pass != CF_PASS_WEIGHTS && cf_spatial_holds_taps(y, x, c->vector),
              taps = y.taps * x.taps * (has_taps + sums);
    return (int)cf_round_up(c->vector * (held + inputs + taps) + OTHER_REGISTERS + (sums ? MORE_REGISTERS : 0), 8);
}

/* Products of a strip along an axis. */
static int products_of(cf_spatial_axis a) { return a.taps * (a.transposed ? cf_spatial_advance(a) : a.outs); }
static int step_products(const cf_spatial_config *c) {
    return products_of(c->axis[1]) * products_of(c->axis[2]) * c->vector;
}

/* Loads that a window of columns takes. */
static int window_loads(const cf_spatial_config *c) {
    const cf_spatial_axis x = c->axis[2];
    const int first = cf_spatial_first(x), end = first + cf_spatial_window(x);
    int count = 0;
    for (int column = first; column < end; ++column)
        count += column % cf_spatial_together(column, first, end, cf_max(1, c->together[0])) == 0;
    return count;
}

/* Loads and stores of a thread for a step. With `lines`, each counts as many as a warp of them has lines of 128 bytes:
 * with channels first, neighbouring threads are a strip apart. */
static double step_copies(const cf_spatial_config *c, bool lines) {
    const cf_spatial_axis y = c->axis[1], x = c->axis[2];
    const bool first = lines && c->together[0] > 0;
    const double taps = c->pass == CF_PASS_WEIGHTS || cf_spatial_holds_taps(y, x, c->vector) ? 0.0 : y.taps * x.taps,
                 loads = (double)cf_spatial_advance(y) * window_loads(c),
                 others = (c->both ? 2.0 : 1.0) * y.outs * x.outs / cf_max(1, c->together[1]);
    return taps + loads * (first ? cf_spatial_advance(x) : 1) + others * (first ? x.outs : 1);
}
static double step_instructions(const cf_spatial_config *c) {
    const cf_spatial_axis y = c->axis[1], x = c->axis[2];
    return (c->both ? 2.0 : 1.0) * (step_products(c) + c->vector * (double)cf_spatial_behind(y) * x.outs) +
           2.0 * step_copies(c, false) + 24.0;
}

/* Lanes and strips of a block. With channels first, a block has one channel, and whole warps of strips. */
static void set_block(cf_spatial_config *c, const cf_gpu_properties *p) {
    const int64_t pairs = cf_ceil_div(c->channels, c->vector), threads = THREADS;
    c->lanes = (int)cf_ceil_div(pairs, cf_ceil_div(pairs, cf_min(MAX_LANES, threads)));
    c->lanes = c->together[0] > 0 ? 1 : c->lanes;
    c->strips = (int)cf_max(1, threads / c->lanes);
    while (c->strips > 1 && c->lanes * c->strips % 32 != 0 && c->lanes * (c->strips - 1) >= threads / 2)
        --c->strips;
    c->threads = (int)cf_round_up((int64_t)c->lanes * c->strips, 32);
    const int64_t sums = (int64_t)c->threads * c->axis[2].taps,
                  taps = cf_round_up((int64_t)c->axis[1].taps * c->axis[2].taps * c->lanes, 4);
    c->shared = 4 * c->vector * (c->both ? cf_max(sums, taps) : c->pass == CF_PASS_WEIGHTS ? sums : taps);
    c->grid[0] = cf_ceil_div(c->channels, (int64_t)c->lanes * c->vector);
    c->resident =
        (int)cf_max(1, cf_min(p->threads_per_multiprocessor / c->threads,
                              cf_min(p->registers_per_multiprocessor / ((int64_t)registers_of(c) * c->threads),
                                     p->shared_per_multiprocessor / (c->shared + 1024))));
}

static int steps_of(const cf_spatial_config *c) {
    return (int)cf_ceil_div(c->segment + cf_spatial_behind(c->axis[1]), c->axis[1].outs);
}

/* Divides the rows into segments, and the items among blocks. In blocks of y and gx, a thread has one item. Those that
 * sum taps are as many as the GPU holds at a time. */
static void set_segments(cf_spatial_config *c, const int64_t extent[3], int64_t segments, const cf_gpu_properties *p) {
    const int64_t most =
        c->pass == CF_PASS_WEIGHTS || c->both ? cf_max(1, p->multiprocessors * c->resident / c->grid[0]) : INT32_MAX;
    c->segment = (int)cf_round_up(cf_ceil_div(extent[1], segments), c->axis[1].outs);
    c->along[1] = cf_ceil_div(extent[1], c->segment);
    c->items = c->samples * c->along[1] * c->along[2];
    const int64_t rounds = cf_ceil_div(c->items, c->strips), slices = cf_min(cf_min(rounds, 65535), most);
    c->grid[1] = cf_ceil_div(rounds, cf_ceil_div(rounds, slices));
}

/* Cycles of the multiprocessor with most blocks. Instructions, and loads and stores of the L1 cache and of shared
 * memory, take turns; few warps leave gaps. With few blocks, each waits for its own instructions, or for its loads. The
 * figures are from measurements on an H100. */
static double cycles_of(const cf_spatial_config *c, const cf_gpu_properties *p) {
    const int64_t rounds = cf_ceil_div(c->items, c->strips), each = cf_ceil_div(rounds, c->grid[1]),
                  blocks = cf_ceil_div(c->grid[0] * c->grid[1], p->multiprocessors), warps = c->threads / 32;
    const double steps = (double)each * steps_of(c), instructions = step_instructions(c),
                 gaps = 0.45 + 7.0 / (double)(cf_min(blocks, c->resident) * warps),
                 busy = (double)(blocks * warps) * steps * (instructions / 4 + c->vector * step_copies(c, true)) * gaps,
                 waits = (double)cf_ceil_div(blocks, c->resident) * steps * fmax(2.0 * instructions, LATENCY);
    return fmax(busy, waits) + START;
}

/* Chooses the channels of a thread, the outputs of a step and the segments. false: no thread has
 * enough registers. */
static bool choose(cf_spatial_config *c, const cf_layer *layer, const int64_t extent[3], bool any_alignment,
                   const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int most_channels = cf_spatial_has_pairs(layer, any_alignment) ? 2 : 1,
              step_y = c->axis[1].transposed ? c->axis[1].stride : 1,
              step_x = c->axis[2].transposed ? c->axis[2].stride : 1,
              most = weights || c->both ? WEIGHT_REGISTERS : SIGNAL_REGISTERS,
              rows = cf_max(c->exchanged ? MAX_LINE_ROWS : MAX_ROWS, step_y), strip = cf_max(MAX_STRIP, step_x);
    cf_spatial_config best = *c;
    double least = -1;
    for (c->vector = 1; c->vector <= most_channels; ++c->vector)
        for (int ty = step_y; ty <= rows; ty += step_y)
            for (int tx = step_x; tx <= strip && tx - step_x < extent[2]; tx += step_x) {
                c->axis[1].outs = ty;
                c->axis[2].outs = tx;
                if (!cf_layer_is_last(layer))
                    set_together(c, layer, any_alignment);
                if (registers_of(c) > most || step_products(c) > MAX_PRODUCTS)
                    continue;
                c->along[2] = cf_ceil_div(extent[2], tx);
                set_block(c, p);
                if (c->shared > p->shared_per_block)
                    continue;
                for (int64_t n = 1; n == 1 || n <= extent[1] / (2 * ty); n += cf_max(1, n / 4)) {
                    set_segments(c, extent, n, p);
                    const double cycles = cycles_of(c, p);
                    if (least < 0 || cycles < least) {
                        least = cycles;
                        best = *c;
                    }
                }
            }
    *c = best;
    return least >= 0;
}

bool cf_spatial_configure_walk(const cf_layer *layer, int pass, bool both, const cf_gpu_properties *properties,
                               bool any_alignment, cf_spatial_config *config) {
    const cf_layer exchanged = cf_spatial_exchanged(layer);
    const bool along = is_trivial(&layer->axis[1]) && layer->axis[1].pad_before == 0;
    cf_spatial_config c;
    int64_t extent[3];
    const bool strided = layer->axis[1].stride > 1 || layer->axis[2].stride > 1, last = cf_layer_is_last(layer);
    if (!can_walk(layer) || (!last && along) || (both && layer->w.dtype != layer->gw.dtype))
        return false;
    /* Strips are faster. */
    if (last && ((pass == CF_PASS_DATA && !both && strided) ||
                 (pass == CF_PASS_WEIGHTS &&
                  (strided || (!along && layer->axis[1].kernel * layer->axis[2].kernel <= FEW_TAPS)))))
        return false;
    cf_spatial_set_problem(along ? &exchanged : layer, pass, &c, extent);
    c.exchanged = along;
    c.both = both;
    c.walks = c.last = true; /* threads load from global memory, as with channels last */
    if (!last)
        c.column[0] = c.column[1] = 1;
    c.chunks = 1;
    c.rows = c.kernel[1]; /* all taps have one share */
    c.along[0] = 1;
    const int64_t plane = extent[1] * extent[2];
    if (c.kernel[2] > MAX_COLUMNS || extent[1] < LEAST_HEIGHT * cf_spatial_behind(c.axis[1]) ||
        c.samples > INT32_MAX / 2 || plane > INT32_MAX / 2 || c.samples > INT32_MAX / 2 / plane ||
        c.channels > INT32_MAX || !choose(&c, layer, extent, any_alignment, properties))
        return false;
    c.cycles = cycles_of(&c, properties);
    *config = c;
    return true;
}
