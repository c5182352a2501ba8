/* SPDX-License-Identifier: Apache-2.0 */
/* The DFT of N numbers in the registers of one thread: mixed-radix Cooley-Tukey. All indices and twiddles are
 * constants, and results are in natural order. */
#pragma once

#include "fbfft/common/complex.cuh"

/* The factor to split off N. Radix 8 for powers of two from 64 on and radix 4 below take the fewest operations. */
__host__ __device__ constexpr int cf_factor(int n) {
    if (n % 8 == 0 && n >= 64)
        return 8;
    if (n % 4 == 0 && n > 4)
        return 4;
    const int primes[] = {2, 3, 5, 7};
    for (int prime : primes) {
        if (n % prime == 0 && n > prime)
            return prime;
    }
    return n;
}

/* The DFT of an odd prime N. Sums and differences of x[j] and x[N - j] halve the multiplications. */
template <int N> CF_DEVICE void dft_prime(cplx *v) {
    constexpr int M = (N - 1) / 2;
    cplx sum[M + 1], difference[M + 1], total = v[0];
    unroll<1, M + 1>([&](auto j) {
        sum[j] = v[j] + v[N - j];
        difference[j] = v[j] - v[N - j];
        total = total + sum[j];
    });
    const cplx first = v[0];
    v[0] = total;
    unroll<1, M + 1>([&](auto k) {
        cplx even = first, odd = {0, 0};
        unroll<1, M + 1>([&](auto j) {
            constexpr int JK = decltype(j)::value * decltype(k)::value;
            constexpr real c = real(cf_cos(JK, N)), s = real(cf_sin(JK, N));
            even.x += c * sum[j].x;
            even.y += c * sum[j].y;
            odd.x += s * difference[j].x;
            odd.y += s * difference[j].y;
        });
        v[k] = even + times_minus_i(odd);
        v[N - k] = even - times_minus_i(odd);
    });
}

/* v[k] <- sum_j v[j] exp(-2 pi i j k / N). Only the first D inputs may be nonzero; the others are not read. */
template <int N, int D = N> CF_DEVICE void dft(cplx *v) {
    static_assert(D >= 1 && D <= N, "there is something to transform");
    if constexpr (D == 1) {
        unroll<1, N>([&](auto k) { v[k] = v[0]; });
    } else if constexpr (N == 2) {
        const cplx a = v[0], b = v[1];
        v[0] = a + b;
        v[1] = a - b;
    } else if constexpr (N == 4 && D == 2) {
        const cplx a = v[0], b = v[1], c = times_minus_i(b);
        v[0] = a + b;
        v[1] = a + c;
        v[2] = a - b;
        v[3] = a - c;
    } else if constexpr (N == 4) {
        if (D == 3)
            v[3] = {0, 0};
        const cplx a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = times_minus_i(v[1] - v[3]);
        v[0] = a + c;
        v[1] = b + d;
        v[2] = a - c;
        v[3] = b - d;
    } else if constexpr (cf_factor(N) == N) {
        unroll<D, N>([&](auto k) { v[k] = {0, 0}; });
        dft_prime<N>(v);
    } else {
        constexpr int A = cf_factor(N), B = N / A, COLUMNS = D < B ? D : B; /* j = B a + b, k = k1 + A k2 */
        cplx t[N];
        unroll<0, COLUMNS>([&](auto b) {
            constexpr int DATA = (D - decltype(b)::value + B - 1) / B;
            cplx u[A];
            unroll<0, DATA>([&](auto a) { u[a] = v[B * a + b]; });
            dft<A, DATA>(u);
            unroll<0, A>([&](auto k1) { t[B * k1 + b] = twiddle<decltype(b)::value *decltype(k1)::value, N>(u[k1]); });
        });
        unroll<0, A>([&](auto k1) {
            cplx u[B];
            unroll<0, COLUMNS>([&](auto b) { u[b] = t[B * k1 + b]; });
            dft<B, COLUMNS>(u);
            unroll<0, B>([&](auto k2) { v[k1 + A * k2] = u[k2]; });
        });
    }
}

/* The inverse without its factor 1 / N. Exchanging real and imaginary parts before and after a DFT gives its inverse.
 */
template <int N> CF_DEVICE void dft_inverse(cplx *v) {
    unroll<0, N>([&](auto j) { v[j] = {v[j].y, v[j].x}; });
    dft<N>(v);
    unroll<0, N>([&](auto j) { v[j] = {v[j].y, v[j].x}; });
}
