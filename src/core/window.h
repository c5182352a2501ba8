/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: which tensor element stands at which position of which basis tile.
 *
 * Padding, tiling, cropping, zero extension, dilation and the phases of a stride are all fields of this one struct; the
 * guarded load of a transform and the guarded store of an inverse read nothing else. Per axis, element e of tile t, in
 * shift s (an output phase of a dilation, part of the batch) and phase p (an input phase of a stride, part of the
 * channels):
 *
 *     basis position   first + e * spread                                              0 <= e < count
 *     coordinate       origin + e * step + t * tile_step + s * shift_step + p * phase_step
 *     tensor index     the coordinate itself in [0, size); in [lower, upper) outside of it as `mode` says;
 *                      otherwise none: a load gives zero there, a store drops the value
 *
 * Coordinates 0..size-1 are the tensor; negative ones are padding before it.
 */
#ifndef CF_CORE_WINDOW_H
#define CF_CORE_WINDOW_H

#include "conv_fft.h"

typedef struct cf_axis_window {
    int64_t first, spread, count;
    int64_t origin, step;
    int64_t tiles, tile_step;
    int64_t shifts, shift_step;
    int64_t phases, phase_step;
    int64_t lower, upper, size;
    conv_fft_padding mode;
} cf_axis_window;

/* Always three axes, slowest first; a problem of lower rank has trivial leading axes (all extents 1). */
typedef struct cf_window {
    cf_axis_window axis[3];
} cf_window;

/* Coordinate of element 0. */
static inline int64_t cf_window_start(const cf_axis_window *a, int64_t tile, int64_t shift, int64_t phase) {
    return a->origin + tile * a->tile_step + shift * a->shift_step + phase * a->phase_step;
}

/* How far outside of [0, size) a padding mode defines a value, on each side. */
int64_t cf_padding_reach(conv_fft_padding mode, int64_t size);

/* Tensor index of a coordinate, or -1. */
int64_t cf_window_index(const cf_axis_window *a, int64_t coordinate);

/* Fill index[e] for e < count. Returns 1 + the last e whose index is not -1, or 0 if all indices are -1. */
int64_t cf_window_fill(const cf_axis_window *a, int64_t tile, int64_t shift, int64_t phase, int64_t *index);

/* Number of elements e of one tile whose coordinate lies in [0, size). */
int64_t cf_window_inside(const cf_axis_window *a, int64_t tile, int64_t shift, int64_t phase);

static inline int64_t cf_window_tiles(const cf_window *w) {
    return w->axis[0].tiles * w->axis[1].tiles * w->axis[2].tiles;
}
static inline int64_t cf_window_shifts(const cf_window *w) {
    return w->axis[0].shifts * w->axis[1].shifts * w->axis[2].shifts;
}
static inline int64_t cf_window_phases(const cf_window *w) {
    return w->axis[0].phases * w->axis[1].phases * w->axis[2].phases;
}

#endif
