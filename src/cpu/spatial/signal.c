/* SPDX-License-Identifier: Apache-2.0 */
/* y = x * w and gx = gy * w by their definition: convolution.h. */
#include "cpu/spatial/signal.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/parallel.h"

#include <string.h>

/* to[i] = to[0], i < count. */
static void repeat(char *to, size_t bytes, size_t count) {
    for (size_t done = 1; done < count; done *= 2)
        memcpy(to + done * bytes, to, (done < count - done ? done : count - done) * bytes);
}

/* sums = 0, or the bias of channels from number `lane` of the block on. */
static void clear(const cf_signal_call *call, const cf_signal_part *p, const cf_lanes *channels, int64_t lane,
                  char *sums) {
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

static void store(const cf_signal_call *call, const cf_signal_task *t, const cf_signal_part *p, const cf_lanes *lanes,
                  const char *sums) {
    const cf_convolution *const c = call->c;
    const int64_t position = c->positions_are_vectors ? 1 : c->block;
    const int64_t *const stride = call->to->axis_stride, bytes = (int64_t)cf_dtype_bytes(call->to->dtype),
                         step = p->axis[2]->step * stride[2];
    /* Rows that follow one another in the tensor are one row. */
    const bool joined = !c->positions_are_vectors && p->axis[1]->step * stride[1] == p->count[2] * step,
               copies = c->positions_are_vectors && step == 1 && !call->accumulate && bytes == (int64_t)c->real;
    const int64_t rows = joined ? cf_min(1, p->count[1]) : p->count[1],
                  columns = p->count[2] * (joined ? p->count[1] : 1);
    for (int64_t z = 0; z < p->count[0]; ++z)
        for (int64_t y = 0; y < rows; ++y) {
            const int64_t first = (p->axis[0]->start + (t->at[0] + z) * p->axis[0]->step) * stride[0] +
                                  (p->axis[1]->start + (t->at[1] + y) * p->axis[1]->step) * stride[1] +
                                  (p->axis[2]->start + t->at[2] * p->axis[2]->step) * stride[2];
            const char *const from = sums + (z * p->plane + y * p->row) * (int64_t)c->real;
            const cf_piece piece = {.dtype = call->to->dtype,
                                    .data = (char *)call->result + first * bytes,
                                    .offset = lanes->offset,
                                    .step = step,
                                    .elements = columns,
                                    .lanes = lanes->count,
                                    .adjacent = lanes->adjacent};
            if (copies)
                cf_copy_row((char *)piece.data + lanes->offset[0] * bytes, from, columns * bytes);
            else
                c->kernels->store(from, position, &piece, call->accumulate);
        }
}

/* At most `max` result channels of block `block`, from number `lane` of it on. */
static cf_lanes block_lanes(const cf_signal_call *call, const cf_signal_task *t, int64_t block, int64_t lane,
                            int64_t max) {
    const cf_convolution *const c = call->c;
    const int64_t first = block * c->block + lane;
    return cf_lanes_make(t->group * call->to->group_stride + t->sample * call->to->sample_stride +
                             first * call->to->channel_stride,
                         call->to->channel_stride, cf_min(max, cf_min(c->block - lane, c->own - first)));
}

/* The lanes of a block that are stored, and to which bias is added, at a time. */
static int64_t lanes_at_once(const cf_convolution *c) { return c->positions_are_vectors ? 1 : CF_MAX_LANES; }
static int64_t lanes_used(const cf_convolution *c, int64_t block) {
    return cf_min(c->block, c->own - block * c->block);
}

static void clear_block(const cf_signal_call *call, const cf_signal_task *t, const cf_signal_part *p, int64_t block) {
    const cf_convolution *const c = call->c;
    const int64_t used = lanes_used(c, block), each = lanes_at_once(c);
    if (!call->bias)
        clear(call, p, NULL, 0, t->sums);
    for (int64_t l = 0; call->bias && l < used; l += each) {
        const cf_lanes channels = cf_lanes_make(t->group * c->own + block * c->block + l, 1, cf_min(each, used - l));
        clear(call, p, &channels, l, t->sums);
    }
}

/* The products of the packed blocks of channels [from, to), whose packed weights begin at w. */
static void add_sides(const cf_convolution *c, const cf_signal_task *t, const cf_signal_part *p, int64_t from,
                      int64_t to, const char *w) {
    const int64_t size = cf_packed_block(c) * (int64_t)c->real,
                  weights = c->taps * cf_tap_numbers(c) * (int64_t)c->real, whole = cf_min(to, c->summed / c->side);
    int64_t side = from;
    for (int64_t count; side < whole; side += count) {
        count = cf_min(c->chunk, whole - side);
        cf_add_products(c, t, p, t->signal + side * size, w + (side - from) * weights, count, c->side, t->sums);
    }
    if (side < to)
        cf_add_products(c, t, p, t->signal + side * size, w + (side - from) * weights, 1, c->summed - side * c->side,
                        t->sums);
}

static void store_block(const cf_signal_call *call, const cf_signal_task *t, const cf_signal_part *p, int64_t block) {
    const int64_t used = lanes_used(call->c, block), each = lanes_at_once(call->c);
    for (int64_t l = 0; l < used; l += each) {
        const cf_lanes lanes = block_lanes(call, t, block, l, each);
        store(call, t, p, &lanes, t->sums + (size_t)(l * p->channel) * call->c->real);
    }
}

static void compute_block(const cf_signal_call *call, const cf_signal_task *t, int64_t block) {
    const cf_convolution *const c = call->c;
    const int64_t weights = c->taps * cf_tap_numbers(c) * (int64_t)c->real;
    cf_signal_part p;
    for (int64_t i = 0; cf_next_part(c, t, &i, &p);) {
        clear_block(call, t, &p, block);
        add_sides(c, t, &p, 0, c->sides, call->weights + (t->group * c->blocks + block) * c->sides * weights);
        store_block(call, t, &p, block);
    }
}

static void run_task(const cf_signal_call *call, const cf_signal_task *t) {
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
static void run_channelwise(const cf_signal_call *call, const cf_signal_task *t) {
    const cf_convolution *const c = call->c;
    const bool data = cf_is_gradient_of_signal(c);
    const int64_t outs = c->desc.out_channels, weights = c->taps * c->block * (int64_t)c->real;
    const char *const w = call->weights + t->group * outs * weights;
    int64_t packed = -1, at[3];
    cf_packed_place(c, t->at, at);
    cf_signal_part p;
    for (int64_t i = 0; cf_next_part(c, t, &i, &p);)
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
            cf_add_products(c, t, &p, t->signal, w + out * weights, 1, 1, t->sums);
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

static cf_signal_task task_of_number(const cf_signal_call *call, int64_t number, char *signal, char *sums) {
    const cf_convolution *const c = call->c;
    const int64_t block = number / c->parts, z = call->blocks[0], y = call->blocks[1], x = call->blocks[2];
    return (cf_signal_task){.group = block / x / y / z % call->groups,
                            .sample = block / x / y / z / call->groups,
                            .at = {block / x / y % z * c->rows[0], block / x % y * c->rows[1], block % x * c->rows[2]},
                            .part = number % c->parts,
                            .signal = signal,
                            .sums = sums};
}

static void run_task_of_number(const void *user, int64_t i, int thread) {
    const cf_signal_call *const call = user;
    const cf_convolution *const c = call->c;
    char *const own = call->memory + (size_t)thread * (c->signal_bytes + c->result_bytes);
    const cf_signal_task t = task_of_number(call, i, own, own + c->signal_bytes);
    c->channelwise ? run_channelwise(call, &t) : run_task(call, &t);
}

/* --------------------------------------------------------------------------------------------- weights visited once */

static int64_t tasks_of_group(const cf_signal_call *call) { return call->tasks / call->groups; }

/* Task `index` of a group. Its sums follow those of the tasks before. */
static cf_signal_task task_of_group(const cf_signal_call *call, int64_t group, int64_t index, char *sums) {
    const int64_t places = call->blocks[0] * call->blocks[1] * call->blocks[2],
                  number = (index / places * call->groups + group) * places + index % places;
    return task_of_number(call, number, call->signals + (size_t)number * call->c->signal_bytes,
                          sums + (size_t)index * call->c->result_bytes);
}

static void pack_some_signal(const void *user, int64_t i, int thread) {
    const cf_signal_call *const call = user;
    const cf_convolution *const c = call->c;
    const int64_t number = i / c->sides, side = i % c->sides;
    const cf_signal_task t = task_of_number(call, number, call->signals + (size_t)number * c->signal_bytes, NULL);
    int64_t at[3];
    (void)thread;
    cf_packed_place(c, t.at, at);
    cf_pack_signal(c, call->from, call->signal, t.sample, t.group, side, at,
                   t.signal + side * cf_packed_block(c) * (int64_t)c->real);
}

/* The results of one block of one group, of all samples. */
static void run_block(const void *user, int64_t i, int thread) {
    const cf_signal_call *const call = user;
    const cf_convolution *const c = call->c;
    const int64_t group = i / c->blocks, block = i % c->blocks, tasks = tasks_of_group(call),
                  weights = c->taps * cf_tap_numbers(c) * (int64_t)c->real;
    char *const w = call->memory + (size_t)thread * (c->weights_bytes + (size_t)tasks * c->result_bytes),
                *const sums = w + c->weights_bytes;
    cf_signal_part p;
    for (int64_t side = 0; side < c->sides; side += c->chunk) {
        const int64_t end = cf_min(side + c->chunk, c->sides);
        for (int64_t s = side; s < end; ++s)
            cf_pack_weights(c, call->w, group, block, s, w + (s - side) * weights);
        for (int64_t n = 0; n < tasks; ++n) {
            const cf_signal_task t = task_of_group(call, group, n, sums);
            int64_t first = 0;
            cf_next_part(c, &t, &first, &p);
            if (side == 0)
                clear_block(call, &t, &p, block);
            add_sides(c, &t, &p, side, end, w);
            if (end == c->sides)
                store_block(call, &t, &p, block);
        }
    }
}

size_t cf_convolve_signal_scratch(const cf_convolution *c) {
    const size_t threads = (size_t)c->device->threads, tasks = (size_t)cf_signal_tasks(c);
    if (c->weights_once)
        return tasks * c->signal_bytes +
               threads * (c->weights_bytes + tasks / (size_t)c->desc.groups * c->result_bytes);
    return c->weights_bytes + threads * (c->signal_bytes + c->result_bytes);
}

void cf_convolve_signal(const cf_convolution *c, const void *signal, const void *w, const void *bias, void *result,
                        bool accumulate, void *scratch, int threads) {
    const bool data = cf_is_gradient_of_signal(c);
    cf_signal_call call = {.c = c,
                           .from = data ? &c->desc.y : &c->desc.x,
                           .to = data ? &c->desc.x : &c->desc.y,
                           .signal = signal,
                           .w = w,
                           .bias = bias,
                           .result = result,
                           .accumulate = accumulate,
                           .tasks = cf_signal_tasks(c),
                           .groups = c->channelwise ? cf_channelwise_blocks(c) : c->desc.groups,
                           .blocks = {cf_ceil_div(c->lattice[0][0].count, c->rows[0]),
                                      cf_ceil_div(c->lattice[1][0].count, c->rows[1]),
                                      cf_ceil_div(c->lattice[2][0].count, c->rows[2])}};
    if (c->weights_once) {
        call.signals = scratch;
        call.memory = call.signals + (size_t)call.tasks * c->signal_bytes;
        cf_parallel_for(threads, call.tasks * c->sides, pack_some_signal, &call);
        cf_parallel_for(threads, c->desc.groups * c->blocks, run_block, &call);
        return;
    }
    call.weights = scratch;
    call.memory = (char *)scratch + c->weights_bytes;
    pack_all_weights(c, w, scratch, threads);
    cf_parallel_for(threads, call.tasks * c->parts, run_task_of_number, &call);
}
