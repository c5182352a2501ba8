/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, and the factors that a block finds itself. */
#pragma once

#include "fbfft/shared_memory/prefetch.cuh"

/* ------------------------------------------------------------------------------------------ factors of a block */

/* The largest of the values of a warp. They must not be negative. */
CF_DEVICE float absmax_of_warp(float v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(v)));
#else
    for (int other = 16; other > 0; other /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, other));
    return v;
#endif
}

/* The largest magnitude so far. Infinities and NaNs are ignored. */
CF_DEVICE float larger_number(float largest_so_far, real v) {
    const float size = fabsf(float(v));
    return size < __uint_as_float(0x7f800000u) ? fmaxf(largest_so_far, size) : largest_so_far;
}
template <class K> CF_DEVICE float absmax_loaded(smem<cplx> z) {
    typedef PlaneGeometry<K> G;
    float largest_so_far = 0;
    if constexpr (G::EMPTY) {
        return largest_so_far;
    } else if constexpr (K::STAGED) { /* staged rows, before they are transformed */
        constexpr int ROWS = G::template hi<1>() - G::template lo<1>(), QUADS = G::STAGED_ROW / 4;
        for (int n = int(threadIdx.x); n < K::P * G::D0 * ROWS * QUADS; n += K::T) {
            const int i = n / QUADS % ROWS + G::template lo<1>(), i0 = n / (QUADS * ROWS) % G::D0 + G::template lo<0>();
            const smem<cplx> line =
                z + (n / (QUADS * ROWS * G::D0) * G::PLANE + i0 * G::AXIS0_PITCH + i / 2 * G::PITCH);
            float4 q = smem_cast<float4>(line)[n % QUADS + i % 2 * QUADS];
            if constexpr (K::ALIGNMENT_SHIFT > 0 || G::LINE_HI % K::VECTOR != 0) { /* only numbers inside the window */
                const int from = G::LINE_LO + K::ALIGNMENT_SHIFT - 4 * (n % QUADS),
                          to = G::LINE_HI + K::ALIGNMENT_SHIFT - 4 * (n % QUADS);
                q.x = from <= 0 ? q.x : 0.0f;
                q.y = from <= 1 && to > 1 ? q.y : 0.0f;
                q.z = from <= 2 && to > 2 ? q.z : 0.0f;
                q.w = from <= 3 && to > 3 ? q.w : 0.0f;
            }
            largest_so_far =
                larger_number(larger_number(larger_number(larger_number(largest_so_far, q.x), q.y), q.z), q.w);
        }
    } else {
        for (int n = int(threadIdx.x); n < K::P * G::D0 * G::DR * G::DX; n += K::T) {
            const cplx v = z[line_place<K>(item_of<K>(n))];
            largest_so_far = larger_number(larger_number(largest_so_far, v.x), v.y);
        }
    }
    return largest_so_far;
}

/* FINDS: compute the factor of the block's planes from what the block has loaded. All planes belong to one row. */
template <class K>
CF_DEVICE void find_own_factor(smem<char> table, smem<float> warps, smem<cplx> z, const cf_shared_fft_call &call) {
    static_assert(K::P % 8 == 0 && K::T <= 512, "whole scales, and space for the maxima of warps");
    float largest_so_far = absmax_loaded<K>(z);
    largest_so_far = absmax_of_warp(largest_so_far);
    if (threadIdx.x % 32 == 0)
        warps[int(threadIdx.x) / 32] = largest_so_far;
    __syncthreads();
    const long long first = ((long long)blockIdx.x - call.first_block) * K::P;
    for (int p = int(threadIdx.x); p < K::P; p += K::T) {
        for (int i = 0; i < K::T / 32; ++i)
            largest_so_far = fmaxf(largest_so_far, warps[i]);
        set_factor<K>(table, call, p, first + p, largest_so_far);
    }
}

/* ------------------------------------------------------------------------------------------- lines in registers */

/* IN_REGISTERS: complex lines from memory to memory. Neighbouring threads have neighbouring planes. */
template <class K, bool INVERSE>
CF_DEVICE void line_in_registers(const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage::bits bits;
    typedef typename K::Bins::number number;
    static_assert(K::KIND == COMPLEX && K::P <= K::T && G::O2::STEPS == 1 && !K::Bins::SCALED, "the planner's choice");
    const int p = int(threadIdx.x);
    if (p >= plane_table.live)
        return;
    const long long signal = 2 * plane_table.signal(p), bins = plane_table.spectrum(p),
                    gap = bin_of<K>(0, 0, 1, call.bin_unit);
    const real scale = real(call.scale);
    cplx v[G::LINE];
    unroll<0, G::LINE>([&](auto j) {
        constexpr int J = decltype(j)::value;
        v[J] = {0, 0};
        if constexpr (INVERSE) {
            v[J] = K::Bins::load(static_cast<const number *>(call.in) + bins + J * gap);
        } else if constexpr (J >= G::LINE_LO && J < G::LINE_HI) {
            const Pair<K> q = pair_of<K>(SignalItem{p, 0, 0, J}, plane_table);
            if (q.inside[0])
                v[J] = load_pair<K>(static_cast<const bits *>(call.in) + signal + 2 * q.at[0]);
            if constexpr (K::SCALED)
                v[J] = {scale * v[J].x, scale * v[J].y};
        }
    });
    step_transform<typename G::O2, 1, INVERSE, G::LINE_HI>(v, 0);
    unroll<0, G::LINE>([&](auto j) {
        constexpr int J = decltype(j)::value;
        if constexpr (!INVERSE) {
            K::Bins::store(static_cast<number *>(call.out) + bins + J * gap, v[J], real(1));
        } else if constexpr (J >= G::LINE_LO && J < G::LINE_HI) {
            const Pair<K> q = pair_of<K>(SignalItem{p, 0, 0, J}, plane_table);
            if (q.inside[0])
                store_pair<K>(static_cast<bits *>(call.out) + signal + 2 * q.at[0], {scale * v[J].x, scale * v[J].y});
        }
    });
}

/* ----------------------------------------------------------------------------------------------------- kernels */

template <class K> CF_DEVICE void shared_fft_forward(const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<cplx> z = smem_cast<cplx>(shared + G::TABLE);
    const smem<float> warps = smem_cast<float>(shared + (G::TABLE + K::P * G::PLANE * int(sizeof(cplx)))); /* SCALED */
    const PlaneTable<K> plane_table = find_planes<K, false>(shared, call);
    if constexpr (G::EMPTY) {
        for (int n = int(threadIdx.x); n < K::P * G::PLANE; n += K::T)
            z[n] = cplx{0, 0};
        if constexpr (K::Bins::SCALED && K::FINDS)
            find_own_factor<K>(shared, warps, z, call);
        else if constexpr (K::Bins::SCALED)
            find_factors<K>(shared, call, plane_table.live);
        __syncthreads();
        store_bins<K, G::SWEEP>(z, plane_table, call);
    } else if constexpr (K::IN_REGISTERS) {
        line_in_registers<K, false>(plane_table, call);
    } else {
        load_planes<K>(z, plane_table, call);
        if constexpr (K::Bins::SCALED && !K::FINDS)
            find_factors<K>(shared, call, plane_table.live);
        if constexpr (K::STAGED)
            wait_async();
        __syncthreads();
        if constexpr (K::Bins::SCALED && K::FINDS) {
            find_own_factor<K>(shared, warps, z, call);
            if constexpr (G::LAST == 2) /* other axes have barriers before bins are stored */
                __syncthreads();
        }
        axis_steps<K, 2, false>(z, plane_table, call);
        if constexpr (G::N1 > 1 || G::SPLIT)
            axis_steps<K, 1, false>(z, plane_table, call);
        if constexpr (G::N0 > 1)
            axis_steps<K, 0, false>(z, plane_table, call);
        if constexpr (!K::DIRECT)
            store_bins<K, G::SWEEP>(z, plane_table, call);
        else if constexpr (G::NYQUIST_PACKED)
            store_bins<K, 1>(z, plane_table, call);
    }
}

template <class K> CF_DEVICE void shared_fft_inverse(const cf_shared_fft_call &call) {
    typedef PlaneGeometry<K> G;
    if constexpr (K::PREFETCHED > 0) {
        prefetching_inverse<K>(call);
    } else if constexpr (!G::EMPTY) {
        smem<char> shared = cf_dynamic_shared<char>();
        smem<cplx> z = smem_cast<cplx>(shared + G::TABLE);
        const PlaneTable<K> plane_table = find_planes<K, true>(shared, call);
        if constexpr (K::IN_REGISTERS) {
            line_in_registers<K, true>(plane_table, call);
            return;
        }
        if constexpr (!K::DIRECT || G::NYQUIST_PACKED) {
            load_bins<K, K::DIRECT ? 1 : G::SWEEP>(z, plane_table, call);
            __syncthreads();
        }
        if constexpr (G::N0 > 1)
            axis_steps<K, 0, true>(z, plane_table, call);
        if constexpr (G::N1 > 1 || G::SPLIT)
            axis_steps<K, 1, true>(z, plane_table, call);
        axis_steps<K, 2, true>(z, plane_table, call);
        if constexpr (K::STAGED)
            store_staged<K, K::VECTOR>(z, plane_table, call);
        else
            store_signal<K>(z, plane_table, call);
    }
}

/* The entry point. DIRECTION: forward or inverse. PDL_TRIGGER: whether the next kernel may begin beside this one. */
#define CF_SHARED_FFT_KERNEL(DIRECTION, THREADS, BLOCKS, PDL_TRIGGER)  \
    CF_KERNEL(THREADS, BLOCKS) cf_fft(const cf_shared_fft_call call) { \
        cf_pdl_wait();                                                 \
        if (PDL_TRIGGER)                                               \
            cf_pdl_trigger();                                          \
        shared_fft_##DIRECTION<Config>(call);                          \
    }

/* Two forward transforms in one launch: the blocks of First come first. FIRST, SECOND: shared_fft, mma or dense. */
#define CF_FFT_PAIR_KERNEL(FIRST, SECOND, THREADS, BLOCKS)                                               \
    CF_KERNEL(THREADS, BLOCKS) cf_fft(const cf_shared_fft_call first, const cf_shared_fft_call second) { \
        cf_pdl_wait();                                                                                   \
        if (int(blockIdx.x) < second.first_block)                                                        \
            FIRST##_forward<First>(first);                                                               \
        else                                                                                             \
            SECOND##_forward<Second>(second);                                                            \
    }
