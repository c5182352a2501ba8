/* SPDX-License-Identifier: Apache-2.0 */
/* What the list of fft_cases.h is built of. Each function adds cases to it. */
#ifndef SIMT_TILE_CASE_BUILDERS_H
#define SIMT_TILE_CASE_BUILDERS_H

#include "kernels/fft_cases.h"
#include "tiling/tiling.h"

tile_case *tile_case_add(fbfft_desc desc, int64_t batch);
void tile_case_order(tile_case *c, int64_t order, bool channels_last, int64_t channels);

void tile_add_signals(void);
void tile_add_double_signals(void);
/* Everything that a description can say, by chance: other ones for each seed. */
void tile_add_drawn(void);

/* An axis of a layer, and what of it is transformed. */
typedef struct layer_axis {
    int64_t basis, input, kernel, stride, dilation, pad;
    int64_t tiles;
    bool shifts, overlap_add; /* the dilation leaves as shifts */
    conv_fft_padding mode;
    int64_t piece;
} layer_axis;

cf_axis_window layer_axis_window(const layer_axis *l, cf_role role);

/* What every operand of a layer is: rank and axes by turns. halves: 16-bit spectra; cut: planes and volumes of these in
 * two kernels. */
void tile_add_layers(conv_fft_dtype dtype, bool halves, bool cut, int every);
/* Rows that begin between multiples of four numbers and wait in pieces that do not: padding on one side or both, tiles,
 * spectra of either size. */
void tile_add_early_rows(void);
/* Rows of 16-bit numbers that are stored four at a time, onto what is there. */
void tile_add_added_rows(void);
/* Columns of two steps in front of odd rows: the first step back reads bins whose imaginary parts do not count. */
void tile_add_own_mirrors(void);

/* Planes whose 16-bit spectra matrix products make: whole, in part, in pieces of each width, tiled, padded, with blocks
 * that are not full; then planes that touch. */
void tile_add_matrices(void);
/* The gradient of x begins behind the first 16 rows of the basis. */
void tile_add_matrices_behind_rows(void);
/* The same of lines, of which short ones may touch. */
void tile_add_matrix_lines(void);

/* Windows of few data that one product transforms: bases of all kinds, one or three axes, dilation and phases, some of
 * which lack taps, planes that touch, warps and blocks of which a part is full, more than nine bin tiles. */
void tile_add_dense_windows(void);

/* CONV_FFT_TEST_CASE names a pair, that is, two cases. */
bool tile_pair_is_wanted(void);
/* The run takes this case for a pair, if not for more. */
void tile_case_take(int number, test_part part);

#endif
