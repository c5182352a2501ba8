/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one launch of a kernel of family `spatial`, for the host, the kernels and the emulator. */
#ifndef CF_CONV_SPATIAL_CALL_H
#define CF_CONV_SPATIAL_CALL_H

/* A signal. Strides are in elements. Axes: depth, rows, columns. */
typedef struct cf_spatial_side {
    const void *memory;
    long long sample_stride, group_stride, channel_stride, stride[3];
    int size[3], unused; /* unused: the struct has no padding */
} cf_spatial_side;

/* The taps of the weights, from the first one that counts, or their gradient. `own` counts the channels of a group that
 * the result has, `summed` those that are added up. */
typedef struct cf_spatial_taps {
    const void *memory;
    long long group_stride, own_stride, summed_stride, stride[3];
} cf_spatial_taps;

typedef struct cf_spatial_call {
    cf_spatial_side x, y; /* x is read. y is written; for the gradient of the weights it is gy, and read */
    cf_spatial_taps w;
    const void *bias; /* one element per channel, of type Bias; may be null */
    float *sums;      /* [slice][channel][tap]: where the gradient of the weights has several slices; or null */
    long long channels,
        slices; /* channels: of the result, over all groups; or filters of the gradient of the weights */
    int samples;
    int items;     /* strips, or with channels first tiles: (samples, depth, rows, columns), columns fastest */
    int across[3]; /* strips or tiles along the axes */
    int accumulate;
} cf_spatial_call;

/* Both gradients: gx, and gw. */
typedef struct cf_spatial_both_call {
    cf_spatial_call data, weights;
} cf_spatial_both_call;

#endif
