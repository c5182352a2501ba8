/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that add cases to the list of fft_cases.h. */
#ifndef SIMT_TILE_CASE_BUILDERS_H
#define SIMT_TILE_CASE_BUILDERS_H

#include "kernels/fft_cases.h"
#include "tiling/tiling.h"

tile_case *tile_case_add(fbfft_desc desc, int64_t batch);
void tile_case_order(tile_case *c, int64_t order, bool channels_last, int64_t channels);

void tile_add_signals(void);
void tile_add_double_signals(void);
/* Blocks that copy bins ahead: shared_memory/prefetch.cuh. */
void tile_add_bins_ahead(void);
/* Random cases over everything that a description can say. Each seed has others. */
void tile_add_drawn(void);

/* An axis of a layer, and its transform. */
typedef struct layer_axis {
    int64_t basis, input, kernel, stride, dilation, pad;
    int64_t tiles;
    bool shifts, overlap_add; /* the dilation leaves as shifts */
    conv_fft_padding mode;
    int64_t piece;
} layer_axis;

cf_axis_window layer_axis_window(const layer_axis *l, cf_role role);

/* Every operand of a layer; ranks and axes alternate. halves: 16-bit spectra; cut: their planes and volumes in two
 * kernels. */
void tile_add_layers(conv_fft_dtype dtype, bool halves, bool cut, int every);
/* Rows that begin between multiples of four elements, while vectors are aligned: padding on one or both sides, tiles,
 * spectra of either size. */
void tile_add_early_rows(void);
/* Rows of 16-bit elements that are stored four at a time and added to old contents. */
void tile_add_added_rows(void);
/* Columns of two FFT stages before odd rows: the first stage of the inverse reads bins whose imaginary parts do not
 * count. */
void tile_add_own_mirrors(void);

/* Planes with 16-bit spectra by tensor-core FFT: whole and partial windows, every vector width, tiles, padding, partly
 * filled blocks; then channels-last planes. */
void tile_add_matrices(void);
/* The gradient of x begins behind the first 16 rows of the basis. */
void tile_add_matrices_behind_rows(void);
/* Planes whose rows begin between words, or between pairs of words: they leave through shared memory. */
void tile_add_matrices_with_odd_rows(void);
/* The same for rows, of which short ones may be channels-last. */
void tile_add_matrix_lines(void);

/* Small windows that one dense matrix transforms: bases of all kinds, one to three axes, dilation, phases (some without
 * taps), channels-last planes, partly filled warps and blocks, more than nine bin tiles. */
void tile_add_dense_windows(void);

/* Whether CONV_FFT_TEST_CASE names a pair of cases. */
bool tile_pair_is_wanted(void);
/* Select this case for a pair, unless it is selected already. */
void tile_case_take(int number, test_part part);

#endif
