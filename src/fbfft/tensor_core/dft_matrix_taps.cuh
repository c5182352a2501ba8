/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms by one dense DFT matrix: loads the taps of planes into registers as right operands, with the scales of
 * FP16.
 *
 * A warp has the taps of 16 or 32 planes. It loads eight planes at a time so that neighbouring lanes read
 * neighbouring elements, and exchanges them through its staging buffer in shared memory. Right operands are
 * [part][eight planes][step]. Column i of group e of eight planes is plane 16 (e / 2) + 4 (i / 2) + 2 (e % 2) + i %
 * 2. So a lane's results are four neighbouring planes of one bin, and four lanes have sixteen. */
#pragma once

#include "fbfft/tensor_core/dft_matrix_config.cuh"
#include "fbfft/tensor_core/scales.cuh"

/* Makes the table entries of a warp's planes, as find_planes() does. Their second number differs: bits 9 and up are
 * the index of the plane's scale, bit 8 is set if another plane stores this scale, and the low byte is the exponent
 * of the factor. */
template <class K> CF_DEVICE PlaneTable<K> dense_places(const cf_shared_fft_call &call, long long first) {
    typedef Dense<K> D;
    const int lane = int(threadIdx.x) % 32;
    const PlaneTable<K> plane_table = {cf_dynamic_shared<char>() + int(threadIdx.x) / 32 * D::PLANES * 32,
                                       int(min(call.planes - first, (long long)D::PLANES))};
    if (lane < D::PLANES && plane_table.live > 0) {
        const long long plane = first + min(lane, plane_table.live - 1);
        /* A 64-bit division takes about a hundred instructions. */
        const long long of_rows =
            call.planes > 0x7fffffff ? plane / call.columns : (long long)(unsigned(plane) / unsigned(call.columns));
        const long long row = call.row_first + of_rows, column = plane - of_rows * call.columns;
        smem<char> entry = plane_table.table + lane * 32;
        find_plane<K>(entry, row, column, call.columns, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        const long long scale = (row - call.row_base) * ((call.columns + 7) / 8) + column / 8;
        smem_cast<long long>(entry)[1] = (2 * scale + (column % 8 != 0 || lane >= plane_table.live)) << 8;
    }
    __syncwarp();
    return plane_table;
}

/* Sets the factor of plane p of a warp. The blocks of the first bins store the scale that undoes it. */
template <class K>
CF_DEVICE void dense_set_factor(const PlaneTable<K> &plane_table, const cf_shared_fft_call &call, int p, float absmax) {
    smem<long long> entry = smem_cast<long long>(plane_table.table + p * 32) + 1;
    const long long known = entry[0];
    entry[0] = known | Factor<K>::exponent(absmax);
    if ((known & 256) == 0 && dense_bin_tile<K>(call) == 0)
        call.scales[(long long)blockIdx.y * call.scale_group_stride + (known >> 9)] = Factor<K>::scale(absmax);
}

/* Factors from the largest values that another kernel has found for each sample. Most planes of a warp belong to one
 * sample. */
template <class K>
CF_DEVICE void dense_find_factors(const PlaneTable<K> &plane_table, const cf_shared_fft_call &call, long long first) {
    const int lane = int(threadIdx.x) % 32;
    long long row = call.row_first + first / call.columns, left = call.columns - first % call.columns; /* of the row */
    float absmax = 0;
    for (int p = 0; p < Dense<K>::PLANES; ++p, --left) {
        if (left == 0) {
            ++row;
            left = call.columns;
        }
        if (p < plane_table.live && (p == 0 || left == call.columns)) {
            const long long sample = row / call.scale_rows - call.row_base / call.scale_rows;
            const float *const part =
                call.absmax + (long long)blockIdx.y * call.absmax_group_stride + sample * call.parts;
            absmax = absmax_of_warp(lane < call.parts ? part[lane] : 0.0f);
        }
        if (lane == 0)
            dense_set_factor<K>(plane_table, call, p, absmax);
    }
    __syncwarp();
}

/* Two neighbouring slots, as they are stored in memory. */
template <class K, bool FLOATS = Dense<K>::FLOATS> struct DensePair {
    typedef unsigned type;
    static CF_DEVICE unsigned of(unsigned short a, unsigned short b) { return a | unsigned(b) << 16; }
};
template <class K> struct DensePair<K, true> {
    typedef float2 type;
    static CF_DEVICE float2 of(float a, float b) { return make_float2(a, b); }
};

template <class K> CF_DEVICE int dense_plane(int eight, int g) {
    return 16 * (eight / 2) + 4 * (g / 2) + 2 * (eight % 2) + g % 2;
}

/* Which row (plane of eight) and which pair of slots a lane loads. Channels-first: four rows by eight pairs of a
 * step. Channels-last: eight rows by four pairs. */
template <class K> CF_DEVICE int dense_load_row(int lane, int i) {
    return K::PLANES_INTERLEAVED ? lane % 8 : lane / 8 + i % 2 * 4;
}
template <class K> CF_DEVICE int dense_load_pair(int lane, int i) {
    return K::PLANES_INTERLEAVED ? lane / 8 + 4 * i : lane % 8 + i / 2 * 8;
}

/* The address in a plane to which offsets of taps are added. */
template <class K>
CF_DEVICE const typename K::Storage::bits *dense_start(const typename K::Storage::bits *signal,
                                                       const PlaneTable<K> &plane_table, int p) {
    typedef typename K::Offset Offset;
    signal += plane_table.signal(p);
    if constexpr (Dense<K>::ALIKE)
        signal += Offset(plane_table.template start<0>(p)) * Offset(K::AXIS_STRIDE[0]) +
                  Offset(plane_table.template start<1>(p)) * Offset(K::AXIS_STRIDE[1]) +
                  Offset(plane_table.template start<2>(p)) * Offset(K::AXIS_STRIDE[2]);
    return dense_hide(signal);
}

/* Loads a number of plane p, or 0. data: whether the slot has a tap. */
template <class K>
CF_DEVICE typename K::Storage::bits dense_load(const typename K::Storage::bits *from, const PlaneTable<K> &plane_table,
                                               int p, int slot, int offset, bool data) {
    typename K::Storage::bits v = 0;
    if constexpr (Dense<K>::ALIKE) {
        if (data)
            v = __ldg(from + offset);
    } else {
        typedef typename K::Offset Offset;
        const DenseTap tap = dense_tap<K>(slot);
        bool inside = data;
        Offset at = offset_of<K, 2, Offset>(dense_position<K, 2>(tap.e2), plane_table.template start<2>(p), inside);
        at += offset_of<K, 1, Offset>(dense_position<K, 1>(tap.e1), plane_table.template start<1>(p), inside);
        at += offset_of<K, 0, Offset>(dense_position<K, 0>(tap.e0), plane_table.template start<0>(p), inside);
        if (inside)
            v = __ldg(from + at);
    }
    return v;
}

/* Whether a slot of this step has a tap. */
template <class K> CF_DEVICE bool dense_has_tap(int step, int slot) {
    typedef Dense<K> D;
    const int from = step < D::FIRST ? 0 : 16 * D::FIRST, taps = step < D::FIRST ? D::FIRST_TAPS : D::LAST_TAPS;
    return 16 * (step + 1) - from <= taps || slot - from < taps;
}

/* A lane's slots of one plane, as they are stored in memory. */
template <class K, bool FLOATS = Dense<K>::FLOATS> struct DenseTaps { unsigned of[Dense<K>::STEPS][2]; };
template <class K> struct DenseTaps<K, true> { float of[Dense<K>::STEPS][4]; };

/* Loads half h of a warp's planes, eight planes at a time, and exchanges them through shared memory. */
template <class K>
CF_DEVICE void dense_taps(DenseTaps<K> (&taps)[2], const PlaneTable<K> &plane_table, const cf_shared_fft_call &call,
                          int h) {
    typedef Dense<K> D;
    typedef DensePair<K> Pair;
    typedef typename Pair::type Type;
    constexpr int LOADS = 2 * D::STEPS;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const typename K::Storage::bits *const signal = static_cast<const typename K::Storage::bits *>(call.in);
    const smem<unsigned> stage = dense_words<K>(D::ROOTS + D::TWIDDLES + D::MATRIX) + int(threadIdx.x) / 32 * D::STAGE;
    const smem<int2> offsets = smem_cast<int2>(dense_words<K>(D::ROOTS + 3 * D::SLOTS));
    const typename K::Storage::bits *from[2][2]; /* of rows i % 2 */
#pragma unroll
    for (int e = 0; e < 4; ++e)
        from[e / 2][e % 2] =
            dense_start<K>(signal, plane_table, dense_plane<K>(2 * h + e / 2, dense_load_row<K>(lane, e % 2)));
    Type v[2][LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
        const int pair = dense_load_pair<K>(lane, i);
        const bool first = dense_has_tap<K>(i / 2, 2 * pair), second = dense_has_tap<K>(i / 2, 2 * pair + 1);
        int2 offset = {};
        if constexpr (D::ALIKE)
            offset = offsets[pair];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            const int p = dense_plane<K>(2 * h + e, dense_load_row<K>(lane, i));
            v[e][i] = Pair::of(dense_load<K>(from[e][i % 2], plane_table, p, 2 * pair, offset.x, first),
                               dense_load<K>(from[e][i % 2], plane_table, p, 2 * pair + 1, offset.y, second));
        }
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        __syncwarp(); /* the other lanes have read the previous contents */
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            smem_cast<Type>(stage + dense_load_row<K>(lane, i) * D::PITCH)[dense_load_pair<K>(lane, i)] = v[e][i];
        __syncwarp();
#pragma unroll
        for (int step = 0; step < D::STEPS; ++step) {
            const smem<unsigned> own = stage + (g * D::PITCH + D::PARTS * (8 * step + 2 * t));
            if constexpr (D::FLOATS) {
                const float4 q = smem_cast<float4>(own)[0];
                taps[e].of[step][0] = q.x, taps[e].of[step][1] = q.y, taps[e].of[step][2] = q.z,
                taps[e].of[step][3] = q.w;
            } else {
                const uint2 w = smem_cast<uint2>(own)[0];
                taps[e].of[step][0] = w.x, taps[e].of[step][1] = w.y;
            }
        }
    }
}

template <class K> CF_DEVICE float dense_absmax(const DenseTaps<K, true> (&taps)[2]) {
    return absmax_of_floats<8 * Dense<K>::STEPS>([&](int i) { return taps[i % 2].of[i / 8][i / 2 % 4]; });
}
template <class K> CF_DEVICE float dense_absmax(const DenseTaps<K, false> (&taps)[2]) {
    return absmax_of_fp16<4 * Dense<K>::STEPS>([&](int i) { return taps[i % 2].of[i / 4][i / 2 % 2]; });
}

/* Right operands: [part][eight planes][step]. */
template <class K> struct DenseOperands { unsigned of[Dense<K>::PARTS][Dense<K>::EIGHTS][Dense<K>::STEPS][2]; };

template <class K>
CF_DEVICE void dense_operands(DenseOperands<K> &b, const DenseTaps<K, false> (&taps)[2], int h, const float (&)[2]) {
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < 2 * Dense<K>::STEPS; ++i)
            b.of[0][2 * h + e][i / 2][i % 2] = taps[e].of[i / 2][i % 2];
}
template <class K>
CF_DEVICE void dense_operands(DenseOperands<K> &b, const DenseTaps<K, true> (&taps)[2], int h,
                              const float (&scale)[2]) {
#pragma unroll
    for (int e = 0; e < 2; ++e)
#pragma unroll
        for (int i = 0; i < 2 * Dense<K>::STEPS; ++i) {
            const cplx v = {scale[e] * taps[e].of[i / 2][2 * (i % 2)], scale[e] * taps[e].of[i / 2][2 * (i % 2) + 1]};
            const unsigned high = K::Bins::pack(v.x, v.y);
            const cplx rest = v - K::Bins::unpack(high);
            b.of[0][2 * h + e][i / 2][i % 2] = high;
            b.of[1][2 * h + e][i / 2][i % 2] = K::Bins::pack(rest.x, rest.y);
        }
}

/* The factors of the results of half h. With FACTORS 4, one for each of a lane's four planes. */
template <class K> struct DenseFactors { float of[Dense<K>::HALVES][Dense<K>::FACTORS]; };

/* Loads a warp's operands. Finds and stores the scales. FP32 numbers are multiplied up to the end of FP16's range, so
 * that both parts keep all their bits. */
template <class K>
CF_DEVICE void dense_take(DenseOperands<K> &b, DenseFactors<K> &factors, const PlaneTable<K> &plane_table,
                          const cf_shared_fft_call &call) {
    typedef Dense<K> D;
    constexpr int UP = D::SCALED ? Factor<K>::SUM : 0;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
#pragma unroll
    for (int h = 0; h < D::HALVES; ++h) {
        DenseTaps<K> taps[2];
        dense_taps<K>(taps, plane_table, call, h);
        float scale[2] = {1, 1};
#pragma unroll
        for (int i = 0; i < D::FACTORS; ++i)
            factors.of[h][i] = 1 / D::GAIN;
        if constexpr (K::FINDS) { /* one scale for the eight planes of half a warp */
            float most = dense_absmax<K>(taps);
#pragma unroll
            for (int other = 1; other < 16; other *= 2)
                most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
            if (lane % 16 == 0 && 16 * h + lane / 2 < plane_table.live)
                dense_set_factor<K>(plane_table, call, 16 * h + lane / 2, most);
            if constexpr (D::FLOATS)
                scale[0] = scale[1] = mma_power(Factor<K>::exponent(most) + UP);
            else
                factors.of[h][0] *= mma_power(Factor<K>::exponent(__shfl_sync(0xffffffffu, most, t / 2 * 16)));
        } else if constexpr (D::SCALED) {
#pragma unroll
            for (int e = 0; e < 2 && D::FLOATS; ++e)
                scale[e] = plane_table.factor(dense_plane<K>(2 * h + e, g)) * float(1ll << UP);
#pragma unroll
            for (int i = 0; i < D::FACTORS && !D::FLOATS; ++i)
                factors.of[h][i] *= plane_table.factor(16 * h + 4 * t + i);
        }
        if constexpr (D::FLOATS)
            factors.of[h][0] *= 1 / float(1ll << UP);
        dense_operands<K>(b, taps, h, scale);
    }
}
