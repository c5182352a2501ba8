/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the small kernels of conv/gpu, for the host, the kernels and the emulator. Strides are in elements.
 * A type is a conv_fft_dtype. `unused`: the struct has no padding.
 */
#ifndef CF_CONV_GPU_CALL_H
#define CF_CONV_GPU_CALL_H

/* A tensor: elements are counted in the order {sample, channel, three axes}, the last axis fastest. */
typedef struct cf_tensor_view {
    long long extent[5];              /* extent[1]: the channels of all groups */
    long long stride[5];              /* stride[1]: from channel to channel in a group */
    long long group_stride, channels; /* channels of a group */
    int type, unused;
} cf_tensor_view;

/* padding_fold.cuh. Each element gathers the padded positions that were filled from it, in increasing order. So the
 * result does not depend on timing. */
typedef struct cf_fold_call {
    cf_tensor_view gx;
    const void *scratch;         /* [sample][channel of all groups][padded], or last: [sample][padded][channel] */
    void *data;                  /* of gx */
    long long pad[3], padded[3]; /* padded index = index + pad; extents of the scratch */
    int mode;                    /* a conv_fft_padding */
    int type;                    /* of the scratch */
    int accumulate, last;
} cf_fold_call;

/* small_gemm.cuh. A thread computes one number of the result. Backward weights sums over rows, and a warp computes one
 * number. */
typedef struct cf_small_gemm_call {
    struct cplx *x, *w, *y;
    long long bins, rows, in, out;          /* bins of all groups; rows of X and Y; columns of X and of Y */
    long long x_stride, w_stride, y_stride; /* from one bin to the next, in complex numbers */
    int accumulate, unused;
} cf_small_gemm_call;

/* absmax.cuh. */
typedef struct cf_absmax_call {
    const void *data; /* of FP16, or of FP32 */
    float *absmax;    /* [group][sample][part] */
    long long samples, sample_stride, group_stride;
    long long extent[5], stride[5], elements; /* of a sample */
    int parts;                                /* of a sample; each has a block */
    int dense;                                /* the elements of a sample are contiguous, in any order of axes */
} cf_absmax_call;

/* bias.cuh. */
typedef struct cf_bias_call {
    const void *data;
    void *result;
    long long extent[4], stride[4]; /* of the summed axes; the last one is a row, or all count rows if `down` */
    long long channel_stride, channels;
    long long chunks; /* of a row (the last may be empty); `down`: side by side, or single channels */
    long long end;    /* the end of the data: elements before it may be read */
    int type, result_type, accumulate;
    int down;  /* neighbouring threads sum neighbouring channels */
    int size;  /* elements of an access */
    int lanes; /* `down`: chunks of a block */
    int parts; /* of a tile; each has a block and a result */
    int unused;
} cf_bias_call;

#endif
