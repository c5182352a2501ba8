/* SPDX-License-Identifier: Apache-2.0 */
/* gw by its definition: the order of cells and blocks, and the sums of several threads. */
#include "core/arith.h"
#include "cpu/parallel.h"
#include "cpu/spatial/cells.h"

#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- dense */

typedef struct weights_memory {
    char *x, *gy;   /* [cell of a chunk][group][block of channels] */
    char *sums;     /* [group][block of gy][block of x]; those that stay: of each thread */
    double *totals; /* as sums; NULL: one chunk has all cells, and its sums are the result */
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
    const cf_cell one = cf_cell_of(c, number);
    if (block < c->sides)
        cf_pack_cell_of_x(c, x, &one, group, block,
                          m->x + (size_t)slot * c->signal_bytes + block * cf_packed_block(c) * real);
    else
        cf_pack_cell_of_gy(c, gy, &one, group, block - c->sides,
                           m->gy + (size_t)slot * c->result_bytes + (block - c->sides) * cf_block_of_gy(c) * real);
}

/* The first sum of a pair of blocks. */
static int64_t place_of_pair(const cf_convolution *c, int64_t pair) {
    const int64_t of_group = c->blocks * c->sides;
    return pair / of_group * (int64_t)(c->weights_bytes / c->real) + pair % of_group * cf_block_sums(c);
}

/* The sums of one pair of blocks over the cells [begin, end), by runs of taps [from, to). */
static void sum_pair(const cf_convolution *c, const weights_memory *m, int64_t begin, int64_t end, int64_t pair,
                     int64_t from, int64_t to, char *sums) {
    const int64_t side = pair % c->sides, block = pair / c->sides % c->blocks, group = pair / c->sides / c->blocks,
                  real = (int64_t)c->real, per_tap = cf_tap_numbers(c), first = c->run[from].first * per_tap,
                  count = (to < c->runs ? c->run[to].first : c->taps) * per_tap - first;
    memset(sums + first * real, 0, (size_t)(count * real));
    for (int64_t i = begin; i < end; ++i) {
        const size_t slot = (size_t)((i - begin) * c->desc.groups + group);
        const cf_cell one = cf_cell_of(c, i);
        cf_add_cell(c, &one, m->x + slot * c->signal_bytes + side * cf_packed_block(c) * real,
                    m->gy + slot * c->result_bytes + block * cf_block_of_gy(c) * real,
                    cf_min(c->side, c->summed - side * c->side), from, to, sums);
    }
    if (m->totals)
        cf_add_to_totals(c, sums + first * real, m->totals + place_of_pair(c, pair) + first, count);
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

static char *sums_of_pair(const dense_call *d, int64_t pair) {
    return d->m.sums + place_of_pair(d->c, pair) * (int64_t)d->c->real;
}

static void do_sum(const void *user, int64_t i, int thread) {
    const dense_call *const d = user;
    int64_t from, to;
    (void)thread;
    runs_of_row(d->c, i % d->rows, &from, &to);
    sum_pair(d->c, &d->m, d->first, d->first + d->count, i / d->rows, from, to, sums_of_pair(d, i / d->rows));
}

static void do_sum_and_store(const void *user, int64_t i, int thread) {
    const dense_call *const d = user;
    char *const sums = d->m.sums + thread * cf_block_sums(d->c) * (int64_t)d->c->real;
    sum_pair(d->c, &d->m, 0, d->count, i, 0, d->c->runs, sums);
    cf_store_pair(d->c, i, sums, d->gw, d->accumulate);
}

static void do_store(const void *user, int64_t i, int thread) {
    const dense_call *const d = user;
    char *const sums = sums_of_pair(d, i);
    (void)thread;
    if (d->m.totals)
        cf_narrow(d->c, d->m.totals + place_of_pair(d->c, i), cf_block_sums(d->c), sums);
    cf_store_pair(d->c, i, sums, d->gw, d->accumulate);
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
        if (c->sums_stay) {
            cf_parallel_for(threads, pairs, do_sum_and_store, &d);
            return;
        }
        cf_parallel_for(threads, pairs * d.rows, do_sum, &d);
    }
    cf_parallel_for(threads, pairs, do_store, &d);
}

/* ---------------------------------------------------------------------------------------------------------- sliced */

/* Positions whose sums are added in the compute type before they are added to totals in double. */
enum {
    SLICE_POSITIONS = 4096
};

typedef struct sliced_call {
    const cf_convolution *c;
    const void *x, *gy;
    void *gw;
    char *memory;   /* of the threads: packed x, a packed block of gy, the sums of all blocks of gy */
    double *totals; /* [slice][group][block of gy] */
    bool accumulate;
} sliced_call;

static size_t sliced_sums(const cf_convolution *c) { return (size_t)(c->blocks * cf_block_sums(c)); }
/* Bytes of a thread's packed x and packed gy, and of its sums. */
static size_t sliced_x(const cf_convolution *c) {
    return c->signal_bytes + (c->positions_are_vectors ? cf_align((size_t)cf_sliding_slack(c) * c->real) : 0);
}
static size_t sliced_gy(const cf_convolution *c) {
    return cf_align((size_t)(c->positions_are_vectors ? cf_sliding_gy(c) : cf_block_of_gy(c)) * c->real);
}
static size_t sliced_own_sums(const cf_convolution *c) {
    return cf_align((c->positions_are_vectors ? (size_t)cf_sliding_sums(c) : sliced_sums(c)) * c->real);
}
static size_t sliced_memory(const cf_convolution *c) { return sliced_x(c) + sliced_gy(c) + sliced_own_sums(c); }

/* One slice of the cells of one group. */
static void do_cells(const void *user, int64_t i, int thread) {
    const sliced_call *const d = user;
    const cf_convolution *const c = d->c;
    char *const x = d->memory + (size_t)thread * sliced_memory(c), *const gy = x + sliced_x(c),
                *const sums = gy + sliced_gy(c);
    double *const totals = d->totals + (size_t)i * sliced_sums(c);
    const size_t bytes = sliced_own_sums(c);
    int64_t positions = 0;
    memset(totals, 0, sliced_sums(c) * sizeof *totals);
    memset(sums, 0, bytes);
    if (c->positions_are_vectors)
        memset(x, 0, sliced_x(c)); /* zeros of gy are multiplied with all of it */
    for (int64_t n = i / c->desc.groups, group = i % c->desc.groups; n < all_cells(c); n += c->parts) {
        const cf_cell one = cf_cell_of(c, n);
        cf_pack_cell_of_x(c, d->x, &one, group, 0, x);
        if (c->positions_are_vectors) {
            cf_pack_sliding_gy(c, d->gy, &one, group, gy);
            cf_add_sliding_cell(c, &one, x, gy, sums);
        }
        for (int64_t block = 0; !c->positions_are_vectors && block < c->blocks; ++block) {
            cf_pack_cell_of_gy(c, d->gy, &one, group, block, gy);
            cf_add_cell(c, &one, x, gy, c->summed, 0, c->runs, sums + block * cf_block_sums(c) * (int64_t)c->real);
        }
        positions += one.count[0] * one.count[1] * one.count[2];
        if (positions < SLICE_POSITIONS && n + c->parts < all_cells(c))
            continue;
        if (c->positions_are_vectors)
            cf_add_up_sliding(c, sums, totals);
        else
            cf_add_to_totals(c, sums, totals, (int64_t)sliced_sums(c));
        memset(sums, 0, bytes);
        positions = 0;
    }
}

static void do_add_slices(const void *user, int64_t i, int thread) {
    const sliced_call *const d = user;
    const cf_convolution *const c = d->c;
    const int64_t numbers = cf_block_sums(c), apart = c->desc.groups * c->blocks * numbers;
    char *const sums = d->memory + (size_t)thread * sliced_memory(c) + sliced_x(c) + sliced_gy(c);
    double *const totals = d->totals + i * numbers;
    for (const double *from = totals + apart; from < totals + c->parts * apart; from += apart)
        for (int64_t n = 0; n < numbers; ++n)
            totals[n] += from[n];
    cf_narrow(c, totals, numbers, sums);
    cf_store_pair(c, i, sums, d->gw, d->accumulate);
}

static void convolve_sliced(const cf_convolution *c, const void *x, const void *gy, void *gw, bool accumulate,
                            void *scratch, int threads) {
    char *const totals = (char *)scratch + (size_t)c->device->threads * sliced_memory(c);
    const sliced_call d = {c, x, gy, gw, scratch, (double *)(void *)totals, accumulate};
    cf_parallel_for(threads, c->parts * c->desc.groups, do_cells, &d);
    cf_parallel_for(threads, c->desc.groups * c->blocks, do_add_slices, &d);
}

/* ----------------------------------------------------------------------------------------------------- channelwise */

/* The totals of one block of lanes and one slice of the cells: [channel of gy][tap][lane]. */
static void sum_slice(const cf_convolution *c, const void *x, const void *gy, int64_t block, int64_t slice,
                      char *memory, double *totals) {
    const int64_t cells = cf_channelwise_items(c) * cf_cells_of_sample(c), outs = c->desc.out_channels,
                  numbers = cf_block_sums(c);
    char *const packed = memory + c->signal_bytes, *const sums = packed + c->result_bytes;
    memset(totals, 0, (size_t)(outs * numbers) * sizeof *totals);
    for (int64_t i = slice; i < cells; i += c->parts) {
        const cf_cell one = cf_cell_of(c, i);
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
            cf_add_cell(c, &one, memory, packed, 1, 0, c->runs, sums);
            cf_add_to_totals(c, sums, totals + out * numbers, numbers);
        }
    }
}

static void store_block(const cf_convolution *c, double *totals, int64_t block, void *gw, bool accumulate) {
    const cf_tensor *const t = &c->desc.w;
    const int64_t outs = c->desc.out_channels, numbers = cf_block_sums(c), blocks = cf_channelwise_blocks(c);
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
            const cf_piece piece = cf_tap_piece(c, gw, tap, 0, &lanes);
            cf_narrow(c, sum, lanes.count, line);
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
    const int64_t blocks = cf_channelwise_blocks(d->c), numbers = d->c->desc.out_channels * cf_block_sums(d->c);
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
               (size_t)(c->parts * cf_channelwise_blocks(c) * c->desc.out_channels * cf_block_sums(c)) * sizeof(double);
    if (c->sliced)
        return (size_t)c->device->threads * sliced_memory(c) +
               (size_t)c->parts * groups * sliced_sums(c) * sizeof(double);
    if (c->sums_stay)
        return (size_t)c->chunk * groups * (c->signal_bytes + c->result_bytes) +
               (size_t)c->device->threads * (size_t)cf_block_sums(c) * c->real;
    return (size_t)c->chunk * groups * (c->signal_bytes + c->result_bytes) + groups * c->weights_bytes +
           (c->chunk < all_cells(c) ? groups * (c->weights_bytes / c->real) * sizeof(double) : 0);
}

void cf_convolve_weights(const cf_convolution *c, const void *x, const void *gy, void *gw, bool accumulate,
                         void *scratch, int threads) {
    (c->channelwise ? convolve_channelwise
     : c->sliced    ? convolve_sliced
                    : convolve_dense)(c, x, gy, gw, accumulate, scratch, threads);
}
