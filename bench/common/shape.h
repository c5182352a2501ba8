/* SPDX-License-Identifier: Apache-2.0 */
/* A layer as plain numbers. */
#ifndef BENCH_SHAPE_H
#define BENCH_SHAPE_H

#include "conv_fft.h"

#include <stdbool.h>
#include <stdint.h>

/* A layer with dense channels-first tensors and zero padding. It always has three axes. Axes that the problem
 * lacks come first and have extent 1. */
typedef struct bench_shape {
    int64_t batch, groups, in, out; /* in, out: channels of a group */
    int64_t d[3], k[3], m[3];       /* extents of the input, the kernel and the output */
    int64_t stride[3], dilation[3], pad[3];
} bench_shape;

void bench_shape_of(const conv_fft_problem *p, const int64_t output[CONV_FFT_MAX_RANK], bench_shape *s);

static inline int64_t bench_volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }
static inline int64_t bench_x_count(const bench_shape *s) { return s->batch * s->groups * s->in * bench_volume(s->d); }
static inline int64_t bench_w_count(const bench_shape *s) { return s->groups * s->out * s->in * bench_volume(s->k); }
static inline int64_t bench_y_count(const bench_shape *s) { return s->batch * s->groups * s->out * bench_volume(s->m); }

/* Operations of one pass of a direct convolution: two for each tap and output, padding included. */
double bench_direct_gflop(const bench_shape *s);

#endif
