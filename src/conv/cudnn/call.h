/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of the kernels beside cuDNN (fallback.cuh), for the host, the kernels and the emulator. */
#ifndef CF_CONV_CUDNN_CALL_H
#define CF_CONV_CUDNN_CALL_H

#include "conv/gpu/call.h"

/* data = keep * data + other + bias[channel] over a dense tensor. other and bias may be null. */
typedef struct cf_cudnn_add_call {
    void *data;
    const void *other, *bias;
    long long count, channels, inner; /* elements; channels; neighbouring elements of one channel */
    int type, keep;
} cf_cudnn_add_call;

/* to[column][row] = from[row][column] */
typedef struct cf_cudnn_transpose_call {
    const void *from;
    void *to;
    long long rows, columns;
    int type, unused; /* unused: the struct has no padding */
} cf_cudnn_transpose_call;

/* Any pass, one number of the result per thread. w has {output channels, input channels of a group, taps}. */
typedef struct cf_cudnn_plain_call {
    cf_tensor_view x, w, y;
    void *x_data, *w_data, *y_data;
    const void *bias;  /* one element per output channel; may be null */
    long long in, out; /* channels of a group */
    long long pad[3], stride[3], dilation[3];
    int accumulate, unused; /* unused: the struct has no padding */
} cf_cudnn_plain_call;

#endif
