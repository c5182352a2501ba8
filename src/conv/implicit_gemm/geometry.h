/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes of an implicit GEMM, for the host, the kernels and the emulator.
 *
 * A unit is 16 bytes: eight 16-bit numbers, which are `taps` neighbouring columns of x with `channels` channels each.
 * Channels that do not exist are zeros. Along a row of the kernel, unit number u begins at tap u * taps. With a stride,
 * the columns of x where units begin are sorted by their remainders, so that the units of neighbouring outputs follow
 * one another:
 *
 *     a row of a tile of x    [phase][column / stride], columns of x that begin at phase * taps % stride
 *     unit u, output o        phase u % all_phases, place o + u * taps / stride
 */
#ifndef CF_CONV_IMPLICIT_GEMM_GEOMETRY_H
#define CF_CONV_IMPLICIT_GEMM_GEOMETRY_H

#include "core/host_device.h"

typedef struct cf_igemm_extents {
    int channels, kernel_y, kernel_x, stride_y, stride_x;
    int out_rows, out_columns; /* outputs of a tile */
} cf_igemm_extents;

typedef struct cf_igemm_geometry {
    int channels, taps;     /* of a unit: 1, 2, 4 or 8 channels */
    int units, steps;       /* units of a row of the kernel; products of two units for all rows */
    int phases, all_phases; /* that are stored; after which phases repeat */
    int length, pitch;      /* units of a phase and of a row of x */
    int rows;               /* of a tile of x */
} cf_igemm_geometry;

/* A patch has 64 outputs: 8 x 8 with channels last, otherwise neighbours of a row. */
CF_CONSTEXPR int cf_igemm_patch_rows(bool last) { return last ? 8 : 1; }

enum {
    CF_IGEMM_ROOM_PITCH = 36 /* words of 64 outputs of a channel in shared memory, without bank conflicts */
};

CF_CONSTEXPR int cf_igemm_ceil(int a, int b) { return (a + b - 1) / b; }

CF_CONSTEXPR cf_igemm_geometry cf_igemm_geometry_of(cf_igemm_extents e) {
    cf_igemm_geometry g = {1, 0, 0, 0, 0, 0, 0, 0, 0};
    while (g.channels < e.channels)
        g.channels *= 2;
    g.taps = 8 / g.channels;
    g.units = cf_igemm_ceil(e.kernel_x, g.taps);
    g.steps = cf_igemm_ceil(e.kernel_y * g.units, 2);
    g.all_phases = e.stride_x;
    for (int common = g.taps; common > 1; common /= 2)
        if (e.stride_x % common == 0) {
            g.all_phases = e.stride_x / common;
            break;
        }
    g.phases = g.units < g.all_phases ? g.units : g.all_phases;
    g.length = e.out_columns + (g.units - 1) * g.taps / e.stride_x;
    g.pitch = g.phases * g.length;
    g.rows = (e.out_rows - 1) * e.stride_y + e.kernel_y;
    return g;
}

/* The units of a kernel in the order of products, so that their places ascend: which unit of its row comes at place
 * `i`. */
CF_CONSTEXPR int cf_igemm_unit(cf_igemm_geometry g, int i) {
    int phase = 0;
    for (; i >= (g.units - phase + g.all_phases - 1) / g.all_phases; ++phase)
        i -= (g.units - phase + g.all_phases - 1) / g.all_phases;
    return phase + i * g.all_phases;
}

/* Where in a tile the unit number `i` of that order is, for the first output. */
CF_CONSTEXPR int cf_igemm_place(cf_igemm_geometry g, int stride_x, int i) {
    const int unit = cf_igemm_unit(g, i % g.units);
    return i / g.units * g.pitch + unit % g.all_phases * g.length + unit * g.taps / stride_x;
}

/*
 * The gradient of the weights: products of 64 rows, which are eight units of the kernel at equal distances. Units of
 * eight rows of the kernel make products down the kernel. The rows that are left make them across a phase, or down as
 * well if those are fewer; then `rows` grows, because rows are read that the kernel does not have.
 */
typedef struct cf_igemm_products {
    int count;
    int bands, left; /* rows of the kernel by eights, and the rest */
    bool across;
    int step;     /* across: places from unit to unit */
    int of_phase; /* across: products of a phase of a row */
    int rows;     /* of a tile of x */
    int tile;     /* units of a tile of x */
} cf_igemm_products;

CF_CONSTEXPR cf_igemm_products cf_igemm_products_of(cf_igemm_geometry g, int kernel_y, int stride_x) {
    cf_igemm_products p = {0, 0, 0, false, 0, 0, 0, 0};
    p.bands = kernel_y / 8;
    p.left = kernel_y % 8;
    p.step = g.taps * g.all_phases / stride_x;
    p.of_phase = cf_igemm_ceil(cf_igemm_ceil(g.units, g.all_phases), 8);
    p.across = p.left * g.phases * p.of_phase < g.units;
    p.count = p.bands * g.units + (p.across ? p.left * g.phases * p.of_phase : p.left > 0 ? g.units : 0);
    p.rows = g.rows + (p.across || p.left == 0 ? 0 : 8 - p.left);
    p.tile = p.rows * g.pitch + (p.across ? 8 * p.of_phase * p.step : 0);
    return p;
}

/* The units of product `i`: the first one, and the way to the next. */
typedef struct cf_igemm_product {
    int row, unit, row_step, unit_step;
    int place, place_step; /* in a tile */
} cf_igemm_product;

CF_CONSTEXPR cf_igemm_product cf_igemm_product_at(cf_igemm_geometry g, cf_igemm_products p, int stride_x, int i) {
    cf_igemm_product at = {0, 0, 0, 0, 0, 0};
    const int other = i - p.bands * g.units, of_row = g.phases * p.of_phase;
    if (other < 0 || !p.across) {
        at.row = i / g.units * 8;
        at.unit = i % g.units;
        at.row_step = 1;
        at.place_step = g.pitch;
    } else {
        at.row = p.bands * 8 + other / of_row;
        at.unit = other % of_row / p.of_phase + other % p.of_phase * 8 * g.all_phases;
        at.unit_step = g.all_phases;
        at.place_step = p.step;
    }
    at.place = at.row * g.pitch + at.unit % g.all_phases * g.length + at.unit * g.taps / stride_x;
    return at;
}

#endif
