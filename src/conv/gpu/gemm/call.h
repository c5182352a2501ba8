/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of products on tensor cores, for the host, the kernels and the emulator. The operands a, b and c are
 * those of cgemm_split_fp16.cuh. Strides are in complex numbers, those of scales in scales.
 */
#ifndef CF_CONV_GPU_GEMM_CALL_H
#define CF_CONV_GPU_GEMM_CALL_H

typedef struct cf_cgemm_call {
    const struct cplx *a, *b;
    struct cplx *c;
    long long a_bin, b_bin, c_bin, a_group, b_group, c_group; /* strides of bins and groups */
    int bins, rows;                                           /* bins of a group; rows of X and Y */
    int first;                  /* first matrix of this launch, counted over the bins of all groups */
    int wide_a, wide_b, wide_c; /* all rows start at multiples of 16 bytes */
    int accumulate;
    int all_rows; /* with ROW_SLICES: of all groups, which are slices of the rows */
} cf_cgemm_call;

typedef struct cf_fp16_cgemm_call {
    const unsigned *a, *b; /* a complex number is a word: the real part is in its low 16 bits */
    void *c;
    const float *a_scales, *b_scales;
    float *c_scales;
    long long a_bin, b_bin, c_bin, a_group, b_group, c_group; /* strides of bins and groups */
    long long a_scale_group, b_scale_group, c_scale_group;
    int bins, rows;             /* bins of a group; rows of X and Y */
    int first, matrices;        /* this launch's matrices, counted over the bins of all groups */
    int wide_a, wide_b, wide_c; /* all rows start at multiples of 16 bytes, those of a 16-bit result at 8 */
    int accumulate;
    int all_rows, unused; /* all_rows: as above. unused: the struct has no padding */
} cf_fp16_cgemm_call;

#endif
