/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one launch of a fused kernel or of a transpose, for the host, the kernels and the emulator. */
#ifndef CF_CONV_FUSED_CALL_H
#define CF_CONV_FUSED_CALL_H

/* One tensor: its first element, and the distances between samples and between groups, in elements. */
typedef struct cf_fused_side {
    const void *memory;
    long long sample_stride, group_stride;
} cf_fused_side;

typedef struct cf_fused_call {
    cf_fused_side x, y;     /* x is read. y is written; for the gradient of the weights it is gy, and read */
    const void *bias;       /* one element per channel of all groups, of type Bias; may be null */
    struct cplx *weights;   /* spectra of w; kernels of the gradient of the weights write their sums here */
    long long rows, groups; /* of the layer */
    long long slices;       /* of the rows; each has a sum of its own in `weights` */
    double scale;           /* factor of what is written; the gradient of the weights does not use it */
    int accumulate, unused; /* accumulate: add to the old contents of y. unused: the struct has no padding */
} cf_fused_call;

/* From channels-last to planes, or back. */
typedef struct cf_transpose_call {
    const void *from;
    void *to;
    const void *bias;       /* one element per channel, of type Bias; may be null */
    int accumulate, unused; /* as above */
} cf_transpose_call;

#endif
