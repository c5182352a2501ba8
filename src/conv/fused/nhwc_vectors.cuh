/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of neighbouring elements, as they are in memory. With channels last, these are neighbouring channels of
 * one point. 16-bit elements stay packed in words until they are used, which saves registers.
 */
#pragma once

#include "fbfft/shared_memory/kernel.cuh"

/* Whether nhwc_io.cuh moves the planes of config K. */
template <class K>
constexpr bool INTERLEAVED = K::PLANES_INTERLEAVED && (K::KIND == TWO_ROWS_AS_COMPLEX || K::KIND == PACKED_REAL);

/* V neighbouring 16-bit elements, two in a word. The second version is for FP32 and FP64. */
template <class S, int V, bool PLAIN = S::PLAIN> struct Neighbours {
    static constexpr int WORDS = (V + 1) / 2;
    unsigned w[WORDS];
    CF_DEVICE void clear() {
        unroll<0, WORDS>([&](auto i) { w[i] = 0; });
    }
    CF_DEVICE void load(const unsigned short *from) {
        if constexpr (V == 8) {
            const uint4 a = __ldg(reinterpret_cast<const uint4 *>(from));
            w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w;
        } else if constexpr (V == 4) {
            const uint2 a = __ldg(reinterpret_cast<const uint2 *>(from));
            w[0] = a.x, w[1] = a.y;
        } else if constexpr (V == 2) {
            w[0] = __ldg(reinterpret_cast<const unsigned *>(from));
        } else {
            w[0] = __ldg(from);
        }
    }
    CF_DEVICE void store(unsigned short *to) const {
        if constexpr (V == 8)
            *reinterpret_cast<uint4 *>(to) = uint4{w[0], w[1], w[2], w[3]};
        else if constexpr (V == 4)
            *reinterpret_cast<uint2 *>(to) = uint2{w[0], w[1]};
        else if constexpr (V == 2)
            *reinterpret_cast<unsigned *>(to) = w[0];
        else
            *to = (unsigned short)w[0];
    }
    template <int E> CF_DEVICE real get() const { return S::number((unsigned short)(w[E / 2] >> (16 * (E % 2)))); }
    CF_DEVICE void set(const real *v) {
        unroll<0, WORDS>([&](auto i) {
            w[i] = S::rounded(v[2 * i]);
            if constexpr (V > 1)
                w[i] |= (unsigned)S::rounded(v[2 * i + 1]) << 16;
        });
    }
};
template <class S, int V> struct Neighbours<S, V, true> {
    real v[V];
    CF_DEVICE void clear() {
        unroll<0, V>([&](auto e) { v[e] = 0; });
    }
    CF_DEVICE void load(const real *from) {
        if constexpr (V == 4) {
            const float4 a = __ldg(reinterpret_cast<const float4 *>(from));
            v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w;
        } else if constexpr (V == 2) {
            const typename PairOf<real>::type a = __ldg(reinterpret_cast<const typename PairOf<real>::type *>(from));
            v[0] = a.x, v[1] = a.y;
        } else {
            v[0] = __ldg(from);
        }
    }
    CF_DEVICE void store(real *to) const {
        if constexpr (V == 4)
            *reinterpret_cast<float4 *>(to) = make_float4(float(v[0]), float(v[1]), float(v[2]), float(v[3]));
        else if constexpr (V == 2)
            *reinterpret_cast<cplx *>(to) = cplx{v[0], v[1]};
        else
            to[0] = v[0];
    }
    template <int E> CF_DEVICE real get() const { return v[E]; }
    CF_DEVICE void set(const real *from) {
        unroll<0, V>([&](auto e) { v[e] = from[e]; });
    }
};
