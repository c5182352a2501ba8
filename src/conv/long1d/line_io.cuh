/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals and weights in memory, as complex lines.
 *
 * A line of H complex points is a real signal of 2 H elements, folded: z[n] = x[n] + i x[n + H]. Elements beyond
 * the signal are zero. Weights are reversed: tap k is at element PAD - k. A negative PAD - k becomes PAD - k + 2 H
 * with the opposite sign, because the transform is modulo Z^2H + 1.
 *
 * A task of the first or last step has a column of points, M apart. Long1dColumn (signals) and TapColumn (weights)
 * read and write it:
 *
 *     get<A>()      point A M + m
 *     put<R>(v)     points m, M + m, ..., (R - 1) M + m
 *
 * Long signals are cut into pieces (four_step.cuh), which are lines of complex numbers already: Storage is then
 * `pieces`.
 */
#pragma once

#include "conv/long1d/call.h"
#include "conv/long1d/line_geometry.cuh"

/* The number of signals of a launch, and the group and sample of a signal. */
CF_DEVICE unsigned signals_of(const cf_long1d_call &call) { return unsigned(call.rows * call.groups); }
template <class F> CF_DEVICE unsigned group_of(const cf_long1d_call &call, unsigned signal) {
    return F::GROUPS_FIRST ? signal % unsigned(call.groups) : signal / unsigned(call.rows);
}
template <class F> CF_DEVICE unsigned sample_of(const cf_long1d_call &call, unsigned signal) {
    return F::GROUPS_FIRST ? signal / unsigned(call.groups) : signal % unsigned(call.rows);
}

/* Storage of a side that is in pieces: H complex numbers for each line, neighbouring samples side by side. */
struct pieces {
    typedef cplx bits;
};
/*
 * Loads that do not stay in the first-level cache. Each signal, piece and spectrum is read once, and would displace
 * the tables of roots.
 */
template <class Storage> CF_DEVICE real load_once(const typename Storage::bits *p) {
    if constexpr (Storage::PLAIN)
        return __ldcs(p);
    else
        return Storage::number(__ldcs(p));
}
/* An element of a piece, which may come from another kernel: it is read from the second-level cache. */
CF_DEVICE cplx get_piece(const cplx *from) {
    const float2 v = __ldcg(reinterpret_cast<const float2 *>(from));
    return {v.x, v.y};
}

/*
 * A column of a signal. The host prints S with Storage, COUNT elements and STRIDE. REAL: no element is beyond H, so
 * points are real.
 */
template <class S, int H, int M, class Storage = typename S::Storage> struct Long1dColumn {
    typedef typename Storage::bits bits;
    static constexpr bool REAL = S::COUNT <= H, PIECES = false;
    static constexpr int COUNT = S::COUNT, STRIDE = S::STRIDE;
    bits *from;
    int m;
    CF_DEVICE Long1dColumn(bits *line, int number) : from(line + number * S::STRIDE), m(number) {}
    template <int FIRST> CF_DEVICE bool exists() const {
        return FIRST < S::COUNT && (FIRST + M <= S::COUNT || m < S::COUNT - FIRST);
    }
    template <int FIRST> CF_DEVICE real number() const {
        return exists<FIRST>() ? load_once<Storage>(from + FIRST * S::STRIDE) : real(0);
    }
    template <int A> CF_DEVICE cplx get() const { return {number<A * M>(), REAL ? real(0) : number<H + A * M>()}; }
    template <int FIRST> CF_DEVICE void put_number(real v) const {
        if (exists<FIRST>())
            Storage::store(from + FIRST * S::STRIDE, v);
    }
    template <int R> CF_DEVICE void put(cplx *v, real bias, bool accumulate) const {
        if (accumulate)
            unroll<0, R>([&](auto a) { v[a] = v[a] + get<decltype(a)::value>(); });
        unroll<0, R>([&](auto a) {
            put_number<decltype(a)::value * M>(v[a].x + bias);
            if (!REAL)
                put_number<H + decltype(a)::value * M>(v[a].y + bias);
        });
    }
};
template <class S, int H, int M> struct Long1dColumn<S, H, M, pieces> {
    static constexpr bool REAL = false, PIECES = true;
    static constexpr int COUNT = H, STRIDE = 1;
    cplx *from;
    CF_DEVICE Long1dColumn(cplx *line, int m) : from(line + m) {}
    template <int A> CF_DEVICE cplx get() const { return get_piece(from + A * M); }
    template <int R> CF_DEVICE void put(const cplx *v, real, bool) const {
        unroll<0, R>([&](auto a) { from[a * M] = v[a]; });
    }
};
/* The first element of a line. */
template <class S> CF_DEVICE auto long_line(const cf_long1d_tensor &t, long long group, long long sample) {
    return static_cast<typename S::Storage::bits *>(t.memory) + group * t.group_stride + sample * t.sample_stride;
}

/* A column of weights. The host prints W as S, with PAD. */
template <class W, int H, int M, class Storage = typename W::Storage> struct TapColumn {
    typedef typename Storage::bits bits;
    static constexpr bool REAL = W::PAD < H && W::COUNT - 1 <= W::PAD;
    bits *taps;
    int m;
    CF_DEVICE TapColumn(bits *line, int number) : taps(line), m(number) {}
    CF_DEVICE real number(int n) const {
        const int k = W::PAD - n, other = k + 2 * H;
        if (k >= 0)
            return k < W::COUNT ? Storage::load(taps + k * W::STRIDE) : real(0);
        return other < W::COUNT ? -Storage::load(taps + other * W::STRIDE) : real(0);
    }
    template <int A> CF_DEVICE cplx get() const { return {number(A * M + m), REAL ? real(0) : number(H + A * M + m)}; }
    CF_DEVICE void put_number(int n, real v, bool accumulate) const {
        const int k = W::PAD - n, tap = k < 0 ? k + 2 * H : k;
        if (tap >= W::COUNT)
            return;
        bits *const p = taps + tap * W::STRIDE;
        Storage::store(p, (k < 0 ? -v : v) + (accumulate ? Storage::load(p) : real(0)));
    }
    template <int R> CF_DEVICE void put(const cplx *v, real, bool accumulate) const {
        unroll<0, R>([&](auto a) {
            put_number(a * M + m, v[a].x, accumulate);
            if (!REAL)
                put_number(H + a * M + m, v[a].y, accumulate);
        });
    }
};
template <class W, int H, int M> struct TapColumn<W, H, M, pieces> : Long1dColumn<W, H, M, pieces> {
    CF_DEVICE TapColumn(cplx *line, int m) : Long1dColumn<W, H, M, pieces>(line, m) {}
};
