/* SPDX-License-Identifier: Apache-2.0 */
/* Plan-time geometry of convolutions by their definition. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/spatial/convolution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the packed signal of a task and of the packed weights that tiles read again and again: both should stay in
 * a core's second-level cache, and so should most of the task's results. Bytes of the packed signals of all tasks, if
 * weights are visited once. For the gradient of w: bytes that all threads pack at a time; that one thread packs at a
 * time, if it is channelwise, and the totals of all slices. */
static const size_t signal_bytes = 512 << 10, result_bytes = 1 << 20, weights_bytes = 192 << 10,
                    signals_bytes = 8 << 20, cells_bytes = 8 << 20, own_cell_bytes = 1 << 20, totals_bytes = 16 << 20;

enum {
    MAX_PLANAR = 4,   /* with at most so many channels, each is packed on its own */
    SLICES = 64,      /* channelwise gradients of w: blocks of lanes times slices of the cells, about */
    MAX_PLANE = 1024, /* elements of a plane that is packed by a table */
    MIN_CELLS = 16,   /* of sliced gradients of w; each is a task. So these do not depend on the number of threads */
    MIN_COLUMNS = 64  /* rows of fewer positions are not divided: the last tile of a part is often smaller */
};

static bool is_weights(const cf_convolution *c) { return c->desc.kind == CF_CGEMM_BACKWARD_WEIGHTS; }

/* ----------------------------------------------------------------------------------------------------------- tiles */

/* Where packed position (z, y, x), of the whole axes, stands in a task that begins at position 0. */
static int64_t place_of(const cf_convolution *c, int64_t z, int64_t y, int64_t x) {
    const cf_packed_axis *const a = &c->axis[2];
    return (((z * c->extent[1] + y) * a->phases + x / a->width) * c->extent[2] + x % a->width) * c->column;
}

/* y, gx: offsets of all taps, lattice by lattice. Each tap is in one lattice of each axis. */
static conv_fft_status make_tap_offsets(cf_convolution *c) {
    const cf_convolution_axis *const axis = c->desc.axis;
    CF_FORWARD(cf_spatial_numbers(c->taps, &c->a_offset));
    CF_FORWARD(cf_spatial_numbers(c->taps, &c->b_offset));
    int64_t count = 0;
    for (int64_t i = 0; i < c->lattices[0] * c->lattices[1] * c->lattices[2]; ++i) {
        const cf_lattice *const z = &c->lattice[0][i / c->lattices[2] / c->lattices[1]],
                                *const y = &c->lattice[1][i / c->lattices[2] % c->lattices[1]],
                                *const x = &c->lattice[2][i % c->lattices[2]];
        for (int64_t t = 0; t < (int64_t)z->taps * y->taps * x->taps; ++t, ++count) {
            const int64_t tz = t / x->taps / y->taps, ty = t / x->taps % y->taps, tx = t % x->taps;
            /* Of whole rows: of the tap without a shift, and of the signal's first element. */
            const int64_t tap = c->whole_rows ? -axis[2].origin : x->tap[tx],
                          column = c->whole_rows ? c->axis[2].inside[0][0] : x->offset[tx];
            c->a_offset[count] = ((z->tap[tz] * axis[1].taps + y->tap[ty]) * axis[2].taps + tap) * cf_tap_numbers(c);
            c->b_offset[count] = place_of(c, z->offset[tz], y->offset[ty], column);
        }
    }
    return CONV_FFT_SUCCESS;
}

/* gw: offsets of the rows of gy of a cell, and runs of taps. */
static conv_fft_status make_row_offsets(cf_convolution *c) {
    const cf_convolution_axis *const axis = c->desc.axis;
    const int64_t rows = c->rows[0] * c->rows[1];
    CF_FORWARD(cf_spatial_numbers(rows, &c->a_offset));
    CF_FORWARD(cf_spatial_numbers(rows, &c->b_offset));
    for (int64_t i = 0; i < rows; ++i) {
        c->a_offset[i] = i * c->rows[2] * c->block;
        c->b_offset[i] = place_of(c, i / c->rows[1] * axis[0].stride, i % c->rows[1] * axis[1].stride, 0);
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

static conv_fft_status make_tap_places(cf_convolution *c) {
    if (c->channelwise || !cf_has_dense_taps(c))
        return CONV_FFT_SUCCESS;
    CF_FORWARD(cf_spatial_numbers(c->side * c->taps, &c->tap_place));
    for (int64_t i = 0; i < c->side * c->taps; ++i)
        c->tap_place[i] = (i % c->taps * c->side + i / c->taps) * c->block;
    return CONV_FFT_SUCCESS;
}

/* Small planes that a task has whole, whose elements follow one another in the tensor, and each is read once: not
 * several times, as some padding modes do. */
static conv_fft_status make_plane_places(cf_convolution *c) {
    const cf_tensor *const tensor = cf_is_gradient_of_signal(c) ? &c->desc.y : &c->desc.x;
    const int64_t *const stride = tensor->axis_stride;
    int64_t size[3], all = 1, count = 0;
    for (int a = 0; a < 3; ++a) {
        size[a] = cf_is_gradient_of_signal(c) ? c->desc.axis[a].output : c->desc.axis[a].input;
        all = cf_min(MAX_PLANE + 1, all * size[a]);
        if (c->rows[a] < c->lattice[a][0].count || c->axis[a].phases != 1 ||
            c->extent[a] < (a == 2 ? c->axis[a].width : c->axis[a].count))
            return CONV_FFT_SUCCESS;
    }
    if (c->planar || all > MAX_PLANE || (size[1] > 1 && stride[1] != size[2] * stride[2]) ||
        (size[0] > 1 && stride[0] != size[1] * size[2] * stride[2]))
        return CONV_FFT_SUCCESS;
    c->plane_elements = all;
    CF_FORWARD(cf_spatial_numbers(all, &c->plane_place));
    memset(c->plane_place, 0xff, (size_t)all * sizeof *c->plane_place);
    for (int64_t i = 0; i < c->axis[0].count * c->axis[1].count * c->axis[2].width; ++i) {
        const int64_t x = i % c->axis[2].width, y = i / c->axis[2].width % c->axis[1].count,
                      z = i / c->axis[2].width / c->axis[1].count, iz = c->axis[0].index[z], iy = c->axis[1].index[y],
                      ix = c->axis[2].index[x];
        if (iz < 0 || iy < 0 || ix < 0)
            continue;
        c->plane_place[(iz * size[1] + iy) * size[2] + ix] = place_of(c, z, y, x);
        ++count;
    }
    for (int64_t i = 0; i < all; ++i)
        if (c->plane_place[i] < 0)
            count = 0;
    if (count != all) {
        free(c->plane_place);
        c->plane_place = NULL;
    }
    return CONV_FFT_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------------- blocks */

double cf_lanes_used(int64_t count, int64_t width) {
    return (double)count / (double)cf_max(1, cf_round_up(count, width));
}

double cf_positions_used(const cf_convolution *c) {
    const cf_convolution_axis *const y = &c->desc.axis[1], *const x = &c->desc.axis[2];
    const bool data = cf_is_gradient_of_signal(c);
    const int64_t width = c->kernels->tiles->width, rows = data ? cf_ceil_div(y->input, y->stride) : y->output,
                  columns = data ? cf_ceil_div(x->input, x->stride) : x->output,
                  reach = (x->taps - 1) * x->dilation / (data ? x->stride : 1),
                  all = (rows - 1) * (columns + reach) + columns;
    return c->rows_joined ? cf_lanes_used(all, width) * (double)(rows * columns) / (double)all
                          : cf_lanes_used(columns, width);
}

/* Positions as vectors, if that is faster. */
static void choose_positions(cf_convolution *c) {
    const cf_convolution_axis *const axis = c->desc.axis;
    const cf_sum_tiles *const tiles = c->kernels->tiles;
    cf_convolution other = *c;
    other.channelwise = other.whole_rows = false;
    other.positions_are_vectors = other.planar = true;
    other.blocks = cf_ceil_div(c->own, tiles->lanes[1]);
    other.block = cf_ceil_div(c->own, other.blocks);
    other.vectors = 2;
    while (other.vectors < CF_TILE_MAX_VECTORS && tiles->lanes[other.vectors] >= other.block)
        ++other.vectors;
    other.side = cf_min(c->summed, CF_TILE_CHANNELS);
    other.sides = cf_ceil_div(c->summed, other.side);
    other.column = 1;
    const double apart = cf_positions_used(&other);
    other.rows_joined = cf_is_gradient_of_signal(c) || (axis[1].stride == 1 && axis[2].stride == 1);
    /* Joined rows fill the tiles of more vectors, too. */
    if (cf_positions_used(&other) < 0.9 * apart)
        other.rows_joined = false;
    if (cf_signal_seconds(&other) < cf_signal_seconds(c))
        *c = other;
}

/* Gradient of w of few channels: positions as vectors, which have no empty lanes. */
static void choose_sliding(cf_convolution *c) {
    const int64_t width = c->kernels->tiles->width;
    if (2 * c->own > width || c->summed > MAX_PLANAR || c->desc.axis[2].stride != 1 ||
        (c->channelwise && 4 * cf_max(c->desc.batch, c->desc.groups) > width))
        return;
    c->channelwise = c->samples_are_lanes = false;
    c->positions_are_vectors = c->planar = true;
    c->rows_joined = c->desc.axis[1].stride == 1;
    c->vectors = (int)cf_min(c->own, CF_TILE_MAX_VECTORS);
    c->block = c->own;
    c->side = c->summed;
    c->column = c->blocks = c->sides = 1;
}

cf_convolution cf_convolution_blocks(const cf_device *device, const cf_convolution_desc *d) {
    const conv_fft_dtype compute = cf_compute_dtype(d->x.dtype);
    cf_convolution convolution = {.desc = *d,
                                  .kernels = cf_real(cf_cpu(device)->kernels, compute),
                                  .real = cf_dtype_bytes(compute),
                                  .taps = d->axis[0].taps * d->axis[1].taps * d->axis[2].taps};
    cf_convolution *const c = &convolution;
    c->own = cf_is_gradient_of_signal(c) ? d->in_channels : d->out_channels;
    c->summed = cf_is_gradient_of_signal(c) ? d->out_channels : d->in_channels;
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
    c->whole_rows = cf_has_whole_rows(c);
    if (is_weights(c))
        choose_sliding(c);
    else
        choose_positions(c);
    return convolution;
}

static int64_t max_positions(const cf_convolution *c, int axis) {
    return c->lattice[axis][0].count; /* the first lattice is the longest */
}

static void set_extents(cf_convolution *c) {
    for (int a = 0; a < 3; ++a)
        c->extent[a] = cf_min(a == 2 ? c->axis[a].width : c->axis[a].count,
                              (c->rows[a] - 1) * c->lattice[a][0].pace + c->axis[a].span);
    c->channel = c->planar ? cf_packed_positions(c) : 1;
}

static void start_with_whole_axes(cf_convolution *c) {
    for (int a = 0; a < 3; ++a)
        c->rows[a] = cf_max(1, max_positions(c, a));
    set_extents(c);
}

/* Halve the positions along the axis whose halves have the fewest inputs in common. Rows are read by vectors, and last.
 * False: there is no such axis whose positions read at least `reach` times what one position reads. */
static bool halve(cf_convolution *c, double reach) {
    int best = -1;
    for (int a = 0; a < 3; ++a) {
        const double own = (double)(c->rows[a] * c->lattice[a][0].pace) / (double)c->axis[a].span / (a == 2 ? 4 : 1);
        if (c->rows[a] >= (a == 2 ? MIN_COLUMNS : 2) && own >= reach) {
            best = a;
            reach = own;
        }
    }
    if (best < 0)
        return false;
    c->rows[best] = cf_ceil_div(c->rows[best], 2);
    set_extents(c);
    return true;
}

int64_t cf_signal_tasks(const cf_convolution *c) {
    int64_t count =
        c->channelwise ? cf_channelwise_blocks(c) * cf_channelwise_items(c) : c->desc.groups * c->desc.batch;
    for (int a = 0; a < 3; ++a)
        count *= cf_ceil_div(max_positions(c, a), c->rows[a]);
    return count;
}

static size_t task_signal(const cf_convolution *c) { return (size_t)(cf_packed_block(c) * c->sides) * c->real; }
static size_t block_result(const cf_convolution *c) {
    const int64_t positions =
        c->positions_are_vectors ? c->rows[0] * cf_sums_plane(c, c->rows[1], c->rows[2]) : cf_cell_positions(c);
    return (size_t)(positions * c->block) * c->real;
}

static int64_t block_weights(const cf_convolution *c) { return c->taps * cf_tap_numbers(c) * (int64_t)c->real; }

/* Whether packed weights would take longer to write and read again than the packed signals of all samples. */
static bool visits_weights_once(const cf_convolution *c) {
    const int64_t tasks = cf_signal_tasks(c), groups = c->desc.groups, blocks = groups * c->blocks,
                  threads = c->device->threads, weights = block_weights(c) * c->sides * blocks,
                  all_signals = tasks * (int64_t)task_signal(c), results = tasks / groups * (int64_t)block_result(c);
    return !c->channelwise && !c->positions_are_vectors && c->lattices[0] * c->lattices[1] * c->lattices[2] == 1 &&
           2 * weights >= all_signals && all_signals <= (int64_t)signals_bytes && results <= (int64_t)result_bytes &&
           4 * cf_round_up(blocks, threads) <= 5 * blocks;
}

/* y, gx: the positions of a task. Fewer positions read more of their neighbours' input again. */
static void choose_rows(cf_convolution *c) {
    start_with_whole_axes(c);
    while ((task_signal(c) > signal_bytes || block_result(c) > result_bytes) && halve(c, 0.25))
        ;
    c->parts = 1;
    c->weights_once = visits_weights_once(c);
    if (c->weights_once)
        return;
    while (cf_signal_tasks(c) < 2 * c->device->threads && c->device->threads > 1 && halve(c, 2))
        ;
    c->parts = c->channelwise ? 1 : cf_min(c->blocks, cf_ceil_div(c->device->threads, cf_max(1, cf_signal_tasks(c))));
}

/* The share of the products along axis 2 that are not with padding. */
static double share_of_signal(const cf_convolution *c) {
    double all = 0;
    for (int64_t i = 0; i < c->lattices[2]; ++i)
        all += (double)c->lattice[2][i].count * c->lattice[2][i].taps;
    return all > 0 ? cf_signal_products(&c->desc.axis[2]) / all : 1;
}

static void set_signal_sizes(cf_convolution *c) {
    choose_rows(c);
    c->clipped =
        !c->channelwise && !c->positions_are_vectors && c->summed >= CF_MIN_CLIPPED && share_of_signal(c) < 0.8;
    const int64_t of_block = block_weights(c);
    c->chunk = cf_max(1, cf_min((int64_t)weights_bytes / of_block, CF_MAX_PRODUCTS / (c->taps * c->side)));
    c->weights_bytes = cf_align((size_t)(c->weights_once  ? c->chunk * of_block
                                         : c->channelwise ? cf_channelwise_blocks(c) * c->desc.out_channels * of_block
                                                          : c->desc.groups * c->blocks * c->sides * of_block));
    c->signal_bytes = cf_align(task_signal(c));
    c->result_bytes = cf_align(block_result(c));
}

static size_t cell_bytes(const cf_convolution *c) {
    return c->channelwise || c->sliced
               ? task_signal(c) + block_result(c)
               : (task_signal(c) + block_result(c) * (size_t)c->blocks) * (size_t)c->desc.groups;
}

static void set_weights_sizes(cf_convolution *c) {
    const int64_t blocks = c->channelwise ? 1 : c->blocks;
    start_with_whole_axes(c);
    c->sliced = !c->channelwise && c->sides == 1;
    while (cell_bytes(c) > (c->channelwise || c->sliced ? own_cell_bytes : cells_bytes) && halve(c, 2))
        ;
    while (c->sliced && c->desc.batch * c->desc.groups * cf_cells_of_sample(c) < MIN_CELLS && halve(c, 2))
        ;
    c->signal_bytes = cf_align(task_signal(c));
    c->result_bytes = cf_align(block_result(c) * (size_t)blocks);
    c->weights_bytes = cf_align((size_t)(c->taps * cf_tap_numbers(c) * blocks * c->sides) * c->real);
    const size_t cell = (c->signal_bytes + c->result_bytes) * (size_t)c->desc.groups,
                 totals = c->weights_bytes / c->real * sizeof(double) * (size_t)c->desc.out_channels;
    const int64_t cells = cf_cells_of_sample(c);
    c->chunk = cf_max(1, cf_min(c->desc.batch * cells, (int64_t)(cells_bytes / cell)));
    c->sums_stay = !c->channelwise && !c->sliced && c->chunk == c->desc.batch * cells &&
                   c->desc.groups * blocks * c->sides >= 4 * c->device->threads;
    if (c->sliced)
        c->parts = cf_max(1, cf_min(c->desc.batch * cells,
                                    cf_min(SLICES / 2 / c->desc.groups,
                                           (int64_t)(totals_bytes / (c->weights_bytes / c->real * sizeof(double))) /
                                               c->desc.groups)));
    if (c->channelwise)
        c->parts = cf_max(1, cf_min(cf_channelwise_items(c) * cells,
                                    cf_min(SLICES, (int64_t)(totals_bytes / totals)) / cf_channelwise_blocks(c)));
}

conv_fft_status cf_cpu_convolution_create(cf_device *device, const cf_convolution_desc *desc, cf_convolution **result) {
    cf_convolution *c = calloc(1, sizeof *c);
    if (!c)
        return cf_fail_memory(sizeof *c, "a spatial convolution");
    *c = cf_convolution_blocks(device, desc);
    c->device = device;
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int a = 0; a < 3 && status == CONV_FFT_SUCCESS; ++a)
        status = cf_make_axis(c, a);
    if (status == CONV_FFT_SUCCESS)
        status = cf_find_inside(&c->axis[2]);
    if (status == CONV_FFT_SUCCESS) {
        is_weights(c) ? set_weights_sizes(c) : set_signal_sizes(c);
        status = is_weights(c) ? make_row_offsets(c) : make_tap_offsets(c);
    }
    if (status == CONV_FFT_SUCCESS)
        status = make_tap_places(c);
    if (status == CONV_FFT_SUCCESS)
        status = make_plane_places(c);
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
    free(c->tap_place);
    free(c->plane_place);
    free(c->run);
    free(c);
}

size_t cf_cpu_convolution_scratch(const cf_convolution *c) {
    return is_weights(c) ? cf_convolve_weights_scratch(c) : cf_convolve_signal_scratch(c);
}

conv_fft_status cf_cpu_convolve(const cf_convolution *c, void *x, void *w, void *y, const void *bias, bool accumulate,
                                void *scratch, struct CUstream_st *stream) {
    (void)stream;
    const cf_convolution_desc *const d = &c->desc;
    const double work = 2.0 * (double)d->batch * (double)d->groups * (double)d->in_channels * (double)d->out_channels *
                        (double)d->axis[0].output * (double)d->axis[1].output * (double)d->axis[2].output *
                        (double)c->taps;
    /* These loops are three times as fast as transforms. */
    const int threads = cf_cpu_threads(c->device, c->device->threads, work / 3);
    if (is_weights(c))
        cf_convolve_weights(c, x, y, w, accumulate, scratch, threads);
    else if (cf_is_gradient_of_signal(c))
        cf_convolve_signal(c, y, w, NULL, x, accumulate, scratch, threads);
    else
        cf_convolve_signal(c, x, w, bias, y, accumulate, scratch, threads);
    return CONV_FFT_SUCCESS;
}
