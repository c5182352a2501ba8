/* SPDX-License-Identifier: Apache-2.0 */
/* y = x * w and gx = gy * w by their definition: convolution.h. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/parallel.h"
#include "cpu/spatial/convolution.h"

#include <string.h>

typedef struct signal_call {
    const cf_convolution *c;
    const cf_tensor *from, *to;
    const void *signal, *bias;
    void *result;
    bool accumulate;
    const char *weights; /* packed */
    char *memory;        /* of the threads */
    int64_t groups, blocks[3];
} signal_call;

/* A task: results of one sample and group from position `at` of each lattice on. */
typedef struct task {
    int64_t group, sample; /* channelwise: block and item of lanes */
    int64_t at[3], part;
    char *signal, *sums; /* packed; of one block of results */
} task;

/* One lattice of each axis, and the positions that the task has of it. */
typedef struct part {
    const cf_lattice *axis[3];
    int64_t count[3], taps;
    int64_t row, plane, channel; /* numbers of the sums from one row, plane, channel to the next */
    const int64_t *a_offset, *b_offset;
} part;

/* The parts of a task, one after the other. False: there is no more. */
static bool next_part(const cf_convolution *c, const task *t, int64_t *index, part *p) {
    const int64_t i = (*index)++, all = c->lattices[0] * c->lattices[1] * c->lattices[2];
    if (i >= all)
        return false;
    const int64_t which[3] = {i / c->lattices[2] / c->lattices[1], i / c->lattices[2] % c->lattices[1],
                              i % c->lattices[2]};
    p->a_offset = i == 0 ? c->a_offset : p->a_offset + p->taps;
    p->b_offset = i == 0 ? c->b_offset : p->b_offset + p->taps;
    p->taps = 1;
    for (int a = 0; a < 3; ++a) {
        p->axis[a] = &c->lattice[a][which[a]];
        p->count[a] = cf_max(0, cf_min(c->rows[a], p->axis[a]->count - t->at[a]));
        p->taps *= p->axis[a]->taps;
    }
    p->row = c->positions_are_vectors ? cf_sums_row(c, p->count[2]) : p->count[2] * c->block;
    p->plane = c->positions_are_vectors ? cf_sums_plane(c, p->count[1], p->count[2]) : p->count[1] * p->row;
    p->channel = c->positions_are_vectors ? p->count[0] * p->plane : 1;
    return true;
}

/* The same as add_row, for positions as vectors: weights and signal change places. */
static void add_positions(const cf_convolution *c, cf_sum_tile *tile, const char *row, char *sums, int64_t positions) {
    const int64_t width = c->kernels->tiles->width, all = cf_ceil_div(positions, width),
                  vectors = cf_ceil_div(all, cf_ceil_div(all, c->vectors)), real = (int64_t)c->real;
    for (int64_t v = 0; v < all; v += vectors) {
        tile->a = row + v * width * real;
        tile->c = sums + v * width * real;
        c->kernels->tiles->sum[CF_TILE_NEAR][cf_min(vectors, all - v) - 1][c->block - 1](tile);
    }
}

/* sums += the products of the taps [from, to) of the part with positions [x, end) of row (z, y). */
static void add_row(const cf_convolution *c, const part *p, cf_sum_tile *tile, const char *row, char *sums,
                    int64_t from, int64_t to, int64_t x, int64_t end) {
    const cf_sum_tile_kind kind = c->channelwise ? CF_TILE_OWN : c->planar ? CF_TILE_NEAR : CF_TILE_APART;
    tile->inner = to - from;
    if (c->positions_are_vectors) {
        tile->a_offset = p->b_offset + from;
        tile->b_offset = p->a_offset + from;
        add_positions(c, tile, row, sums, end);
        return;
    }
    const int64_t lanes = cf_sum_tile_lanes(c, end - x);
    tile->a_offset = p->a_offset + from;
    tile->b_offset = p->b_offset + from;
    for (; x < end; x += lanes) {
        tile->b = row + x * c->column * (int64_t)c->real;
        tile->c = sums + x * c->block * (int64_t)c->real;
        c->kernels->tiles->sum[kind][c->vectors - 1][cf_min(lanes, end - x) - 1](tile);
    }
}

/* The taps of an axis that read some of the signal at position j, not padding. */
static void taps_at(const cf_lattice *l, int64_t j, int64_t *from, int64_t *to) {
    *from = 0;
    *to = l->taps;
    while (*from < *to && (j < l->from[*from] || j >= l->to[*from]))
        ++*from;
    while (*to > *from && (j < l->from[*to - 1] || j >= l->to[*to - 1]))
        --*to;
}

/* sums += the products of `outer` blocks of channels, of which `run` channels are added. Products with rows of padding
 * are left out, except where rows are joined. */
static void add_products(const cf_convolution *c, const task *t, const part *p, const char *signal, const char *weights,
                         int64_t outer, int64_t run, char *sums) {
    const cf_lattice *const axis[2] = {p->axis[0], p->axis[1]}, *const last_axis = p->axis[2];
    const int64_t width = c->axis[2].phases * c->extent[2] * c->column * (int64_t)c->real,
                  rows = c->rows_joined ? cf_min(1, p->count[1]) : p->count[1],
                  columns = c->rows_joined ? (p->count[1] - 1) * p->row + p->count[2] : p->count[2],
                  taps = c->clipped ? 1 : cf_max(1, CF_MAX_PRODUCTS / (outer * run));
    cf_sum_tile tile = {.outer = outer, .run = run};
    if (c->positions_are_vectors) {
        tile.b = weights;
        tile.b_step = c->taps * cf_tap_numbers(c);
        tile.a_step = cf_packed_block(c);
        tile.a_run_step = c->channel;
        tile.b_run_step = c->block;
        tile.c_step = p->channel;
    } else {
        tile.a = weights;
        tile.a_step = c->taps * cf_tap_numbers(c);
        tile.b_step = cf_packed_block(c);
        tile.a_run_step = c->block;
        tile.b_run_step = c->channel;
        tile.c_step = c->block;
    }
    for (int64_t z = 0; z < p->count[0]; ++z)
        for (int64_t y = 0; y < rows; ++y) {
            const char *const row = signal + (z * axis[0]->pace * c->extent[1] + y * axis[1]->pace) * width;
            char *const to = sums + (z * p->plane + y * p->row) * (int64_t)c->real;
            int64_t tz, end_z, ty, end_y;
            taps_at(axis[0], t->at[0] + z, &tz, &end_z);
            taps_at(axis[1], t->at[1] + y, &ty, &end_y);
            if (c->rows_joined) { /* for all rows */
                ty = 0;
                end_y = axis[1]->taps;
            }
            /* All planes of taps at once, if no row of taps is left out between them. */
            const int64_t planes = ty == 0 && end_y == axis[1]->taps ? end_z - tz : 1;
            for (; tz < end_z; tz += planes) {
                const int64_t first = (tz * axis[1]->taps + ty) * last_axis->taps,
                              last = ((tz + planes - 1) * axis[1]->taps + end_y) * last_axis->taps;
                for (int64_t i = first; i < last; i += taps) {
                    const int64_t tap = i % last_axis->taps,
                                  from = c->clipped ? cf_max(0, last_axis->from[tap] - t->at[2]) : 0,
                                  end = c->clipped ? cf_min(columns, last_axis->to[tap] - t->at[2]) : columns;
                    add_row(c, p, &tile, row, to, i, cf_min(i + taps, last), from, end);
                }
            }
        }
}

/* to[i] = to[0], i < count. */
static void repeat(char *to, size_t bytes, size_t count) {
    for (size_t done = 1; done < count; done *= 2)
        memcpy(to + done * bytes, to, (done < count - done ? done : count - done) * bytes);
}

/* sums = 0, or the bias of channels from number `lane` of the block on. */
static void clear(const signal_call *call, const part *p, const cf_lanes *channels, int64_t lane, char *sums) {
    const cf_convolution *const c = call->c;
    const int64_t positions = c->positions_are_vectors ? p->channel : p->count[0] * p->count[1] * p->count[2];
    const size_t bytes = (size_t)c->block * c->real;
    if (!call->bias) {
        memset(sums, 0, (size_t)positions * bytes);
        return;
    }
    const cf_piece piece = {.dtype = cf_tensor_bias_dtype(call->to),
                            .data = (void *)call->bias,
                            .offset = channels->offset,
                            .elements = 1,
                            .lanes = channels->count};
    if (c->positions_are_vectors) {
        char *const own = sums + (size_t)(lane * p->channel) * c->real;
        c->kernels->load(own, 1, &piece);
        repeat(own, c->real, (size_t)positions);
        return;
    }
    for (int64_t i = 0; i < positions; ++i) {
        if (i == 0)
            c->kernels->load(sums + (size_t)lane * c->real, c->block, &piece);
        else
            memcpy(sums + (size_t)i * bytes + (size_t)lane * c->real, sums + (size_t)lane * c->real,
                   (size_t)channels->count * c->real);
    }
}

static void store(const signal_call *call, const task *t, const part *p, const cf_lanes *lanes, const char *sums) {
    const cf_convolution *const c = call->c;
    const int64_t position = c->positions_are_vectors ? 1 : c->block;
    const int64_t *const stride = call->to->axis_stride, bytes = (int64_t)cf_dtype_bytes(call->to->dtype);
    for (int64_t z = 0; z < p->count[0]; ++z)
        for (int64_t y = 0; y < p->count[1]; ++y) {
            const int64_t first = (p->axis[0]->start + (t->at[0] + z) * p->axis[0]->step) * stride[0] +
                                  (p->axis[1]->start + (t->at[1] + y) * p->axis[1]->step) * stride[1] +
                                  (p->axis[2]->start + t->at[2] * p->axis[2]->step) * stride[2];
            const cf_piece piece = {.dtype = call->to->dtype,
                                    .data = (char *)call->result + first * bytes,
                                    .offset = lanes->offset,
                                    .step = p->axis[2]->step * stride[2],
                                    .elements = p->count[2],
                                    .lanes = lanes->count,
                                    .adjacent = lanes->adjacent};
            c->kernels->store(sums + (z * p->plane + y * p->row) * (int64_t)c->real, position, &piece,
                              call->accumulate);
        }
}

/* At most `max` result channels of block `block`, from number `lane` of it on. */
static cf_lanes block_lanes(const signal_call *call, const task *t, int64_t block, int64_t lane, int64_t max) {
    const cf_convolution *const c = call->c;
    const int64_t first = block * c->block + lane;
    return cf_lanes_make(t->group * call->to->group_stride + t->sample * call->to->sample_stride +
                             first * call->to->channel_stride,
                         call->to->channel_stride, cf_min(max, cf_min(c->block - lane, c->own - first)));
}

static void compute_block(const signal_call *call, const task *t, int64_t block) {
    const cf_convolution *const c = call->c;
    const int64_t size = cf_packed_block(c) * (int64_t)c->real,
                  weights = c->taps * cf_tap_numbers(c) * (int64_t)c->real, whole = c->summed / c->side,
                  used = cf_min(c->block, c->own - block * c->block),
                  each = c->positions_are_vectors ? 1 : CF_MAX_LANES;
    const char *const w = call->weights + (t->group * c->blocks + block) * c->sides * weights;
    part p;
    for (int64_t i = 0; next_part(c, t, &i, &p);) {
        if (!call->bias)
            clear(call, &p, NULL, 0, t->sums);
        for (int64_t l = 0; call->bias && l < used; l += each) {
            const cf_lanes channels =
                cf_lanes_make(t->group * c->own + block * c->block + l, 1, cf_min(each, used - l));
            clear(call, &p, &channels, l, t->sums);
        }
        for (int64_t side = 0; side < whole; side += c->chunk)
            add_products(c, t, &p, t->signal + side * size, w + side * weights, cf_min(c->chunk, whole - side), c->side,
                         t->sums);
        if (whole < c->sides)
            add_products(c, t, &p, t->signal + whole * size, w + whole * weights, 1, c->summed - whole * c->side,
                         t->sums);
        for (int64_t l = 0; l < used; l += each) {
            const cf_lanes lanes = block_lanes(call, t, block, l, each);
            store(call, t, &p, &lanes, t->sums + (size_t)(l * p.channel) * c->real);
        }
    }
}

static void run_task(const signal_call *call, const task *t) {
    const cf_convolution *const c = call->c;
    int64_t at[3];
    cf_packed_place(c, t->at, at);
    for (int64_t side = 0; side < c->sides; ++side)
        cf_pack_signal(c, call->from, call->signal, t->sample, t->group, side, at,
                       t->signal + side * cf_packed_block(c) * (int64_t)c->real);
    for (int64_t block = t->part; block < c->blocks; block += c->parts)
        compute_block(call, t, block);
}

/* y: each output channel of a group reads the same signal. gx: the sum over the channels of gy. */
static void run_channelwise(const signal_call *call, const task *t) {
    const cf_convolution *const c = call->c;
    const bool data = cf_is_gradient_of_signal(c);
    const int64_t outs = c->desc.out_channels, weights = c->taps * c->block * (int64_t)c->real;
    const char *const w = call->weights + t->group * outs * weights;
    int64_t packed = -1, at[3];
    cf_packed_place(c, t->at, at);
    part p;
    for (int64_t i = 0; next_part(c, t, &i, &p);)
        for (int64_t out = 0; out < outs; ++out) {
            const int64_t needed = data ? out : 0;
            if (needed != packed) {
                const cf_lanes lanes = cf_channelwise_lanes(c, call->from, t->group, t->sample, needed);
                cf_pack_lanes(c, call->from, call->signal, &lanes, at, t->signal);
                packed = needed;
            }
            if (!data || out == 0) {
                const int64_t first = c->samples_are_lanes ? t->group * outs + out : t->group * c->block * outs + out;
                const cf_lanes channels = cf_lanes_make(
                    first, c->samples_are_lanes ? 0 : outs,
                    c->samples_are_lanes ? c->block : cf_min(c->block, c->desc.groups - t->group * c->block));
                clear(call, &p, &channels, 0, t->sums);
            }
            add_products(c, t, &p, t->signal, w + out * weights, 1, 1, t->sums);
            if (data && out + 1 < outs)
                continue;
            const cf_lanes lanes = cf_channelwise_lanes(c, call->to, t->group, t->sample, data ? 0 : out);
            store(call, t, &p, &lanes, t->sums);
        }
}

typedef struct packing {
    const cf_convolution *c;
    const void *w;
    char *to;
} packing;

static void pack_some_weights(const void *user, int64_t i, int thread) {
    const packing *const p = user;
    const cf_convolution *const c = p->c;
    char *const to = p->to + i * c->taps * cf_tap_numbers(c) * (int64_t)c->real;
    (void)thread;
    if (c->channelwise)
        cf_pack_channelwise_weights(c, p->w, i / c->desc.out_channels, i % c->desc.out_channels, to);
    else
        cf_pack_weights(c, p->w, i / c->sides / c->blocks, i / c->sides % c->blocks, i % c->sides, to);
}

static void pack_all_weights(const cf_convolution *c, const void *w, char *to, int threads) {
    const packing p = {c, w, to};
    const int64_t count =
        c->channelwise ? cf_channelwise_blocks(c) * c->desc.out_channels : c->desc.groups * c->blocks * c->sides;
    cf_parallel_for(threads, count, pack_some_weights, &p);
}

static void run_task_of_number(const void *user, int64_t i, int thread) {
    const signal_call *const call = user;
    const cf_convolution *const c = call->c;
    char *const own = call->memory + (size_t)thread * (c->signal_bytes + c->result_bytes);
    const int64_t block = i / c->parts, z = call->blocks[0], y = call->blocks[1], x = call->blocks[2];
    const task t = {.group = block / x / y / z % call->groups,
                    .sample = block / x / y / z / call->groups,
                    .at = {block / x / y % z * c->rows[0], block / x % y * c->rows[1], block % x * c->rows[2]},
                    .part = i % c->parts,
                    .signal = own,
                    .sums = own + c->signal_bytes};
    c->channelwise ? run_channelwise(call, &t) : run_task(call, &t);
}

void cf_convolve_signal(const cf_convolution *c, const void *signal, const void *w, const void *bias, void *result,
                        bool accumulate, void *scratch, int threads) {
    const bool data = cf_is_gradient_of_signal(c);
    const signal_call call = {.c = c,
                              .from = data ? &c->desc.y : &c->desc.x,
                              .to = data ? &c->desc.x : &c->desc.y,
                              .signal = signal,
                              .bias = bias,
                              .result = result,
                              .accumulate = accumulate,
                              .weights = scratch,
                              .memory = (char *)scratch + c->weights_bytes,
                              .groups = c->channelwise ? cf_channelwise_blocks(c) : c->desc.groups,
                              .blocks = {cf_ceil_div(c->lattice[0][0].count, c->rows[0]),
                                         cf_ceil_div(c->lattice[1][0].count, c->rows[1]),
                                         cf_ceil_div(c->lattice[2][0].count, c->rows[2])}};
    const int64_t samples = c->channelwise ? cf_channelwise_items(c) : c->desc.batch;
    pack_all_weights(c, w, scratch, threads);
    cf_parallel_for(threads, samples * call.groups * call.blocks[0] * call.blocks[1] * call.blocks[2] * c->parts,
                    run_task_of_number, &call);
}
