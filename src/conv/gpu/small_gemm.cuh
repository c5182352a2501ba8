/* SPDX-License-Identifier: Apache-2.0 */
/* Complex matrix products per frequency bin for few channels, where a GEMM library is slow.
 *
 * Matrices are row-major: X[bin][row][in], W[bin][out][in], Y[bin][row][out]. */
#pragma once

#include "conv/gpu/tensor.cuh"

CF_DEVICE cplx times_conj(cplx a, cplx b) { return a * conj(b); }
CF_DEVICE void add_to(cplx *p, cplx v, int accumulate) { *p = accumulate ? *p + v : v; }

CF_DEVICE void small_gemm_forward(const cf_small_gemm_call &s) {
    const long long count = s.bins * s.rows * s.out, step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        const long long o = n % s.out, r = n / s.out % s.rows, bin = n / (s.out * s.rows);
        const cplx *x = s.x + bin * s.x_stride + r * s.in, *w = s.w + bin * s.w_stride + o * s.in;
        cplx sum = {0, 0};
        for (long long c = 0; c < s.in; ++c)
            sum = sum + times_conj(x[c], w[c]);
        add_to(s.y + bin * s.y_stride + r * s.out + o, sum, s.accumulate);
    }
}
CF_DEVICE void small_gemm_data(const cf_small_gemm_call &s) {
    const long long count = s.bins * s.rows * s.in, step = (long long)gridDim.x * blockDim.x;
    for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
        const long long c = n % s.in, r = n / s.in % s.rows, bin = n / (s.in * s.rows);
        const cplx *y = s.y + bin * s.y_stride + r * s.out, *w = s.w + bin * s.w_stride + c;
        cplx sum = {0, 0};
        for (long long o = 0; o < s.out; ++o)
            sum = sum + y[o] * w[o * s.in];
        add_to(s.x + bin * s.x_stride + r * s.in + c, sum, s.accumulate);
    }
}
CF_DEVICE void small_gemm_weights(const cf_small_gemm_call &s) {
    const long long count = s.bins * s.in * s.out, step = (long long)gridDim.x * (blockDim.x / 32);
    const int lane = int(threadIdx.x) % 32;
    for (long long n = (long long)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; n < count; n += step) {
        const long long c = n % s.in, o = n / s.in % s.out, bin = n / (s.in * s.out);
        const cplx *x = s.x + bin * s.x_stride + c, *y = s.y + bin * s.y_stride + o;
        cplx sum = {0, 0};
        for (long long r = lane; r < s.rows; r += 32)
            sum = sum + times_conj(x[r * s.in], y[r * s.out]);
        for (int other = 16; other > 0; other /= 2)
            sum = sum + cplx{__shfl_xor_sync(0xffffffffu, sum.x, other), __shfl_xor_sync(0xffffffffu, sum.y, other)};
        if (lane == 0)
            add_to(s.w + bin * s.w_stride + o * s.in + c, sum, s.accumulate);
    }
}

/* The entry point. KIND: forward, data or weights. */
#define CF_SMALL_GEMM_KERNEL(KIND)                                    \
    extern "C" __global__ void cf_stage(const cf_small_gemm_call s) { \
        cf_pdl_wait();                                                \
        small_gemm_##KIND(s);                                         \
    }
