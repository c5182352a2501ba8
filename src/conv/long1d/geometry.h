/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of lines and columns in shared memory, for the host, the kernels and the emulator.
 *
 * A line has r1 r2 r3 complex points (r3 = 1: two steps). After step 1, point (p1, b, c) is at place p1 * piece + b *
 * row + c. Rows and pieces are padded, to avoid bank conflicts.
 */
#ifndef CF_CONV_LONG1D_GEOMETRY_H
#define CF_CONV_LONG1D_GEOMETRY_H

#include "core/host_device.h"

enum {
    CF_LONG1D_LANES = 32 /* columns of a block, if columns take two steps */
};

/* Distances, in complex numbers. */
typedef struct cf_long1d_layout {
    int row;   /* of rows of the last step of three */
    int piece; /* of pieces p1 */
    int size;  /* of lines */
} cf_long1d_layout;

/* The distance of rows that the last step reads is an odd multiple of 16 bytes. With short rows (r3 < 16), pieces p1
 * are padded as well. */
CF_CONSTEXPR cf_long1d_layout cf_long1d_layout_of(int r1, int r2, int r3) {
    cf_long1d_layout l = {1, 0, 0};
    if (r3 > 1)
        l.row = r3 + 2;
    l.piece = r3 > 1 ? r2 * l.row + (r3 < 16 ? 8 : 0) : r2 + 2;
    l.size = r1 * l.piece;
    return l;
}

/* Complex numbers of a block of columns of a1 a2 points: columns of two steps exchange their points. */
CF_CONSTEXPR int cf_long1d_column_size(int a1, int a2) { return a2 > 1 ? a1 * a2 * CF_LONG1D_LANES : 0; }

#endif
