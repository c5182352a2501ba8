/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores: where the points of a signal or of a plane's rows are in global memory, and which of them are data.
 *
 * A signal is one channel of one sample, or one tile of it. Its points are AXIS_STRIDE[2] elements apart: 1 in
 * channels-first layout, the number of channels in channels-last layout. Points outside the window, and padding, are
 * zeros. */
#pragma once

#include "fbfft/tensor_core/plane.cuh"

/* Whether none (mma_empty) or all (mma_whole) of the `points` points from x on are data. */
template <class K> CF_DEVICE constexpr bool mma_empty(int x, int points) {
    return x >= PlaneGeometry<K>::template hi<2>() || x + points <= PlaneGeometry<K>::template lo<2>();
}
template <class K> CF_DEVICE constexpr bool mma_whole(int x, int points) {
    return x >= PlaneGeometry<K>::template lo<2>() && x + points <= PlaneGeometry<K>::template hi<2>();
}

/* The positions of axis X of plane p with data, [low, high). PLAIN: they are an interval of contiguous coordinates,
 * which is the usual case, and position i has coordinate zero + i. */
template <class K, int X> struct MmaSpan {
    typedef PlaneGeometry<K> G;
    static constexpr AxisWindow AXIS = K::AXIS[X];
    static constexpr bool PLAIN = AXIS.spread == 1 && AXIS.step == 1 && (!AXIS.checked || AXIS.mode == ZEROS);
    int zero, low, high;
    CF_DEVICE MmaSpan(const PlaneTable<K> &plane_table, int p) {
        zero = plane_table.template start<X>(p) - AXIS.first;
        low = G::template lo<X>();
        high = G::template hi<X>();
        if constexpr (AXIS.checked) {
            low = max(low, int(max(AXIS.lower, 0ll)) - zero);
            high = min(high, int(min(AXIS.upper, AXIS.size)) - zero);
        }
    }
    CF_DEVICE bool has(int i) const { return i >= low && i < high; }
};

/* The points of signal p, counted from point `from` on: which are inside the signal, and where they are. */
template <class K, class Bits> struct MmaLine {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    static constexpr AxisWindow AXIS = K::AXIS[2];
    static constexpr bool PLAIN = MmaSpan<K, 2>::PLAIN;
    Bits *line; /* with PLAIN, the address of point `from` */
    int from, start, low, count;
    bool inside;
    MmaLine() = default;
    CF_DEVICE MmaLine(Bits *signal, const PlaneTable<K> &plane_table, int p, int from_) : from(from_) {
        inside = true;
        line = signal + plane_table.signal(p) +
               offset_of<K, 0, Offset>(G::template lo<0>(), plane_table.template start<0>(p), inside);
        line += offset_of<K, 1, Offset>(G::template lo<1>(), plane_table.template start<1>(p), inside);
        start = plane_table.template start<2>(p);
        low = G::template lo<2>();
        int high = G::template hi<2>();
        if constexpr (PLAIN) {
            const MmaSpan<K, 2> span(plane_table, p);
            low = span.low;
            high = span.high;
            line += (long long)(span.zero + from) * K::AXIS_STRIDE[2];
        }
        count = inside ? max(high - low, 0) : 0;
        low -= from;
    }
    /* The address of point x. `in` becomes false if there is none. whole: the point is known to be data. */
    CF_DEVICE Bits *at(int x, bool whole, bool &in) const {
        if constexpr (PLAIN) {
            in = !AXIS.checked && whole ? inside : unsigned(x - low) < unsigned(count);
            return line + x * K::AXIS_STRIDE[2];
        } else {
            const int point = from + x;
            in = inside && (whole || (point >= G::template lo<2>() && point < G::template hi<2>()));
            return line + offset_of<K, 2, Offset>(in ? point : G::template lo<2>(), start, in);
        }
    }
};
