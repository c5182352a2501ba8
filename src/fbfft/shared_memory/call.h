/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of one launch of a transform, for the host, the kernels of shared_memory and tensor_core, and the
 * emulator. C11 and CUDA C++ read the same text.
 */
#ifndef CF_FBFFT_SHARED_MEMORY_CALL_H
#define CF_FBFFT_SHARED_MEMORY_CALL_H

/*
 * A plane is (row r, column c) of the spectrum. Planes are counted columns first: plane p is column p % columns of row
 * row_first + p / columns * row_step. With q = r - row_base, bin 0 of a plane is at
 *     q / row_split * row_split_stride + q % row_split * row_stride
 *     + c / column_split * column_split_stride + c % column_split * column_stride.
 * Strides of the signal are in elements, those of the spectrum in complex numbers.
 */
typedef struct cf_shared_fft_call {
    const void *in;
    void *out;
    const void *bias;                        /* inverse: one number per channel, of type Bias; may be null */
    long long planes, columns;               /* planes of the launch; columns of one row */
    long long row_first, row_step, row_base; /* row_base: the row with which the spectrum begins */
    long long sample_stride, group_stride;   /* of the signal */
    long long row_split, row_split_stride, row_stride, column_split, column_split_stride, column_stride;
    long long bin_unit; /* the distance of two bins, for which the config has no number */
    long long spectrum_group_stride;
    double scale;    /* factor of the results */
    int accumulate;  /* inverse: add to the old contents */
    int first_block; /* the first block of this transform, in a launch that two transforms share */
    /* SCALED spectra: scales[group][row][column / 8] undo the power of two of eight columns each. Forward, the kernel
     * computes them from absmax[group][sample][part], the largest magnitudes of at most 32 parts of each sample,
     * unless it FINDS them itself. A sample has scale_rows rows. Sample 0 contains row row_base. */
    int parts, unused; /* unused: the struct has no padding */
    float *scales;
    const float *absmax;
    long long scale_rows, scale_group_stride, absmax_group_stride;
} cf_shared_fft_call;

#endif
