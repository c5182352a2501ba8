/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FP32 signals on tensor cores. An FP32 number is TERMS numbers of 11 bits, for TF32 products (m16n8k8).
 *
 * Two terms keep all but the last of its 24 bits. A product of two numbers is then three products of terms; that of
 * the second terms is left out, because it is as small as a rounding. One term is what math TF32 allows.
 *
 * Tensor cores truncate their sums. So with two terms a chain of products has at most four products of first terms, and
 * is then added in FP32. The products with a second term are the first ones of a chain, when its sum is small.
 */
#pragma once

#include "conv/toeplitz/tile.cuh"

/* Rounds a tap to 11 bits. A NaN stays one. */
CF_DEVICE unsigned tf32_of(float value) {
    return value == value ? (__float_as_uint(value) + 0x1000u) & 0xffffe000u : __float_as_uint(value);
}

/*
 * The terms of an element of x or gy. Of two, the first is rounded to 11 bits, and the second is what that leaves. It
 * has up to 12 bits, of which tensor cores read 11. The second term of a NaN or an infinity is NaN.
 *
 * One term is multiplied by 1 + 2^-11.5. Tensor cores read its first 11 bits, and so round it to nearest on average;
 * numbers of 11 bits stay what they are.
 */
template <int TERMS> CF_DEVICE void split_tf32(unsigned (&term)[TERMS], float value) {
    if constexpr (TERMS == 1) {
        term[0] = __float_as_uint(value * 1.00034527f);
    } else {
        term[0] = (__float_as_uint(value) + 0x1000u) & 0xffffe000u;
        term[1] = __float_as_uint(value - __uint_as_float(term[0]));
    }
}

/* d += the sum of LINKS products a b. */
template <class F, int LINKS>
CF_DEVICE void multiply_terms(float d[4], const unsigned (*a)[F::TERMS][4], const unsigned (*b)[F::TERMS][2]) {
    if constexpr (F::TERMS > 1) {
        unroll<0, LINKS>([&](auto i) {
            multiply_tf32(d, a[i][0], b[i][1][0], b[i][1][1]);
            multiply_tf32(d, a[i][1], b[i][0][0], b[i][0][1]);
        });
    }
    unroll<0, LINKS>([&](auto i) { multiply_tf32(d, a[i][0], b[i][0][0], b[i][0][1]); });
}

/* A row of a matrix a of 16 x 8 numbers, units `unit` and unit + 1 of the rows of a tile, as terms. */
template <class F> CF_DEVICE void read_terms(unsigned (&a)[F::TERMS][4], smem<uint4> plane, int from, int unit) {
    unsigned read[4], term[F::TERMS];
    ldmatrix_x4(read, plane, from + Tile<typename F::X>::along(unit + int(threadIdx.x) % 32 / 16));
    unroll<0, 4>([&](auto word) {
        split_tf32<F::TERMS>(term, __uint_as_float(read[word]));
        unroll<0, F::TERMS>([&](auto t) { a[t][word] = term[t]; });
    });
}

/* multiply_row() of FP32 signals (signals.cuh). Inputs of SPAN steps are split once for all outputs that read them. */
template <class F, class B>
CF_DEVICE void multiply_fp32_row(float (&sum)[F::BLOCKS][4], smem<uint4> plane, int from, int unit, const B &fragment) {
    constexpr int SPANS = (F::STEPS + F::SPAN - 1) / F::SPAN, SPAN = (F::STEPS + SPANS - 1) / SPANS;
    unroll<0, SPANS>([&](auto span) {
        constexpr int FIRST = decltype(span)::value * SPAN, COUNT = SPAN < F::STEPS - FIRST ? SPAN : F::STEPS - FIRST,
                      CHAINS = (COUNT + 3) / 4, LINKS = (COUNT + CHAINS - 1) / CHAINS;
        unsigned a[(F::BLOCKS - 1) * F::STRIDE_X + COUNT][F::TERMS][4], b[COUNT][F::TERMS][2];
        unroll<0, COUNT>([&](auto k) { fragment(b[k], Int<FIRST + k>{}); });
        unroll<0, F::BLOCKS>([&](auto n) {
            constexpr int BEGIN = decltype(n)::value * F::STRIDE_X, END = BEGIN + COUNT,
                          NEW = decltype(n)::value ? cf_max_of(BEGIN, END - F::STRIDE_X) : BEGIN;
            unroll<NEW, END>([&](auto i) { read_terms<F>(a[i], plane, from, unit + 2 * (FIRST + i)); });
            if constexpr (F::TERMS == 1) {
                multiply_terms<F, COUNT>(sum[n], a + BEGIN, b);
            } else {
                unroll<0, CHAINS>([&](auto chain) {
                    constexpr int AT = decltype(chain)::value * LINKS;
                    float d[4] = {0, 0, 0, 0};
                    multiply_terms<F, (LINKS < COUNT - AT ? LINKS : COUNT - AT)>(d, a + BEGIN + AT, b + AT);
                    unroll<0, 4>([&](auto i) { sum[n][i] += d[i]; });
                });
            }
        });
    });
}
