/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors and frequency-major spectra, and the part of a spectrum that one call covers.
 *
 * A spectrum is [group][bin][row][column] of interleaved complex numbers (the fbfft paper's HWBD, with groups outside):
 *
 *     bin     (k0, k1, k2), k2 fastest and only 0..basis[2]/2: the input is real
 *     row     x, y: (sample, shift, tile), tile fastest; axis 2 fastest in shift and in tile.   w: output channel
 *     column  (phase, channel), channel fastest
 */
#ifndef CF_CORE_SPECTRUM_H
#define CF_CORE_SPECTRUM_H

#include "conv_fft.h"

/* Where the elements of a tensor are. Strides count elements. `sample` is the output channel for w. */
typedef struct cf_tensor {
    conv_fft_dtype dtype;
    int64_t sample_stride, channel_stride, group_stride;
    int64_t axis_stride[3];
} cf_tensor;

typedef struct cf_spectrum {
    conv_fft_dtype dtype; /* of one real part: FP32 or FP64 */
    int64_t basis[3];
    int64_t groups, bins, rows, columns;
    int64_t rows_per_sample; /* shifts * tiles; 1 for w */
    int64_t channels;        /* columns / phases */
} cf_spectrum;

static inline int64_t cf_spectrum_bins(const int64_t basis[3]) { return basis[0] * basis[1] * (basis[2] / 2 + 1); }

/* Groups [group, group + groups) and rows [row, row + rows) of a spectrum, stored from `data` on as
 * [groups][bins][rows'][columns] with rows' * columns = bin_stride and bins * bin_stride <= group_stride. */
typedef struct cf_block {
    void *data;
    int64_t group, groups, row, rows;
    int64_t bin_stride, group_stride; /* complex elements */
} cf_block;

#endif
