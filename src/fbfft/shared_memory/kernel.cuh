/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, and the factors that a block finds itself. */
#pragma once

#include "fbfft/shared_memory/steps.cuh"

/* ---------------------------------------------------------------------------------------------------- factors of a block */

/* Of numbers that are not negative. */
CF_DEVICE float absmax_of_warp(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(v)));
#else
    for (int other = 16; other > 0; other /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, other));
    return v;
#endif
}

/* The largest magnitude of the elements that a thread meets; what is no number does not count. */
CF_DEVICE float larger_number(float most, real v) {
    const float size = fabsf(float(v));
    return size < __uint_as_float(0x7f800000u) ? fmaxf(most, size) : most;
}
template <class K> CF_DEVICE float absmax_loaded(smem<cplx> z) {
    typedef PlaneGeometry<K> G;
    float most = 0;
    if constexpr (G::EMPTY) {
        return most;
    } else if constexpr (K::STAGED) { /* rows as they wait */
        constexpr int ROWS = G::template hi<1>() - G::template lo<1>(), QUADS = G::WAIT / 4;
        for (int n = int(threadIdx.x); n < K::P * G::D0 * ROWS * QUADS; n += K::T) {
            const int i = n / QUADS % ROWS + G::template lo<1>(), i0 = n / (QUADS * ROWS) % G::D0 + G::template lo<0>();
            const smem<cplx> line =
                z + (n / (QUADS * ROWS * G::D0) * G::PLANE + i0 * G::AXIS0_PITCH + i / 2 * G::PITCH);
            float4 q = smem_cast<float4>(line)[n % QUADS + i % 2 * QUADS];
            if constexpr (K::ALIGNMENT_SHIFT > 0 || G::LINE_HI % K::VECTOR != 0) { /* the window's alone */
                const int from = G::LINE_LO + K::ALIGNMENT_SHIFT - 4 * (n % QUADS),
                          to = G::LINE_HI + K::ALIGNMENT_SHIFT - 4 * (n % QUADS);
                q.x = from <= 0 ? q.x : 0.0f;
                q.y = from <= 1 && to > 1 ? q.y : 0.0f;
                q.z = from <= 2 && to > 2 ? q.z : 0.0f;
                q.w = from <= 3 && to > 3 ? q.w : 0.0f;
            }
            most = larger_number(larger_number(larger_number(larger_number(most, q.x), q.y), q.z), q.w);
        }
    } else {
        for (int n = int(threadIdx.x); n < K::P * G::D0 * G::DR * G::DX; n += K::T) {
            const cplx v = z[line_place<K>(item_of<K>(n))];
            most = larger_number(larger_number(most, v.x), v.y);
        }
    }
    return most;
}

/* Where a block FINDS the factor of its planes, all of one row: from what it has loaded. */
template <class K>
CF_DEVICE void find_own_factor(smem<char> table, smem<float> warps, smem<cplx> z, const SharedFftCall &call) {
    static_assert(K::P % 8 == 0 && K::T <= 512, "whole scales, and room for what warps find");
    float most = absmax_loaded<K>(z);
    most = absmax_of_warp(most);
    if (threadIdx.x % 32 == 0)
        warps[int(threadIdx.x) / 32] = most;
    __syncthreads();
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P;
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        for (int i = 0; i < K::T / 32; ++i)
            most = fmaxf(most, warps[i]);
        set_factor<K>(table, call, p, first + p, most);
    }
}

/* ------------------------------------------------------------------------------------------------------------- kernels */

template <class K> CF_DEVICE void shared_fft_forward(const SharedFftCall &call) {
    typedef PlaneGeometry<K> G;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> z = smem_cast<cplx>(shared + G::TABLE);
    const smem<float> warps = smem_cast<float>(shared + (G::TABLE + K::P * G::PLANE * int(sizeof(cplx)))); /* SCALED */
    const Places<K> places = find_planes<K, false>(shared, call);
    if constexpr (G::EMPTY) {
        for (int n = int(threadIdx.x); n < K::P * G::PLANE; n += K::T)
            z[n] = cplx{0, 0};
        if constexpr (K::Bins::SCALED && K::FINDS)
            find_own_factor<K>(shared, warps, z, call);
        else if constexpr (K::Bins::SCALED)
            find_factors<K>(shared, call, places.live);
        __syncthreads();
        store_bins<K, G::SWEEP>(z, places, call);
    } else {
        load_planes<K>(z, places, call);
        if constexpr (K::Bins::SCALED && !K::FINDS)
            find_factors<K>(shared, call, places.live);
        if constexpr (K::STAGED)
            wait_async();
        __syncthreads();
        if constexpr (K::Bins::SCALED && K::FINDS) {
            find_own_factor<K>(shared, warps, z, call);
            if constexpr (G::LAST == 2) /* other axes have barriers before bins are stored */
                __syncthreads();
        }
        axis_steps<K, 2, false>(z, places, call);
        if constexpr (G::N1 > 1 || G::SPLIT)
            axis_steps<K, 1, false>(z, places, call);
        if constexpr (G::N0 > 1)
            axis_steps<K, 0, false>(z, places, call);
        if constexpr (!K::DIRECT)
            store_bins<K, G::SWEEP>(z, places, call);
        else if constexpr (G::NYQUIST_PACKED)
            store_bins<K, 1>(z, places, call);
    }
}

template <class K> CF_DEVICE void shared_fft_inverse(const SharedFftCall &call) {
    typedef PlaneGeometry<K> G;
    if constexpr (!G::EMPTY) {
        smem<char> shared = cf_dynamic_shared<char>();
        smem<cplx> z = smem_cast<cplx>(shared + G::TABLE);
        const Places<K> places = find_planes<K, true>(shared, call);
        if constexpr (!K::DIRECT || G::NYQUIST_PACKED) {
            load_bins<K, K::DIRECT ? 1 : G::SWEEP>(z, places, call);
            __syncthreads();
        }
        if constexpr (G::N0 > 1)
            axis_steps<K, 0, true>(z, places, call);
        if constexpr (G::N1 > 1 || G::SPLIT)
            axis_steps<K, 1, true>(z, places, call);
        axis_steps<K, 2, true>(z, places, call);
        if constexpr (K::STAGED)
            store_staged<K, K::VECTOR>(z, places, call);
        else
            store_signal<K>(z, places, call);
    }
}
