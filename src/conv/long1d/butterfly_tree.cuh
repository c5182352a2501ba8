/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small transforms in the registers of one thread, as trees of butterflies.
 *
 * A tree has log2(R) levels. Level l takes pairs u, v to u + r v and u - r v with one root r for each node:
 *
 *     r = exp(-2 pi i ((K - 1/4) / F + j) / 2^l)
 *
 *     K, F     earlier FFT steps have selected bin K of F
 *     j        the node of the level
 *
 * A butterfly takes six multiply-adds. All twiddles between FFT steps are part of the roots, so no other
 * multiplications are needed. The inverse uses conjugate roots. Results are left in bit-reversed order: place p of
 * R has index cf_reversed(p, R).
 *
 * Half of the roots of a level are the other half times -i, and are not stored. Root number e counts the rest:
 *
 *     e     0                   1                   2, 3                4 .. 7 ...
 *           level 1, j = 0      level 2, j = 0      level 3, j = 0, 1   level 4, j = 0 .. 3
 */
#pragma once

#include "fbfft/common/storage.cuh"
#include "fbfft/shared_memory/in_place_order.cuh"

__host__ __device__ constexpr int cf_log2(int n) { return n > 1 ? 1 + cf_log2(n / 2) : 0; }
/* p with its log2(n) bits in reverse order. */
__host__ __device__ constexpr int cf_reversed(int p, int n) {
    int reversed = 0;
    for (; n > 1; n /= 2, p /= 2)
        reversed = 2 * reversed + p % 2;
    return reversed;
}
/* The number of root j of a level, and the level and j of a number (see the head of this file). */
__host__ __device__ constexpr int cf_root_number(int level, int j) { return level > 1 ? (1 << (level - 2)) + j : 0; }
__host__ __device__ constexpr int cf_root_level(int number) { return number ? cf_log2(number) + 2 : 1; }
__host__ __device__ constexpr int cf_root_index(int number) {
    return number ? number - (1 << (cf_root_level(number) - 2)) : 0;
}

/* How many roots of a tree of r points are stored in memory. LoadedRoots computes the rest. */
__host__ __device__ constexpr int cf_stored_roots(int r) { return r >= 16 ? 3 * r / 8 : r / 2; }

/* a, b = a + r b, a - r b */
CF_DEVICE void butterfly(cplx &a, cplx &b, cplx r) {
    const cplx sum = {a.x + r.x * b.x - r.y * b.y, a.y + r.x * b.y + r.y * b.x};
    /* a - r b = 2 a - sum takes one multiply-add; compilers would take two. */
    b = {real(fma(real(2), a.x, -sum.x)), real(fma(real(2), a.y, -sum.y))};
    a = sum;
}

/*
 * v[reversed(k)] = sum over j of v[j] exp(+- 2 pi i j (k / R + offset)), where the roots contain the offset.
 *
 * `roots` are used for the first pair of each node, `late` for its other pairs. To multiply all results by a common
 * factor, the caller multiplies v[0] and `roots` by it, and leaves `late` as it is: after each level, the first
 * element of each node has the factor, and after the last level that is every element.
 */
template <int R, bool INVERSE, int FIRST_LEVEL = 1, class A, class B>
CF_DEVICE void tree(cplx *v, const A &roots, const B &late) {
    unroll<FIRST_LEVEL, cf_log2(R) + 1>([&](auto level) {
        constexpr int L = decltype(level)::value, NODES = 1 << (L - 1), HALF = R >> L, OWN = NODES > 1 ? NODES / 2 : 1;
        unroll<0, NODES>([&](auto node) {
            constexpr int J = cf_reversed(decltype(node)::value, NODES), FIRST = decltype(node)::value * 2 * HALF;
            constexpr bool TWIDDLED = J >= OWN;
            constexpr int NUMBER = cf_root_number(L, J % OWN);
            unroll<0, HALF>([&](auto i) {
                cplx &a = v[FIRST + i], &b = v[FIRST + HALF + i];
                const auto go = [&](auto r) {
                    if constexpr (!decltype(r)::ONE)
                        butterfly(a, b, TWIDDLED ? (INVERSE ? times_i(r.w) : times_minus_i(r.w)) : r.w);
                    else {
                        const cplx t = TWIDDLED ? (INVERSE ? times_i(b) : times_minus_i(b)) : b;
                        b = a - t;
                        a = a + t;
                    }
                };
                if constexpr (decltype(i)::value == 0)
                    go(roots.template get<NUMBER>());
                else
                    go(late.template get<NUMBER>());
            });
        });
    });
}
/* A root, and the root 1, whose butterfly is two additions. */
struct AnyRoot {
    static constexpr bool ONE = false;
    cplx w;
};
struct RootOne {
    static constexpr bool ONE = true;
    cplx w;
};

/* Roots of the first forward step: no bin is selected yet, and only the offset -1/4 is in them. */
struct QuarterRoots {
    template <int E> CF_DEVICE AnyRoot get() const {
        constexpr int N = 4 << cf_root_level(E), K = 4 * cf_root_index(E) - 1;
        constexpr real c = real(cf_cos(K, N)), s = real(-cf_sin(K, N));
        return {{c, s}};
    }
};
/* The tree of these roots. REAL: all imaginary parts are zero, which shortens the first level. */
template <int R, bool REAL> CF_DEVICE void quarter_tree(cplx *v) {
    const QuarterRoots roots;
    if constexpr (REAL)
        unroll<0, R / 2>([&](auto a) {
            constexpr real h = real(0.70710678118654752440);
            const real x = v[a].x, y = v[R / 2 + a].x;
            v[a] = {x + h * y, h * y};
            v[R / 2 + a] = {x - h * y, -h * y};
        });
    tree<R, false, REAL ? 2 : 1>(v, roots, roots);
}
/* Roots of the first inverse step: without any offset. */
struct PlainRoots {
    template <int E> CF_DEVICE auto get() const {
        constexpr int N = 1 << cf_root_level(E), K = cf_root_index(E);
        constexpr real c = real(cf_cos(K, N)), s = real(cf_sin(K, N));
        if constexpr (K == 0)
            return RootOne{};
        else
            return AnyRoot{{c, s}};
    }
};
/*
 * Roots of a tree of R points in registers: the first COUNT of them, or all. Half of the roots of the last level
 * are not stored in memory: they are the other half times exp(+- 2 pi i / 8). That keeps the tables small enough
 * for the first-level cache.
 */
template <int R, bool INVERSE, int COUNT = R / 2> struct LoadedRoots {
    static constexpr int STORED = cf_stored_roots(R);
    cplx w[COUNT];
    template <int E> CF_DEVICE AnyRoot get() const { return {w[E]}; }
    /* stride: distance between pairs of roots in the table. */
    CF_DEVICE explicit LoadedRoots(const float4 *from, int stride) {
        load<0, (COUNT < STORED ? COUNT : STORED)>(from, stride);
        if constexpr (COUNT > STORED)
            deepen();
    }
    template <int FIRST, int END> CF_DEVICE void load(const float4 *from, int stride) {
        unroll<FIRST / 2, END / 2>([&](auto i) {
            const float4 q = __ldg(from + (i - FIRST / 2) * stride);
            w[2 * i] = {q.x, q.y};
            w[2 * i + 1] = {q.z, q.w};
        });
    }
    CF_DEVICE void deepen() {
        constexpr int POWER = INVERSE ? -1 : 1;
        unroll<STORED, R / 2>([&](auto e) { w[e] = twiddle<POWER, 8>(w[e - (R / 2 - STORED)]); });
    }
    CF_DEVICE LoadedRoots() {}
};
