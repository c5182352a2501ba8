/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one launch of a DFT kernel, for the host, the kernels and the emulator. */
#ifndef CF_CONV_DFT_CALL_H
#define CF_CONV_DFT_CALL_H

/* Planes of single channels. Strides are in elements. Neighbours of a row are neighbours in memory. */
typedef struct cf_dft_side {
    const void *memory;
    long long sample_stride, group_stride, row_stride;
} cf_dft_side;

/* The taps of the weights, from the first one that counts, or their gradient. */
typedef struct cf_dft_taps {
    const void *memory;
    long long group_stride, row_stride, column_stride;
} cf_dft_taps;

typedef struct cf_dft_call {
    cf_dft_side x, y; /* x is read. y is written; for the gradient of the weights it is gy, and read */
    cf_dft_taps w;
    const void *bias; /* one element per channel, of type Bias; may be null */
    float *sums;      /* [slice][group][tap]: where the gradient of the weights has several slices; or null */
    long long samples, groups, slices;
    int accumulate, unused; /* accumulate: add to the old contents. unused: the struct has no padding */
} cf_dft_call;

#endif
