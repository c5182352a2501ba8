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

#include <stdbool.h>

/* Where the elements of a tensor are. Strides count elements. `sample` is the output channel for w. */
typedef struct cf_tensor {
    conv_fft_dtype dtype;
    int64_t sample_stride, channel_stride, group_stride;
    int64_t axis_stride[3];
    bool fp32_bias; /* y: the bias that is added to it is FP32; else it has the type of the tensor */
} cf_tensor;

static inline conv_fft_dtype cf_tensor_bias_dtype(const cf_tensor *t) {
    return t->fp32_bias ? CONV_FFT_FP32 : t->dtype;
}

typedef struct cf_spectrum {
    conv_fft_dtype dtype; /* of one real part; in 16 bits, transforms compute in FP32 */
    int64_t basis[3];
    int64_t groups, bins, rows, columns;
    int64_t rows_per_sample; /* shifts * tiles; 1 for w */
    int64_t channels;        /* columns / phases */
    int64_t scale_rows;      /* FP16: rows whose scales may be one: those of a sample, or all of w */
} cf_spectrum;

/* Groups [group, group + groups) and rows [row, row + rows) of a spectrum, stored from `data` on as
 * [groups][bins][rows'][columns] with rows' * columns = bin_stride and bins * bin_stride <= group_stride. */
typedef struct cf_block {
    void *data;
    int64_t group, groups, row, rows;
    int64_t bin_stride, group_stride; /* complex elements */
    /* FP16: [groups][rows'][ceil(columns / 8)]. One scale serves eight columns; power_of_scale() of storage.cuh reads
     * it. */
    float *scales;
    int64_t scale_stride; /* from group to group */
} cf_block;

/* The exponent range of FP16 is too small for spectra. So every eight columns of a row share a scale. Eight is the
 * number of planes that one block of a tensor-core transform has. */
#define CF_SCALE_COLUMNS 8
static inline bool cf_spectrum_is_scaled(conv_fft_dtype dtype) { return dtype == CONV_FFT_FP16; }

static inline int64_t cf_spectrum_row_scales(const cf_spectrum *s) {
    return cf_spectrum_is_scaled(s->dtype) ? (s->columns + CF_SCALE_COLUMNS - 1) / CF_SCALE_COLUMNS : 0;
}

/* Scales are stored behind the spectrum. */
static inline float *cf_spectrum_scales(const cf_spectrum *s, void *data, int64_t groups, int64_t rows) {
    return cf_spectrum_is_scaled(s->dtype) ? (float *)data + groups * s->bins * rows * s->columns : NULL;
}
static inline size_t cf_spectrum_bytes(const cf_spectrum *s, int64_t groups, int64_t rows) {
    const int64_t number = s->dtype == CONV_FFT_FP64 ? 16 : s->dtype == CONV_FFT_FP32 ? 8 : 4;
    return (size_t)(groups * rows) *
           ((size_t)(s->bins * s->columns * number) + (size_t)cf_spectrum_row_scales(s) * sizeof(float));
}

/* The scales of FP16 spectra, scales[group][row][eight columns]; the first row is the first row of the block. A forward
 * transform that does not compute the scales itself gets them from absmax[group][sample][part], the largest magnitude
 * in each of `parts` parts of a sample. */
typedef struct cf_row_scales {
    float *scales;
    const float *absmax;
    int64_t rows; /* of a sample, of the largest magnitudes */
    int64_t group_stride, absmax_group_stride;
    int parts;
} cf_row_scales;

#endif
