/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one launch of a Toeplitz kernel, for the host, the kernels and the emulator. */
#ifndef CF_CONV_TOEPLITZ_CALL_H
#define CF_CONV_TOEPLITZ_CALL_H

/* A signal of single channels. Strides are in elements. A signal of one axis is one row. */
typedef struct cf_toeplitz_side {
    const void *memory;
    long long sample_stride, group_stride, row_stride, column_stride;
    int rows, columns;
} cf_toeplitz_side;

/* The taps of the weights, from the first one that counts, or their gradient. */
typedef struct cf_toeplitz_taps {
    const void *memory;
    long long group_stride, row_stride, column_stride;
} cf_toeplitz_taps;

typedef struct cf_toeplitz_call {
    cf_toeplitz_side x, y; /* x is read. y is written; for the gradient of the weights it is gy, and read */
    cf_toeplitz_taps w;
    const void *bias; /* one element per channel, of type Bias; with weights, their gradient; may be null */
    float *sums; /* [slice][group][tap]: where the gradient of the weights has several slices; or null. The gradient of
                  * the bias is behind the taps. */
    long long samples, groups, slices;
    int row_pad, column_pad;         /* output (0, 0) of a tile begins at these distances before its input */
    int tiles_down, tiles_across;    /* of a plane */
    int accumulate, accumulate_bias; /* add to the old contents, to those of the gradient of the bias */
} cf_toeplitz_call;

/* Both gradients of a signal: gx, and gw. */
typedef struct cf_toeplitz_both_call {
    cf_toeplitz_call data, weights;
} cf_toeplitz_both_call;

/* Layers of three axes. `planes` describes those of depth 0, and its samples, groups and slices. */
typedef struct cf_toeplitz_volume_call {
    cf_toeplitz_call planes;
    long long x_depth_stride, y_depth_stride, w_depth_stride;
    int x_depths, y_depths;
    int depth_pad;          /* output 0 begins at this distance before input 0 */
    int parts, part_depths; /* the depths of y are divided into so many parts, of so many depths each */
    int unused;             /* the struct has no padding */
} cf_toeplitz_volume_call;

#endif
