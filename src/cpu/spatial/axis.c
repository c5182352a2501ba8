/* SPDX-License-Identifier: Apache-2.0 */
/* The axes of a convolution by its definition: lattices of results, and what each packed position reads. */
#include "core/arith.h"
#include "core/window.h"
#include "cpu/spatial/convolution.h"

#include <stdlib.h>

conv_fft_status cf_spatial_numbers(int64_t count, int64_t **memory) {
    *memory = calloc((size_t)cf_max(1, count), sizeof **memory);
    return *memory ? CONV_FFT_SUCCESS : cf_fail_memory((size_t)count * sizeof **memory, "a spatial convolution");
}

static conv_fft_status lattice_taps(int64_t taps, cf_lattice *lattice) {
    CF_FORWARD(cf_spatial_numbers(taps, &lattice->tap));
    CF_FORWARD(cf_spatial_numbers(taps, &lattice->offset));
    CF_FORWARD(cf_spatial_numbers(taps, &lattice->from));
    return cf_spatial_numbers(taps, &lattice->to);
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
    /* Of so many taps in turn, one at most reaches the lattice. */
    CF_FORWARD(lattice_taps(cf_ceil_div(a->taps, a->stride / cf_gcd(a->stride, a->dilation)), lattice));
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
    const int64_t count = cf_is_gradient_of_signal(c) ? cf_min(a->stride, a->input) : 1;
    c->lattice[axis] = calloc((size_t)count, sizeof *c->lattice[axis]);
    if (!c->lattice[axis])
        return cf_fail_memory((size_t)count * sizeof *c->lattice[axis], "a spatial convolution");
    c->lattices[axis] = count;
    *low = 0;
    if (!cf_is_gradient_of_signal(c))
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

double cf_signal_products(const cf_convolution_axis *a) {
    double inside = 0;
    if (a->mode != CONV_FFT_PAD_ZEROS)
        return (double)a->taps * (double)a->output;
    for (int64_t t = 0; t < a->taps; ++t) {
        const int64_t first = a->origin + t * a->dilation, from = cf_max(0, -cf_floor_div(first, a->stride)),
                      to = cf_min(a->output, -cf_floor_div(first - a->input, a->stride));
        inside += (double)cf_max(0, to - from);
    }
    return inside;
}

bool cf_has_whole_rows(const cf_convolution *c) {
    const cf_convolution_axis *const a = &c->desc.axis[2];
    return c->channelwise && c->desc.kind != CF_CGEMM_BACKWARD_WEIGHTS && a->stride == 1 && a->dilation == 1 &&
           a->input == a->output && a->output <= CF_TILE_MAX_ROW && a->origin <= 0 && a->origin + a->taps > 0 &&
           (cf_is_gradient_of_signal(c) || a->mode == CONV_FFT_PAD_ZEROS);
}

/* Position j and tap t read coordinate origin + offset[t] + j * pace. */
static void find_padding(const cf_axis_window *window, int64_t origin, cf_lattice *l) {
    for (int t = 0; t < l->taps; ++t) {
        const int64_t first = origin + l->offset[t];
        l->to[t] = l->count;
        if (window->mode != CONV_FFT_PAD_ZEROS)
            continue;
        l->from[t] = cf_min(l->count, cf_max(0, -cf_floor_div(first, l->pace)));
        l->to[t] = cf_max(l->from[t], cf_min(l->count, -cf_floor_div(first - window->size, l->pace)));
    }
}

/* Positions first, first + pace, ... of a phase read what is there of the tensor, whose index 0 is at -origin. */
static void read_positions(const cf_axis_window *window, int64_t origin, int64_t phase, int64_t first, int64_t pace,
                           int64_t count, cf_packed_axis *packed) {
    for (int64_t i = 0; i < count; ++i) {
        const int64_t place = first + i * pace;
        packed->index[phase * packed->width + place] = cf_window_index(window, origin + place * packed->phases + phase);
    }
}

/* The positions that a lattice reads, and for each of its taps those that are padding. */
static void read_lattice(const cf_axis_window *window, int64_t origin, bool columns, cf_lattice *l,
                         cf_packed_axis *packed) {
    find_padding(window, origin, l);
    for (int t = 0; t < l->taps; ++t) {
        const int64_t phase = l->offset[t] % packed->phases, first = l->offset[t] / packed->phases;
        packed->span = cf_max(packed->span, first + 1);
        /* Of columns, a phase is packed whole, of rows only those that are read. */
        if (!columns)
            read_positions(window, origin, phase, first, l->pace, l->count, packed);
        else if (packed->index[phase * packed->width] == CF_NOT_READ)
            read_positions(window, origin, phase, 0, 1, packed->width, packed);
        if (columns)
            l->offset[t] = phase * packed->width + first;
    }
    if (columns)
        l->pace /= packed->phases;
}

/* Where coordinate 0 of the packed signal is, how it continues outside of the tensor, and what is read. */
conv_fft_status cf_make_axis(cf_convolution *c, int axis) {
    const cf_convolution_axis *const a = &c->desc.axis[axis];
    cf_packed_axis *const packed = &c->axis[axis];
    const bool data = cf_is_gradient_of_signal(c);
    int64_t low = 0;
    CF_FORWARD(make_lattices(c, axis, &low));
    const cf_axis_window window = {.size = data ? a->output : a->input,
                                   .lower = INT64_MIN,
                                   .upper = INT64_MAX,
                                   .mode = data ? CONV_FFT_PAD_ZEROS : a->mode};
    packed->span = packed->count = 1;
    for (int64_t i = 0; i < c->lattices[axis]; ++i) {
        const cf_lattice *const l = &c->lattice[axis][i];
        for (int t = 0; t < l->taps; ++t)
            packed->count = cf_max(packed->count, l->offset[t] + (l->count - 1) * l->pace + 1);
    }
    packed->phases = axis == 2 && c->desc.kind == CF_CGEMM_FORWARD ? a->stride : 1;
    packed->width = cf_ceil_div(packed->count, packed->phases);
    CF_FORWARD(cf_spatial_numbers(packed->phases * packed->width, &packed->index));
    for (int64_t i = 0; i < packed->phases * packed->width; ++i)
        packed->index[i] = CF_NOT_READ;
    for (int64_t i = 0; i < c->lattices[axis]; ++i)
        read_lattice(&window, data ? low : a->origin, axis == 2, &c->lattice[axis][i], packed);
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
conv_fft_status cf_find_inside(cf_packed_axis *packed) {
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
