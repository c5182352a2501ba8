/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tile geometry: how one axis of a layer becomes basis tiles, for all three passes. Integers only.
 *
 * STRIDE AND DILATION ARE REMOVED FIRST. With stride s, dilation d, g = gcd(s, d), s' = s/g, d' = d/g, output index o:
 *
 *     y[o] = sum_{c < min(s', K)} sum_j w[c + j s'] x_c[o + j d'],        x_c[i] = x[i s + c d - pad]
 *
 * since tap c + j s' reads o s + (c + j s') d = (o + j d') s + c d. Phase c is one more input channel. Phases without
 * taps do not exist; elements of x that only they would read have a zero gradient. The rest of the dilation, d', is
 * either a step of the taps in the basis (spread = d') or is removed too: outputs o = a + d' b of one shift a see only
 * x_c[a + d' (b + j)], so each shift is one more sample with dense taps (spread = 1).
 *
 * THE UNIT PROBLEM of an axis is then, for every phase and shift, with taps J, Keff = (J - 1) spread + 1, outputs M and
 * inputs U = M + Keff - 1 (positions u; u = 0 is the first the kernel touches, padding included):
 *
 *     y[b] = sum_j w[j] x[b + j spread],     0 <= b < M
 *
 * ONE TILE of basis N is exact for all passes if products that wrap around meet only zeros: x is zero outside [low,
 * high), so N >= max(high, U - low, Keff, M) for zero padding. If padding carries data, N >= U. One exception: for
 * circular padding with N = D, the extent of x, stride 1, Keff <= D and M <= D, the wrap-around is the padding itself,
 * and x is loaded without padding.
 *
 * SEVERAL TILES: tile t yields outputs [t L, t L + L), L = ceil(M / tiles), from inputs [t L, t L + L + Keff - 1)
 * (overlap-save); that many positions must fit N. accGrad sums over the tiles the products of the same x windows with
 * gy windows of L outputs. bprop either adds up overlapping results of those gy windows (overlap-add, which shares
 * their transforms), or reads gy windows of its own that reach Keff - 1 further back and keeps the last L' positions
 * (overlap-save).
 *
 * VECTORS. Kernels move a vector of several neighbours of a row at once, if the vector is aligned in memory and in the
 * basis. Position u holds the element u - pad. So x, its gradient and w all move up in the basis by A, the alignment
 * shift, and A + pad is a multiple of the vector width. The results stay where they are. With several tiles x begins A
 * elements earlier, gy of bprop begins earlier by as many as needed, and L is a multiple of the width too. If the basis
 * is too small for that, the width becomes smaller, down to one. So A, and the position of w, may depend on the number
 * of tiles.
 *
 * SEGMENTS cut the taps, so that Keff fits a basis that the whole kernel does not. Where the stride leaves one phase,
 * segment q holds taps [q P, (q + 1) P) and is an input channel like a phase:
 *
 *     y[b] = sum_q sum_{j < P} w_q[j] x_q[b + j spread],     w_q[j] = w[q P + j],     x_q[i] = x[i + q P spread]
 *
 * Both together are again one row of phases in equal steps, if P is coprime to s': phase q holds taps q P + j s', j <
 * P. For tap k, j = k / s' modulo P and q = (k - j s') / P, so each tap is in one phase. q runs from
 * -floor((P - 1) s' / P), the smallest with a tap that is not negative, to floor((K - 1) / P); taps outside the kernel
 * are zero. Such phases read overlapping positions of x, which phases of a stride do not. So their gradients of x add
 * up.
 */
#ifndef CF_TILING_TILING_H
#define CF_TILING_TILING_H

#include "core/window.h"

#include <stdbool.h>

/* `mode` is ZEROS where there is no padding. */
typedef struct cf_axis {
    int64_t input, kernel, stride, dilation, pad_before, pad_after, output;
    int64_t first_tap; /* of the tensor's taps, the first that counts; `kernel` counts from there */
    conv_fft_padding mode;
    int64_t max_vector; /* elements that one access of a row should move, a power of two; 0 and 1: one element */
    bool only_axis;     /* the layer has no other */
} cf_axis;

/* Leave out taps at both ends that meet only zero padding. They would need a larger basis and add rounding noise, and
 * their gradient is zero. Example: of a kernel of 31 taps over 7 points with padding 15, 13 taps count. pad_before
 * becomes the padding before the first tap that counts, and can be negative. A kernel of which no tap meets x stays as
 * it is. */
void cf_axis_trim(cf_axis *axis);

/* The choice for one axis. */
typedef struct cf_axis_grid {
    int64_t basis, tiles;
    bool overlap_add;    /* bprop with several tiles */
    bool shift_dilation; /* the dilation becomes shifts, not spread */
    int64_t segments;    /* the number of segments of the taps of a phase; 0 and 1: the taps are not cut */
} cf_axis_grid;

typedef struct cf_unit {
    int64_t phases, tap_step; /* phase c holds taps t, t + tap_step, ... with t = (first_phase + c) phase_taps */
    int64_t first_phase, phase_taps;
    int64_t shifts, spread;
    int64_t taps, extent; /* J and Keff */
    int64_t outputs, inputs;
    int64_t low, high; /* x can be non-zero in positions [low, high) only */
} cf_unit;

/* The operand of a window. */
typedef enum cf_role {
    CF_ROLE_X,  /* load x: forward and backward weights */
    CF_ROLE_W,  /* load w, store gw: all passes */
    CF_ROLE_Y,  /* store y: forward; load gy: backward weights */
    CF_ROLE_GY, /* load gy: backward data */
    CF_ROLE_GX, /* store gx: backward data */
} cf_role;

/* The unit problem of the whole kernel. */
cf_unit cf_unit_make(const cf_axis *axis, bool shift_dilation);

/* The unit problem with the segments of the grid. With enough segments, each phase holds one tap. */
cf_unit cf_unit_of(const cf_axis *axis, const cf_axis_grid *grid);

/* True if the taps are cut: there are more phases than the stride makes, and the phases overlap in x. */
static inline bool cf_unit_is_cut(const cf_unit *unit) { return unit->phases > unit->tap_step; }

/* The smallest N that serves every pass with one tile (not rounded to a product of small primes). */
int64_t cf_basis_one_tile(const cf_axis *axis, const cf_unit *unit);

/* True if the pass whose result is `result` (CF_ROLE_Y, _GX or _W) is exact with this grid. */
bool cf_grid_fits(const cf_axis *axis, const cf_axis_grid *grid, cf_role result);

/* The vector width: elements of a row that can be moved at once, aligned in memory and in the basis. The grid must fit
 * a pass. */
int64_t cf_grid_vector_width(const cf_axis *axis, const cf_axis_grid *grid);

/* The window of an operand. The grid must fit the pass. */
cf_axis_window cf_axis_window_make(const cf_axis *axis, const cf_axis_grid *grid, cf_role role);

/* A window of the same elements whose phases have become tiles. Former tiles become shifts, which are slower. So the
 * window may have shifts or tiles, not both. */
cf_axis_window cf_window_phases_as_tiles(const cf_axis_window *window);

/* True if stored windows overlap: several of their elements have the same coordinate. */
bool cf_window_overlaps(const cf_axis_window *window);

/* True if every index of the tensor is stored through the window exactly once (without folding). The phases must not
 * overlap. */
bool cf_window_covers(const cf_axis_window *window);

/* True if gradients of x reach padding that belongs to elements of x, so that they must be folded. */
bool cf_axis_folds(const cf_axis *axis, const cf_axis_grid *grid);

/* The window of gx over the padded axis: coordinates 0..pad_before + input + pad_after - 1, nothing mapped. */
cf_axis_window cf_window_padded(const cf_axis *axis, const cf_axis_window *gx);

/* The smallest 2^a 3^b 5^c 7^d >= n (n >= 1); 0 if none is representable. */
int64_t cf_next_basis(int64_t n);

static inline bool cf_is_basis(int64_t n) { return n >= 1 && cf_next_basis(n) == n; }

#endif
