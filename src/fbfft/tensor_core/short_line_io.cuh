/* SPDX-License-Identifier: Apache-2.0 */
/* Real 1-D signals of 16 to 128 points on tensor cores: the method, where signals are, and transfers through shared
 * memory.
 *
 * A signal is one product with the whole N2-point DFT matrix. So no 16-bit number is rounded between two stages, and
 * FP32 numbers are rounded only before the product. A warp keeps the points or bins of several groups of eight
 * signals in registers and reads the matrix once for all of them.
 *
 *     forward    the matrix is the left operand, eight signals are the right one: neighbouring lanes store the bins of
 *                neighbouring signals
 *     inverse    bins of sixteen signals are the left operand, the matrix is the right one: neighbouring lanes store
 *                neighbouring points
 *
 * In channels-last layout signals are interleaved. Forward, words of neighbouring signals are transposed into words
 * of neighbouring points. Inverse, the matrix is the left operand, so that neighbouring lanes store neighbouring
 * signals.
 *
 * The arithmetic is short, so finding out where signals are takes a large part of the time. Each warp does that for
 * its own signals, one lane per signal. The planner makes sure that there are less than 2^30 signals. Those of a
 * launch follow one another in a spectrum; the inverse may skip rows (row_step).
 *
 * In shared memory each warp has a table of its signals (32 bytes each), and with THROUGH its signals:
 * [signal][point], ROW words from one signal to the next. */
#pragma once

#include "fbfft/tensor_core/line_addressing.cuh"

/* Finds the warp's signals, from signal `first` of the launch on: as find_planes() and find_factors(). */
template <class K, bool INVERSE>
CF_DEVICE PlaneTable<K> mma_short_places(smem<char> table, int first, const cf_shared_fft_call &call) {
    constexpr int COLUMNS = int(K::CHANNELS * K::AXIS[0].phases * K::AXIS[1].phases * K::AXIS[2].phases),
                  LINES = 8 * MmaFft<K>::EACH;
    static_assert(LINES <= 32, "a lane for a line");
    const int p = int(threadIdx.x) % 32, live = min(int(call.planes) - first, LINES);
    if (p < LINES && live > 0) {
        /* Lanes beyond the last signal repeat another one. Channels-last plane groups are always whole. */
        const int plane = first + (p < live ? p : MmaFft<K>::INTERLEAVED ? p % 8 : live - 1), column = plane % COLUMNS;
        const int row = int(call.row_first) + plane / COLUMNS * int(call.row_step), own = row - int(call.row_base);
        smem<char> entry = table + p * 32;
        find_plane<K>(entry, row, column, COLUMNS, call.sample_stride, (long long)blockIdx.y * call.group_stride);
        long long spectrum = own * (long long)COLUMNS + column + (long long)blockIdx.y * call.spectrum_group_stride;
        if constexpr (K::Bins::SCALED) {
            spectrum <<= 8;
            float *const scale = call.scales + ((long long)blockIdx.y * call.scale_group_stride +
                                                (own * (long long)((COLUMNS + 7) / 8) + column / 8));
            if constexpr (INVERSE) {
                spectrum |= __float_as_uint(*scale) >> 23;
            } else if constexpr (!K::FINDS) {
                const long long sample = row / call.scale_rows - call.row_base / call.scale_rows;
                const float *const part =
                    call.absmax + (long long)blockIdx.y * call.absmax_group_stride + sample * call.parts;
                float most = 0;
                for (int i = 0; i < call.parts; ++i)
                    most = fmaxf(most, __ldg(part + i));
                spectrum |= Factor<K>::exponent(most);
                if (column % 8 == 0 && p < live)
                    *scale = Factor<K>::scale(most);
            }
        }
        smem_cast<long long>(entry)[1] = spectrum;
    }
    __syncwarp();
    return {table, live};
}

/* THROUGH: copies a warp's signals between global memory and its part of shared memory. Neighbouring lanes move
 * neighbouring words or numbers of a signal. */
template <int UNITS> struct MmaAcross { static constexpr int LANES = UNITS < 32 ? UNITS : 32, LINES = 32 / LANES; };

/* Loads a word of a signal from its point x on. Points outside the data become zero. */
template <class K, class Line> CF_DEVICE unsigned mma_short_word(const Line &line, int x, bool whole) {
    constexpr int NUMBERS = 4 / MmaFft<K>::BYTES;
    unsigned word = 0;
#pragma unroll
    for (int e = 0; e < NUMBERS; e += K::VECTOR) {
        bool in;
        const auto *const from = line.at(x + e, whole, in);
        if (!in)
            continue;
        if constexpr (K::Storage::PLAIN)
            word = __float_as_uint(__ldg(from));
        else if constexpr (K::VECTOR == 2)
            word = __ldg(reinterpret_cast<const unsigned *>(from));
        else
            word |= unsigned(__ldg(from)) << 16 * e;
    }
    return word;
}
template <class K>
CF_DEVICE void mma_short_bring(smem<unsigned> own, const PlaneTable<K> &plane_table,
                               const typename K::Storage::bits *signal) {
    typedef MmaFft<K> M;
    typedef MmaAcross<M::BYTES * M::N2 / 4> A;
    constexpr int NUMBERS = 4 / M::BYTES;
    const int lane = int(threadIdx.x) % 32;
#pragma unroll 4
    for (int first = 0; first < 8 * M::EACH; first += A::LINES) {
        const int p = first + lane / A::LANES, word = lane % A::LANES;
        const MmaLine<K, const typename K::Storage::bits> line(signal, plane_table, p, NUMBERS * word);
#pragma unroll
        for (int x = 0; x < M::N2; x += NUMBERS * A::LANES) {
            constexpr int POINTS = NUMBERS * A::LANES;
            own[p * M::ROW + x / NUMBERS + word] =
                mma_empty<K>(x, POINTS) ? 0 : mma_short_word<K>(line, x, mma_whole<K>(x, POINTS));
        }
    }
}
template <class K>
CF_DEVICE void mma_short_leave(smem<unsigned> own, const PlaneTable<K> &plane_table,
                               typename K::Storage::bits *signal) {
    typedef MmaFft<K> M;
    typedef typename K::Storage::bits bits;
    typedef MmaAcross<M::N2 / K::VECTOR> A;
    constexpr int WORDS = 4 / M::BYTES / K::VECTOR; /* 2: half words */
    const int lane = int(threadIdx.x) % 32, lines = min(plane_table.live, 8 * M::EACH);
#pragma unroll 2
    for (int first = 0; first < lines; first += A::LINES) {
        const int p = first + lane / A::LANES, unit = lane % A::LANES;
        const MmaLine<K, bits> line(signal, plane_table, p, K::VECTOR * unit);
#pragma unroll
        for (int i = 0; i < M::N2 / K::VECTOR; i += A::LANES) {
            constexpr int POINTS = K::VECTOR * A::LANES;
            if (mma_empty<K>(K::VECTOR * i, POINTS))
                continue;
            bool in;
            bits *const to = line.at(K::VECTOR * i, mma_whole<K>(K::VECTOR * i, POINTS), in);
            if (!in || p >= lines)
                continue;
            const unsigned word = own[p * M::ROW + (i + unit) / WORDS];
            if constexpr (K::Storage::PLAIN)
                *to = __uint_as_float(word);
            else if constexpr (K::VECTOR == 2)
                *reinterpret_cast<unsigned *>(to) = word;
            else
                *to = (unsigned short)(word >> 16 * (unit % 2));
        }
    }
}
