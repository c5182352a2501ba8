/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is one complex 1-D transform of N points on L lanes of a warp. A lane has R = N / L points in registers.
 * L is a power of two, and L^2 divides N.
 *
 * The lanes of a line are 32 / L apart. So neighbouring lanes hold neighbouring lines, and accesses to shared memory
 * have no bank conflicts. With C = R / L, lane l holds
 *
 *     in time        x[R j + C l + q]  in register C j + q,   j < L, q < C   (C contiguous points for each j)
 *     in frequency   X[l + L k]        in register k,         k < R
 *
 * The forward transform has four steps:
 *     1. a DFT over j;
 *     2. an exchange that gives lane l all points m = C l' + q of the sub-transform k1 = l;
 *     3. twiddles w_N^(l m);
 *     4. a DFT over m.
 * The inverse does the same steps in reverse order.
 */
#pragma once

#include "fbfft/common/register_dft.cuh"

/* Swap v[i * S] of lane l and v[l * S] of lane i, for i, l < L. This transposes an L x L matrix in log2 L shuffles. */
template <int L, int S> CF_DEVICE void transpose_lanes(cplx *v, int l) {
#pragma unroll
    for (int m = 1; m < L; m <<= 1) {
        const bool up = l & m;
#pragma unroll
        for (int r = 0; r < L; ++r) {
            if (r & m)
                continue;
            cplx &a = v[r * S], &b = v[(r | m) * S];
            const cplx give = up ? a : b;
            const cplx got = {__shfl_xor_sync(0xffffffffu, give.x, m * (32 / L)),
                              __shfl_xor_sync(0xffffffffu, give.y, m * (32 / L))};
            a = up ? got : a;
            b = up ? b : got;
        }
    }
}

/* w_N^(l m) is stored at L m + l. So the factors of a lane have a constant distance. */
template <int N, int L> struct LaneRoots {
    cplx w[N];
    __host__ __device__ constexpr LaneRoots() : w{} {
        for (int i = 0; i < N; ++i) {
            w[i].x = real(cf_cos(i / L * (i % L), N));
            w[i].y = real(-cf_sin(i / L * (i % L), N));
        }
    }
};
template <int N, int L> __device__ const LaneRoots<N, L> cf_lane_roots = LaneRoots<N, L>();

/* v[m] *= w_N^(l m), or its conjugate, for the first D elements of the line. */
template <int N, int L, bool INVERSE, int D = N / L> CF_DEVICE void lane_twiddles(cplx *v, int l) {
    if constexpr (L == 2) {
        if (l == 1)
            unroll<1, D>([&](auto m) {
                constexpr int M = decltype(m)::value;
                constexpr int POWER = INVERSE ? -M : M;
                v[m] = twiddle<POWER, N>(v[m]);
            });
    } else {
        const cplx *const root = cf_lane_roots<N, L>.w + l;
#pragma unroll
        for (int m = 1; m < D; ++m) {
            const cplx w = root[L * m];
            v[m] = v[m] * (INVERSE ? conj(w) : w);
        }
    }
}

/* Only the first D points of the line are not zero. */
template <int N, int L, int D = N> CF_DEVICE void line_forward(cplx *v, int l) {
    constexpr int R = N / L, C = R / L, DATA_STEPS = (D + R - 1) / R, POINTS = D < R ? D : R;
    if constexpr (L > 1) {
        /* Points m = C l' + q of a sub-transform that are not zero have q < POINTS. */
        unroll<0, C>([&](auto q) {
            if constexpr (POINTS > decltype(q)::value) {
                cplx u[L];
                unroll<0, DATA_STEPS>([&](auto j) { u[j] = v[C * j + q]; });
                dft<L, DATA_STEPS>(u);
                unroll<0, L>([&](auto j) { v[C * j + q] = u[j]; });
                transpose_lanes<L, C>(v + q, l);
            } else {
                unroll<0, L>([&](auto j) { v[C * j + q] = {0, 0}; });
            }
        });
        lane_twiddles<N, L, false, POINTS>(v, l);
    }
    dft<R, POINTS>(v);
}

template <int N, int L> CF_DEVICE void line_inverse(cplx *v, int l) {
    constexpr int R = N / L, C = R / L;
    dft_inverse<R>(v);
    if constexpr (L > 1) {
        lane_twiddles<N, L, true>(v, l);
        unroll<0, C>([&](auto q) {
            transpose_lanes<L, C>(v + q, l);
            cplx u[L];
            unroll<0, L>([&](auto j) { u[j] = v[C * j + q]; });
            dft_inverse<L>(u);
            unroll<0, L>([&](auto j) { v[C * j + q] = u[j]; });
        });
    }
}
