/* SPDX-License-Identifier: Apache-2.0 */
/* Small planes (small_planes.cuh) in shared memory, and their blocks of 16 positions, for the host, the kernels and the
 * emulator. */
#ifndef CF_CONV_TOEPLITZ_SMALL_GEOMETRY_H
#define CF_CONV_TOEPLITZ_SMALL_GEOMETRY_H

#include "core/host_device.h"

/* The planes of `channels` channels of a sample. */
typedef struct cf_toeplitz_small {
    int row, plane; /* elements */
    int pitch;      /* words from a sample to the next one; 4 modulo 8 */
} cf_toeplitz_small;

/* padded: rows are whole words. Otherwise elements follow one another as in memory. A sample is followed by at least
 * one word. */
CF_CONSTEXPR cf_toeplitz_small cf_toeplitz_small_of(int rows, int columns, int channels, bool padded) {
    cf_toeplitz_small s = {padded ? (columns + 1) / 2 * 2 : columns, 0, 0};
    s.plane = rows * s.row;
    s.pitch = ((channels * s.plane + 1) / 2 + 4) / 8 * 8 + 4;
    return s;
}

/* The units of 16 bytes of a sample whose planes are blocks of 16 positions (small_weights.cuh): an odd number. */
CF_CONSTEXPR int cf_toeplitz_small_units(int blocks, int channels) { return 2 * blocks * channels | 1; }

/* n / d rounded down. */
CF_CONSTEXPR int cf_toeplitz_floor(int n, int d) { return n >= 0 ? n / d : -((d - 1 - n) / d); }

/* The blocks of x and y. Blocks q of y and p of x meet in taps if up * p - stride * q is first, ..., last. */
typedef struct cf_toeplitz_bands {
    int across, down; /* the columns and rows of a block; one row with a stride */
    int stride, up;   /* as STRIDE_Y and UP_Y of signals.cuh */
    int x_blocks, y_blocks, first, last;
    int rows; /* of taps that all differences read */
} cf_toeplitz_bands;

CF_CONSTEXPR cf_toeplitz_bands cf_toeplitz_bands_of(int x_rows, int x_columns, int y_rows, int y_columns, int kernel,
                                                    int pad, int stride, int up, bool whole_rows) {
    cf_toeplitz_bands b = {0, 0, stride, up, 0, 0, 0, 0, 0};
    b.across = x_columns <= 8 && y_columns <= 8 && !whole_rows ? 8 : 16;
    b.down = 16 / b.across;
    b.x_blocks = (x_rows + b.down - 1) / b.down;
    b.y_blocks = (y_rows + b.down - 1) / b.down;
    /* Rows of x minus rows of y of two blocks: down * delta - down + 1, ..., down * delta + down - 1. */
    b.first = -cf_toeplitz_floor(b.down - 1 + pad, b.down);
    b.last = cf_toeplitz_floor(kernel - 1 + b.down - 1 - pad, b.down);
    b.first = b.first < stride * (1 - b.y_blocks) ? stride * (1 - b.y_blocks) : b.first;
    b.last = b.last > up * (b.x_blocks - 1) ? up * (b.x_blocks - 1) : b.last;
    b.rows = b.last < b.first ? 0 : b.down * (b.last - b.first) + 2 * b.down - 1;
    return b;
}

/* The block of x that meets block q of y with this difference; -1: there is none. */
CF_CONSTEXPR int cf_toeplitz_met(cf_toeplitz_bands b, int q, int delta) {
    const int rows = b.stride * q + delta;
    return rows >= 0 && rows % b.up == 0 && rows / b.up < b.x_blocks ? rows / b.up : -1;
}

#endif
