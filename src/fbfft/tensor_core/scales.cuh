/* SPDX-License-Identifier: Apache-2.0 */
/* Scales of FP16 spectra that a kernel finds itself (K::FINDS), for plane groups.
 *
 * Rows of a plane are transformed before the largest value of the plane group is known. So each part of a plane
 * (half of its j, or one j in channels-last layout) first has a factor from its own numbers. Before columns are
 * transformed, words are rescaled to the smallest of these factors, which is that of the plane group. */
#pragma once

#include "fbfft/tensor_core/plane_load.cuh"

/* v, or NaN for infinities. */
CF_DEVICE float finite_or_nan(float v) { return fmaf(v, 0, v); }
#ifdef CF_SIMT
CF_DEVICE unsigned finite_or_nan(unsigned w) {
    const cplx v = unpack_fp16(w);
    return pack_fp16(finite_or_nan(v.x), finite_or_nan(v.y));
}
CF_DEVICE unsigned larger_fp16(unsigned a, unsigned b) {
    const cplx x = unpack_fp16(a), y = unpack_fp16(b);
    return pack_fp16(fmaxf(x.x, y.x), fmaxf(x.y, y.y));
}
#else
CF_DEVICE unsigned finite_or_nan(unsigned w) { /* both halves */
    unsigned v;
    asm("fma.rn.f16x2 %0, %1, %2, %1;" : "=r"(v) : "r"(w), "r"(0));
    return v;
}
/* The larger of each half of two words. A NaN is not larger. */
CF_DEVICE unsigned larger_fp16(unsigned a, unsigned b) {
    unsigned w;
    asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
    return w;
}
#endif

/* The largest absolute value of N numbers at(i) of a lane, or of N words of two halves. NaN and infinities do not
 * count. */
template <int N, class At> CF_DEVICE float absmax_of_floats(const At &at) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        most = fmaxf(most, fabsf(finite_or_nan(at(i))));
    return most;
}
template <int N, class At> CF_DEVICE float absmax_of_fp16(const At &at) {
    unsigned most = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        most = larger_fp16(most, finite_or_nan(at(i)) & 0x7fff7fffu);
    const cplx both = unpack_fp16(most);
    return fmaxf(both.x, both.y);
}

template <class K> CF_DEVICE float mma_absmax(const MmaRow<K, true> (&rows)[MmaFft<K>::LIVE]) {
    typedef MmaFft<K> M;
    constexpr int ROW = M::N2 / 4;
    return absmax_of_floats<M::LIVE * ROW>([&](int i) { return rows[i / ROW].of[i % ROW / M::OWN][i % ROW % M::OWN]; });
}
template <class K> CF_DEVICE float mma_absmax(const MmaRow<K, false> (&rows)[MmaFft<K>::LIVE]) {
    typedef MmaFft<K> M;
    constexpr int ROW = M::N2 / 8;
    return absmax_of_fp16<M::LIVE * ROW>(
        [&](int i) { return rows[i / ROW].of[i % ROW / (M::OWN / 2)][i % ROW % (M::OWN / 2)]; });
}

CF_DEVICE float mma_power(unsigned exponent) { return __uint_as_float(exponent << 23); }

/* Returns the exponent of the plane group's factor to every thread, and stores the scale that undoes this factor. */
template <class K> CF_DEVICE unsigned mma_plane_group_exponent(smem<float> parts, const cf_shared_fft_call &call) {
    constexpr int PARTS = MmaFft<K>::PARTS;
    float most = parts[int(threadIdx.x) % 32 % PARTS];
#pragma unroll
    for (int i = 32; i < PARTS; i += 32)
        most = fmaxf(most, parts[i + int(threadIdx.x) % 32]);
    most = absmax_of_warp(most);
    const unsigned exponent = Factor<K>::exponent(most);
    const long long plane = ((long long)blockIdx.x - call.first_block) * K::P + 8 * mma_plane_group<K>();
    if (mma_warp<K>() == 0 && threadIdx.x % 32 == 0) {
        *scale_of_plane<K>(call, call.row_first + plane / call.columns * call.row_step, plane % call.columns) =
            Factor<K>::scale(most);
    }
    return exponent;
}

/* What brings words of a part to the plane group's factor, in both halves of a word. */
template <class K> CF_DEVICE unsigned mma_share(float of_part, unsigned plane_group) {
    const float share = mma_power(unsigned(max(127 + int(plane_group) - int(Factor<K>::exponent(of_part)), 0)));
    return pack_fp16(share, share);
}
