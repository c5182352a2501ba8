/* SPDX-License-Identifier: Apache-2.0 */
#include "common/shape.h"

void bench_shape_of(const conv_fft_problem *p, const int64_t output[CONV_FFT_MAX_RANK], bench_shape *s) {
    *s = (bench_shape){
        .batch = p->batch, .groups = p->groups, .in = p->in_channels / p->groups, .out = p->out_channels / p->groups};
    for (int a = 0; a < 3; a++) {
        int axis = a - (3 - p->rank);
        bool used = axis >= 0;
        s->d[a] = used ? p->input[axis] : 1;
        s->k[a] = used ? p->kernel[axis] : 1;
        s->m[a] = used ? output[axis] : 1;
        s->stride[a] = used ? p->stride[axis] : 1;
        s->dilation[a] = used ? p->dilation[axis] : 1;
        s->pad[a] = used ? p->pad_before[axis] : 0;
    }
}

double bench_direct_gflop(const bench_shape *s) {
    double outputs = (double)s->batch * (double)s->groups * (double)s->out * (double)bench_volume(s->m);
    return 2e-9 * outputs * (double)s->in * (double)bench_volume(s->k);
}
