/* SPDX-License-Identifier: Apache-2.0 */
/* Frequency-major spectra of 16 bits to real 1-D signals of 16 to 128 points. The method is in short_line_io.cuh.
 *
 * Spectra are [bin][signal] words (re, im). Signals are [signal][point], or [point][signal] in channels-last layout. */
#pragma once

#include "fbfft/tensor_core/line_inverse.cuh"
#include "fbfft/tensor_core/short_line_io.cuh"

/* Loads the bins of signal g of each plane group. Bins 0 and N / 2 are joined into one word. DENSE: all signals
 * exist and are neighbours. */
template <class K, bool DENSE>
CF_DEVICE void mma_short_words(unsigned (&w)[MmaFft<K>::EACH][2 * MmaFft<K>::STEPS], const unsigned *in,
                               const PlaneTable<K> &plane_table, long long unit) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const unsigned *line[M::EACH];
#pragma unroll
    for (int i = 0; i < M::EACH; ++i)
        line[i] = i == 0 || !DENSE ? in + plane_table.spectrum(8 * i + g) : line[0] + 8 * i;
#pragma unroll
    for (int k = 0; k < 2 * M::STEPS; ++k)
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            w[i][k] = 8 * k < M::N2 ? __ldcs(line[i] + bin_of<K>(0, 0, 4 * k + t, unit)) : 0;
    if (t == 0)
#pragma unroll
        for (int i = 0; i < M::EACH; ++i)
            w[i][0] = (w[i][0] & 0xffffu) | __ldcs(line[i] + bin_of<K>(0, 0, M::N2 / 2, unit)) << 16;
}

/* Writes a lane's points of a signal to the warp's part of shared memory (THROUGH). */
template <class K>
CF_DEVICE void mma_short_put(const float (&v)[MmaFft<K>::OWN], smem<unsigned> line, int part, int t) {
    typedef MmaFft<K> M;
    if constexpr (K::Storage::PLAIN) {
#pragma unroll
        for (int i = 0; i < M::OWN; i += 4)
            smem_cast<float4>(line + mma_point<M::WAY>(part, t, i))[0] =
                make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    } else {
        smem<unsigned> to = line + mma_point<M::WAY>(part, t, 0) / 2;
#pragma unroll
        for (int i = 0; i < M::OWN; i += 4)
            smem_cast<uint2>(to + i / 2)[0] =
                make_uint2(K::Bins::pack(v[i], v[i + 1]), K::Bins::pack(v[i + 2], v[i + 3]));
    }
}

/* Multiplies and stores points in channels-first layout. ADDS: adds to the old contents. */
template <class K, bool ADDS>
CF_DEVICE void mma_short_points(const unsigned (&w)[MmaFft<K>::EACH][2 * MmaFft<K>::STEPS], smem<unsigned> own,
                                const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef typename K::Storage::bits bits;
    constexpr bool THROUGH = M::THROUGH && !ADDS;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MmaWords *table = &mma_points<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
    constexpr int TASK = M::OWN / 2 * ((M::STEPS + 1) / 2); /* table entries of a part */
    constexpr int PIECE = M::WAY == MMA_SHORTS ? 8 : 4;     /* neighbouring points of a lane */
    float factor[M::EACH], bias[M::EACH];
    MmaLine<K, bits> line[M::EACH];
#pragma unroll
    for (int i = 0; i < M::EACH; ++i) {
        const int p = 8 * i + g;
        factor[i] = float(call.scale) * (2 / M::GAIN) * plane_table.factor(p);
        bias[i] = 0;
        if (call.bias)
            bias[i] = bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS + plane_table.channel(p));
        line[i] = MmaLine<K, bits>(static_cast<bits *>(call.out), plane_table, p, mma_point<M::WAY>(0, t, 0));
        if (p >= plane_table.live)
            line[i].inside = false, line[i].count = 0;
    }
#pragma unroll 1
    for (int part = 0; part < M::N2 / M::SPAN; ++part, table += 32 * TASK) {
        if (mma_empty<K>(part * M::SPAN, M::SPAN))
            continue;
        float sum[M::EACH / 2][M::OWN / 2][4] = {};
#pragma unroll
        for (int n = 0; n < M::OWN / 2; ++n)
#pragma unroll
            for (int step = 0; step < M::STEPS; step += 2) {
                const MmaWords b = mma_fetch(table, n * ((M::STEPS + 1) / 2) + step / 2);
#pragma unroll
                for (int i = 0; i < M::EACH / 2; ++i)
#pragma unroll
                    for (int k = step; k < step + 2 && k < M::STEPS; ++k) {
                        const unsigned a[4] = {w[2 * i][2 * k], w[2 * i + 1][2 * k], w[2 * i][2 * k + 1],
                                               w[2 * i + 1][2 * k + 1]};
                        multiply_bins<typename K::Bins>(sum[i][n], a, b.of[k % 2 * 2], b.of[k % 2 * 2 + 1]);
                    }
            }
#pragma unroll
        for (int i = 0; i < M::EACH; ++i) {
            float v[M::OWN];
#pragma unroll
            for (int e = 0; e < M::OWN; ++e)
                v[e] = factor[i] * sum[i / 2][e / 2][i % 2 * 2 + e % 2];
            if constexpr (THROUGH) {
#pragma unroll
                for (int e = 0; e < M::OWN; ++e)
                    v[e] += bias[i];
                mma_short_put<K>(v, own + (8 * i + g) * M::ROW, part, t);
            } else {
#pragma unroll
                for (int e = 0; e < M::OWN; e += PIECE) {
                    const int begin = M::SPAN * part + 4 * e;
                    if (!mma_empty<K>(begin, 4 * PIECE))
                        mma_put_numbers<K, ADDS, PIECE>(v + e, line[i], begin, mma_whole<K>(begin, 4 * PIECE), bias[i]);
                }
            }
        }
    }
    if constexpr (THROUGH) {
        __syncwarp();
        mma_short_leave<K>(own, plane_table, static_cast<bits *>(call.out));
    }
}

/* Multiplies and stores points in channels-last layout. FOUR: 16-bit numbers of two neighbouring plane groups are
 * stored four at a time, so that whole sectors are written. For that, lanes 2 i and 2 i + 1 exchange results: one
 * stores four signals of the first plane group, the other four signals of the second. */
template <class K, bool ADDS>
CF_DEVICE void mma_short_interleaved(const unsigned (&w)[MmaFft<K>::EACH][2 * MmaFft<K>::STEPS],
                                     const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef typename K::Storage::bits bits;
    constexpr bool FOUR = K::VECTOR == 4 && !K::Storage::PLAIN && !ADDS;
    constexpr int LINES = FOUR ? M::EACH / 2 : M::EACH; /* that a lane stores */
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MmaWords *table = &mma_spots<M::SCALED, M::N2>.of[0][0][lane];
    float factor[M::EACH], bias[M::EACH][2];
    MmaLine<K, bits> line[LINES];
#pragma unroll
    for (int i = 0; i < M::EACH; ++i) {
        factor[i] = float(call.scale) * (2 / M::GAIN) * plane_table.factor(8 * i);
#pragma unroll
        for (int e = 0; e < 2; ++e)
            bias[i][e] = call.bias ? bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS +
                                                               plane_table.channel(8 * i + 2 * t + e))
                                   : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < LINES; ++i) {
        const int plane_group = FOUR ? 2 * i + t % 2 : i;
        line[i] = MmaLine<K, bits>(static_cast<bits *>(call.out) + (FOUR ? t / 2 * 4 : 2 * t), plane_table,
                                   8 * plane_group, g);
        if (8 * plane_group >= plane_table.live)
            line[i].inside = false, line[i].count = 0;
    }
#pragma unroll 1
    for (int n = 0; n < M::STEPS; ++n, table += 32 * M::STEPS) {
        if (mma_empty<K>(16 * n, 16))
            continue;
        float sum[M::EACH][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            const MmaWords a = mma_fetch(table, step);
#pragma unroll
            for (int i = 0; i < M::EACH; ++i)
                multiply_bins<typename K::Bins>(sum[i], a.of, w[i][2 * step], w[i][2 * step + 1]);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int x = 16 * n + 8 * h;
            const bool whole = mma_whole<K>(x, 8);
#pragma unroll
            for (int i = 0; i < LINES; ++i) {
                bool in;
                bits *const to = line[i].at(x, whole, in);
                if constexpr (FOUR) {
                    unsigned word[2]; /* of both plane groups */
#pragma unroll
                    for (int o = 0; o < 2; ++o) {
                        const float *const v = sum[2 * i + o] + 2 * h;
                        word[o] = K::Bins::pack(factor[2 * i + o] * v[0] + bias[2 * i + o][0],
                                                factor[2 * i + o] * v[1] + bias[2 * i + o][1]);
                    }
                    const unsigned got = __shfl_xor_sync(0xffffffffu, t % 2 ? word[0] : word[1], 1);
                    if (in)
                        *reinterpret_cast<uint2 *>(to) = t % 2 ? make_uint2(got, word[1]) : make_uint2(word[0], got);
                } else if (in) {
                    mma_put_planes<K, 2>(to, sum[i] + 2 * h, factor[i], bias[i], ADDS);
                }
            }
        }
    }
}

template <class K> CF_DEVICE void mma_short_inverse(const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int warp = int(threadIdx.x) / 32;
    smem<char> shared = cf_dynamic_shared<char>();
    const int plane = (int(blockIdx.x) - call.first_block) * K::P + 8 * M::EACH * warp;
    const PlaneTable<K> plane_table = mma_short_places<K, true>(shared + 8 * M::EACH * 32 * warp, plane, call);
    if (plane_table.live <= 0)
        return;
    unsigned w[M::EACH][2 * M::STEPS];
    if (call.row_step == 1 && plane_table.live >= 8 * M::EACH)
        mma_short_words<K, true>(w, static_cast<const unsigned *>(call.in), plane_table, call.bin_unit);
    else
        mma_short_words<K, false>(w, static_cast<const unsigned *>(call.in), plane_table, call.bin_unit);
    if constexpr (M::INTERLEAVED) {
        if (call.accumulate)
            mma_short_interleaved<K, true>(w, plane_table, call);
        else
            mma_short_interleaved<K, false>(w, plane_table, call);
    } else {
        smem<unsigned> own = smem_cast<unsigned>(shared + M::G::TABLE) + 8 * M::EACH * M::ROW * warp;
        if (call.accumulate)
            mma_short_points<K, true>(w, own, plane_table, call);
        else
            mma_short_points<K, false>(w, own, plane_table, call);
    }
}
