/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of one axis with channels last (lines_last.cuh): which passes are computed so, and how they are divided into
 * blocks. */
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

#include <math.h>

enum {
    MAX_TAPS = 128, /* operands B of a channel are in registers */
    EIGHT = 8,
    CHANNELS = 32,
    EACH = 4,         /* channels of a warp */
    WIDTH = 32,       /* outputs of a row */
    SHORT_WIDTH = 16, /* the same, of signals that do not fill a tile */
    RESIDENT = 2,     /* blocks of a multiprocessor */
    FEW_SUMS = 4      /* fragments of gw of a channel, so that a warp can have two channels */
};

static bool has_units(const cf_layer *layer, const cf_tensor *t) {
    return (layer->batch == 1 || t->sample_stride % EIGHT == 0) && t->axis_stride[2] % EIGHT == 0;
}

/* The taps of the channels of a block. */
static int64_t tap_bytes(const cf_toeplitz_config *c) { return c->planes * 4ll * (16 * c->steps + 8); }

static int64_t bytes_of(const cf_toeplitz_config *c) {
    const int step = c->width / EIGHT,
              size = (16 + (int)cf_ceil_div(2 * c->steps, step)) * (step | 1); /* SIZE of lines_last.cuh */
    const int64_t skew = (c->planes / EIGHT - 1) * (EIGHT * EIGHT / c->planes);
    return CF_TOEPLITZ_UNIT * (c->planes * (int64_t)size + skew) + tap_bytes(c) + 8ll * c->planes;
}

static void set_signals(const cf_axis *across, int64_t columns, cf_toeplitz_config *c) {
    c->steps = (int)cf_ceil_div(across->kernel + 7, 16);
    c->width = columns > 16 * SHORT_WIDTH ? WIDTH : SHORT_WIDTH;
    c->planes = c->groups > 2 * EIGHT ? CHANNELS : c->groups > EIGHT ? 2 * EIGHT : EIGHT;
    c->warps = CHANNELS / EACH;
    c->threads = 32 * c->warps;
    c->shared = bytes_of(c);
}

/* 64 channels are a line of 128 bytes of the L2 cache. Such blocks are faster if there are many. */
static void take_64_channels(cf_toeplitz_config *c, const cf_gpu_properties *properties) {
    cf_toeplitz_config wide = *c;
    wide.planes = 2 * CHANNELS;
    wide.warps = wide.planes / EACH;
    wide.threads = 32 * wide.warps;
    wide.shared = bytes_of(&wide);
    const int64_t blocks = cf_ceil_div(c->groups, wide.planes);
    if (blocks * wide.planes - c->groups <= c->groups / 6 && wide.shared <= properties->shared_per_block &&
        blocks * c->samples * c->tiles_across >= properties->multiprocessors)
        *c = wide;
}

/* Units of the planes of a tile (GradientPlanes), and of the copies of the tile as it is. */
static int64_t tile_units(const cf_toeplitz_config *c, const cf_toeplitz_access *a, int copies) {
    const cf_toeplitz_tile t = cf_toeplitz_tile_of(a->rows, a->units, a->step);
    const int eights = c->planes / EIGHT;
    return c->planes * ((int64_t)t.size + (int64_t)copies * t.loaded) + (eights - 1) * (EIGHT / eights);
}

/* The memory of a block for tiles of x and gy, and at the end for sums. */
static int64_t weight_bytes(const cf_toeplitz_config *c, int copies) {
    return cf_max(CF_TOEPLITZ_UNIT * (tile_units(c, &c->x, copies) + tile_units(c, &c->y, copies)),
                  512ll * c->planes * c->reach);
}

/* The constants of weights.cuh. */
static void set_weights(const cf_axis *across, int64_t columns, cf_toeplitz_config *c) {
    c->across = columns > 16 * 16 ? 2 : 1;
    c->width = 16 * c->across;
    c->together = c->shares = c->of_share = c->warps = c->tiles_down = 1;
    c->reach = (int)cf_ceil_div(15 + across->kernel, EIGHT);
    c->x.rows = c->y.rows = 16;
    c->x.step = c->y.step = c->y.units = c->width / EIGHT;
    c->x.units = 2 * (c->across - 1) + (c->reach + 1) / 2 * 2;
    c->x.granule = c->y.granule = EIGHT;
    c->planes = c->groups > EIGHT ? 2 * EIGHT : EIGHT;
    c->threads = 32 * c->planes;
    c->shared = weight_bytes(c, 0);
}

bool cf_toeplitz_configure_lines_last(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                      const cf_toeplitz_config *common, cf_toeplitz_config *config) {
    cf_toeplitz_config c = *common;
    const bool data = c.pass == CF_PASS_DATA, weights = c.pass == CF_PASS_WEIGHTS;
    const cf_axis *const across = &layer->axis[2];
    const int64_t columns = data ? across->input : across->output;
    if (!c.line || !c.last || c.mode != CONV_FFT_PAD_ZEROS || across->stride != 1 || across->kernel > MAX_TAPS ||
        any_alignment || layer->groups % EIGHT != 0 || !has_units(layer, &layer->x) || !has_units(layer, &layer->y))
        return false;
    c.aligned = true;
    c.column_pad = (int)cf_toeplitz_pad(across, data);
    (weights ? set_weights : set_signals)(across, columns, &c);
    c.tiles_across = cf_ceil_div(columns, 16 * c.width);
    if (!weights)
        take_64_channels(&c, properties);
    c.resident = (int)cf_min(weights || c.planes > CHANNELS ? 1 : RESIDENT,
                             properties->shared_per_multiprocessor / (c.shared + 1024));
    if (c.resident < 1 || c.shared > properties->shared_per_block)
        return false;
    const int64_t items = c.samples * c.tiles_across;
    c.grid[0] = cf_ceil_div(c.groups, c.planes);
    const int64_t slices =
        cf_max(1, cf_min(cf_min(items, 65535), properties->multiprocessors * c.resident / c.grid[0]));
    c.grid[1] = cf_ceil_div(items, cf_ceil_div(items, slices));
    if (c.grid[0] > INT32_MAX)
        return false;
    *config = c;
    return true;
}

/* How often all multiprocessors have a block each. */
static int64_t rounds_of(const cf_toeplitz_config *c, int64_t blocks, const cf_gpu_properties *properties) {
    return cf_ceil_div(blocks * c->grid[1], properties->multiprocessors);
}

bool cf_toeplitz_join_lines_last(const cf_gpu_properties *properties, cf_toeplitz_both *both) {
    cf_toeplitz_config *const data = &both->data, *const weights = &both->weights;
    if (data->column_pad < 0 || data->column_pad % EIGHT != 0 || data->width != weights->width ||
        data->tiles_across != weights->tiles_across)
        return false;
    data->of_both = weights->of_both = true;
    weights->before = data->column_pad / EIGHT;
    weights->y.units = weights->y.step + cf_max(2 * data->steps, weights->before);
    /* 32 channels with few sums, if so many blocks take half as many rounds as those of 16. The slices stay. */
    const int64_t eights = cf_ceil_div(weights->groups, EIGHT);
    data->planes = weights->planes;
    if (weights->reach <= FEW_SUMS && 2 * rounds_of(weights, cf_ceil_div(eights, 4), properties) <=
                                          rounds_of(weights, cf_ceil_div(eights, 2), properties))
        data->planes = weights->planes = CHANNELS;
    weights->grid[0] = cf_ceil_div(weights->groups, weights->planes);
    data->warps = (int)cf_min(weights->planes, 2 * EIGHT);
    data->threads = weights->threads = 32 * data->warps;
    data->buffers = weights->planes > 2 * EIGHT && weights->reach < FEW_SUMS ? 2 : 1;
    do
        both->shared = weight_bytes(weights, data->buffers) + tap_bytes(data);
    while (both->shared > properties->shared_per_block && --data->buffers > 0);
    return data->buffers > 0;
}

/* Cycles of a multiprocessor for each output of a channel: at least, and if products decide, some for each output and
 * some for each product. {signals, gradients of weights, both gradients}. From measurements on an H100. */
static const double least[3] = {0.395, 0.40, 0.52}, of_output[3] = {0.2, 0.13, 0.53},
                    of_product[3] = {0.02, 0.032, 0.013}, of_64_channels = 0.88;

static double cycles_of(const cf_toeplitz_config *c, double multiprocessors, int kind, int products) {
    const double blocks = (double)(c->grid[0] * c->grid[1]), rounds = ceil(blocks / multiprocessors),
                 items = ceil((double)(c->samples * c->tiles_across) / (double)c->grid[1]),
                 outputs = 16.0 * c->width * c->planes;
    return rounds * items * outputs * fmax(least[kind], of_output[kind] + of_product[kind] * products);
}

double cf_toeplitz_cycles_lines_last(const cf_toeplitz_config *c, double multiprocessors) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    return cycles_of(c, multiprocessors, weights, weights ? c->reach : c->steps) *
           (c->planes > CHANNELS ? of_64_channels : 1.0);
}

double cf_toeplitz_cycles_both_lines_last(const cf_toeplitz_both *both, double multiprocessors) {
    return cycles_of(&both->weights, multiprocessors, 2, both->weights.reach + both->data.steps);
}

void cf_toeplitz_print_lines_last(const cf_toeplitz_config *c, cf_text *t) {
    cf_text_add(t,
                "static constexpr int KERNEL_Y = 1, KERNEL_X = %d, STEPS = %d, WIDTH = %d, CHANNELS = %d, WARPS = %d, "
                "BUFFERS = %d;\n"
                "static constexpr bool FLIP = %d, SCALED = %d;\n};\n",
                c->kernel[1], c->steps, c->width, c->planes, c->warps, c->buffers, c->pass == CF_PASS_DATA, c->scaled);
    if (!c->of_both)
        cf_text_add(t, "CF_TOEPLITZ_KERNEL(lines_last, %d, %d)\n", c->threads, c->resident);
}
