/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory of tensor-core transforms, for the host, the kernels and the emulator. A word has 32 bits: one
 * complex number of a 16-bit spectrum. Distances avoid bank conflicts. */
#ifndef CF_FBFFT_TENSOR_CORE_GEOMETRY_H
#define CF_FBFFT_TENSOR_CORE_GEOMETRY_H

#include "core/host_device.h"

/* -------------------------------------------------------------------------------------------- planes and long lines */

enum {
    CF_TENSOR_FFT_SHORT = 128 /* 1-D signals of at most this many points are short: one row, in registers of a warp */
};

/* N1 of a 1-D signal of n points that is treated as a plane of N1 x N2. */
CF_CONSTEXPR int cf_tensor_fft_split(int n) { return n >= 2048 ? 64 : n >= 512 ? 32 : 16; }

/* Tiles of 16 rows, for rows [lo, hi). */
CF_CONSTEXPR int cf_tensor_fft_row_tiles(int lo, int hi) { return (hi + 15) / 16 - lo / 16; }

/* A plane group, in words. Forward: [class][column][plane][j]; if planes are interleaved: [class][column][j][plane].
 * Inverse: [plane][column][row]; if planes are interleaved: [column][row][plane]. */
typedef struct cf_tensor_fft_layout {
    int line;    /* forward: distance of columns */
    int parts;   /* forward: parts of planes whose largest values are found; a word for each */
    int column;  /* inverse: distance of columns */
    int plane;   /* inverse: distance of planes, if they are not interleaved */
    int forward; /* all */
    int inverse; /* all */
} cf_tensor_fft_layout;

/* lines: planes of n1 x n2 are 1-D signals. floats: the signal is FP32. tiles: inverse, of the rows of the window. */
CF_CONSTEXPR cf_tensor_fft_layout cf_tensor_fft_layout_of(bool interleaved, bool lines, bool floats, int n1, int n2,
                                                          int tiles) {
    cf_tensor_fft_layout l = {8 * 16 + 8, 0, 0, 0, 0, 0};
    l.parts = interleaved ? 128 : 16;
    l.column = (interleaved ? 8 : 1) * 16 * tiles + (lines && floats ? 4 : 8);
    l.plane = n2 / 2 * l.column + 4;
    l.forward = n1 / 16 * (n2 / 2 + 1) * l.line + l.parts;
    l.inverse = interleaved ? n2 / 2 * l.column : 8 * l.plane;
    return l;
}

/* Short lines, and rows of planes that are stored: whether numbers go through shared memory, because they cannot be
 * moved eight bytes at a time. Then neighbouring lanes move neighbouring numbers. vector: numbers of an aligned access.
 * bytes: of a number. */
CF_CONSTEXPR bool cf_tensor_fft_through(bool interleaved, int vector, int bytes) {
    return !interleaved && vector * bytes < 8;
}

/* Words of a short row in shared memory. Two rows are in different banks. */
CF_CONSTEXPR int cf_tensor_fft_short_row(int bytes, int points) {
    return bytes * points / 4 + (bytes * points % 128 ? 0 : 16);
}

/* -------------------------------------------------------------------------------------- one product: dft_matrix.cuh */

CF_CONSTEXPR long long cf_dense_up(long long n, long long unit) { return (n + unit - 1) / unit; }

/* The number of different twiddles of n0 x n1 x n2 points: the least common multiple. */
CF_CONSTEXPR long long cf_dense_common(long long a, long long b) { return b == 0 ? a : cf_dense_common(b, a % b); }
CF_CONSTEXPR long long cf_dense_multiple(long long a, long long b) { return a / cf_dense_common(a, b) * b; }
CF_CONSTEXPR long long cf_dense_period(long long n0, long long n1, long long n2) {
    return cf_dense_multiple(cf_dense_multiple(n0, n1), n2);
}

/* The number of elements of an axis at even (0) or odd (1) positions. */
CF_CONSTEXPR int cf_dense_rows(int first, int spread, int count, int parity) {
    int rows = 0;
    for (int e = 0; e < count; ++e)
        rows += (first + e * spread) % 2 == parity;
    return rows;
}

/* The sum over taps, in steps of 16. split: taps at even positions of axis 1 come before those at odd positions. */
typedef struct cf_dense_sum {
    int even, odd; /* elements of axis 1 at even and odd positions */
    bool split;
    int first; /* split: steps of even positions. Otherwise all steps. */
    int steps;
} cf_dense_sum;

/* n1, first, spread, c1: points of axis 1 and the elements of its window. c0, c2: elements of the other axes. */
CF_CONSTEXPR cf_dense_sum cf_dense_sum_of(long long n1, int first, int spread, int c0, int c1, int c2) {
    cf_dense_sum s = {0, 0, false, 0, 0};
    s.even = cf_dense_rows(first, spread, c1, 0);
    s.odd = c1 - s.even;
    const int even = (int)cf_dense_up(c0 * s.even * c2, 16), odd = (int)cf_dense_up(c0 * s.odd * c2, 16),
              whole = (int)cf_dense_up(c0 * c1 * c2, 16);
    s.split = n1 % 2 == 0 && even + odd < 2 * whole;
    s.first = s.split ? even : whole;
    s.steps = s.split ? even + odd : whole;
    return s;
}

/* The bins of a block. A tile is eight bins, or with split pairs of bins. */
typedef struct cf_dense_bins {
    long long tiles, bin_tiles; /* bin_tiles: blocks that share the bins of the same planes */
    int bin_tile;               /* tiles of a block */
} cf_dense_bins;

/* planes: of a warp. Layers of 64 x 64 and 128 x 128 with windows of 9 x 9 then have about as many blocks as an H200
 * can run at once. */
CF_CONSTEXPR cf_dense_bins cf_dense_bins_of(long long n0, long long n1, long long n2, bool split, int steps,
                                            int planes) {
    cf_dense_bins b = {0, 0, 0};
    const int max_tiles = (planes == 32 ? 56 : 112) / steps;
    b.tiles = cf_dense_up(n0 * (split ? n1 / 2 : n1) * (n2 / 2 + 1), 8);
    b.bin_tiles = cf_dense_up(b.tiles, max_tiles > 1 ? max_tiles : 1);
    b.bin_tile = (int)cf_dense_up(b.tiles, b.bin_tiles);
    return b;
}

/* Words of shared memory, behind the table of planes. */
typedef struct cf_dense_layout {
    int roots;    /* the different twiddles */
    int twiddles; /* of each slot */
    int matrix;   /* of this block's bins */
    int pitch;    /* of the rows of a staging buffer */
    int stage;    /* the staging buffer of a warp */
    int words;    /* all */
} cf_dense_layout;

/* parts: how many 16-bit numbers stand for one number of the signal. */
CF_CONSTEXPR cf_dense_layout cf_dense_layout_of(long long period, int steps, int bin_tile, int parts, int warps) {
    cf_dense_layout l = {0, 0, 0, 0, 0, 0};
    l.roots = (int)cf_dense_up(period, 4) * 4;
    l.twiddles = 4 * 16 * steps;
    l.matrix = bin_tile * steps * 128;
    l.pitch = parts * (8 * steps + (steps % 2 ? 0 : 8));
    l.stage = 8 * l.pitch;
    l.words = l.roots + l.twiddles + l.matrix + warps * l.stage;
    return l;
}

#endif
