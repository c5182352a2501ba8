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

/* Units of the memory of a tile of x, which has the outputs of all warps, too (both.cuh). */
CF_CONSTEXPR int cf_toeplitz_both_x(int tile, int outputs) { return tile > outputs ? tile : outputs; }

/*
 * Channels last (channels_last.cuh): a row of positions with `quads` groups of four channels each. Even positions come
 * first, then odd ones, so that threads with every second position have few bank conflicts.
 */
typedef struct cf_toeplitz_row {
    int units; /* of a position */
    int pitch; /* units from position to position, odd */
    int half;  /* units to the first odd position; 0: the positions follow one another */
    int size;  /* units */
} cf_toeplitz_row;

CF_CONSTEXPR cf_toeplitz_row cf_toeplitz_row_of(int positions, int quads, bool split) {
    cf_toeplitz_row r = {quads / 2, quads / 2 | 1, 0, 0};
    r.half = split ? (positions + 1) / 2 * r.pitch : 0;
    r.size = split ? 2 * r.half : positions * r.pitch;
    return r;
}
CF_CONSTEXPR int cf_toeplitz_place(cf_toeplitz_row r, int position) {
    return r.half ? position % 2 * r.half + position / 2 * r.pitch : position * r.pitch;
}

/* Positions of a row of inputs from one pair of outputs to the next, and those that `outputs` outputs read. */
CF_CONSTEXPR int cf_toeplitz_advance(int stride, bool transposed) { return transposed ? 2 / stride : 2 * stride; }
CF_CONSTEXPR int cf_toeplitz_positions(int outputs, int advance, int steps) {
    return (outputs / 2 - 1) * advance + 4 * steps;
}

/* Volumes with channels last (volumes_last.cuh): units of the plane of a channel, odd so that eight planes have no bank
 * conflicts. */
CF_CONSTEXPR int cf_toeplitz_channel_plane(int rows, int units) { return rows * units | 1; }

#endif
