/* SPDX-License-Identifier: Apache-2.0 */
/* Real planes to frequency-major spectra of 16 bits. The method and the layouts are in plane.cuh.
 *
 * First warps transform rows and the sums over r, and write words (re, im) to shared memory:
 * y[class][column][plane][j], or [class][column][j][plane] in channels-last layout. Then they transform columns by
 * products and store bins. */
#pragma once

#include "fbfft/tensor_core/scales.cuh"

/* Finishes one column for two neighbouring j: the sum over r of their rows, and the twiddles w^jc. Writes the words
 * of all classes to shared memory. */
template <class K>
CF_DEVICE void mma_put(smem<unsigned> to, cplx *v, cplx *w, const cplx (&twiddle)[2][MmaFft<K>::R], int column) {
    typedef MmaFft<K> M;
    dft<M::R, M::LIVE>(v);
    dft<M::R, M::LIVE>(w);
    v[0] = {twiddle[0][0].x * v[0].x, twiddle[0][0].x * v[0].y};
    w[0] = {twiddle[1][0].x * w[0].x, twiddle[1][0].x * w[0].y};
#pragma unroll
    for (int c = 1; c < M::R; ++c) {
        v[c] = v[c] * twiddle[0][c];
        w[c] = w[c] * twiddle[1][c];
    }
#pragma unroll
    for (int c = 0; c < M::R; ++c)
        smem_cast<uint2>(to + (c * M::COLUMNS + column) * M::LINE)[0] =
            make_uint2(K::Bins::pack(v[c].x, v[c].y), K::Bins::pack(w[c].x, w[c].y));
}

/* Transforms rows j + 16 r by products, in right operands that lanes have loaded. Each lane writes the results of two
 * neighbouring j. */
template <class K>
CF_DEVICE void mma_rows_through(const MmaNumbers<K> (&rows)[MmaFft<K>::LIVE], const MmaWords *table,
                                const cplx (&twiddle)[2][MmaFft<K>::R], smem<unsigned> to) {
    typedef MmaFft<K> M;
    const int g = int(threadIdx.x) % 32 / 4;
#pragma unroll
    for (int m = 0; m < M::N2 / 16; ++m) {
        float sum[M::LIVE][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            if (32 * (step / 2) >= M::G::template hi<2>())
                continue;
            const MmaWords a = mma_fetch(table, m * M::STEPS + step);
#pragma unroll
            for (int r = 0; r < M::LIVE; ++r)
                multiply_bins<typename K::Bins>(sum[r], a.of, rows[r].of[step / 2][step % 2 * 2],
                                                rows[r].of[step / 2][step % 2 * 2 + 1]);
        }
        const bool first = m == 0 && g == 0;
        cplx v[M::R], w[M::R], v_last[M::R], w_last[M::R];
#pragma unroll
        for (int r = 0; r < M::LIVE; ++r) {
            v_last[r] = {sum[r][2], 0};
            w_last[r] = {sum[r][3], 0};
            v[r] = {sum[r][0], first ? 0.0f : sum[r][2]};
            w[r] = {sum[r][1], first ? 0.0f : sum[r][3]};
        }
        mma_put<K>(to, v, w, twiddle, 8 * m + g);
        if (first)
            mma_put<K>(to, v_last, w_last, twiddle, M::N2 / 2);
    }
}

/* FP32 planes are multiplied by 2^SUM, to the end of FP16's range. The results of rows are divided by it, so that
 * bins do not overflow. */
template <class K> CF_DEVICE constexpr float mma_up() { return float(1ll << MmaFft<K>::SUM); }

/* Transforms rows in channels-first layout. A task of a warp is half of the rows of a plane: j = 8 q + g are the
 * columns of the right operand. */
template <class K>
CF_DEVICE void mma_forward_rows(smem<unsigned> y, smem<float> parts, const PlaneTable<K> &plane_table,
                                const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MmaWords *const table = &mma_rows<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
#pragma unroll 1
    for (int task = int(threadIdx.x) / 32; task < 16; task += M::WARPS) {
        const int p = task / 2, q = task % 2;
        MmaRow<K> raw[M::LIVE];
#pragma unroll
        for (int r = 0; r < M::LIVE; ++r)
            mma_row<K>(raw[r], plane_table,
                       static_cast<const typename K::Storage::bits *>(call.in) + plane_table.signal(p), p,
                       8 * q + g + 16 * r, t);
        float whole;
        if constexpr (K::FINDS) {
            const float most = absmax_of_warp(mma_absmax<K>(raw));
            whole = mma_power(Factor<K>::exponent(most));
            if (lane == 0)
                parts[task] = most;
        }
        if constexpr (!K::FINDS)
            whole = plane_table.factor(min(p, plane_table.live - 1));
        const float factor = (K::Storage::PLAIN ? 1 / mma_up<K>() : whole) / M::GAIN;
        MmaNumbers<K> rows[M::LIVE];
#pragma unroll
        for (int r = 0; r < M::LIVE; ++r)
            rows[r] = mma_numbers<K>(raw[r], mma_up<K>() * whole);
        cplx twiddle[2][M::R];
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int c = 0; c < M::R; ++c) {
                const cplx w = cf_roots<M::N1>.w[c * (8 * q + 2 * t + i)];
                twiddle[i][c] = {factor * w.x, factor * w.y};
            }
        mma_rows_through<K>(rows, table, twiddle, y + (p * 16 + 8 * q + 2 * t));
    }
}

/* Transforms rows in channels-last layout. A task of a warp is one j of all eight planes, which are the columns of
 * the right operand. */
template <class K>
CF_DEVICE void mma_forward_spot(const MmaRow<K> (&raw)[MmaFft<K>::LIVE], int j, const MmaWords *table, smem<unsigned> y,
                                smem<float> parts) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    float whole = 1; /* of plane g; factor: of planes 2 t and 2 t + 1 */
    float factor[2] = {1, 1};
    if constexpr (K::FINDS) {
        float most = mma_absmax<K>(raw);
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
        whole = mma_power(Factor<K>::exponent(most));
        if (t == 0)
            parts[8 * j + g] = most;
        if constexpr (!K::Storage::PLAIN)
#pragma unroll
            for (int i = 0; i < 2; ++i)
                factor[i] = __shfl_sync(0xffffffffu, whole, 4 * (2 * t + i));
    }
    MmaNumbers<K> rows[M::LIVE];
#pragma unroll
    for (int r = 0; r < M::LIVE; ++r)
        rows[r] = mma_numbers<K>(raw[r], mma_up<K>() * whole);
    cplx twiddle[2][M::R];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int c = 0; c < M::R; ++c) {
            const cplx w = cf_roots<M::N1>.w[c * j];
            const float own = (K::Storage::PLAIN ? 1 / mma_up<K>() : factor[i]) / M::GAIN;
            twiddle[i][c] = {own * w.x, own * w.y};
        }
    mma_rows_through<K>(rows, table, twiddle, y + (8 * j + 2 * t));
}
template <class K>
CF_DEVICE void mma_forward_interleaved(smem<unsigned> y, smem<float> parts, const PlaneTable<K> &plane_table,
                                       const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, t = lane % 4;
    const MmaWords *const table = &mma_rows<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
    const typename K::Storage::bits *const signal =
        static_cast<const typename K::Storage::bits *>(call.in) + plane_table.signal(0);
#pragma unroll 1
    for (int j = mma_warp<K>(); j < 16; j += M::BATCH * M::WARPS) {
        MmaRow<K> raw[M::BATCH][M::LIVE];
#pragma unroll
        for (int i = 0; i < M::BATCH; ++i)
#pragma unroll
            for (int r = 0; r < M::LIVE; ++r)
                mma_row<K>(raw[i][r], plane_table, signal, 0, j + i * M::WARPS + 16 * r, t);
#pragma unroll
        for (int i = 0; i < M::BATCH; ++i)
            mma_forward_spot<K>(raw[i], j + i * M::WARPS, table, y, parts);
    }
}

/* Whether the planes of the plane group are neighbours in the spectrum, so that each lane stores two at a time. All
 * lanes of a warp get the same answer, because they execute products together. */
template <class K> CF_DEVICE bool mma_stores_both(const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    const long long first = plane_table.spectrum(0);
    return plane_table.live >= 8 && plane_table.spectrum(7) - first == 7 && call.bin_unit % 2 == 0 &&
           reinterpret_cast<size_t>(static_cast<const unsigned *>(call.out) + first) % 8 == 0;
}

/* Stores a bin of planes 2 t and 2 t + 1, of which `live` exist. */
template <bool BOTH> CF_DEVICE void mma_store_two(unsigned *at, long long second, int live, unsigned v0, unsigned v1) {
    if (BOTH) {
        *reinterpret_cast<uint2 *>(at) = make_uint2(v0, v1);
    } else {
        if (live > 0)
            at[0] = v0;
        if (live > 1)
            at[second] = v1;
    }
}

/* The left operand of columns for imaginary parts, (-sin, cos), from that for real parts, (cos, sin). */
CF_DEVICE MmaSquare mma_imaginary(const MmaSquare &re) {
    MmaSquare im;
#pragma unroll
    for (int i = 0; i < 8; ++i)
        im.of[i / 4].of[i % 4] = mma_swapped(re.of[i / 4].of[i % 4]) ^ 0x8000u;
    return im;
}

/* Transforms columns of one class; a warp takes every STEP-th one. BOTH: mma_stores_both() is true. */
template <class K, bool BOTH>
CF_DEVICE void mma_forward_class(smem<unsigned> from, const MmaSquare &re, const MmaSquare &im, unsigned *to,
                                 long long second, int live, int first, long long unit, const unsigned (&share)[4]) {
    typedef MmaFft<K> M;
    constexpr int STEP = M::WARPS / M::R;
    const long long down = bin_of<K>(0, 8 * M::R, 0, unit), right = bin_of<K>(0, 0, STEP, unit);
#pragma unroll 2
    for (int column = first; column < M::COLUMNS; column += STEP, to += right) {
        unsigned b[4];
        if constexpr (M::INTERLEAVED) {
#pragma unroll
            for (int e = 0; e < 4; ++e)
                b[e] = from[column * M::LINE + 32 * e];
        } else {
            const uint4 w = smem_cast<uint4>(from)[column * (M::LINE / 4)];
            b[0] = w.x, b[1] = w.y, b[2] = w.z, b[3] = w.w;
        }
        if constexpr (K::FINDS)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                b[i] = product_of_fp16(b[i], share[i]);
        float x[4] = {0, 0, 0, 0}, y[4] = {0, 0, 0, 0};
        mma_column<K>(x, re, b);
        mma_column<K>(y, im, b);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const unsigned v0 = K::Bins::pack(x[2 * h], y[2 * h]), v1 = K::Bins::pack(x[2 * h + 1], y[2 * h + 1]);
            mma_store_two<BOTH>(to + h * down, second, live, v0, v1);
        }
    }
}

template <class K>
CF_DEVICE void mma_forward_columns(smem<unsigned> y, smem<float> parts, const PlaneTable<K> &plane_table,
                                   const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4, warp = mma_warp<K>(), c = warp % M::R;
    unsigned share[4] = {0, 0, 0, 0}; /* rescales the words of plane g; the words from j = 4 t on belong to one half */
    if constexpr (K::FINDS) {
        const unsigned exponent = mma_plane_group_exponent<K>(parts, call);
#pragma unroll
        for (int e = 0; e < 4; ++e)
            share[e] = M::INTERLEAVED ? mma_share<K>(parts[32 * e + 8 * t + g], exponent)
                       : e == 0       ? mma_share<K>(parts[2 * g + t / 2], exponent)
                                      : share[0];
    }
    const MmaSquare re = mma_square(&mma_columns<M::SCALED, false, M::INTERLEAVED, 0>.of[0][lane]);
    const MmaSquare im = mma_imaginary(re);
    const long long plane = plane_table.spectrum(2 * t), second = plane_table.spectrum(2 * t + 1) - plane;
    unsigned *const out = static_cast<unsigned *>(call.out) + plane;
    const int live = plane_table.live - 2 * t, first = warp / M::R;
    unsigned *const to = out + bin_of<K>(0, M::R * g + c, first, call.bin_unit);
    smem<unsigned> from = y + (c * M::COLUMNS * M::LINE + (M::INTERLEAVED ? 8 * t + g : 4 * lane));
    if (mma_stores_both<K>(plane_table, call))
        mma_forward_class<K, true>(from, re, im, to, second, live, first, call.bin_unit, share);
    else
        mma_forward_class<K, false>(from, re, im, to, second, live, first, call.bin_unit, share);
}

template <class K> CF_DEVICE void mma_plane_forward(const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> y = smem_cast<unsigned>(shared + M::G::TABLE) + mma_plane_group<K>() * M::FORWARD;
    smem<float> parts = smem_cast<float>(y + (M::FORWARD - M::PARTS));
    const PlaneTable<K> all = find_planes<K, false>(shared, call),
                        plane_table = mma_places<K>(all, mma_plane_group<K>());
    if constexpr (K::Bins::SCALED && !K::FINDS) {
        find_factors<K>(shared, call, all.live);
        __syncthreads();
    }
    if constexpr (M::INTERLEAVED)
        mma_forward_interleaved<K>(y, parts, plane_table, call);
    else
        mma_forward_rows<K>(y, parts, plane_table, call);
    __syncthreads();
    mma_forward_columns<K>(y, parts, plane_table, call);
}
