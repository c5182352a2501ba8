/* SPDX-License-Identifier: Apache-2.0 */
/* Plan-time geometry of convolutions by their definition. */
#include "core/arith.h"
#include "core/dtype.h"
#include "core/window.h"
#include "cpu/spatial/convolution.h"

#include <math.h>
#include <stdlib.h>

/* Bytes of the packed signal of a task and of the packed weights that tiles read again and again: both should stay in
 * a core's second-level cache. Bytes of samples that are packed at a time for the gradient of w. */
static const size_t signal_bytes = 512 << 10, weights_bytes = 192 << 10, samples_bytes = 8 << 20;

enum {
    MAX_PLANAR = 4, /* with at most so many channels, each is packed on its own */
    SLICES = 64     /* channelwise gradients of w: blocks of lanes times slices of the batch, about */
};

static bool is_data(const cf_convolution *c) { return c->desc.kind == CF_CGEMM_BACKWARD_DATA; }
static bool is_weights(const cf_convolution *c) { return c->desc.kind == CF_CGEMM_BACKWARD_WEIGHTS; }

static conv_fft_status numbers(int64_t count, int64_t **memory) {
    *memory = calloc((size_t)cf_max(1, count), sizeof **memory);
    return *memory ? CONV_FFT_SUCCESS : cf_fail_memory((size_t)count * sizeof **memory, "a spatial convolution");
}

/* ------------------------------------------------------------------------------------------------------------ axes */

static conv_fft_status lattice_taps(int64_t taps, cf_lattice *lattice) {
    CF_FORWARD(numbers(taps, &lattice->tap));
    CF_FORWARD(numbers(taps, &lattice->offset));
    CF_FORWARD(numbers(taps, &lattice->from));
    return numbers(taps, &lattice->to);
}

/* y and gw: one lattice, of all positions. Offsets count coordinates. */
static conv_fft_status whole_lattice(const cf_convolution_axis *a, cf_lattice *lattice) {
    *lattice = (cf_lattice){.step = 1, .count = a->output, .pace = a->stride, .taps = (int)a->taps};
    CF_FORWARD(lattice_taps(a->taps, lattice));
    for (int64_t t = 0; t < a->taps; ++t) {
        lattice->tap[t] = t;
        lattice->offset[t] = t * a->dilation;
    }
    return CONV_FFT_SUCCESS;
}

/* gx: element start + j * step = origin + o * stride + tap * dilation reads gy[o]. *low: the smallest offset. */
static conv_fft_status part_lattice(const cf_convolution_axis *a, int64_t start, cf_lattice *lattice, int64_t *low) {
    *lattice =
        (cf_lattice){.start = start, .step = a->stride, .count = cf_ceil_div(a->input - start, a->stride), .pace = 1};
    CF_FORWARD(lattice_taps(a->taps, lattice));
    for (int64_t t = 0; t < a->taps; ++t) {
        const int64_t distance = start - a->origin - t * a->dilation;
        if (cf_mod(distance, a->stride) != 0)
            continue;
        const int64_t offset = cf_floor_div(distance, a->stride);
        /* Taps that meet no element of gy add nothing. */
        if (offset + lattice->count <= 0 || offset >= a->output)
            continue;
        lattice->tap[lattice->taps] = t;
        lattice->offset[lattice->taps++] = offset;
        *low = cf_min(*low, offset);
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status make_lattices(cf_convolution *c, int axis, int64_t *low) {
    const cf_convolution_axis *const a = &c->desc.axis[axis];
    const int64_t count = is_data(c) ? cf_min(a->stride, a->input) : 1;
    c->lattice[axis] = calloc((size_t)count, sizeof *c->lattice[axis]);
    if (!c->lattice[axis])
        return cf_fail_memory((size_t)count * sizeof *c->lattice[axis], "a spatial convolution");
    c->lattices[axis] = count;
    *low = 0;
    if (!is_data(c))
        return whole_lattice(a, c->lattice[axis]);
    *low = INT64_MAX;
    for (int64_t i = 0; i < count; ++i)
        CF_FORWARD(part_lattice(a, i, &c->lattice[axis][i], low));
    if (*low == INT64_MAX)
        *low = 0;
    for (int64_t i = 0; i < count; ++i)
        for (int t = 0; t < c->lattice[axis][i].taps; ++t)
            c->lattice[axis][i].offset[t] -= *low;
    return CONV_FFT_SUCCESS;
}

static void find_padding(const cf_packed_axis *packed, cf_lattice *l) {
    for (int t = 0; t < l->taps; ++t) {
        const int64_t *const index = packed->index + l->offset[t];
        int64_t from = 0, to = l->count;
        while (from < to && index[from * l->pace] == CF_PADDING)
            ++from;
        while (to > from && index[(to - 1) * l->pace] == CF_PADDING)
            --to;
        l->from[t] = from;
        l->to[t] = to;
    }
}

/* Where coordinate 0 of the packed signal is, how it continues outside of the tensor, and what is read. */
static conv_fft_status make_axis(cf_convolution *c, int axis) {
    const cf_convolution_axis *const a = &c->desc.axis[axis];
    cf_packed_axis *const packed = &c->axis[axis];
    int64_t low = 0;
    CF_FORWARD(make_lattices(c, axis, &low));
    const cf_axis_window window = {.size = is_data(c) ? a->output : a->input,
                                   .lower = INT64_MIN,
                                   .upper = INT64_MAX,
                                   .mode = is_data(c) ? CONV_FFT_PAD_ZEROS : a->mode};
    const int64_t origin = is_data(c) ? low : a->origin;
    packed->span = packed->count = 1;
    for (int64_t i = 0; i < c->lattices[axis]; ++i) {
        const cf_lattice *const l = &c->lattice[axis][i];
        for (int t = 0; t < l->taps; ++t) {
            packed->span = cf_max(packed->span, l->offset[t] + 1);
            packed->count = cf_max(packed->count, l->offset[t] + (l->count - 1) * l->pace + 1);
        }
    }
    packed->phases = axis == 2 && c->desc.kind == CF_CGEMM_FORWARD ? a->stride : 1;
    packed->width = cf_ceil_div(packed->count, packed->phases);
    CF_FORWARD(numbers(packed->phases * packed->width, &packed->index));
    for (int64_t i = 0; i < packed->phases * packed->width; ++i)
        packed->index[i] = CF_NOT_READ;
    for (int64_t i = 0; i < c->lattices[axis]; ++i) {
        cf_lattice *const l = &c->lattice[axis][i];
        for (int t = 0; t < l->taps; ++t) {
            const int64_t phase = l->offset[t] % packed->phases, first = l->offset[t] / packed->phases;
            /* Of columns, a phase is packed whole, of rows only those that are read. */
            const int64_t pace = axis == 2 ? 1 : l->pace;
            for (int64_t j = axis == 2 ? -first : 0; axis == 2 ? first + j < packed->width : j < l->count; ++j) {
                const int64_t place = first + j * pace;
                packed->index[phase * packed->width + place] =
                    cf_window_index(&window, origin + place * packed->phases + phase);
            }
            if (axis == 2)
                l->offset[t] = phase * packed->width + first;
        }
        if (axis == 2)
            l->pace /= packed->phases;
        find_padding(packed, l);
    }
    return CONV_FFT_SUCCESS;
}

/* The coordinates from the first to the last that are inside of their phase, if their indices are neighbours, too. */
static void find_straight(cf_packed_axis *packed) {
    int64_t from = INT64_MAX, to = 0, distance = 0;
    for (int64_t phase = 0; phase < packed->phases; ++phase) {
        const int64_t *const inside = packed->inside[phase];
        if (inside[1] == inside[0])
            continue;
        const int64_t first = (inside[0] - phase * packed->width) * packed->phases + phase,
                      own = packed->index[inside[0]] - first;
        if (from < INT64_MAX && own != distance)
            return;
        distance = own;
        from = cf_min(from, first);
        to = cf_max(to, first + (inside[1] - inside[0] - 1) * packed->phases + 1);
    }
    if (packed->phases == 1 || to <= from)
        return;
    packed->straight[0] = from;
    packed->straight[1] = to;
    packed->straight_index = from + distance;
}

/* The longest stretch of each phase with neighbouring indices. */
static conv_fft_status find_inside(cf_packed_axis *packed) {
    packed->inside = calloc((size_t)packed->phases, sizeof *packed->inside);
    if (!packed->inside)
        return cf_fail_memory((size_t)packed->phases * sizeof *packed->inside, "a spatial convolution");
    for (int64_t phase = 0; phase < packed->phases; ++phase) {
        const int64_t *const index = packed->index + phase * packed->width;
        int64_t best = 0, best_from = 0;
        for (int64_t i = 0, from = 0; i < packed->width; ++i) {
            if (index[i] < 0 || i == from || index[i] != index[i - 1] + packed->phases)
                from = index[i] < 0 ? i + 1 : i;
            if (i + 1 - from > best) {
                best = i + 1 - from;
                best_from = from;
            }
        }
        packed->inside[phase][0] = phase * packed->width + best_from;
        packed->inside[phase][1] = packed->inside[phase][0] + best;
    }
    find_straight(packed);
    return CONV_FFT_SUCCESS;
}

/* ----------------------------------------------------------------------------------------------------------- tiles */

/* Numbers from one tap to the next in packed weights. */
static int64_t tap_numbers(const cf_convolution *c) { return c->channelwise ? c->block : c->side * c->block; }

static int64_t place_of(const cf_convolution *c, int64_t z, int64_t y, int64_t x) {
    return ((z * c->extent[1] + y) * c->axis[2].phases * c->axis[2].width + x) * c->column;
}

/* y, gx: offsets of all taps, lattice by lattice. Each tap is in one lattice of each axis. */
static conv_fft_status make_tap_offsets(cf_convolution *c) {
    const cf_convolution_axis *const axis = c->desc.axis;
    CF_FORWARD(numbers(c->taps, &c->a_offset));
    CF_FORWARD(numbers(c->taps, &c->b_offset));
    int64_t count = 0;
    for (int64_t i = 0; i < c->lattices[0] * c->lattices[1] * c->lattices[2]; ++i) {
        const cf_lattice *const z = &c->lattice[0][i / c->lattices[2] / c->lattices[1]],
                                *const y = &c->lattice[1][i / c->lattices[2] % c->lattices[1]],
                                *const x = &c->lattice[2][i % c->lattices[2]];
        for (int64_t t = 0; t < (int64_t)z->taps * y->taps * x->taps; ++t, ++count) {
            const int64_t tz = t / x->taps / y->taps, ty = t / x->taps % y->taps, tx = t % x->taps;
            c->a_offset[count] =
                ((z->tap[tz] * axis[1].taps + y->tap[ty]) * axis[2].taps + x->tap[tx]) * tap_numbers(c);
            c->b_offset[count] = place_of(c, z->offset[tz], y->offset[ty], x->offset[tx]);
        }
    }
    return CONV_FFT_SUCCESS;
}

/* gw: offsets of all rows of gy, and runs of taps. */
static conv_fft_status make_row_offsets(cf_convolution *c) {
    const cf_convolution_axis *const axis = c->desc.axis;
    const int64_t rows = axis[0].output * axis[1].output;
    CF_FORWARD(numbers(rows, &c->a_offset));
    CF_FORWARD(numbers(rows, &c->b_offset));
    for (int64_t i = 0; i < rows; ++i) {
        c->a_offset[i] = i * axis[2].output * c->block;
        c->b_offset[i] = place_of(c, i / axis[1].output * axis[0].stride, i % axis[1].output * axis[1].stride, 0);
    }
    c->run = calloc((size_t)c->taps, sizeof *c->run);
    if (!c->run)
        return cf_fail_memory((size_t)c->taps * sizeof *c->run, "a spatial convolution");
    /* Lanes are the taps of a row, if these read neighbouring columns. */
    const bool alone = (!c->planar && !c->channelwise) || axis[2].dilation != 1;
    for (int64_t i = 0; i < axis[0].taps * axis[1].taps; ++i)
        for (int64_t x = 0; x < (alone ? axis[2].taps : 1); ++x) {
            const int64_t z = i / axis[1].taps, y = i % axis[1].taps;
            c->run[c->runs++] =
                (cf_tap_run){.first = i * axis[2].taps + x,
                             .count = alone ? 1 : axis[2].taps,
                             .offset = place_of(c, c->lattice[0][0].offset[z], c->lattice[1][0].offset[y],
                                                c->lattice[2][0].offset[x])};
        }
    return CONV_FFT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- blocks */

double cf_lanes_used(int64_t count, int64_t width) {
    return (double)count / (double)cf_max(1, cf_round_up(count, width));
}

cf_convolution cf_convolution_blocks(const cf_device *device, const cf_convolution_desc *d) {
    const conv_fft_dtype compute = cf_compute_dtype(d->x.dtype);
    cf_convolution convolution = {.desc = *d,
                                  .kernels = cf_real(cf_cpu(device)->kernels, compute),
                                  .real = cf_dtype_bytes(compute),
                                  .taps = d->axis[0].taps * d->axis[1].taps * d->axis[2].taps};
    cf_convolution *const c = &convolution;
    c->own = is_data(c) ? d->in_channels : d->out_channels;
    c->summed = is_data(c) ? d->out_channels : d->in_channels;
    const int64_t width = c->kernels->tiles->width, own_vectors = cf_ceil_div(c->own, width);
    c->channelwise = d->in_channels == 1 && 2 * c->own <= width;
    c->samples_are_lanes = cf_lanes_used(d->batch, width) > cf_lanes_used(d->groups, width);
    /* Of one or three vectors, half of the last pair would be empty. */
    c->vectors = c->channelwise || own_vectors == 1 || own_vectors == 3 ? 1 : 2;
    c->block = c->vectors * width;
    c->planar = !c->channelwise && c->summed <= MAX_PLANAR;
    c->side = c->channelwise ? width : c->planar ? c->summed : CF_TILE_CHANNELS;
    c->column = c->planar ? 1 : c->side;
    c->blocks = cf_ceil_div(c->own, c->block);
    c->sides = c->channelwise ? 1 : cf_ceil_div(c->summed, c->side);
    return convolution;
}

static int64_t max_positions(const cf_convolution *c, int axis) {
    return c->lattice[axis][0].count; /* the first lattice is the longest */
}

static void set_extents(cf_convolution *c) {
    for (int a = 0; a < 2; ++a)
        c->extent[a] = cf_min(c->axis[a].count, (c->rows[a] - 1) * c->lattice[a][0].pace + cf_max(1, c->axis[a].span));
    c->channel = c->planar ? cf_packed_positions(c) : 1;
}

static int64_t tasks(const cf_convolution *c) {
    return (c->channelwise ? cf_channelwise_blocks(c) * cf_channelwise_items(c) : c->desc.groups * c->desc.batch) *
           cf_ceil_div(max_positions(c, 0), c->rows[0]) * cf_ceil_div(max_positions(c, 1), c->rows[1]);
}

static int64_t task_signal(const cf_convolution *c) { return cf_packed_block(c) * c->sides * (int64_t)c->real; }

/* y, gx: the positions of a task. Fewer positions read more of their neighbours' input again. */
static void choose_rows(cf_convolution *c) {
    for (int a = 0; a < 2; ++a)
        c->rows[a] = cf_max(1, max_positions(c, a));
    set_extents(c);
    while (task_signal(c) > (int64_t)signal_bytes && (c->rows[0] > 1 || c->rows[1] > 1)) {
        int64_t *const rows = &c->rows[c->rows[0] > 1 ? 0 : 1];
        *rows = cf_ceil_div(*rows, 2);
        set_extents(c);
    }
    while (tasks(c) < 2 * c->device->threads && c->device->threads > 1) {
        const int axis = c->rows[0] > 1 ? 0 : 1;
        if (c->rows[axis] * c->lattice[axis][0].pace < 2 * c->axis[axis].span || c->rows[axis] < 4)
            break;
        c->rows[axis] = cf_ceil_div(c->rows[axis], 2);
        set_extents(c);
    }
    c->parts = c->channelwise ? 1 : cf_min(c->blocks, cf_ceil_div(c->device->threads, cf_max(1, tasks(c))));
}

/* The share of the products along axis 2 that are not with padding. */
static double share_of_signal(const cf_convolution *c) {
    double used = 0, all = 0;
    for (int64_t i = 0; i < c->lattices[2]; ++i)
        for (int t = 0; t < c->lattice[2][i].taps; ++t) {
            used += (double)(c->lattice[2][i].to[t] - c->lattice[2][i].from[t]);
            all += (double)c->lattice[2][i].count;
        }
    return all > 0 ? used / all : 1;
}

static void set_signal_sizes(cf_convolution *c) {
    choose_rows(c);
    c->clipped = !c->channelwise && c->summed >= CF_MIN_CLIPPED && share_of_signal(c) < 0.8;
    const int64_t of_block = c->taps * tap_numbers(c) * (int64_t)c->real;
    c->chunk = cf_max(1, (int64_t)weights_bytes / of_block);
    c->weights_bytes = cf_align((size_t)(c->channelwise ? cf_channelwise_blocks(c) * c->desc.out_channels * of_block
                                                        : c->desc.groups * c->blocks * c->sides * of_block));
    c->signal_bytes = cf_align((size_t)task_signal(c));
    c->result_bytes = cf_align((size_t)(c->rows[0] * c->rows[1] * max_positions(c, 2) * c->block) * c->real);
}

static void set_weights_sizes(cf_convolution *c) {
    for (int a = 0; a < 2; ++a)
        c->extent[a] = c->axis[a].count;
    c->channel = c->planar ? cf_packed_positions(c) : 1;
    const int64_t outputs = cf_convolution_outputs(c) * c->block, blocks = c->channelwise ? 1 : c->blocks;
    c->signal_bytes = cf_align((size_t)task_signal(c));
    c->result_bytes = cf_align((size_t)(outputs * blocks) * c->real);
    c->weights_bytes = cf_align((size_t)(c->taps * tap_numbers(c) * blocks * c->sides) * c->real);
    const size_t sample = (c->signal_bytes + c->result_bytes) * (size_t)c->desc.groups;
    c->chunk = cf_max(1, cf_min(c->desc.batch, (int64_t)(samples_bytes / cf_max(1, (int64_t)sample))));
    c->parts = c->channelwise ? cf_max(1, cf_min(cf_channelwise_items(c), SLICES / cf_channelwise_blocks(c))) : 1;
}

conv_fft_status cf_cpu_convolution_create(cf_device *device, const cf_convolution_desc *desc, cf_convolution **result) {
    cf_convolution *c = calloc(1, sizeof *c);
    if (!c)
        return cf_fail_memory(sizeof *c, "a spatial convolution");
    *c = cf_convolution_blocks(device, desc);
    c->device = device;
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int a = 0; a < 3 && status == CONV_FFT_SUCCESS; ++a)
        status = make_axis(c, a);
    if (status == CONV_FFT_SUCCESS)
        status = find_inside(&c->axis[2]);
    if (status == CONV_FFT_SUCCESS) {
        is_weights(c) ? set_weights_sizes(c) : set_signal_sizes(c);
        status = is_weights(c) ? make_row_offsets(c) : make_tap_offsets(c);
    }
    if (status != CONV_FFT_SUCCESS) {
        cf_cpu_convolution_destroy(c);
        return status;
    }
    *result = c;
    return CONV_FFT_SUCCESS;
}

void cf_cpu_convolution_destroy(cf_convolution *c) {
    if (!c)
        return;
    for (int a = 0; a < 3; ++a) {
        for (int64_t i = 0; i < c->lattices[a]; ++i) {
            free(c->lattice[a][i].tap);
            free(c->lattice[a][i].offset);
            free(c->lattice[a][i].from);
            free(c->lattice[a][i].to);
        }
        free(c->lattice[a]);
        free(c->axis[a].index);
        free(c->axis[a].inside);
    }
    free(c->a_offset);
    free(c->b_offset);
    free(c->run);
    free(c);
}

size_t cf_cpu_convolution_scratch(const cf_convolution *c) {
    return is_weights(c) ? cf_convolve_weights_scratch(c)
                         : c->weights_bytes + (size_t)c->device->threads * (c->signal_bytes + c->result_bytes);
}

conv_fft_status cf_cpu_convolve(const cf_convolution *c, void *x, void *w, void *y, const void *bias, bool accumulate,
                                void *scratch, struct CUstream_st *stream) {
    (void)stream;
    const cf_convolution_desc *const d = &c->desc;
    const double work = 2.0 * (double)d->batch * (double)d->groups * (double)d->in_channels * (double)d->out_channels *
                        (double)cf_convolution_outputs(c) * (double)c->taps;
    /* These loops are three times as fast as transforms. */
    const int threads = cf_cpu_threads(c->device, c->device->threads, work / 3);
    if (is_weights(c))
        cf_convolve_weights(c, x, y, w, accumulate, scratch, threads);
    else if (is_data(c))
        cf_convolve_signal(c, y, w, NULL, x, accumulate, scratch, threads);
    else
        cf_convolve_signal(c, x, w, bias, y, accumulate, scratch, threads);
    return CONV_FFT_SUCCESS;
}
