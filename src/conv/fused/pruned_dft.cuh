/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small DFTs in the registers of one thread, for lines where only some points hold data. The set of these points is
 * a template argument, so that zeros cost no instruction, wherever they are.
 *
 * A DFT of N = A B points is divided into DFTs of A and of B points. If A and B have no common divisor, the prime
 * factor algorithm (Good and Thomas) needs no twiddles:
 *
 *     point j = (B a + A b) mod N     ->     bin k with k mod A = k_a and k mod B = k_b
 *
 * Else the usual Cooley-Tukey step with twiddles is taken: j = B a + b, k = k1 + A k2.
 */
#pragma once

#include "fbfft/shared_memory/kernel.cuh"

/* ------------------------------------------------------------------------------------------------- sets of points */

typedef unsigned long long Points; /* bit j: point j of at most 64 is in the set */
/* The set of points from, ..., to - 1. */
__host__ __device__ constexpr Points cf_points(int from, int to) {
    Points set = 0;
    for (int i = from; i < to; ++i)
        set |= Points(1) << i;
    return set;
}
__host__ __device__ constexpr bool cf_has(Points set, int i) { return set >> i & 1; }
/* n if the set is 0, ..., n - 1; 0 for all other sets. */
__host__ __device__ constexpr int cf_leading(Points set) {
    int n = 0;
    while (n < 64 && cf_has(set, n))
        ++n;
    return set == cf_points(0, n) ? n : 0;
}
/* The largest divisor of n that is a power of its smallest prime. */
__host__ __device__ constexpr int cf_power_part(int n) {
    int prime = 2, part = 1;
    while (n > 1 && n % prime)
        ++prime;
    while (n % prime == 0) {
        n /= prime;
        part *= prime;
    }
    return part;
}
/* Prime factor algorithm: the point of (a, b), and the bin of (k_a, k_b). */
__host__ __device__ constexpr int cf_good_place(int a, int b, int A, int B) { return (B * a + A * b) % (A * B); }
__host__ __device__ constexpr int cf_good_bin(int a, int b, int A, int B) {
    int k = a;
    while (k % B != b)
        k += A;
    return k;
}
/* Which of the points first, first + gap, ... are in the set. */
__host__ __device__ constexpr Points cf_every(Points set, int first, int gap, int count) {
    Points every = 0;
    for (int i = 0; i < count; ++i)
        every |= Points(cf_has(set, first + i * gap)) << i;
    return every;
}
/* Which of the points (0, b), (1, b), ... of the prime factor algorithm are in the set. */
__host__ __device__ constexpr Points cf_good_points(Points set, int b, int A, int B) {
    Points points = 0;
    for (int a = 0; a < A; ++a)
        points |= Points(cf_has(set, cf_good_place(a, b, A, B))) << a;
    return points;
}
/* Those b of which some point (a, b) is in the set; good: by the prime factor algorithm. */
__host__ __device__ constexpr Points cf_columns(Points set, int A, int B, bool good) {
    Points columns = 0;
    for (int b = 0; b < B; ++b)
        columns |= Points((good ? cf_good_points(set, b, A, B) : cf_every(set, b, B, A)) != 0) << b;
    return columns;
}

/* ----------------------------------------------------------------------------------------------------------- DFTs */

/* a + b, where A and B say which of the two is not known to be zero. */
template <bool A, bool B> CF_DEVICE cplx plus(cplx a, cplx b) {
    if constexpr (A && B)
        return a + b;
    else if constexpr (A)
        return a;
    else if constexpr (B)
        return b;
    else
        return {0, 0};
}
template <bool A> CF_DEVICE cplx there(const cplx &a) {
    if constexpr (A)
        return a;
    else
        return {0, 0};
}
CF_DEVICE cplx negative(cplx a) { return {-a.x, -a.y}; }

/* dft_prime() for an odd N: pairs points j and N - j, whose sums and differences serve bins k and N - k. */
template <int N, Points DATA> CF_DEVICE void prime_of(cplx *v) {
    constexpr int M = (N - 1) / 2;
    constexpr bool FIRST = cf_has(DATA, 0);
    cplx sum[M + 1], difference[M + 1], total = FIRST ? v[0] : cplx{0, 0};
    unroll<1, M + 1>([&](auto j) {
        constexpr int J = decltype(j)::value;
        constexpr bool A = cf_has(DATA, J), B = cf_has(DATA, N - J),
                       BEFORE = (DATA & (cf_points(0, J) | cf_points(N - J + 1, N))) != 0;
        sum[J] = plus<A, B>(v[J], v[N - J]);
        difference[J] = plus<A, B>(v[J], negative(v[N - J]));
        total = plus < BEFORE, A || B > (total, sum[J]);
    });
    const cplx first = FIRST ? v[0] : cplx{0, 0};
    v[0] = total;
    unroll<1, M + 1>([&](auto k) {
        cplx even = first, odd = {0, 0};
        unroll<1, M + 1>([&](auto j) {
            constexpr int J = decltype(j)::value, JK = J * decltype(k)::value;
            constexpr real c = real(cf_cos(JK, N)), s = real(cf_sin(JK, N));
            if constexpr (cf_has(DATA, J) || cf_has(DATA, N - J)) {
                even.x += c * sum[J].x;
                even.y += c * sum[J].y;
                odd.x += s * difference[J].x;
                odd.y += s * difference[J].y;
            }
        });
        v[k] = even + times_minus_i(odd);
        v[N - k] = even - times_minus_i(odd);
    });
}

/* v[k] = sum over j in DATA of v[j] exp(-2 pi i j k / N). DATA is not empty. Other points are not read. */
template <int N, Points DATA> CF_DEVICE void dft_of(cplx *v) {
    constexpr int A = cf_power_part(N), LEADING = cf_leading(DATA);
    if constexpr (DATA == 1) {
        unroll<1, N>([&](auto k) { v[k] = v[0]; });
    } else if constexpr (A < N) {
        constexpr int B = N / A;
        constexpr Points COLUMNS = cf_columns(DATA, A, B, true);
        cplx t[N];
        unroll<0, B>([&](auto b) {
            constexpr Points OF_B = cf_good_points(DATA, b, A, B);
            if constexpr (OF_B != 0) {
                cplx u[A];
                unroll<0, A>([&](auto a) { u[a] = there<cf_has(OF_B, a)>(v[cf_good_place(a, b, A, B)]); });
                dft_of<A, OF_B>(u);
                unroll<0, A>([&](auto k) { t[B * k + b] = u[k]; });
            }
        });
        unroll<0, A>([&](auto a) {
            cplx u[B];
            unroll<0, B>([&](auto b) { u[b] = there<cf_has(COLUMNS, b)>(t[B * a + b]); });
            dft_of<B, COLUMNS>(u);
            unroll<0, B>([&](auto b) { v[cf_good_bin(a, b, A, B)] = u[b]; });
        });
    } else if constexpr (LEADING > 0) {
        dft<N, LEADING>(v);
    } else if constexpr (N == 2) {
        v[0] = v[1];
        v[1] = negative(v[1]);
    } else if constexpr (N == 4) {
        constexpr bool P0 = cf_has(DATA, 0), P1 = cf_has(DATA, 1), P2 = cf_has(DATA, 2), P3 = cf_has(DATA, 3);
        const cplx a = plus<P0, P2>(v[0], v[2]), b = plus<P0, P2>(v[0], negative(v[2]));
        const cplx c = plus<P1, P3>(v[1], v[3]), d = times_minus_i(plus<P1, P3>(v[1], negative(v[3])));
        v[0] = plus < P0 || P2, P1 || P3 > (a, c);
        v[1] = plus < P0 || P2, P1 || P3 > (b, d);
        v[2] = plus < P0 || P2, P1 || P3 > (a, negative(c));
        v[3] = plus < P0 || P2, P1 || P3 > (b, negative(d));
    } else if constexpr (cf_factor(N) == N) {
        prime_of<N, DATA>(v);
    } else { /* Cooley-Tukey: j = B a + b, k = k1 + C k2 */
        constexpr int C = cf_factor(N), B = N / C;
        constexpr Points COLUMNS = cf_columns(DATA, C, B, false);
        cplx t[N];
        unroll<0, B>([&](auto b) {
            constexpr Points OF_B = cf_every(DATA, b, B, C);
            if constexpr (OF_B != 0) {
                cplx u[C];
                unroll<0, C>([&](auto a) { u[a] = there<cf_has(OF_B, a)>(v[B * a + b]); });
                dft_of<C, OF_B>(u);
                unroll<0, C>([&](auto k) { t[B * k + b] = twiddle<decltype(b)::value *decltype(k)::value, N>(u[k]); });
            }
        });
        unroll<0, C>([&](auto k1) {
            cplx u[B];
            unroll<0, B>([&](auto b) { u[b] = there<cf_has(COLUMNS, b)>(t[B * k1 + b]); });
            dft_of<B, COLUMNS>(u);
            unroll<0, B>([&](auto k2) { v[k1 + C * k2] = u[k2]; });
        });
    }
}
/* The inverse DFT without its factor 1 / N. It swaps real and imaginary parts before and after the forward DFT. */
template <int N> CF_DEVICE void dft_back(cplx *v) {
    unroll<0, N>([&](auto j) { v[j] = {v[j].y, v[j].x}; });
    dft_of<N, cf_points(0, N)>(v);
    unroll<0, N>([&](auto j) { v[j] = {v[j].y, v[j].x}; });
}

/* One FFT step of task t, with its twiddles: step_transform() for lines whose points [LO, HI) hold data. */
template <class O, int STEP, bool INVERSE, int LO = 0, int HI = O::N> CF_DEVICE void step_of_data(cplx *v, int t) {
    constexpr int R = Step<O, STEP>::R;
    if constexpr (INVERSE) {
        step_twiddles<O, STEP, true>(v, t);
        dft_back<R>(v);
    } else {
        dft_of<R, STEP == 1 ? cf_points(LO / O::M, (HI + O::M - 1) / O::M) : cf_points(0, R)>(v);
        step_twiddles<O, STEP, false>(v, t);
    }
}
