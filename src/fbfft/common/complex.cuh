/* SPDX-License-Identifier: Apache-2.0 */
/* Complex numbers, and sines and cosines at compile time that are exact to the last bit of a double. */
#pragma once

#include "fbfft/common/platform.cuh"

#ifndef CF_REAL
#define CF_REAL float
#endif
typedef CF_REAL real;

struct __align__(2 * sizeof(real)) cplx {
    real x, y;
};

CF_DEVICE cplx operator+(cplx a, cplx b) { return {a.x + b.x, a.y + b.y}; }
CF_DEVICE cplx operator-(cplx a, cplx b) { return {a.x - b.x, a.y - b.y}; }
CF_DEVICE cplx operator*(cplx a, cplx b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }
CF_DEVICE cplx conj(cplx a) { return {a.x, -a.y}; }
CF_DEVICE cplx times_half(cplx a) { return {real(0.5) * a.x, real(0.5) * a.y}; }
CF_DEVICE cplx times_i(cplx a) { return {-a.y, a.x}; }
CF_DEVICE cplx times_minus_i(cplx a) { return {a.y, -a.x}; }

/* sin(a) or cos(a) for 0 <= a <= pi/4, by its Taylor series. */
__host__ __device__ constexpr double cf_series(double a, bool sine) {
    double term = sine ? a : 1.0, sum = term;
    for (int i = sine ? 2 : 1; i < 24; i += 2) {
        term *= -a * a / (i * (i + 1));
        sum += term;
    }
    return sum;
}

/* cos(2 pi k / n) and sin(2 pi k / n). The angle is reduced to the first octant in integers. */
__host__ __device__ constexpr double cf_cos(int k, int n) {
    k %= n;
    if (k < 0)
        k += n;
    if (2 * k > n)
        k = n - k;
    if (4 * k > n)
        return -cf_cos(n - 2 * k, 2 * n);
    const double angle = 6.283185307179586476925286766559;
    return 8 * k > n ? cf_series(angle * (n - 4 * k) / (4.0 * n), true) : cf_series(angle * k / n, false);
}
__host__ __device__ constexpr double cf_sin(int k, int n) { return cf_cos(4 * k - n, 4 * n); }

/* v exp(-2 pi i K / N). Multiples of an eighth turn need no multiplication by 0 or 1. */
template <int K_, int N> CF_DEVICE cplx twiddle(cplx v) {
    constexpr int K = (K_ % N + N) % N;
    constexpr real h = real(0.70710678118654752440);
    if constexpr (K == 0)
        return v;
    else if constexpr (4 * K == N)
        return times_minus_i(v);
    else if constexpr (2 * K == N)
        return {-v.x, -v.y};
    else if constexpr (4 * K == 3 * N)
        return times_i(v);
    else if constexpr (8 * K == N)
        return {h * (v.x + v.y), h * (v.y - v.x)};
    else if constexpr (8 * K == 3 * N)
        return {h * (v.y - v.x), -h * (v.x + v.y)};
    else if constexpr (8 * K == 5 * N)
        return {-h * (v.x + v.y), h * (v.x - v.y)};
    else if constexpr (8 * K == 7 * N)
        return {h * (v.x - v.y), h * (v.x + v.y)};
    else {
        constexpr real c = real(cf_cos(K, N)), s = real(-cf_sin(K, N));
        return {v.x * c - v.y * s, v.x * s + v.y * c};
    }
}

/* exp(-2 pi i k / N) for k < N, in memory: for twiddles that differ from lane to lane. */
template <int N> struct Roots {
    cplx w[N];
    __host__ __device__ constexpr Roots() : w{} {
        for (int k = 0; k < N; ++k) {
            w[k].x = real(cf_cos(k, N));
            w[k].y = real(-cf_sin(k, N));
        }
    }
};
template <int N> __device__ const Roots<N> cf_roots = Roots<N>();
