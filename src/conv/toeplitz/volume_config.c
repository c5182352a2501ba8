/* SPDX-License-Identifier: Apache-2.0 */
/* Family toeplitz, layers of volumes: which ones it computes, and how a pass is divided into blocks (volumes.cuh). */
#include "conv/toeplitz/toeplitz.h"

#include "core/arith.h"

#include <float.h>

enum {
    MAX_DEPTHS = 8, /* of a kernel: slots of a product */
    MAX_ROWS = 8,
    MAX_TAPS = 7,  /* of a row */
    MAX_WARPS = 4, /* larger blocks wait longer at barriers */
    CHANNELS = 8,  /* of a block with channels last, a warp each */
    MAX_PARTS = 16,
    REGISTERS = 128, /* of a thread */
    BUFFERS = 3      /* of x, in the kernel of signals, and of copies with channels last */
};

bool cf_toeplitz_serves_volumes(const cf_layer *layer, const char **why) {
    *why = "toeplitz computes y and gw of volumes padded by zeros";
    for (int a = 0; a < 3; ++a)
        if (layer->axis[a].mode != CONV_FFT_PAD_ZEROS)
            return false;
    *why = "toeplitz computes volumes of 16 bits with up to 8x8x7 taps, without stride";
    if (layer->x.dtype != CONV_FFT_FP16 && layer->x.dtype != CONV_FFT_BF16)
        return false;
    for (int a = 0; a < 3; ++a)
        if (layer->axis[a].stride != 1 || (layer->axis[a].dilation != 1 && layer->axis[a].kernel > 1) ||
            layer->axis[a].input < 1 || layer->axis[a].output < 1 || layer->axis[a].input > 1 << 28 ||
            layer->axis[a].output > 1 << 28)
            return false;
    return layer->axis[0].kernel <= MAX_DEPTHS && layer->axis[1].kernel <= MAX_ROWS &&
           layer->axis[2].kernel <= MAX_TAPS;
}

/* Channels last: copies, and planes of single channels. */
static int64_t last_bytes(const cf_toeplitz_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int64_t copies = 8 * c->x.rows * c->x.units + (weights ? 8 * c->y.rows * c->y.units : 0),
                  plane_x = cf_toeplitz_channel_plane(c->x.rows, c->x.units),
                  plane_y = cf_toeplitz_channel_plane(c->y.rows, c->y.units),
                  of_channel = weights ? 2 * plane_x + cf_toeplitz_channel_plane(c->depths + 1, (int)plane_y)
                                       : 2 * plane_x + 2 * plane_y + (c->kernel[0] / 2 * 2 + 3) * 16,
                  sums = weights ? (int64_t)CHANNELS * (c->kernel[0] + 1) * 512 : 0;
    return cf_max((BUFFERS * copies + CHANNELS * of_channel) * CF_TOEPLITZ_UNIT, sums);
}

static int64_t block_bytes(const cf_toeplitz_config *c) {
    if (c->last)
        return last_bytes(c);
    if (c->pass != CF_PASS_WEIGHTS)
        return (BUFFERS * c->x.rows * c->x.units + (c->kernel[0] / 2 * 2 + 3) * 16) * CF_TOEPLITZ_UNIT;
    const int64_t sums = (int64_t)c->warps * c->across * (c->kernel[0] + 1) * 512;
    return cf_max((2 * c->x.rows * c->x.units + (c->depths + 1) * (c->y.rows * c->y.units | 1)) * CF_TOEPLITZ_UNIT,
                  sums);
}

static int64_t items_of(const cf_toeplitz_config *c) {
    return c->samples * c->depth_parts * c->tiles_down * c->tiles_across;
}

static int64_t resident_of(const cf_toeplitz_config *c, const cf_gpu_properties *p) {
    return cf_max(
        1, cf_min(cf_min(p->threads_per_multiprocessor / c->threads, p->shared_per_multiprocessor / (c->shared + 1024)),
                  p->registers_per_multiprocessor / (REGISTERS * c->threads)));
}

/* Copies of a tile, and what one of them takes. */
static double copy_cycles(const cf_toeplitz_config *c, const cf_toeplitz_access *a) {
    if (c->last)
        return a->rows * 8.0 * a->units * CHANNELS / cf_max(2, a->granule) *
               (a->granule == 8  ? 0.5
                : a->granule > 1 ? 1.5
                                 : 2.5);
    return a->rows * a->units * (8.0 / (double)cf_max(2, a->granule)) * (a->granule > 1 ? 0.5 : 2.5);
}

/* The figures are from measurements on an H100. A block that is alone on a multiprocessor waits for its own
 * instructions. */
double cf_toeplitz_volume_cycles(const cf_toeplitz_config *c, const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const double product = weights ? 1.45 : 2.05, other = c->last ? (weights ? 113.0 : 100.0) : (weights ? 85.0 : 45.0),
                 start = 1200.0, alone = 1500.0, warps = c->planes * c->warps * c->across,
                 products = 8.0 * (c->kernel[0] + 1),
                 depth = warps * (products * product + other) + copy_cycles(c, &c->x) +
                         (weights ? copy_cycles(c, &c->y) : 0.0);
    const int64_t busy = cf_ceil_div(c->grid[0] * c->grid[1], p->multiprocessors),
                  rounds = cf_ceil_div(busy, resident_of(c, p));
    const double depths = (double)cf_ceil_div(items_of(c), c->grid[1]) *
                          (c->part_depths + (c->depth_parts > 1 ? c->depths - 1 : 0)),
                 sum = (double)busy * depth, wait = (double)rounds * alone;
    return (double)busy * start + depths * (sum > wait ? sum : wait);
}

/* Tiles of so many warps, down and across, and parts of the depths. */
static bool divide(cf_toeplitz_config *c, const cf_gpu_properties *p, int64_t rows, int64_t columns, int64_t depths,
                   int down, int across, int parts) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    c->warps = down;
    c->across = across;
    c->width = 16 * across;
    c->tiles_down = cf_ceil_div(rows, 16 * down);
    c->tiles_across = cf_ceil_div(columns, 16 * across);
    c->part_depths = (int)cf_ceil_div(depths, parts);
    c->depth_parts = (int)cf_ceil_div(depths, c->part_depths);
    c->x.rows = 16 * down + c->kernel[0] - 1;
    c->x.units = (int)cf_ceil_div(16 * across + c->lead + 8, 8);
    c->y.rows = 16 * down;
    c->y.units = 2 * across;
    c->threads = 32 * c->planes * down * across;
    c->shared = block_bytes(c);
    const int64_t items = items_of(c), blocks = cf_ceil_div(c->groups, c->planes),
                  wanted = p->multiprocessors * resident_of(c, p),
                  slices = cf_max(1, cf_min(items, c->last ? wanted / blocks : cf_ceil_div(wanted, blocks)));
    c->grid[0] = blocks;
    c->grid[1] = weights || c->last ? cf_ceil_div(items, cf_ceil_div(items, slices)) : cf_min(items, 65535);
    return c->shared <= p->shared_per_block;
}

/* Channels last: the channels of one copy. All pixels begin at a multiple of them. */
static int channels_of_copy(const cf_layer *layer, const cf_tensor *t, bool any_alignment) {
    const int64_t strides[] = {t->sample_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2],
                               layer->groups};
    int channels = any_alignment ? 1 : 8;
    for (int i = 0; i < 5; ++i)
        while (strides[i] % channels != 0)
            channels /= 2;
    return channels;
}

/* Copies of which rows have a whole number. */
static int granule_of(const cf_layer *layer, const cf_tensor *t, int64_t rows, int64_t columns, bool any_alignment) {
    if (t->axis_stride[2] != 1)
        return channels_of_copy(layer, t, any_alignment);
    int granule = cf_toeplitz_granule(layer, t, false, rows, any_alignment);
    while (columns % granule != 0)
        granule /= 2;
    return granule;
}

conv_fft_status cf_toeplitz_configure_volumes(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                              bool any_alignment, cf_toeplitz_config *config) {
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_tensor *read = data ? &layer->y : &layer->x, *written = data ? &layer->x : &layer->y,
                    *w = weights ? &layer->gw : &layer->w;
    cf_toeplitz_config c = {.pass = pass,
                            .dtype = layer->x.dtype,
                            .weights = w->dtype,
                            .bias = cf_tensor_bias_dtype(&layer->y),
                            .scaled = !weights && w->dtype == CONV_FFT_FP32 && layer->x.dtype == CONV_FFT_FP16,
                            .stride = {1, 1},
                            .up = {1, 1},
                            .last = layer->x.axis_stride[2] != 1,
                            .terms = 1,
                            .x.numbers = 8,
                            .y.numbers = 8,
                            .samples = layer->batch,
                            .groups = layer->groups};
    c.planes = c.last ? CHANNELS : 1;
    int64_t extent[3], pad[3];
    for (int a = 0; a < 3; ++a) {
        const cf_axis *axis = &layer->axis[a];
        extent[a] = data ? axis->input : axis->output;
        pad[a] = cf_toeplitz_pad(axis, data);
    }
    c.depths = (int)layer->axis[0].kernel;
    c.kernel[0] = (int)layer->axis[1].kernel;
    c.kernel[1] = (int)layer->axis[2].kernel;
    const cf_axis *down_axis = &layer->axis[1], *across_axis = &layer->axis[2];
    c.x.granule = granule_of(layer, read, data ? down_axis->output : down_axis->input,
                             data ? across_axis->output : across_axis->input, any_alignment);
    c.y.granule = granule_of(layer, written, extent[1], extent[2], any_alignment);
    c.out_row = c.last ? 0 : written->axis_stride[1];
    c.lead = c.last ? 0 : (int)cf_mod(-pad[2], cf_max(2, c.x.granule));
    c.depth_pad = (int)pad[0];
    c.row_pad = (int)pad[1];
    c.column_pad = (int)pad[2] + c.lead;
    double least = DBL_MAX;
    const int max_warps = c.last ? 1 : MAX_WARPS;
    for (int down = 1; down <= max_warps; ++down)
        for (int across = 1; down * across <= max_warps; ++across)
            for (int parts = 1; parts <= cf_min(extent[0], MAX_PARTS); ++parts) {
                if (!divide(&c, properties, extent[1], extent[2], extent[0], down, across, parts))
                    continue;
                const double cycles = cf_toeplitz_volume_cycles(&c, properties);
                if (cycles >= least)
                    continue;
                least = cycles;
                *config = c;
            }
    if (least == DBL_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "a tile of volumes takes %lld bytes; a block has %lld",
                       (long long)c.shared, (long long)properties->shared_per_block);
    if (c.samples > INT32_MAX || c.groups > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%lld samples of %lld groups are too many", (long long)c.samples,
                       (long long)c.groups);
    return CONV_FFT_SUCCESS;
}
