/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of DFT kernels, for the host, the kernels and the emulator. planes.cuh and signals.cuh explain the
 * steps. */
#ifndef CF_CONV_DFT_GEOMETRY_H
#define CF_CONV_DFT_GEOMETRY_H

#include "core/host_device.h"

/* What is read has rows x columns elements, what is computed out_rows x out_columns. */
typedef struct cf_dft_extents {
    int rows, columns, out_rows, out_columns, basis_y, basis_x;
    int planes; /* that a team of warps computes together */
    int taps;   /* 1: a block transforms taps first */
} cf_dft_extents;

typedef struct cf_dft_geometry {
    int tiles, eights;         /* eight frequencies of rows: one for each warp; of columns */
    int steps_x, steps_y;      /* products of depth 16 along rows and columns of what is read */
    int read_eights, pitch;    /* eight rows of what is read; units of 16 bytes from row to row */
    int plane;                 /* units of a plane that is read */
    int out_eights, out_pairs; /* eight rows of what is computed, and two of them */
    int halves;                /* 32 columns of what is computed */
    int mid_rows, mid_pitch;   /* 16 rows of all planes between the inverse steps; units from frequency to frequency */
    int first, table_x;        /* units of the tables of steps 1 and 4 */
    int each, columns;         /* of the table of steps 2 and 3, for eight k and for all */
    int spectrum;              /* of the spectrum of w */
    int mid;                   /* of what steps 3 and 4 share, or of two planes of taps */
} cf_dft_geometry;

CF_CONSTEXPR int cf_dft_ceil(int a, int b) { return (a + b - 1) / b; }

CF_CONSTEXPR cf_dft_geometry cf_dft_geometry_of(cf_dft_extents e) {
    cf_dft_geometry g = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    g.tiles = cf_dft_ceil(e.basis_x / 2 + 1, 8);
    g.eights = cf_dft_ceil(e.basis_y / 2 + 1, 8);
    g.steps_x = cf_dft_ceil(e.columns, 16);
    g.steps_y = cf_dft_ceil(e.rows, 16);
    g.read_eights = cf_dft_ceil(e.rows, 8);
    g.pitch = cf_dft_ceil(g.steps_x, 2) * 4 + 1;
    g.plane = g.read_eights * 8 * g.pitch;
    g.out_eights = cf_dft_ceil(e.out_rows, 8);
    g.out_pairs = cf_dft_ceil(g.out_eights, 2);
    g.halves = cf_dft_ceil(e.out_columns, 32);
    g.mid_rows = cf_dft_ceil(e.planes * g.out_eights, 2);
    g.mid_pitch = 2 * g.mid_rows + 1;
    g.first = g.tiles * g.steps_x * 32;
    g.spectrum = e.taps ? g.tiles * g.eights * 64 : 0;
    g.each = (g.steps_y + g.out_pairs) * 32;
    g.columns = g.eights * g.each;
    g.table_x = g.tiles * g.halves * 64;
    g.mid = 16 * g.tiles * g.mid_pitch;
    if (e.taps && g.mid < 2 * g.plane)
        g.mid = 2 * g.plane;
    return g;
}

/* Kernels of signals, in units of 16 bytes: the words of a tile, a matrix of step 1 or 6, all these matrices, the
 * twiddles of a warp, and all of them with `lines` tiles. Behind them are `numbers` of 4 bytes. */
typedef struct cf_dft_signal_sizes {
    int line, matrix, matrices, twiddles, units, numbers;
} cf_dft_signal_sizes;

/* split: whether the matrix of step 1 is the sum of two. */
CF_CONSTEXPR cf_dft_signal_sizes cf_dft_signal_sizes_of(int radix, int lines, int split) {
    cf_dft_signal_sizes s = {64 * radix, radix / 8 * (radix / 8) * 32, 0, 128, 0, 8 * lines + radix};
    s.matrices = (split ? 4 : 2) * s.matrix;
    s.units = lines * s.line + s.matrices + radix * s.twiddles;
    return s;
}

#endif
