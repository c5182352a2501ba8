/* SPDX-License-Identifier: Apache-2.0 */
/* Real 1-D signals of 16 to 128 points to frequency-major spectra of 16 bits. The method is in short_line_io.cuh.
 *
 * Spectra are [bin][signal] words (re, im). Signals are [signal][point], or [point][signal] in channels-last layout. */
#pragma once

#include "fbfft/tensor_core/line_forward.cuh"
#include "fbfft/tensor_core/short_line_io.cuh"

/* Reads a lane's points of signal g from the warp's part of shared memory (THROUGH). */
template <class K> CF_DEVICE void mma_short_get(MmaRow<K, true> &row, smem<unsigned> line, int t) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int i = 0; i < M::N2 / 16; ++i) {
        const float4 q = smem_cast<float4>(line + mma_point<M::WAY>(4 * i / M::OWN, t, 4 * i % M::OWN))[0];
        float *const v = &row.of[4 * i / M::OWN][4 * i % M::OWN];
        v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
    }
}
template <class K> CF_DEVICE void mma_short_get(MmaRow<K, false> &row, smem<unsigned> line, int t) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int part = 0; part < M::N2 / M::SPAN; ++part) {
        smem<unsigned> from = line + mma_point<M::WAY>(part, t, 0) / 2;
        unsigned *const w = row.of[part];
        if constexpr (M::OWN == 8) {
            const uint4 v = smem_cast<uint4>(from)[0];
            w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
        } else {
            const uint2 v = smem_cast<uint2>(from)[0];
            w[0] = v.x, w[1] = v.y;
        }
    }
}

/* Loads the same from global memory. */
template <class K, class Line> CF_DEVICE void mma_short_load(MmaRow<K, true> &row, const Line &line) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int i = 0; i < M::N2 / 16; ++i) {
        float v[4] = {};
        if (!mma_empty<K>(16 * i, 16))
            mma_neighbours<K>(v, line, 16 * i, mma_whole<K>(16 * i, 16));
#pragma unroll
        for (int e = 0; e < 4; ++e)
            row.of[4 * i / M::OWN][4 * i % M::OWN + e] = v[e];
    }
}
template <class K, class Line> CF_DEVICE void mma_short_load(MmaRow<K, false> &row, const Line &line) {
    typedef MmaFft<K> M;
    constexpr int WORDS = K::VECTOR / 2;
#pragma unroll
    for (int part = 0; part < M::N2 / M::SPAN; ++part) {
        const bool whole = mma_whole<K>(M::SPAN * part, M::SPAN), none = mma_empty<K>(M::SPAN * part, M::SPAN);
#pragma unroll
        for (int i = 0; i < M::OWN / 2; i += WORDS) {
            bool in = false;
            uint4 v = {0, 0, 0, 0};
            const unsigned short *from = nullptr;
            if (!none)
                from = line.at(M::SPAN * part + 2 * i, whole, in);
            if (in) {
                if constexpr (WORDS == 4)
                    v = __ldg(reinterpret_cast<const uint4 *>(from));
                if constexpr (WORDS == 2) {
                    const uint2 both = __ldg(reinterpret_cast<const uint2 *>(from));
                    v.x = both.x, v.y = both.y;
                }
            }
            row.of[part][i] = v.x;
            row.of[part][i + 1] = v.y;
            if constexpr (WORDS == 4)
                row.of[part][i + 2] = v.z, row.of[part][i + 3] = v.w;
        }
    }
}

/* Loads the same in channels-last layout. line: FP32, from point 2 t of signal g on; 16 bits, from point g of signals
 * 2 t and 2 t + 1 on. */
template <class K, class Line> CF_DEVICE void mma_short_interleaved_values(MmaRow<K, true> &row, const Line &line) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int i = 0; i < 4 * M::STEPS; ++i) {
        const int x = i / 2 * 8 + i % 2;
        bool in = false;
        const float *from = nullptr;
        if (!mma_empty<K>(i / 2 * 8, 8))
            from = line.at(x, mma_whole<K>(i / 2 * 8, 8), in);
        row.of[i / M::OWN][i % M::OWN] = in ? __ldg(from) : 0.0f;
    }
}
template <class K, class Line> CF_DEVICE void mma_short_interleaved_values(MmaRow<K, false> &row, const Line &line) {
    typedef MmaFft<K> M;
    constexpr int WORDS = M::OWN / 2;
#pragma unroll
    for (int i = 0; i < 2 * M::STEPS; ++i) {
        bool in = false;
        unsigned word = 0;
        const unsigned short *from = nullptr;
        if (!mma_empty<K>(8 * i, 8))
            from = line.at(8 * i, mma_whole<K>(8 * i, 8), in);
        if (in) {
            if constexpr (K::VECTOR > 1)
                word = __ldg(reinterpret_cast<const unsigned *>(from));
            else
                word = __ldg(from) | unsigned(__ldg(from + 1)) << 16;
        }
        row.of[i / WORDS][i % WORDS] = word;
    }
#pragma unroll
    for (int i = 0; i < M::N2 / 8; ++i)
        row.of[i / WORDS][i % WORDS] = mma_transposed(row.of[i / WORDS][i % WORDS]);
}

/* Multiplies and stores bins. factor: of signals 2 t and 2 t + 1. to: bin 0 of the first of them. BOTH: all signals
 * exist, and a lane stores two neighbouring signals at once. */
template <class K, bool BOTH>
CF_DEVICE void mma_short_bins(const MmaNumbers<K> (&rows)[MmaFft<K>::EACH], const float (&factor)[MmaFft<K>::EACH][2],
                              unsigned *to, int live, long long unit) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4;
    const MmaWords *table = &mma_rows<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
    unsigned *const last = to + bin_of<K>(0, 0, M::N2 / 2, unit);
    const long long down = bin_of<K>(0, 0, 8, unit);
    to += bin_of<K>(0, 0, g, unit);
    /* Longer loops take too many registers when they are unrolled. */
#pragma unroll(M::N2 < 64 ? M::STEPS : 1)
    for (int m = 0; m < M::STEPS; ++m, to += down, table += 32 * M::STEPS) {
        float sum[M::EACH][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            if (mma_empty<K>(16 * step / M::SPAN * M::SPAN, M::SPAN))
                continue;
            const MmaWords a = mma_fetch(table, step);
#pragma unroll
            for (int i = 0; i < M::EACH; ++i)
                multiply_bins<typename K::Bins>(sum[i], a.of, rows[i].of[step / 2][step % 2 * 2],
                                                rows[i].of[step / 2][step % 2 * 2 + 1]);
        }
        unsigned v[M::EACH][2];
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
#pragma unroll
            for (int e = 0; e < 2; ++e)
                v[i][e] = K::Bins::pack(factor[i][e] * sum[i][e], factor[i][e] * sum[i][2 + e]);
        if (m == 0 && g == 0) /* bins 0 and N / 2 are real; the product has one as the imaginary part of the other */
#pragma unroll
            for (int i = 0; i < M::EACH; ++i) {
                mma_store_two<BOTH>(last + 8 * i, 1, live - 8 * i, v[i][0] >> 16, v[i][1] >> 16);
                v[i][0] &= 0xffffu, v[i][1] &= 0xffffu;
            }
        if (M::N2 % 16 != 0 && 8 * m + g >= M::N2 / 2)
            break; /* half of the last eight bins */
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            mma_store_two<BOTH>(to + 8 * i, 1, live - 8 * i, v[i][0], v[i][1]);
    }
}

template <class K> CF_DEVICE void mma_short_forward(const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef typename K::Storage::bits bits;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, g = lane / 4, t = lane % 4;
    smem<char> shared = cf_dynamic_shared<char>();
    const int plane = (int(blockIdx.x) - call.first_block) * K::P + 8 * M::EACH * warp;
    const PlaneTable<K> plane_table = mma_short_places<K, false>(shared + 8 * M::EACH * 32 * warp, plane, call);
    const bits *const signal = static_cast<const bits *>(call.in);
    if (plane_table.live <= 0)
        return;
    MmaRow<K> raw[M::EACH][1];
    if constexpr (M::THROUGH) {
        smem<unsigned> own = smem_cast<unsigned>(shared + M::G::TABLE) + 8 * M::EACH * M::ROW * warp;
        mma_short_bring<K>(own, plane_table, signal);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            mma_short_get<K>(raw[i][0], own + (8 * i + g) * M::ROW, t);
    } else if constexpr (M::INTERLEAVED) {
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            mma_short_interleaved_values<K>(raw[i][0],
                                            MmaLine<K, const bits>(signal + (K::Storage::PLAIN ? g : 2 * t),
                                                                   plane_table, 8 * i, K::Storage::PLAIN ? 2 * t : g));
    } else {
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            mma_short_load<K>(raw[i][0],
                              MmaLine<K, const bits>(signal, plane_table, 8 * i + g, mma_point<M::WAY>(0, t, 0)));
    }
    MmaNumbers<K> rows[M::EACH];
    float factor[M::EACH][2], found = 0;
#pragma unroll
    for (int i = 0; i < M::EACH; ++i) {
        float whole = 1; /* of signal g */
        factor[i][0] = factor[i][1] = 1 / M::GAIN;
        if constexpr (K::FINDS) {
            const float most = absmax_of_warp(mma_absmax<K>(raw[i]));
            whole = mma_power(Factor<K>::exponent(most));
            found = lane == i ? Factor<K>::scale(most) : found;
        } else if constexpr (M::SCALED) {
            whole = plane_table.factor(8 * i + g);
        }
#pragma unroll
        for (int e = 0; e < 2 && M::SCALED; ++e)
            factor[i][e] *= K::Storage::PLAIN ? 1 / mma_up<K>()
                            : K::FINDS        ? whole
                                              : plane_table.factor(8 * i + 2 * t + e);
        rows[i] = mma_numbers<K>(raw[i][0], mma_up<K>() * whole);
    }
    if constexpr (K::FINDS) /* rows of the spectrum are whole plane groups */
        if (8 * lane < plane_table.live && lane < M::EACH)
            call.scales[(long long)blockIdx.y * call.scale_group_stride + plane / 8 + lane] = found;
    unsigned *const to =
        static_cast<unsigned *>(call.out) + (long long)blockIdx.y * call.spectrum_group_stride + (plane + 2 * t);
    if (plane_table.live >= 8 * M::EACH && call.bin_unit % 2 == 0 && reinterpret_cast<size_t>(to) % 8 == 0)
        mma_short_bins<K, true>(rows, factor, to, plane_table.live - 2 * t, call.bin_unit);
    else
        mma_short_bins<K, false>(rows, factor, to, plane_table.live - 2 * t, call.bin_unit);
}
