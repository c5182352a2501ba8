/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory of the kernels of this folder, for the host, the kernels and the emulator. Numbers are FP32: a real
 * number has 4 bytes, a complex number has 8. */
#ifndef CF_FBFFT_WARP_GEOMETRY_H
#define CF_FBFFT_WARP_GEOMETRY_H

#include "core/host_device.h"

CF_CONSTEXPR int cf_fft_larger(int a, int b) { return a > b ? a : b; }
CF_CONSTEXPR int cf_fft_align16(int bytes) { return (bytes + 15) / 16 * 16; }

/* ----------------------------------------------------------------------------------------------- planes: real2d.cuh */

/* The threads of a block: whole warps. */
CF_CONSTEXPR int cf_fft_threads_2d(int planes, int lines, int lanes) { return (planes * lines * lanes + 31) / 32 * 32; }

/* Of one plane. */
typedef struct cf_fft_layout_2d {
    int line_pitch; /* distance of two lines along axis 1, in complex numbers */
    int stage;      /* distance of two pairs of rows of the signal, in real numbers */
    int bytes;      /* of a plane, forward */
    int pair_pitch; /* inverse: distance of two pairs of rows, in pairs of complex numbers */
    int inverse_bytes;
} cf_fft_layout_2d;

/* h, w: points of the transform. ih, iw: rows and columns of the signal. lanes: of a line. */
CF_CONSTEXPR cf_fft_layout_2d cf_fft_layout_2d_of(int h, int w, int ih, int iw, int lanes) {
    cf_fft_layout_2d l = {w + 1, 0, 0, 0, 0};
    const int pairs = h / 2, bins = w / 2 + 1;
    /* Neighbouring lines are in different banks. */
    while (lanes <= 2 ? l.line_pitch % 2 == 0 : l.line_pitch % (2 * lanes) != lanes / 2)
        ++l.line_pitch;
    l.stage = (2 * iw + 7) / 4 * 4;
    l.bytes =
        cf_fft_align16(cf_fft_larger(cf_fft_larger(pairs * l.line_pitch, h * bins) * 8, (ih + 1) / 2 * l.stage * 4));
    l.pair_pitch = w / 2 | 1;
    l.inverse_bytes = cf_fft_larger(l.bytes, pairs * l.pair_pitch * 16);
    return l;
}

/* Bytes of a block. bulk: the kernel uses TMA bulk copies, and their mbarrier has 16 bytes. */
CF_CONSTEXPR int cf_fft_shared_2d(int planes, int plane_bytes, bool bulk) {
    return planes * plane_bytes + (bulk ? 16 : 0);
}

/* ------------------------------------------------------------------------------------------------ lines: real1d.cuh */

/* Distance of two signals of `extent` points, in real numbers. */
CF_CONSTEXPR int cf_fft_stage_1d(int extent) { return (extent / 4 | 1) * 4 + (extent % 4 ? 4 : 0); }

/* Bytes of a block for lines of n points. */
CF_CONSTEXPR int cf_fft_shared_1d(int lines, int n, int extent) {
    return cf_fft_align16(lines * cf_fft_larger((n / 2 + 1) * 8, cf_fft_stage_1d(extent) * 4));
}

/* ------------------------------------------------------------------------------------------- lines: real1d_warp.cuh */

/*
 * A line of n / 2 complex points is an array of rows for the exchange between lanes. Two rows are 16 bytes apart in the
 * banks, two lines half of all banks. Loads under way need the L1 cache, which has what shared memory leaves. So the
 * distances are no larger than that.
 */
/* The place of row k1 of a line, in complex numbers. */
CF_CONSTEXPR int cf_fft_pair_row(int n, int lanes, int k1) { return k1 * (n / 2 / (2 * lanes)) + k1 / 2 * 2; }
/* The distance of two lines in the exchange, in complex numbers. */
CF_CONSTEXPR int cf_fft_pair_line(int n, int lanes) { return (cf_fft_pair_row(n, lanes, 2 * lanes) + 7) / 16 * 16 + 8; }
/* Bytes of `lines` lines. */
CF_CONSTEXPR int cf_fft_pair_bytes(int lines, int n, int lanes) {
    return lines * cf_fft_larger(cf_fft_pair_line(n, lanes), n / 2 + 1) * 8;
}

#endif
