/* SPDX-License-Identifier: Apache-2.0 */
/* gw: lanes are channels of x or taps, vectors are channels of gy, and the sum is over the positions of a cell. */
#include "cpu/spatial/cells.h"

#include "core/arith.h"
#include "core/dtype.h"

#include <string.h>

/* The positions that a tile adds in the compute type: their factors fit the first-level cache. Such sums are added to
 * others of the same chunk of cells, and those to totals in double. The totals do not depend on the number of
 * threads. */
enum {
    POSITIONS = 192
};

cf_cell cf_cell_of(const cf_convolution *c, int64_t number) {
    const int64_t y = cf_cells_along(c, 1), x = cf_cells_along(c, 2), of_sample = cf_cells_of_sample(c),
                  place = number % of_sample;
    cf_cell one = {.sample = number / of_sample,
                   .at = {place / x / y * c->rows[0], place / x % y * c->rows[1], place % x * c->rows[2]}};
    for (int a = 0; a < 3; ++a)
        one.count[a] = cf_min(c->rows[a], c->desc.axis[a].output - one.at[a]);
    return one;
}

/* sums[tap][side][block] += products of rows [first, first + rows) of a cell, by runs of taps [from, to). channels: of
 * x that are used. */
static void add_rows(const cf_convolution *c, const char *x, const char *gy, int64_t channels, int64_t first,
                     int64_t rows, int64_t columns, int64_t from, int64_t to, char *sums) {
    const int64_t real = (int64_t)c->real, rows_at_once = cf_max(1, POSITIONS / columns),
                  tap_numbers = cf_tap_numbers(c);
    /* Lanes are channels, or taps of one channel after the other. */
    const bool of_taps = c->planar || c->channelwise;
    const int64_t lane_step = c->channelwise ? c->column : 1, each = c->planar ? channels : 1;
    const cf_sum_tile_kind kind = c->channelwise ? CF_TILE_OWN : CF_TILE_NEAR;
    const int64_t pace = c->lattice[2][0].pace * c->column;
    cf_sum_tile tile = {.outer = 1, .a_run_step = c->block, .b_run_step = pace};
    for (int64_t row = 0; row < rows; row += rows_at_once)
        for (int64_t column = 0; column < columns; column += POSITIONS)
            for (int64_t i = from * each; i < to * each; ++i) {
                const cf_tap_run *const run = &c->run[i / each];
                const int64_t channel = i % each, count = of_taps ? run->count : channels,
                              lanes = cf_sum_tile_lanes(c, count);
                tile.inner = cf_min(rows_at_once, rows - row);
                tile.a_offset = c->a_offset + first + row;
                tile.b_offset = c->b_offset + first + row;
                tile.run = cf_min(POSITIONS, columns - column);
                tile.c_step = of_taps ? tap_numbers : c->block;
                tile.a = gy + column * c->block * real;
                for (int64_t l = 0; l < count; l += lanes) {
                    tile.b = x + (run->offset + column * pace + channel * c->channel + l * lane_step) * real;
                    tile.c = sums + (run->first * tap_numbers + channel * c->block + l * tile.c_step) * real;
                    c->kernels->tiles->sum[kind][c->vectors - 1][cf_min(lanes, count - l) - 1](&tile);
                }
            }
}

void cf_add_cell(const cf_convolution *c, const cf_cell *one, const char *x, const char *gy, int64_t channels,
                 int64_t from, int64_t to, char *sums) {
    /* All planes at once, if no row is missing between them. */
    const int64_t planes = one->count[1] == c->rows[1] ? one->count[0] : 1;
    for (int64_t z = 0; z < one->count[0]; z += planes)
        add_rows(c, x, gy, channels, z * c->rows[1], planes * one->count[1], one->count[2], from, to, sums);
}

void cf_add_to_totals(const cf_convolution *c, const void *sums, double *totals, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        totals[i] += c->real == sizeof(double) ? ((const double *)sums)[i] : (double)((const float *)sums)[i];
}

void cf_narrow(const cf_convolution *c, const double *totals, int64_t count, void *line) {
    for (int64_t i = 0; i < count; ++i)
        if (c->real == sizeof(double))
            ((double *)line)[i] = totals[i];
        else
            ((float *)line)[i] = (float)totals[i];
}

cf_piece cf_tap_piece(const cf_convolution *c, void *gw, int64_t tap, int64_t first, const cf_lanes *lanes) {
    const cf_convolution_axis *const axis = c->desc.axis;
    const int64_t *const stride = c->desc.w.axis_stride;
    first += tap / axis[2].taps / axis[1].taps * stride[0] + tap / axis[2].taps % axis[1].taps * stride[1] +
             tap % axis[2].taps * stride[2];
    return (cf_piece){.dtype = c->desc.w.dtype,
                      .data = (char *)gw + first * (int64_t)cf_dtype_bytes(c->desc.w.dtype),
                      .offset = lanes->offset,
                      .elements = 1,
                      .lanes = lanes->count};
}

void cf_pack_cell_of_x(const cf_convolution *c, const void *x, const cf_cell *one, int64_t group, int64_t side,
                       char *to) {
    int64_t place[3];
    cf_packed_place(c, one->at, place);
    cf_pack_signal(c, &c->desc.x, x, one->sample, group, side, place, to);
}

void cf_pack_cell_of_gy(const cf_convolution *c, const void *gy, const cf_cell *one, int64_t group, int64_t block,
                        char *to) {
    const cf_tensor *const t = &c->desc.y;
    const int64_t first = block * c->block, used = cf_min(c->block, c->own - first), real = (int64_t)c->real;
    if (used < c->block)
        memset(to, 0, (size_t)(cf_block_of_gy(c) * real));
    for (int64_t l = 0; l < used; l += CF_MAX_LANES) {
        const cf_lanes lanes =
            cf_lanes_make(one->sample * t->sample_stride + group * t->group_stride + (first + l) * t->channel_stride,
                          t->channel_stride, used - l);
        cf_pack_gradient(c, gy, &lanes, one->at, one->count, c->block, to + l * real);
    }
}

/* gw <- sums[tap][side][block] of some channels of gy. The taps of a channel are neighbours in the tensor. */
static void store_elements(const cf_convolution *c, const char *sums, int64_t channels, const cf_piece *piece,
                           int64_t step, bool accumulate) {
    const int64_t together = step == c->taps ? channels : 1, number = (int64_t)cf_dtype_bytes(piece->dtype);
    for (int64_t channel = 0; channel < channels; channel += together) {
        cf_piece part = *piece;
        part.elements = together * c->taps;
        part.data = (char *)piece->data + channel * step * number;
        part.step = 1;
        part.place = c->tap_place + channel * c->taps;
        c->kernels->store(sums, c->block, &part, accumulate);
    }
}

void cf_store_pair(const cf_convolution *c, int64_t pair, const char *sums, void *gw, bool accumulate) {
    const cf_tensor *const t = &c->desc.w;
    const int64_t group = pair / c->sides / c->blocks, own = pair / c->sides % c->blocks * c->block,
                  summed = pair % c->sides * c->side, used = cf_min(c->block, c->own - own),
                  channels = cf_min(c->side, c->summed - summed), per_tap = cf_tap_numbers(c);
    for (int64_t l = 0; l < used; l += CF_MAX_LANES) {
        const cf_lanes lanes = cf_lanes_make((own + l) * t->sample_stride, t->sample_stride, used - l);
        const int64_t first = group * t->group_stride + summed * t->channel_stride;
        if (c->tap_place) {
            const cf_piece piece = cf_tap_piece(c, gw, 0, first, &lanes);
            store_elements(c, sums + (size_t)l * c->real, channels, &piece, t->channel_stride, accumulate);
            continue;
        }
        for (int64_t tap = 0; tap < c->taps; ++tap) {
            cf_piece piece = cf_tap_piece(c, gw, tap, first, &lanes);
            piece.step = t->channel_stride;
            piece.elements = channels;
            c->kernels->store(sums + (size_t)(tap * per_tap + l) * c->real, c->block, &piece, accumulate);
        }
    }
}

/* --------------------------------------------------------------------------------------------- positions as vectors */

/* Vectors that a tile adds one after the other. */
enum {
    RUN = 256
};

/* Packed gy: numbers from one row to the next. Between rows that are joined there are zeros. */
static int64_t gy_row(const cf_convolution *c) {
    return c->rows_joined ? c->extent[2] : cf_round_up(c->rows[2], c->kernels->tiles->width);
}
static int64_t gy_plane(const cf_convolution *c) {
    return cf_round_up(c->rows[1] * gy_row(c), c->kernels->tiles->width);
}

int64_t cf_sliding_gy(const cf_convolution *c) { return c->own * c->rows[0] * gy_plane(c); }
int64_t cf_sliding_slack(const cf_convolution *c) { return c->extent[2] + c->kernels->tiles->width; }
int64_t cf_sliding_sums(const cf_convolution *c) { return c->own * c->summed * c->taps * c->kernels->tiles->width; }

void cf_pack_sliding_gy(const cf_convolution *c, const void *gy, const cf_cell *one, int64_t group, char *to) {
    const cf_tensor *const t = &c->desc.y;
    memset(to, 0, (size_t)cf_sliding_gy(c) * c->real);
    for (int64_t o = 0; o < c->own; ++o) {
        const int64_t offset = one->sample * t->sample_stride + group * t->group_stride + o * t->channel_stride;
        for (int64_t z = 0; z < one->count[0]; ++z)
            for (int64_t y = 0; y < one->count[1]; ++y) {
                const int64_t first = (one->at[0] + z) * t->axis_stride[0] + (one->at[1] + y) * t->axis_stride[1] +
                                      one->at[2] * t->axis_stride[2];
                const cf_piece piece = {.dtype = t->dtype,
                                        .data = (char *)gy + first * (int64_t)cf_dtype_bytes(t->dtype),
                                        .offset = &offset,
                                        .step = t->axis_stride[2],
                                        .elements = one->count[2],
                                        .lanes = 1};
                c->kernels->load(to + ((o * c->rows[0] + z) * gy_plane(c) + y * gy_row(c)) * (int64_t)c->real, 1,
                                 &piece);
            }
    }
}

/* The sums of `positions` positions that begin at x and gy, for the taps of one run and one channel of x. */
static void slide(const cf_convolution *c, const char *x, const char *gy, int64_t positions, const cf_tap_run *run,
                  char *sums) {
    static const int64_t none = 0;
    const cf_sum_tiles *const tiles = c->kernels->tiles;
    const int64_t width = tiles->width, real = (int64_t)c->real, of_channel = c->rows[0] * gy_plane(c),
                  vectors = cf_ceil_div(positions, width), of_own = c->summed * c->taps * width;
    for (int64_t o = 0; o < c->own; o += c->vectors) {
        const int64_t together = cf_min(c->vectors, c->own - o), max_lanes = tiles->lanes[together - 1];
        for (int64_t l = 0; l < run->count; l += max_lanes)
            for (int64_t v = 0; v < vectors; v += RUN) {
                const cf_sum_tile tile = {.a = gy + (o * of_channel + v * width) * real,
                                          .b = x + (run->offset + l + v * width) * real,
                                          .c = sums + (o * of_own + (run->first + l) * width) * real,
                                          .outer = 1,
                                          .inner = 1,
                                          .a_offset = &none,
                                          .b_offset = &none,
                                          .run = cf_min(RUN, vectors - v),
                                          .a_run_step = width,
                                          .b_run_step = width,
                                          .c_step = width,
                                          .a_vector_step = of_channel,
                                          .c_vector_step = of_own};
                tiles->sum[CF_TILE_SLIDING][together - 1][cf_min(max_lanes, run->count - l) - 1](&tile);
            }
    }
}

void cf_add_sliding_cell(const cf_convolution *c, const cf_cell *one, const char *x, const char *gy, char *sums) {
    const int64_t real = (int64_t)c->real, width = c->kernels->tiles->width, rows = c->rows_joined ? 1 : one->count[1],
                  positions = c->rows_joined ? (one->count[1] - 1) * gy_row(c) + one->count[2] : one->count[2];
    for (int64_t channel = 0; channel < c->summed; ++channel)
        for (int64_t z = 0; z < one->count[0]; ++z)
            for (int64_t y = 0; y < rows; ++y)
                for (int64_t i = 0; i < c->runs; ++i)
                    slide(c, x + (channel * c->channel + c->b_offset[z * c->rows[1] + y]) * real,
                          gy + (z * gy_plane(c) + y * gy_row(c)) * real, positions, &c->run[i],
                          sums + channel * c->taps * width * real);
}

/* totals[tap][channel of x][channel of gy] += the numbers of each vector. */
void cf_add_up_sliding(const cf_convolution *c, const void *sums, double *totals) {
    const int64_t width = c->kernels->tiles->width;
    for (int64_t i = 0; i < c->own * c->summed * c->taps; ++i) {
        const int64_t tap = i % c->taps, channel = i / c->taps % c->summed, own = i / c->taps / c->summed;
        double sum = 0;
        for (int64_t n = i * width; n < (i + 1) * width; ++n)
            sum += c->real == sizeof(double) ? ((const double *)sums)[n] : (double)((const float *)sums)[n];
        totals[(tap * c->summed + channel) * c->own + own] += sum;
    }
}
