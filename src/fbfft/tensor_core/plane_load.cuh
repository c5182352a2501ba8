/* SPDX-License-Identifier: Apache-2.0 */
/* Loads rows of real planes into registers, in the order of product operands.
 *
 * In channels-first layout four lanes load contiguous points of a row. In channels-last layout they load one point of
 * neighbouring planes, and words are transposed. Points outside the data become zero. */
#pragma once

#include "fbfft/tensor_core/plane.cuh"

/* Loads a lane's eight numbers of 32 points of a row, as they are stored in memory. */
template <class K> CF_DEVICE void mma_load(float (&v)[8], const float *row, bool inside, int part, int t, int start) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    constexpr int VECTOR = K::VECTOR;
#pragma unroll
    for (int e = 0; e < 8; ++e)
        v[e] = 0;
#pragma unroll
    for (int e = 0; e < 8; e += VECTOR) {
        const int x = mma_point<MmaFft<K>::WAY>(part, t, e);
        bool in = inside && x >= G::template lo<2>() && x < G::template hi<2>();
        const Offset at = offset_of<K, 2, Offset>(in ? x : G::template lo<2>(), start, in);
        if (!in)
            continue;
        if constexpr (VECTOR == 4) {
            const float4 q = __ldg(reinterpret_cast<const float4 *>(row + at));
            v[e] = q.x, v[e + 1] = q.y, v[e + 2] = q.z, v[e + 3] = q.w;
        } else if constexpr (VECTOR == 2) {
            const float2 q = __ldg(reinterpret_cast<const float2 *>(row + at));
            v[e] = q.x, v[e + 1] = q.y;
        } else {
            v[e] = __ldg(row + at);
        }
    }
}
template <class K>
CF_DEVICE void mma_load(unsigned (&w)[4], const unsigned short *row, bool inside, int part, int t, int start) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    constexpr int VECTOR = K::VECTOR;
#pragma unroll
    for (int e = 0; e < 4; ++e)
        w[e] = 0;
#pragma unroll
    for (int e = 0; e < 8; e += VECTOR) {
        const int x = mma_point<MmaFft<K>::WAY>(part, t, e);
        bool in = inside && x >= G::template lo<2>() && x < G::template hi<2>();
        const Offset at = offset_of<K, 2, Offset>(in ? x : G::template lo<2>(), start, in);
        if (!in)
            continue;
        if constexpr (VECTOR == 8) {
            const uint4 v = __ldg(reinterpret_cast<const uint4 *>(row + at));
            w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        } else if constexpr (VECTOR == 4) {
            const uint2 v = __ldg(reinterpret_cast<const uint2 *>(row + at));
            w[e / 2] = v.x, w[e / 2 + 1] = v.y;
        } else if constexpr (VECTOR == 2) {
            w[e / 2] = __ldg(reinterpret_cast<const unsigned *>(row + at));
        } else {
            w[e / 2] |= unsigned(__ldg(row + at)) << (16 * (e % 2));
        }
    }
}

/* The same in channels-last layout: four lanes get the points of plane g. 16-bit words are loaded as pairs of planes
 * and transposed to pairs of points. */
template <class K>
CF_DEVICE void mma_load_interleaved(float (&v)[MmaFft<K>::OWN], const float *row, bool inside, int part, int g, int t,
                                    int start) {
    typedef PlaneGeometry<K> G;
#pragma unroll
    for (int e = 0; e < MmaFft<K>::OWN; ++e) {
        const int x = mma_point<MMA_INTERLEAVED>(part, t, e);
        bool in = inside && x >= G::template lo<2>() && x < G::template hi<2>();
        const auto at = offset_of<K, 2, typename K::Offset>(in ? x : G::template lo<2>(), start, in);
        v[e] = in ? __ldg(row + at + g) : 0.0f;
    }
}
template <class K>
CF_DEVICE void mma_load_interleaved(unsigned (&w)[MmaFft<K>::OWN / 2], const unsigned short *row, bool inside, int part,
                                    int g, int t, int start) {
    typedef PlaneGeometry<K> G;
#pragma unroll
    for (int i = 0; i < MmaFft<K>::OWN / 2; ++i) {
        const int x = 32 * part + 8 * i + g;
        bool in = inside && x >= G::template lo<2>() && x < G::template hi<2>();
        const auto at = offset_of<K, 2, typename K::Offset>(in ? x : G::template lo<2>(), start, in);
        const unsigned short *const from = row + at + 2 * t;
        w[i] = 0;
        if (in) {
            if constexpr (K::VECTOR > 1)
                w[i] = __ldg(reinterpret_cast<const unsigned *>(from));
            else
                w[i] = __ldg(from) | unsigned(__ldg(from + 1)) << 16;
        }
    }
#pragma unroll
    for (int i = 0; i < MmaFft<K>::OWN / 2; ++i)
        w[i] = mma_transposed(w[i]);
}

/* A lane's part of a row. MmaRow: as it is stored in memory. MmaNumbers: as products take it. */
template <class K, bool FLOATS = K::Storage::PLAIN> struct MmaRow {
    unsigned of[MmaFft<K>::SPANS][MmaFft<K>::OWN / 2];
};
template <class K> struct MmaRow<K, true> { float of[MmaFft<K>::SPANS][MmaFft<K>::OWN]; };
template <class K> using MmaNumbers = MmaRow<K, false>;

/* Loads row j of a plane; in channels-last layout, of all eight planes. */
template <class K>
CF_DEVICE void mma_row(MmaRow<K> &row, const PlaneTable<K> &plane_table, const typename K::Storage::bits *signal, int p,
                       int j, int t) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    constexpr int SPAN = MmaFft<K>::SPAN;
    bool inside = j >= G::template lo<1>() && j < G::template hi<1>();
    Offset at = offset_of<K, 1, Offset>(inside ? j : G::template lo<1>(), plane_table.template start<1>(p), inside);
    at += offset_of<K, 0, Offset>(G::template lo<0>(), plane_table.template start<0>(p), inside);
#pragma unroll
    for (int part = 0; part < MmaFft<K>::N2 / SPAN; ++part) {
        const bool any = inside && SPAN * part < G::template hi<2>() && SPAN * part + SPAN > G::template lo<2>();
        if constexpr (MmaFft<K>::INTERLEAVED)
            mma_load_interleaved<K>(row.of[part], signal + at, any, part, int(threadIdx.x) % 32 / 4, t,
                                    plane_table.template start<2>(p));
        else
            mma_load<K>(row.of[part], signal + at, any, part, t, plane_table.template start<2>(p));
    }
}

/* Converts a row to 16 bits. FP32 numbers are multiplied by the scale before they are rounded. */
template <class K> CF_DEVICE MmaNumbers<K> mma_numbers(const MmaRow<K, true> &row, float scale) {
    MmaNumbers<K> numbers;
#pragma unroll
    for (int part = 0; part < MmaFft<K>::SPANS; ++part)
#pragma unroll
        for (int i = 0; i < MmaFft<K>::OWN / 2 && part * (MmaFft<K>::OWN / 2) + i < 2 * MmaFft<K>::STEPS; ++i)
            numbers.of[part][i] = K::Bins::pack(scale * row.of[part][2 * i], scale * row.of[part][2 * i + 1]);
    return numbers;
}
template <class K> CF_DEVICE MmaNumbers<K> mma_numbers(const MmaRow<K, false> &row, float) { return row; }
