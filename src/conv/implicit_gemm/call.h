/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one launch of an implicit GEMM, for the host, the kernels and the emulator. */
#ifndef CF_CONV_IMPLICIT_GEMM_CALL_H
#define CF_CONV_IMPLICIT_GEMM_CALL_H

/* Strides are in elements. */
typedef struct cf_igemm_side {
    const void *memory;
    long long sample_stride, group_stride, channel_stride, row_stride, column_stride;
} cf_igemm_side;

/* The taps of the weights, from the first one that counts. */
typedef struct cf_igemm_taps {
    const void *memory;
    long long group_stride, output_stride, input_stride, row_stride, column_stride;
} cf_igemm_taps;

typedef struct cf_igemm_call {
    cf_igemm_side x, y; /* y is written; for the gradient of the weights it is gy, and read */
    cf_igemm_taps w;    /* the weights, or their gradient */
    const void *bias;   /* one element per channel of y, of type Bias; may be null */
    float *sums;        /* the gradient of the weights: [slice][block of channels][product][row][channel]; or null */
    long long samples, blocks, slices;
    int accumulate, unused; /* accumulate: add to the old contents. unused: the struct has no padding */
} cf_igemm_call;

#endif
