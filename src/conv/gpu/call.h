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

/* padding_fold.cuh. Each element gathers the padded positions that were filled from it, in a fixed order. So the result
 * does not depend on timing. */
enum {
    CF_FOLD_LOADS = 8 /* elements that a thread loads together */
};

/* A dimension of gx, and of the scratch with the padded gradient. Without padding, `padded` is `extent`. */
typedef struct cf_fold_dimension {
    long long extent, to, from; /* to, from: strides of gx and of the scratch */
    int pad, padded;            /* padded index = index + pad; extent of the scratch */
} cf_fold_dimension;

typedef struct cf_fold_call {
    const void *scratch;
    void *data;                     /* of gx */
    cf_fold_dimension dimension[6]; /* the last two are not padded */
    int mode;                       /* a conv_fft_padding */
    int type, gx_type;              /* of the scratch, and of gx */
    int accumulate, strip;          /* strip: elements of dimension[1] of a thread */
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
