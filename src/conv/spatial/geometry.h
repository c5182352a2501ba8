/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which inputs the outputs of a strip read, along one axis, for the host, the kernels and the emulator.
 *
 *     direct        output o reads by tap s the input         stride o + dilation s - pad
 *     transposed    output o reads by tap s the input i with  stride i + dilation s - pad = o, if there is one
 *
 * The gradient of x is transposed: its inputs are gy. A strip has `outs` outputs and begins at a multiple of them.
 * Transposed, `outs` is a multiple of the stride. So every strip reads its window of inputs by the same pattern.
 */
#ifndef CF_CONV_SPATIAL_GEOMETRY_H
#define CF_CONV_SPATIAL_GEOMETRY_H

#include "core/host_device.h"

typedef struct cf_spatial_axis {
    int transposed, stride, dilation, pad, taps, outs;
} cf_spatial_axis;

CF_CONSTEXPR int cf_spatial_floor(int a, int b) { return a / b - (a % b < 0 ? 1 : 0); }

/* The first input that the strip at output 0 reads. */
CF_CONSTEXPR int cf_spatial_first(cf_spatial_axis a) {
    return a.transposed ? -cf_spatial_floor(a.dilation * (a.taps - 1) - a.pad, a.stride) : -a.pad;
}

/* Inputs from the first to the last one that a strip reads. */
CF_CONSTEXPR int cf_spatial_window(cf_spatial_axis a) {
    return a.transposed ? cf_spatial_floor(a.outs - 1 + a.pad, a.stride) - cf_spatial_first(a) + 1
                        : a.stride * (a.outs - 1) + a.dilation * (a.taps - 1) + 1;
}

/* Inputs from one strip to the next. */
CF_CONSTEXPR int cf_spatial_advance(cf_spatial_axis a) { return a.transposed ? a.outs / a.stride : a.outs * a.stride; }

/* The input, counted from the first of the window, that output `out` of a strip reads by tap `tap`; -1: none. */
CF_CONSTEXPR int cf_spatial_input(cf_spatial_axis a, int out, int tap) {
    const int at = a.transposed ? out + a.pad - a.dilation * tap : a.stride * out + a.dilation * tap;
    return !a.transposed ? at : at % a.stride != 0 ? -1 : at / a.stride - cf_spatial_first(a);
}

/* Inputs by which the window moves from one chunk of taps to the next. */
CF_CONSTEXPR int cf_spatial_step(cf_spatial_axis a) {
    return a.transposed ? a.dilation * a.taps / a.stride : a.dilation * a.taps;
}

/* The tap by which output `out` of a strip reads input `input` of the window; -1: it does not read it. */
CF_CONSTEXPR int cf_spatial_tap(cf_spatial_axis a, int out, int input) {
    const int at = a.transposed ? out + a.pad - a.stride * (input + cf_spatial_first(a)) : input - a.stride * out;
    return at < 0 || at % a.dilation != 0 || at / a.dilation >= a.taps ? -1 : at / a.dilation;
}

/*
 * Walks (walk.cuh): strips that follow one another, each with the inputs up to the next strip, and no others. These
 * inputs meet the outputs of their strip and some before it: `behind` of them.
 */
CF_CONSTEXPR int cf_spatial_behind(cf_spatial_axis a) {
    const int behind = a.transposed ? a.pad - a.stride * cf_spatial_first(a) : a.dilation * (a.taps - 1) / a.stride;
    return behind > 0 ? behind : 0;
}

/* The output that reads input `input` of a strip by tap `tap`, counted from the first output that these inputs meet;
 * -1: none. */
CF_CONSTEXPR int cf_spatial_output(cf_spatial_axis a, int input, int tap) {
    const int at = input - a.dilation * tap;
    if (!a.transposed && at % a.stride != 0)
        return -1;
    return cf_spatial_behind(a) +
           (a.transposed ? a.stride * (input + cf_spatial_first(a)) - a.pad + a.dilation * tap : at / a.stride);
}

/* Whether a thread has the taps of its channels in registers. */
CF_CONSTEXPR bool cf_spatial_holds_taps(cf_spatial_axis y, cf_spatial_axis x, int channels) {
    return y.taps * x.taps * channels <= 18;
}

/* Inputs of `strips` strips that follow one another, of which each reads `chunks` windows. */
CF_CONSTEXPR int cf_spatial_reach(cf_spatial_axis a, int strips, int chunks) {
    return cf_spatial_advance(a) * (strips - 1) + cf_spatial_window(a) + cf_spatial_step(a) * (chunks - 1);
}

/* How many columns one load takes with column `column`: a block that begins at a multiple of its size, as large as
 * `most` (1, 2 or 4) and the window of columns [begin, end) allow. */
CF_CONSTEXPR bool cf_spatial_has_block(int column, int begin, int end, int size) {
    return cf_spatial_floor(column, size) * size >= begin && (cf_spatial_floor(column, size) + 1) * size <= end;
}
CF_CONSTEXPR int cf_spatial_together(int column, int begin, int end, int most) {
    return most >= 4 && cf_spatial_has_block(column, begin, end, 4)   ? 4
           : most >= 2 && cf_spatial_has_block(column, begin, end, 2) ? 2
                                                                      : 1;
}

/*
 * A tile of FP32 numbers in shared memory: planes of `height` rows of `breadth` columns. If it is skewed, a gap follows
 * every `advance` columns, so that threads with neighbouring strips have no bank conflicts.
 */
typedef struct cf_spatial_tile {
    int planes, height, breadth, advance;
    bool skewed;
} cf_spatial_tile;

/* The place of a column in its row. */
CF_CONSTEXPR int cf_spatial_along(cf_spatial_tile t, int column) {
    return t.skewed ? column + column / t.advance : column;
}
/* Numbers from row to row. It is odd, so that rows begin in different banks. */
CF_CONSTEXPR int cf_spatial_pitch(cf_spatial_tile t) { return (cf_spatial_along(t, t.breadth - 1) + 1) | 1; }
CF_CONSTEXPR long long cf_spatial_numbers(cf_spatial_tile t) {
    return (long long)t.planes * t.height * cf_spatial_pitch(t);
}

/* Threads of a block that load one row: a part of a warp, or all where there are few rows. */
CF_CONSTEXPR int cf_spatial_threads_of_row(cf_spatial_tile t, int threads) {
    return t.planes * t.height * 32 < threads ? threads : t.breadth > 16 ? 32 : t.breadth > 8 ? 16 : 8;
}

#endif
