/* SPDX-License-Identifier: Apache-2.0 */
#include "core/window.h"

#include "core/arith.h"
#include "core/strides.h"

int64_t cf_padding_reach(conv_fft_padding mode, int64_t size) {
    switch (mode) {
    case CONV_FFT_PAD_ZEROS:
    case CONV_FFT_PAD_CIRCULAR:
    case CONV_FFT_PAD_REPLICATE:
        break;
    case CONV_FFT_PAD_REFLECT:
        return size - 1;
    }
    return CF_MAX_ELEMENTS;
}

int64_t cf_window_index(const cf_axis_window *a, int64_t coordinate) {
    if (coordinate < a->lower || coordinate >= a->upper)
        return -1;
    if (coordinate >= 0 && coordinate < a->size)
        return coordinate;
    switch (a->mode) {
    case CONV_FFT_PAD_ZEROS:
        return -1;
    case CONV_FFT_PAD_CIRCULAR:
        return cf_mod(coordinate, a->size);
    case CONV_FFT_PAD_REFLECT:
        return coordinate < 0 ? -coordinate : 2 * (a->size - 1) - coordinate;
    case CONV_FFT_PAD_REPLICATE:
        return coordinate < 0 ? 0 : a->size - 1;
    }
    return -1;
}

int64_t cf_window_fill(const cf_axis_window *a, int64_t tile, int64_t shift, int64_t phase, int64_t *index) {
    const int64_t start = cf_window_start(a, tile, shift, phase);
    int64_t used = 0;
    for (int64_t e = 0; e < a->count; ++e) {
        index[e] = cf_window_index(a, start + e * a->step);
        if (index[e] >= 0)
            used = e + 1;
    }
    return used;
}

int64_t cf_window_inside(const cf_axis_window *a, int64_t tile, int64_t shift, int64_t phase) {
    const int64_t start = cf_window_start(a, tile, shift, phase);
    const int64_t low = cf_max(0, a->lower), high = cf_min(a->size, a->upper);
    /* Elements e with low <= start + e * step < high. */
    const int64_t from = cf_max(0, -cf_floor_div(start - low, a->step));
    const int64_t to = cf_min(a->count, -cf_floor_div(start - high, a->step));
    return to > from ? to - from : 0;
}
