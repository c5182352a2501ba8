/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of planes in shared memory (geometry.cuh), for the host, the kernels and the emulator. Distances and sizes
 * are complex numbers, if nothing else is said. */
#ifndef CF_FBFFT_SHARED_MEMORY_GEOMETRY_H
#define CF_FBFFT_SHARED_MEMORY_GEOMETRY_H

#include "core/host_device.h"

enum {
    CF_SHARED_FFT_TABLE = 32, /* bytes of the table entry of a plane */
    CF_SHARED_FFT_MAXIMA = 64 /* bytes for the absmax of each warp, if the spectrum has scales */
};

/* Distances along a line of a b c points (in_place_order.cuh): of groups of c points, and of groups of b c points. */
typedef struct cf_shared_fft_line {
    int c_pitch, bc_pitch, size;
} cf_shared_fft_line;

/* pad: distances are odd, so that neighbouring threads use different banks. */
CF_CONSTEXPR cf_shared_fft_line cf_shared_fft_line_of(int a, int b, int c, bool pad) {
    cf_shared_fft_line l = {c, 0, 0};
    if (pad && c > 1)
        l.c_pitch = c | 1;
    l.bc_pitch = pad && b * c > 1 ? (b * l.c_pitch) | 1 : b * l.c_pitch;
    l.size = a * l.bc_pitch;
    return l;
}

/* two_rows: a line has two real rows. packs_nyquist: column n2 / 2 of its spectrum shares a place with column 0. */
typedef struct cf_shared_fft_plane {
    int rows;            /* lines of a plane for each position of axis 0 */
    int columns;         /* places of a line that a step along axis 1 or 0 transforms */
    int extra;           /* places behind a line for the columns of the second row that have no other */
    bool nyquist_packed; /* column n2 / 2 is in column 0 */
} cf_shared_fft_plane;

/* n1: points of axis 1. n2: points of axis 2. line: points of a line. */
CF_CONSTEXPR cf_shared_fft_plane cf_shared_fft_plane_of(bool two_rows, bool packs_nyquist, int n1, int n2, int line) {
    cf_shared_fft_plane p = {n1, line, 0, false};
    if (two_rows) {
        p.nyquist_packed = packs_nyquist && n2 % 2 == 0;
        p.rows = (n1 + 1) / 2;
        p.columns = n2 / 2 + 1 - p.nyquist_packed;
        p.extra = p.nyquist_packed ? 0 : 1 + (n2 % 2 == 0);
    }
    return p;
}

/* Bytes of a block. plane: distance of planes. number: bytes of a complex number. */
CF_CONSTEXPR long long cf_shared_fft_block_bytes(int planes, long long plane, int number, bool scaled) {
    return planes * (CF_SHARED_FFT_TABLE + plane * number) + (scaled ? CF_SHARED_FFT_MAXIMA : 0);
}

/* Bytes behind the planes for bins that are copied ahead (prefetch.cuh): column n2 / 2 of the planes, and so many rows
 * of bins for each warp. n1: points of axis 1; number: bytes of a bin. */
CF_CONSTEXPR long long cf_shared_fft_prefetch_bytes(int planes, int threads, int n1, int rows, int number) {
    return number * ((long long)n1 * planes + (long long)threads * rows);
}

#endif
