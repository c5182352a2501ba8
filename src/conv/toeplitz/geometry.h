/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiles in shared memory, for the host, the kernels and the emulator. A unit is 16 bytes of a row: eight 16-bit numbers
 * or four FP32 numbers.
 *
 * A tile of planes has `rows` rows, `pitch` units apart, of which `units` are read. A tile of a line (a signal of one
 * axis) is a line of rows * step units, cut into rows of `step` units that are `pitch` units apart. A row of it also
 * reads the beginning of the rows behind it, so that the last one is followed by `units - step` units. The pitch is
 * odd, so that eight rows have no bank conflicts.
 */
#ifndef CF_CONV_TOEPLITZ_GEOMETRY_H
#define CF_CONV_TOEPLITZ_GEOMETRY_H

#include "core/host_device.h"

typedef struct cf_toeplitz_tile {
    int rows, units, step; /* step: 0 for planes */
    int pitch;
    int loaded; /* units of a plane that are loaded */
    int size;   /* of a plane, in units; odd, so that planes of eight channels have no bank conflicts */
} cf_toeplitz_tile;

CF_CONSTEXPR cf_toeplitz_tile cf_toeplitz_tile_of(int rows, int units, int step) {
    cf_toeplitz_tile t = {rows, units, step, 0, 0, 0};
    const int last = step ? (rows - 1) * step + units : 0;
    t.pitch = step ? step + (step % 2 ? 2 : 1) : units + (units % 2 ? 0 : 1);
    t.loaded = step ? last : rows * units;
    t.size = (step ? last + (last - 1) / step * (t.pitch - step) : rows * t.pitch) | 1;
    return t;
}

/* Units of a row of inputs that one group of `blocks` blocks of eight outputs reads, in `steps` products of two units.
 * stride: the units between the inputs of two blocks. They are read in pairs. */
CF_CONSTEXPR int cf_toeplitz_window(int blocks, int stride, int steps) {
    return ((blocks - 1) * stride + 2 * steps + 1) / 2 * 2;
}

/* Units of a row of outputs in shared memory, for units of `numbers` numbers. Without bank conflicts, the rows of pairs
 * of 16-bit numbers are an odd number of units apart, and those of pairs of FP32 numbers 2, 6, 10 ... */
CF_CONSTEXPR int cf_toeplitz_out_pitch(int blocks, int numbers) {
    return numbers == 8 ? blocks + (blocks % 2 ? 2 : 1) : 2 * blocks + (blocks % 2 ? 0 : 2);
}

#endif
