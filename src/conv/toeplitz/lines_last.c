/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of one axis with channels last (lines_last.cuh): which passes are computed so, and how they are divided into
 * blocks. */
#include "conv/toeplitz/toeplitz.h"
#include "core/arith.h"

#include <math.h>

enum {
    MAX_TAPS = 128, /* operands B of a channel are in registers */
    EIGHT = 8,
    MAX_CHANNELS = 32,
    WARPS = 8,
    WIDTH = 32,       /* outputs of a row */
    SHORT_WIDTH = 16, /* the same, of signals that do not fill a tile */
    RESIDENT = 2      /* blocks of a multiprocessor */
};

static bool has_units(const cf_layer *layer, const cf_tensor *t) {
    return (layer->batch == 1 || t->sample_stride % EIGHT == 0) && t->axis_stride[2] % EIGHT == 0;
}

static int64_t bytes_of(const cf_toeplitz_config *c) {
    const int step = c->width / EIGHT,
              size = (16 + (int)cf_ceil_div(2 * c->steps, step)) * (step | 1); /* SIZE of lines_last.cuh */
    const int64_t skew = (c->planes / EIGHT - 1) * (EIGHT * EIGHT / c->planes);
    return CF_TOEPLITZ_UNIT * (c->planes * (int64_t)size + skew) + c->planes * (4ll * (16 * c->steps + 8) + 8);
}

static void set_signals(const cf_axis *across, int64_t columns, cf_toeplitz_config *c) {
    c->steps = (int)cf_ceil_div(across->kernel + 7, 16);
    c->width = columns > 16 * SHORT_WIDTH ? WIDTH : SHORT_WIDTH;
    c->planes = c->groups > 2 * EIGHT ? MAX_CHANNELS : c->groups > EIGHT ? 2 * EIGHT : EIGHT;
    c->warps = WARPS;
    c->threads = 32 * WARPS;
    c->shared = bytes_of(c);
}

static int64_t tile_bytes(const cf_toeplitz_access *a) {
    return CF_TOEPLITZ_UNIT * (int64_t)cf_toeplitz_tile_of(a->rows, a->units, a->step).size;
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
    c->shared = cf_max(c->planes * (tile_bytes(&c->x) + tile_bytes(&c->y)), 512ll * c->planes * c->reach);
}

bool cf_toeplitz_configure_lines_last(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                      const cf_toeplitz_config *common, cf_toeplitz_config *config) {
    cf_toeplitz_config c = *common;
    const bool data = c.pass == CF_PASS_DATA, weights = c.pass == CF_PASS_WEIGHTS;
    const cf_axis *const across = &layer->axis[2];
    const int64_t columns = data ? across->input : across->output;
    if (!c.line || !c.last || across->stride != 1 || across->kernel > MAX_TAPS || any_alignment ||
        layer->groups % EIGHT != 0 || !has_units(layer, &layer->x) || !has_units(layer, &layer->y))
        return false;
    c.aligned = true;
    c.column_pad = (int)cf_toeplitz_pad(across, data);
    (weights ? set_weights : set_signals)(across, columns, &c);
    c.tiles_across = cf_ceil_div(columns, 16 * c.width);
    c.resident = (int)cf_min(weights ? 1 : RESIDENT, properties->shared_per_multiprocessor / (c.shared + 1024));
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

/* Cycles of a multiprocessor for each output of a channel: at least, and if products decide, some for each output and
 * some for each product. {signals, gradients of weights}. From measurements on an H100. */
static const double least[2] = {0.505, 0.40}, of_output[2] = {0.35, 0.13}, of_product[2] = {0.024, 0.032};

double cf_toeplitz_cycles_lines_last(const cf_toeplitz_config *c, double multiprocessors) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const double blocks = (double)(c->grid[0] * c->grid[1]), rounds = ceil(blocks / multiprocessors),
                 items = ceil((double)(c->samples * c->tiles_across) / (double)c->grid[1]),
                 outputs = 16.0 * c->width * c->planes;
    return rounds * items * outputs *
           fmax(least[weights], of_output[weights] + of_product[weights] * (weights ? c->reach : c->steps));
}

void cf_toeplitz_print_lines_last(const cf_toeplitz_config *c, cf_text *t) {
    cf_text_add(t,
                "static constexpr int KERNEL_Y = 1, KERNEL_X = %d, STEPS = %d, WIDTH = %d, CHANNELS = %d, WARPS = %d;\n"
                "static constexpr bool FLIP = %d, SCALED = %d;\n};\n",
                c->kernel[1], c->steps, c->width, c->planes, c->warps, c->pass == CF_PASS_DATA, c->scaled);
    cf_text_add(t, "CF_TOEPLITZ_KERNEL(lines_last, %d, %d)\n", c->threads, c->resident);
}
