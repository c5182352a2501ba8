/* SPDX-License-Identifier: Apache-2.0 */
/* Packing of signals and weights: cpu/spatial/convolution.h draws the layouts. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/spatial/convolution.h"

#include <string.h>

static cf_piece piece_of(const cf_tensor *tensor, const void *data, int64_t first, const cf_lanes *lanes, int64_t step,
                         int64_t elements) {
    return (cf_piece){.dtype = tensor->dtype,
                      .data = (char *)data + first * (int64_t)cf_dtype_bytes(tensor->dtype),
                      .offset = lanes->offset,
                      .step = step,
                      .elements = elements,
                      .lanes = lanes->count,
                      .adjacent = lanes->adjacent};
}

/* Positions [from, to) of the axis, of which each has an index of its own. */
static void pack_border(const cf_convolution *c, const cf_piece *piece, int64_t stride, int64_t from, int64_t to,
                        char *into) {
    const int64_t *const index = c->axis[2].index;
    const size_t column = (size_t)c->column * c->real;
    for (int64_t i = from; i < to; ++i, into += column) {
        if (index[i] >= 0) {
            cf_piece one = *piece;
            one.data = (char *)piece->data + index[i] * stride * (int64_t)cf_dtype_bytes(piece->dtype);
            c->kernels->load(into, c->column, &one);
        } else if (column == sizeof(float)) {
            memset(into, 0, sizeof(float)); /* one instruction; the other is a call */
        } else {
            memset(into, 0, column);
        }
    }
}

/* Columns that are neighbours in the tensor are loaded together, and then divided among the phases. `count` columns of
 * each phase are packed, from `at` on. */
static void pack_straight(const cf_convolution *c, const cf_tensor *tensor, const void *data, int64_t first,
                          const cf_lanes *lanes, int64_t at, int64_t columns, char *row) {
    const cf_packed_axis *const a = &c->axis[2];
    const int64_t end = cf_min(a->straight[1], (at + columns) * a->phases);
    double line[CF_PACKED_COLUMNS * CF_MAX_LANES];
    const size_t bytes = (size_t)c->column * c->real;
    for (int64_t from = cf_max(a->straight[0], at * a->phases); from < end; from += CF_PACKED_COLUMNS) {
        const int64_t count = cf_min(CF_PACKED_COLUMNS, end - from);
        const cf_piece piece =
            piece_of(tensor, data, first + (a->straight_index + from - a->straight[0]) * tensor->axis_stride[2], lanes,
                     tensor->axis_stride[2], count);
        c->kernels->load(line, c->column, &piece);
        int64_t phase = from % a->phases, place = from / a->phases;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t position = phase * a->width + place;
            if (position >= a->inside[phase][0] && position < a->inside[phase][1])
                memcpy(row + (size_t)(phase * c->extent[2] + place - at) * bytes,
                       (const char *)line + (size_t)i * bytes, bytes);
            place += phase + 1 == a->phases;
            phase = phase + 1 == a->phases ? 0 : phase + 1;
        }
    }
}

static void pack_row(const cf_convolution *c, const cf_tensor *tensor, const void *data, int64_t first,
                     const cf_lanes *lanes, int64_t at, char *row) {
    const cf_packed_axis *const a = &c->axis[2];
    const int64_t stride = tensor->axis_stride[2], bytes = c->column * (int64_t)c->real,
                  columns = cf_min(c->extent[2], a->width - at);
    const cf_piece border = piece_of(tensor, data, first, lanes, stride, 1);
    const bool straight = a->straight[1] > a->straight[0] && !lanes->adjacent && !c->planar;
    if (straight)
        pack_straight(c, tensor, data, first, lanes, at, columns, row);
    for (int64_t phase = 0; phase < a->phases; ++phase) {
        const int64_t from = phase * a->width + at, to = from + columns,
                      low = cf_min(to, cf_max(from, a->inside[phase][0])),
                      high = cf_min(to, cf_max(low, a->inside[phase][1]));
        char *const into = row + phase * c->extent[2] * bytes;
        if (a->index[from] == CF_NOT_READ)
            continue;
        pack_border(c, &border, stride, from, low, into);
        if (high > low && !straight) {
            const cf_piece piece =
                piece_of(tensor, data, first + a->index[low] * stride, lanes, a->phases * stride, high - low);
            c->kernels->load(into + (low - from) * bytes, c->column, &piece);
        }
        pack_border(c, &border, stride, high, to, into + (high - from) * bytes);
    }
}

/* Whether rows of one channel are copied as they are: no conversion, no phases, and neighbours in the tensor. */
static bool copies_rows(const cf_convolution *c, const cf_tensor *tensor, int lanes) {
    return lanes == 1 && c->column == 1 && c->axis[2].phases == 1 && tensor->axis_stride[2] == 1 &&
           cf_dtype_bytes(tensor->dtype) == c->real;
}

static void zero_row(char *to, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(float))
        memset(to + i, 0, sizeof(float)); /* one instruction */
}

/* The same as pack_row, for rows that are copied. */
static void copy_row(const cf_convolution *c, const cf_piece *piece, int64_t at, char *row) {
    const cf_packed_axis *const a = &c->axis[2];
    const int64_t real = (int64_t)c->real, to = at + cf_min(c->extent[2], a->width - at),
                  low = cf_min(to, cf_max(at, a->inside[0][0])), high = cf_min(to, cf_max(low, a->inside[0][1]));
    if (a->index[at] == CF_NOT_READ)
        return;
    if (c->desc.axis[2].mode != CONV_FFT_PAD_ZEROS) {
        pack_border(c, piece, 1, at, low, row);
        pack_border(c, piece, 1, high, to, row + (high - at) * real);
    } else {
        zero_row(row, (low - at) * real);
        zero_row(row + (high - at) * real, (to - high) * real);
    }
    if (high > low)
        cf_copy_row(row + (low - at) * real, (const char *)piece->data + (piece->offset[0] + a->index[low]) * real,
                    (high - low) * real);
}

/* Planes that follow those of these lanes are most likely packed next. They are read side by side, which the processor
 * does not foresee. */
static void prefetch_next(const cf_piece *planes) {
    const int64_t bytes = (int64_t)cf_dtype_bytes(planes->dtype), all = planes->lanes * planes->elements * bytes;
    const uintptr_t next = (uintptr_t)planes->data + (uintptr_t)(planes->offset[0] * bytes + all);
    if (planes->lanes == 1 || planes->step != 1 || planes->offset[1] - planes->offset[0] != planes->elements)
        return;
    for (int64_t i = 0; i < all; i += 64)
        __builtin_prefetch((const void *)(next + (uintptr_t)i), 0, 2);
}

void cf_pack_lanes(const cf_convolution *c, const cf_tensor *tensor, const void *data, const cf_lanes *lanes,
                   const int64_t at[3], void *to) {
    const size_t row_bytes = (size_t)(c->axis[2].phases * c->extent[2] * c->column) * c->real;
    if (c->plane_place) {
        cf_piece plane = piece_of(tensor, data, 0, lanes, tensor->axis_stride[2], c->plane_elements);
        plane.place = c->plane_place;
        prefetch_next(&plane);
        if (!c->whole_rows || lanes->count < c->side) /* tiles of whole rows read no padding */
            memset(to, 0, (size_t)cf_packed_block(c) * c->real);
        c->kernels->load(to, 0, &plane);
        return;
    }
    /* Vectors are computed whole. */
    if (c->channelwise && lanes->count < c->side)
        memset(to, 0, (size_t)cf_packed_block(c) * c->real);
    const bool copies = copies_rows(c, tensor, lanes->count);
    cf_piece piece = piece_of(tensor, data, 0, lanes, 1, 1);
    for (int64_t z = 0; z < c->extent[0]; ++z)
        for (int64_t y = 0; y < c->extent[1]; ++y) {
            char *const row = (char *)to + (size_t)(z * c->extent[1] + y) * row_bytes;
            const int64_t iz = at[0] + z < c->axis[0].count ? c->axis[0].index[at[0] + z] : CF_NOT_READ,
                          iy = at[1] + y < c->axis[1].count ? c->axis[1].index[at[1] + y] : CF_NOT_READ;
            if (iz == CF_NOT_READ || iy == CF_NOT_READ)
                continue;
            const int64_t first = iz * tensor->axis_stride[0] + iy * tensor->axis_stride[1];
            if (iz == CF_PADDING || iy == CF_PADDING) {
                memset(row, 0, row_bytes);
            } else if (copies) {
                piece.data = (char *)data + first * (int64_t)c->real;
                copy_row(c, &piece, at[2], row);
            } else {
                pack_row(c, tensor, data, first, lanes, at[2], row);
            }
        }
}

void cf_pack_signal(const cf_convolution *c, const cf_tensor *tensor, const void *data, int64_t sample, int64_t group,
                    int64_t side, const int64_t at[3], void *to) {
    const int64_t first = side * c->side, channels = cf_min(c->side, c->summed - first),
                  together = c->planar ? 1 : channels,
                  base = sample * tensor->sample_stride + group * tensor->group_stride;
    for (int64_t i = 0; i < channels; i += together) {
        const cf_lanes lanes =
            cf_lanes_make(base + (first + i) * tensor->channel_stride, tensor->channel_stride, together);
        cf_pack_lanes(c, tensor, data, &lanes, at, (char *)to + (size_t)(i * c->channel) * c->real);
    }
}

void cf_pack_gradient(const cf_convolution *c, const void *data, const cf_lanes *lanes, const int64_t at[3],
                      const int64_t count[3], int64_t stride, void *to) {
    const cf_tensor *const y = &c->desc.y;
    /* Rows that follow one another in the tensor are one row. */
    const bool joined = count[2] == c->rows[2] && y->axis_stride[1] == count[2] * y->axis_stride[2];
    const int64_t rows = joined ? cf_min(1, count[1]) : count[1], columns = count[2] * (joined ? count[1] : 1);
    for (int64_t iz = 0; iz < count[0]; ++iz)
        for (int64_t iy = 0; iy < rows; ++iy) {
            const int64_t first =
                (at[0] + iz) * y->axis_stride[0] + (at[1] + iy) * y->axis_stride[1] + at[2] * y->axis_stride[2];
            const cf_piece piece = piece_of(y, data, first, lanes, y->axis_stride[2], columns);
            c->kernels->load((char *)to + (size_t)((iz * c->rows[1] + iy) * c->rows[2] * stride) * c->real, stride,
                             &piece);
        }
}

/* to[tap][element][lanes]: elements are `step` apart. */
static void pack_taps(const cf_convolution *c, const void *w, const cf_lanes *lanes, int64_t step, int64_t elements,
                      int64_t tap_numbers, char *to) {
    const cf_convolution_axis *const axis = c->desc.axis;
    const int64_t *const stride = c->desc.w.axis_stride;
    for (int64_t z = 0; z < axis[0].taps; ++z)
        for (int64_t y = 0; y < axis[1].taps; ++y)
            for (int64_t x = 0; x < axis[2].taps; ++x) {
                const cf_piece piece =
                    piece_of(&c->desc.w, w, z * stride[0] + y * stride[1] + x * stride[2], lanes, step, elements);
                c->kernels->load(to, c->block, &piece);
                to += (size_t)tap_numbers * c->real;
            }
}

/* The same where the taps of an element are neighbours in the tensor: they are loaded together. */
static void pack_elements(const cf_convolution *c, const void *w, const cf_lanes *lanes, int64_t step, int64_t elements,
                          char *to) {
    const int64_t together = step == c->taps ? elements : 1;
    for (int64_t e = 0; e < elements; e += together) {
        cf_piece piece = piece_of(&c->desc.w, w, e * step, lanes, 1, together * c->taps);
        piece.place = c->tap_place + e * c->taps;
        c->kernels->load(to, c->block, &piece);
    }
}

bool cf_has_dense_taps(const cf_convolution *c) {
    const int64_t *const stride = c->desc.w.axis_stride;
    const cf_convolution_axis *const axis = c->desc.axis;
    return (axis[2].taps == 1 || stride[2] == 1) && (axis[1].taps == 1 || stride[1] == axis[2].taps) &&
           (axis[0].taps == 1 || stride[0] == axis[1].taps * axis[2].taps);
}

void cf_pack_weights(const cf_convolution *c, const void *w, int64_t group, int64_t block, int64_t side, void *to) {
    const cf_tensor *const t = &c->desc.w;
    const bool data = cf_is_gradient_of_signal(c);
    const int64_t own_stride = data ? t->channel_stride : t->sample_stride,
                  summed_stride = data ? t->sample_stride : t->channel_stride, first = block * c->block,
                  base = group * t->group_stride + side * c->side * summed_stride,
                  elements = cf_min(c->side, c->summed - side * c->side);
    if (c->own - first < c->block)
        memset(to, 0, (size_t)(c->taps * c->side * c->block) * c->real);
    for (int64_t l = 0; l < cf_min(c->block, c->own - first); l += CF_MAX_LANES) {
        const cf_lanes lanes =
            cf_lanes_make(base + (first + l) * own_stride, own_stride, cf_min(c->block, c->own - first) - l);
        char *const own = (char *)to + (size_t)l * c->real;
        if (c->tap_place)
            pack_elements(c, w, &lanes, summed_stride, elements, own);
        else
            pack_taps(c, w, &lanes, summed_stride, elements, c->side * c->block, own);
    }
}

int64_t cf_channelwise_blocks(const cf_convolution *c) {
    return c->samples_are_lanes ? c->desc.groups : cf_ceil_div(c->desc.groups, c->block);
}

int64_t cf_channelwise_items(const cf_convolution *c) {
    return c->samples_are_lanes ? cf_ceil_div(c->desc.batch, c->block) : c->desc.batch;
}

cf_lanes cf_channelwise_lanes(const cf_convolution *c, const cf_tensor *t, int64_t block, int64_t item,
                              int64_t channel) {
    const int64_t own = channel * t->channel_stride;
    if (c->samples_are_lanes)
        return cf_lanes_make(block * t->group_stride + item * c->block * t->sample_stride + own, t->sample_stride,
                             cf_min(c->block, c->desc.batch - item * c->block));
    return cf_lanes_make(block * c->block * t->group_stride + item * t->sample_stride + own, t->group_stride,
                         cf_min(c->block, c->desc.groups - block * c->block));
}

void cf_pack_channelwise_weights(const cf_convolution *c, const void *w, int64_t block, int64_t channel, void *to) {
    const cf_tensor *const t = &c->desc.w;
    const int64_t first = channel * t->sample_stride;
    const cf_lanes lanes = c->samples_are_lanes
                               ? cf_lanes_make(first + block * t->group_stride, 0, c->block)
                               : cf_lanes_make(first + block * c->block * t->group_stride, t->group_stride,
                                               cf_min(c->block, c->desc.groups - block * c->block));
    if (lanes.count < c->block)
        memset(to, 0, (size_t)(c->taps * c->block) * c->real);
    if (!cf_has_dense_taps(c)) {
        pack_taps(c, w, &lanes, 0, 1, c->block, to);
        return;
    }
    const cf_piece taps = piece_of(t, w, 0, &lanes, 1, c->taps);
    c->kernels->load(to, c->block, &taps);
}
