/* SPDX-License-Identifier: Apache-2.0 */
/* gw by its definition: lanes are channels of x or taps, vectors are channels of gy, and the sum is over positions. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/parallel.h"
#include "cpu/spatial/convolution.h"

#include <string.h>

/* The positions that a tile adds in the compute type: their factors fit the first-level cache. Such sums are added to
 * others of the same chunk of cells, and those to totals in double. The totals do not depend on the number of
 * threads. */
enum {
    POSITIONS = 192
};

/* Numbers of the sums of a block of gy's channels and a packed block of x's. */
static int64_t block_sums(const cf_convolution *c) { return c->taps * cf_tap_numbers(c); }

/* A part of the positions of one sample. */
typedef struct cell {
    int64_t sample; /* channelwise: item of lanes */
    int64_t at[3], count[3];
} cell;

static cell cell_of(const cf_convolution *c, int64_t number) {
    const int64_t y = cf_cells_along(c, 1), x = cf_cells_along(c, 2), of_sample = cf_cells_of_sample(c),
                  place = number % of_sample;
    cell one = {.sample = number / of_sample,
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

static void add_cell(const cf_convolution *c, const cell *one, const char *x, const char *gy, int64_t channels,
                     int64_t from, int64_t to, char *sums) {
    /* All planes at once, if no row is missing between them. */
    const int64_t planes = one->count[1] == c->rows[1] ? one->count[0] : 1;
    for (int64_t z = 0; z < one->count[0]; z += planes)
        add_rows(c, x, gy, channels, z * c->rows[1], planes * one->count[1], one->count[2], from, to, sums);
}

static void add_to_totals(const cf_convolution *c, const void *sums, double *totals, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        totals[i] += c->real == sizeof(double) ? ((const double *)sums)[i] : (double)((const float *)sums)[i];
}

/* line <- totals, in the compute type. */
static void narrow(const cf_convolution *c, const double *totals, int64_t count, void *line) {
    for (int64_t i = 0; i < count; ++i)
        if (c->real == sizeof(double))
            ((double *)line)[i] = totals[i];
        else
            ((float *)line)[i] = (float)totals[i];
}

static cf_piece tap_piece(const cf_convolution *c, void *gw, int64_t tap, int64_t first, const cf_lanes *lanes) {
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

/* ----------------------------------------------------------------------------------------------------------- dense */

typedef struct weights_memory {
    char *x, *gy, *sums; /* [cell of a chunk][group][block of channels] twice; [group][block of gy][block of x] */
    double *totals;      /* as sums; NULL: one chunk has all cells, and its sums are the result */
} weights_memory;

/* Cells of all samples. */
static int64_t all_cells(const cf_convolution *c) { return c->desc.batch * cf_cells_of_sample(c); }

static weights_memory lay_out(const cf_convolution *c, void *scratch) {
    const size_t planes = (size_t)(c->chunk * c->desc.groups), groups = (size_t)c->desc.groups;
    weights_memory m = {.x = scratch};
    m.gy = m.x + planes * c->signal_bytes;
    m.sums = m.gy + planes * c->result_bytes;
    if (c->chunk < all_cells(c))
        m.totals = (double *)(void *)(m.sums + groups * c->weights_bytes);
    return m;
}

/* Pack block `block` of a cell's group: those of x come first. */
static void pack_block(const cf_convolution *c, const void *x, const void *gy, const weights_memory *m, int64_t slot,
                       int64_t number, int64_t block) {
    const int64_t group = slot % c->desc.groups, real = (int64_t)c->real;
    const cell one = cell_of(c, number);
    if (block < c->sides) {
        int64_t place[3];
        cf_packed_place(c, one.at, place);
        cf_pack_signal(c, &c->desc.x, x, one.sample, group, block, place,
                       m->x + (size_t)slot * c->signal_bytes + block * cf_packed_block(c) * real);
        return;
    }
    const cf_tensor *const t = &c->desc.y;
    const int64_t first = (block - c->sides) * c->block, used = cf_min(c->block, c->own - first),
                  numbers = cf_cell_positions(c) * c->block;
    char *const to = m->gy + (size_t)slot * c->result_bytes + (block - c->sides) * numbers * real;
    if (used < c->block)
        memset(to, 0, (size_t)(numbers * real));
    for (int64_t l = 0; l < used; l += CF_MAX_LANES) {
        const cf_lanes lanes =
            cf_lanes_make(one.sample * t->sample_stride + group * t->group_stride + (first + l) * t->channel_stride,
                          t->channel_stride, used - l);
        cf_pack_gradient(c, gy, &lanes, one.at, one.count, c->block, to + l * real);
    }
}

/* The first sum of a pair of blocks. */
static int64_t place_of_pair(const cf_convolution *c, int64_t pair) {
    const int64_t of_group = c->blocks * c->sides;
    return pair / of_group * (int64_t)(c->weights_bytes / c->real) + pair % of_group * block_sums(c);
}

/* The sums of one pair of blocks over the cells [begin, end), by taps of one row of the kernel. */
static void sum_pair(const cf_convolution *c, const weights_memory *m, int64_t begin, int64_t end, int64_t pair,
                     int64_t from, int64_t to) {
    const int64_t side = pair % c->sides, block = pair / c->sides % c->blocks, group = pair / c->sides / c->blocks,
                  real = (int64_t)c->real, per_tap = cf_tap_numbers(c), first = c->run[from].first * per_tap,
                  count = (to < c->runs ? c->run[to].first : c->taps) * per_tap - first;
    char *const sums = m->sums + place_of_pair(c, pair) * real;
    memset(sums + first * real, 0, (size_t)(count * real));
    for (int64_t i = begin; i < end; ++i) {
        const size_t slot = (size_t)((i - begin) * c->desc.groups + group);
        const cell one = cell_of(c, i);
        add_cell(c, &one, m->x + slot * c->signal_bytes + side * cf_packed_block(c) * real,
                 m->gy + slot * c->result_bytes + block * cf_cell_positions(c) * c->block * real,
                 cf_min(c->side, c->summed - side * c->side), from, to, sums);
    }
    if (m->totals)
        add_to_totals(c, sums + first * real, m->totals + place_of_pair(c, pair) + first, count);
}

/* gw <- sums[tap][side][block] of some channels of gy. The taps of a channel are neighbours in the tensor. */
static void store_elements(const cf_convolution *c, const char *sums, int64_t channels, const cf_piece *piece,
                           int64_t step, bool accumulate) {
    const size_t bytes = (size_t)piece->lanes * c->real, vector = (size_t)c->block * c->real;
    const int64_t number = (int64_t)cf_dtype_bytes(piece->dtype);
    double line[CF_PACKED_COLUMNS * CF_MAX_LANES];
    for (int64_t channel = 0; channel < channels; ++channel)
        for (int64_t from = 0; from < c->taps; from += CF_PACKED_COLUMNS) {
            cf_piece part = *piece;
            part.elements = cf_min(CF_PACKED_COLUMNS, c->taps - from);
            for (int64_t i = 0; i < part.elements; ++i)
                memcpy((char *)line + (size_t)i * bytes, sums + (size_t)((from + i) * c->side + channel) * vector,
                       bytes);
            part.data = (char *)piece->data + (channel * step + from) * number;
            part.step = 1;
            c->kernels->store(line, piece->lanes, &part, accumulate);
        }
}

static void store_pair(const cf_convolution *c, const weights_memory *m, int64_t pair, void *gw, bool accumulate) {
    const cf_tensor *const t = &c->desc.w;
    const int64_t group = pair / c->sides / c->blocks, own = pair / c->sides % c->blocks * c->block,
                  summed = pair % c->sides * c->side, used = cf_min(c->block, c->own - own),
                  channels = cf_min(c->side, c->summed - summed), per_tap = cf_tap_numbers(c),
                  place = place_of_pair(c, pair);
    char *const sums = m->sums + place * (int64_t)c->real;
    if (m->totals)
        narrow(c, m->totals + place, block_sums(c), sums);
    for (int64_t l = 0; l < used; l += CF_MAX_LANES) {
        const cf_lanes lanes = cf_lanes_make((own + l) * t->sample_stride, t->sample_stride, used - l);
        const int64_t first = group * t->group_stride + summed * t->channel_stride;
        if (cf_has_dense_taps(c)) {
            const cf_piece piece = tap_piece(c, gw, 0, first, &lanes);
            store_elements(c, sums + (size_t)l * c->real, channels, &piece, t->channel_stride, accumulate);
            continue;
        }
        for (int64_t tap = 0; tap < c->taps; ++tap) {
            cf_piece piece = tap_piece(c, gw, tap, first, &lanes);
            piece.step = t->channel_stride;
            piece.elements = channels;
            c->kernels->store(sums + (size_t)(tap * per_tap + l) * c->real, c->block, &piece, accumulate);
        }
    }
}

/* The runs of taps of the kernel's row `row`. */
static void runs_of_row(const cf_convolution *c, int64_t row, int64_t *from, int64_t *to) {
    const int64_t per_row = c->runs / (c->desc.axis[0].taps * c->desc.axis[1].taps);
    *from = row * per_row;
    *to = *from + per_row;
}

typedef struct dense_call {
    const cf_convolution *c;
    const void *x, *gy;
    void *gw;
    weights_memory m;
    int64_t first, count, rows; /* cells that are packed at a time; rows of the kernel */
    bool accumulate;
} dense_call;

static void do_pack(const void *user, int64_t i, int thread) {
    const dense_call *const d = user;
    const int64_t kinds = d->c->sides + d->c->blocks;
    (void)thread;
    pack_block(d->c, d->x, d->gy, &d->m, i / kinds, d->first + i / kinds / d->c->desc.groups, i % kinds);
}

static void do_sum(const void *user, int64_t i, int thread) {
    const dense_call *const d = user;
    int64_t from, to;
    (void)thread;
    runs_of_row(d->c, i % d->rows, &from, &to);
    sum_pair(d->c, &d->m, d->first, d->first + d->count, i / d->rows, from, to);
}

static void do_store(const void *user, int64_t i, int thread) {
    const dense_call *const d = user;
    (void)thread;
    store_pair(d->c, &d->m, i, d->gw, d->accumulate);
}

static void convolve_dense(const cf_convolution *c, const void *x, const void *gy, void *gw, bool accumulate,
                           void *scratch, int threads) {
    dense_call d = {.c = c,
                    .x = x,
                    .gy = gy,
                    .gw = gw,
                    .m = lay_out(c, scratch),
                    .rows = c->desc.axis[0].taps * c->desc.axis[1].taps,
                    .accumulate = accumulate};
    const int64_t groups = c->desc.groups, pairs = groups * c->blocks * c->sides, cells = all_cells(c);
    if (d.m.totals)
        memset(d.m.totals, 0, (size_t)groups * (c->weights_bytes / c->real) * sizeof(double));
    for (; d.first < cells; d.first += c->chunk) {
        d.count = cf_min(c->chunk, cells - d.first);
        cf_parallel_for(threads, d.count * groups * (c->sides + c->blocks), do_pack, &d);
        cf_parallel_for(threads, pairs * d.rows, do_sum, &d);
    }
    cf_parallel_for(threads, pairs, do_store, &d);
}

/* ----------------------------------------------------------------------------------------------------- channelwise */

/* The totals of one block of lanes and one slice of the cells: [channel of gy][tap][lane]. */
static void sum_slice(const cf_convolution *c, const void *x, const void *gy, int64_t block, int64_t slice,
                      char *memory, double *totals) {
    const int64_t cells = cf_channelwise_items(c) * cf_cells_of_sample(c), outs = c->desc.out_channels,
                  numbers = block_sums(c);
    char *const packed = memory + c->signal_bytes, *const sums = packed + c->result_bytes;
    memset(totals, 0, (size_t)(outs * numbers) * sizeof *totals);
    for (int64_t i = slice; i < cells; i += c->parts) {
        const cell one = cell_of(c, i);
        const cf_lanes lanes = cf_channelwise_lanes(c, &c->desc.x, block, one.sample, 0);
        int64_t place[3];
        cf_packed_place(c, one.at, place);
        cf_pack_lanes(c, &c->desc.x, x, &lanes, place, memory);
        if (lanes.count < c->block)
            memset(packed, 0, c->result_bytes);
        for (int64_t out = 0; out < outs; ++out) {
            const cf_lanes from = cf_channelwise_lanes(c, &c->desc.y, block, one.sample, out);
            cf_pack_gradient(c, gy, &from, one.at, one.count, c->block, packed);
            memset(sums, 0, (size_t)numbers * c->real);
            add_cell(c, &one, memory, packed, 1, 0, c->runs, sums);
            add_to_totals(c, sums, totals + out * numbers, numbers);
        }
    }
}

static void store_block(const cf_convolution *c, double *totals, int64_t block, void *gw, bool accumulate) {
    const cf_tensor *const t = &c->desc.w;
    const int64_t outs = c->desc.out_channels, numbers = block_sums(c), blocks = cf_channelwise_blocks(c);
    double line[CF_MAX_LANES];
    for (int64_t out = 0; out < outs; ++out)
        for (int64_t tap = 0; tap < c->taps; ++tap) {
            double *const sum = totals + (block * outs + out) * numbers + tap * c->block;
            for (int64_t slice = 1; slice < c->parts; ++slice)
                for (int64_t l = 0; l < c->block; ++l)
                    sum[l] += sum[slice * blocks * outs * numbers + l];
            for (int64_t l = 1; c->samples_are_lanes && l < cf_min(c->block, c->desc.batch); ++l)
                sum[0] += sum[l];
            const int64_t group = c->samples_are_lanes ? block : block * c->block;
            const cf_lanes lanes = cf_lanes_make(group * t->group_stride + out * t->sample_stride, t->group_stride,
                                                 c->samples_are_lanes ? 1 : cf_min(c->block, c->desc.groups - group));
            const cf_piece piece = tap_piece(c, gw, tap, 0, &lanes);
            narrow(c, sum, lanes.count, line);
            c->kernels->store(line, c->block, &piece, accumulate);
        }
}

static size_t thread_bytes(const cf_convolution *c) { return c->signal_bytes + c->result_bytes + c->weights_bytes; }

typedef struct channelwise_call {
    const cf_convolution *c;
    const void *x, *gy;
    void *gw;
    char *memory; /* of the threads */
    double *totals;
    bool accumulate;
} channelwise_call;

static void do_slice(const void *user, int64_t i, int thread) {
    const channelwise_call *const d = user;
    const int64_t blocks = cf_channelwise_blocks(d->c), numbers = d->c->desc.out_channels * block_sums(d->c);
    sum_slice(d->c, d->x, d->gy, i % blocks, i / blocks, d->memory + (size_t)thread * thread_bytes(d->c),
              d->totals + i * numbers);
}

static void do_store_block(const void *user, int64_t i, int thread) {
    const channelwise_call *const d = user;
    (void)thread;
    store_block(d->c, d->totals, i, d->gw, d->accumulate);
}

static void convolve_channelwise(const cf_convolution *c, const void *x, const void *gy, void *gw, bool accumulate,
                                 void *scratch, int threads) {
    const int64_t blocks = cf_channelwise_blocks(c);
    char *const totals = (char *)scratch + (size_t)c->device->threads * thread_bytes(c);
    const channelwise_call d = {c, x, gy, gw, scratch, (double *)(void *)totals, accumulate};
    cf_parallel_for(threads, blocks * c->parts, do_slice, &d);
    cf_parallel_for(threads, blocks, do_store_block, &d);
}

size_t cf_convolve_weights_scratch(const cf_convolution *c) {
    const size_t groups = (size_t)c->desc.groups;
    if (c->channelwise)
        return (size_t)c->device->threads * thread_bytes(c) +
               (size_t)(c->parts * cf_channelwise_blocks(c) * c->desc.out_channels * block_sums(c)) * sizeof(double);
    return (size_t)c->chunk * groups * (c->signal_bytes + c->result_bytes) + groups * c->weights_bytes +
           (c->chunk < all_cells(c) ? groups * (c->weights_bytes / c->real) * sizeof(double) : 0);
}

void cf_convolve_weights(const cf_convolution *c, const void *x, const void *gy, void *gw, bool accumulate,
                         void *scratch, int threads) {
    (c->channelwise ? convolve_channelwise : convolve_dense)(c, x, gy, gw, accumulate, scratch, threads);
}
