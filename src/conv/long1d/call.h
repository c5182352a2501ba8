/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of one launch of family long1d, for the host, the kernels and the emulator. */
#ifndef CF_CONV_LONG1D_CALL_H
#define CF_CONV_LONG1D_CALL_H

/* One tensor: its first element, and the distances between samples and between groups, in elements. */
typedef struct cf_long1d_tensor {
    void *memory;
    long long sample_stride, group_stride;
} cf_long1d_tensor;

/* The signals of a launch are [group][sample], or with GROUPS_FIRST [sample][group]. */
typedef struct cf_long1d_call {
    cf_long1d_tensor x, y, w, gx; /* gx: only where one kernel computes both gradients */
    const void *bias;             /* one element per group, of type Bias; may be null */
    struct cplx *spectra;         /* of w, [group][bin] */
    struct cplx *sums;            /* of gw, [slice][group][bin] */
    struct cplx *parts;           /* signals in the order of the four-step transform */
    long long rows, groups;       /* samples; groups of this launch */
    long long slices;             /* of the samples; each has a sum of gw */
    int accumulate, unused;       /* accumulate: add to the old contents. unused: the struct has no padding */
} cf_long1d_call;

#endif
