/* SPDX-License-Identifier: Apache-2.0 */
/* Between spectra of complex numbers and of reals. 2 M reals x of a row count as M complex numbers
 * x[2 m] + i x[2 m + 1]. Their spectrum is Z = E + i O, with the spectra E and O of the even and the odd reals, along
 * all axes. The spectrum of the reals is X = E + w O, w = exp(-pi i k / M), for bins k = 0 .. M of the last axis. If
 * row r is that of k on the other axes, row r' is that of -k:
 *
 *     S = Z[r, k] + conj Z[r', M - k] = 2 E      X[r, k] = (S + T) / 2      X[r', M - k] = conj (S - T) / 2
 *     D = Z[r, k] - conj Z[r', M - k] = 2 i O    T = -i w D = 2 w O
 *
 * An entry has 2^LOG_ROWS_0 x 2^LOG_ROWS_1 rows, and M = 2^LOG_N. Forward, bins are separated, Z to X. The inverse
 * merges them, X to 2 Z: the same with i conj(w) for -i w, and without the halves. Bins that are real for real signals
 * lose their imaginary parts, because those of k = 0 and M become Hermitian first.
 *
 * Rows that one kernel transforms do this between memory and shared memory (kernel.cuh). All others take one kernel
 * more, between rows of M and rows of M + 1. */
#pragma once

#include "fbfft/c2c_split/lines.cuh"

/* Bins k and M - k, k < M / 2. in(other, bin) reads a bin of row r, or of r' if `other`, and out(other, bin, v) writes
 * one. ONE: there is one row, r = r'. Bin M / 2 has no partner: X[r, M / 2] = conj Z[r', M / 2]. */
template <class C, bool ONE> struct SplitRealPair {
    static constexpr int M = 1 << C::LOG_N;
    int k;
    cplx a, b;

    template <class In> CF_DEVICE void load(const In &in) {
        a = in(false, k), b = in(true, C::INVERSE ? M - k : (M - k) & (M - 1));
        if constexpr (C::INVERSE && ONE) {
            a.y = k == 0 ? 0 : a.y, b.y = k == 0 ? 0 : b.y;
        } else if (C::INVERSE && k == 0) {
            const cplx c = in(false, M), d = in(true, 0);
            a = {0.5f * (a.x + d.x), 0.5f * (a.y - d.y)};
            b = {0.5f * (b.x + c.x), 0.5f * (b.y - c.y)};
        }
    }
    template <class Out> CF_DEVICE void store(const Out &out, float factor) const {
        const cplx c = conj(b), s = a + c;
        cplx w;
        sincospif(1.0f / M * float(k), &w.x, &w.y);
        const cplx t = (a - c) * cplx{-w.x, C::INVERSE ? w.y : -w.y};
        out(false, k, cplx{factor * (s.x + t.x), factor * (s.y + t.y)});
        if (!C::INVERSE || k > 0)
            out(true, M - k, cplx{factor * (s.x - t.x), factor * (t.y - s.y)});
    }
    template <class In, class Out> static CF_DEVICE void middle(const In &in, const Out &out, float factor) {
        const cplx v = in(true, M / 2);
        out(false, M / 2, cplx{2 * factor * v.x, -2 * factor * v.y});
    }
};

/* All bins of a block's rows, each by itself. from(row) and to(row) are `in` and `out` of a row. */
template <class C, class From, class To>
CF_DEVICE void split_real_rows(int rows, const From &from, const To &to, float factor) {
    typedef SplitRealPair<C, true> Pair;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < rows * (Pair::M / 2); i += C::THREADS) {
        Pair pair{i % (Pair::M / 2), {}, {}};
        pair.load(from(i / (Pair::M / 2)));
        pair.store(to(i / (Pair::M / 2)), factor);
    }
    for (int row = (int)threadIdx.x; row < rows; row += C::THREADS)
        Pair::middle(from(row), to(row), factor);
}

/* The row of -k. */
template <class C> CF_DEVICE long long split_mirrored(long long row) {
    constexpr long long N1 = 1ll << C::LOG_ROWS_1, N = N1 << C::LOG_ROWS_0;
    const long long k1 = row & (N1 - 1), k0 = row & (N - N1);
    return row - k0 - k1 + (-k0 & (N - N1)) + (-k1 & (N1 - 1));
}

/* The kernel of other rows. A thread has CF_C2C_SPLIT_PAIRS pairs, and loads them before it stores the first one. */
template <class C> CF_DEVICE void split_reals(const cplx *in, cplx *out, long long lines, float scale) {
    typedef SplitRealPair<C, false> Pair;
    constexpr long long FROM = Pair::M + C::INVERSE, TO = Pair::M + !C::INVERSE; /* pitches of rows */
    const long long first = (long long)blockIdx.x * (C::THREADS * CF_C2C_SPLIT_PAIRS) + threadIdx.x;
    const float factor = C::INVERSE ? 1.0f : 0.5f * scale;
    const auto row_of = [&](int i) { return (first + i * C::THREADS) >> (C::LOG_N - 1); };
    const auto from = [&](int i) {
        const cplx *const own = in + row_of(i) * FROM, *const mirrored = in + split_mirrored<C>(row_of(i)) * FROM;
        return [=](bool other, int bin) { return (other ? mirrored : own)[bin]; };
    };
    const auto to = [&](int i) {
        cplx *const own = out + row_of(i) * TO, *const mirrored = out + split_mirrored<C>(row_of(i)) * TO;
        return [=](bool other, int bin, cplx v) { (other ? mirrored : own)[bin] = v; };
    };
    Pair pair[CF_C2C_SPLIT_PAIRS];
#pragma unroll
    for (int i = 0; i < CF_C2C_SPLIT_PAIRS; ++i) {
        pair[i].k = int((first + i * C::THREADS) & (Pair::M / 2 - 1));
        if (row_of(i) < lines)
            pair[i].load(from(i));
    }
#pragma unroll
    for (int i = 0; i < CF_C2C_SPLIT_PAIRS; ++i) {
        if (row_of(i) >= lines)
            return;
        pair[i].store(to(i), factor);
        if (pair[i].k == 0)
            Pair::middle(from(i), to(i), factor);
    }
}
