/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tile geometry: how one axis of a layer becomes basis tiles, for all three passes. Integers only.
 *
 * STRIDE AND DILATION LEAVE FIRST. With stride s, dilation d, g = gcd(s, d), s' = s/g, d' = d/g and o the output index,
 *
 *     y[o] = sum_{c < min(s', K)} sum_j w[c + j s'] x_c[o + j d'],        x_c[i] = x[i s + c d - pad]
 *
 * since tap c + j s' reads o s + (c + j s') d = (o + j d') s + c d. Phase c is one more input channel; phases without
 * taps do not exist, and what they would read has a zero gradient. What remains of the dilation, d', is either a step
 * of the taps in the basis (spread = d') or leaves too: outputs o = a + d' b of one shift a see only
 * x_c[a + d' (b + j)], so each shift is one more sample with dense taps (spread = 1).
 *
 * THE UNIT PROBLEM of an axis is then, for every phase and shift, with taps J, Keff = (J - 1) spread + 1, outputs M and
 * inputs U = M + Keff - 1 (positions u; u = 0 is the first the kernel touches, padding included):
 *
 *     y[b] = sum_j w[j] x[b + j spread],     0 <= b < M
 *
 * ONE TILE of basis N is exact for all passes if products that wrap around meet only zeros: x is zero outside [low,
 * high), so N >= max(high, U - low, Keff, M) for zero padding. Where padding carries data N >= U, but for circular
 * padding with N = D, stride 1, Keff <= D and M <= D the wrap-around is the padding itself and x is loaded without
 * any.
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
 * has too little room, the width becomes smaller, down to one. So A, and the place of w, may depend on the number of
 * tiles.
 *
 * SEGMENTS cut the taps, so that Keff fits a basis that the whole kernel does not. Where the stride leaves one phase,
 * segment q holds taps [q P, (q + 1) P) and is an input channel like a phase:
 *
 *     y[b] = sum_q sum_{j < P} w_q[j] x_q[b + j spread],     w_q[j] = w[q P + j],     x_q[i] = x[i + q P spread]
 *
 * Both together are again one row of phases in equal steps, if P is coprime to s': phase q holds taps q P + j s', j <
 * P. For tap k, j = k / s' modulo P and q = (k - j s') / P, so each tap is in one phase. q runs from the least with a
 * tap that is not negative, -floor((P - 1) s' / P), to floor((K - 1) / P); taps outside the kernel are zero. Unlike
 * those of a stride, the positions of x that such phases read overlap, so their gradients of x add up.
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
    int64_t piece; /* elements, a power of two, that kernels like to move at once; 0 and 1: one */
    bool alone;    /* the layer's only axis */
} cf_axis;

/* Leave out taps at both ends that meet only zero padding: a kernel of 31 over 7 points with padding 15 has 13 taps
 * that count. They would cost basis and add rounding noise; their gradient is zero. pad_before becomes that of the
 * first tap that counts, and can be negative. A kernel that meets nothing at all stays as it is. */
void cf_axis_trim(cf_axis *axis);

/* The choice for one axis. */
typedef struct cf_axis_grid {
    int64_t basis, tiles;
    bool overlap_add;    /* bprop with several tiles */
    bool shift_dilation; /* the dilation left as shifts, not as spread */
    int64_t segments;    /* that the taps of a phase are cut into; 0 and 1: none */
} cf_axis_grid;

typedef struct cf_unit {
    int64_t phases, tap_step; /* phase c holds taps t, t + tap_step, ... with t = (first_phase + c) phase_taps */
    int64_t first_phase, phase_taps;
    int64_t shifts, spread;
    int64_t taps, extent; /* J and Keff */
    int64_t outputs, inputs;
    int64_t low, high; /* x can be non-zero in positions [low, high) only */
} cf_unit;

/* What a window is for. */
typedef enum cf_role {
    CF_ROLE_X,  /* load x: forward and backward weights */
    CF_ROLE_W,  /* load w, store gw: all passes */
    CF_ROLE_Y,  /* store y: forward; load gy: backward weights */
    CF_ROLE_GY, /* load gy: backward data */
    CF_ROLE_GX, /* store gx: backward data */
} cf_role;

/* Of the whole kernel. */
cf_unit cf_unit_make(const cf_axis *axis, bool shift_dilation);

/* As the grid cuts it. With as many segments as need be, phases hold one tap each. */
cf_unit cf_unit_of(const cf_axis *axis, const cf_axis_grid *grid);

/* True if the taps are cut: there are more phases than those of the stride, and they overlap in x. */
static inline bool cf_unit_is_cut(const cf_unit *unit) { return unit->phases > unit->tap_step; }

/* The smallest N that serves every pass with one tile (not rounded to a product of small primes). */
int64_t cf_basis_one_tile(const cf_axis *axis, const cf_unit *unit);

/* True if the pass whose result is `result` (CF_ROLE_Y, _GX or _W) is exact with this grid. */
bool cf_grid_fits(const cf_axis *axis, const cf_axis_grid *grid, cf_role result);

/* The vector width: elements of a row that can be moved at once, aligned in memory and in the basis. The grid must fit
 * a pass. */
int64_t cf_grid_piece(const cf_axis *axis, const cf_axis_grid *grid);

/* The window of an operand. The grid must fit the pass. */
cf_axis_window cf_axis_window_make(const cf_axis *axis, const cf_axis_grid *grid, cf_role role);

/* The same elements, row by row, where the phases of a sample's tiles are tiles themselves, behind (faster than) what
 * was in its rows. A window has two numbers for them, so it may have shifts or tiles, not both. */
cf_axis_window cf_window_phases_as_tiles(const cf_axis_window *window);

/* True if stored windows meet: several of their elements have the same coordinate. */
bool cf_window_overlaps(const cf_axis_window *window);

/* True if every index of the tensor is stored through the window exactly once (without folding). Of phases that do not
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
