/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of planes that leave through shared memory, so that neighbouring lanes store neighbouring words of memory. */
#pragma once

#include "fbfft/tensor_core/line_addressing.cuh"

/* Where a warp puts rows before it stores them: in place of the words of its task, 16 rows of one plane, [column][row].
 * WHOLE, for 16-bit numbers: all 16 rows fit. FP32: one part of eight rows fits. WORDS: of a row in this place. */
template <class K> struct MmaRowStage {
    typedef MmaFft<K> M;
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage::bits bits;
    typedef MmaSpan<K, 1> Down;
    typedef MmaSpan<K, 2> Across;
    static constexpr bool WHOLE = !K::Storage::PLAIN;
    static constexpr int WORDS = WHOLE ? M::N2 / 2 : 32, ROWS = WHOLE ? 16 : 8, AT_ONCE = 32 / WORDS;
    static constexpr bool USED = cf_tensor_fft_through(M::INTERLEAVED, K::VECTOR, M::BYTES) && K::AXIS_STRIDE[2] == 1 &&
                                 Down::PLAIN && Across::PLAIN;
    smem<unsigned> own;
    CF_DEVICE smem<unsigned> at(int row, int word) const {
        const int i = row * WORDS + word;
        return own + (i / 16 * M::WORD + i % 16);
    }
    /* Puts a lane's eight numbers of a part of a row. */
    CF_DEVICE void put(const float v[8], int row, int part, int t, float bias) const {
        if constexpr (WHOLE) {
            unsigned w[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                w[i] = K::Bins::pack(v[2 * i] + bias, v[2 * i + 1] + bias);
            smem_cast<uint4>(at(row, 16 * part + 4 * t))[0] = make_uint4(w[0], w[1], w[2], w[3]);
        } else {
#pragma unroll
            for (int e = 0; e < 8; e += 4)
                smem_cast<float4>(at(row, 4 * e + 4 * t))[0] =
                    make_float4(v[e] + bias, v[e + 1] + bias, v[e + 2] + bias, v[e + 3] + bias);
        }
    }
    /* What a lane stores of a row that begins in the middle of a word of memory (odd), or does not. A word that is
     * aligned in memory has points `point` and `point + 1`. */
    struct Word {
        bits *to; /* of the first row, where the word is */
        bool odd, whole, single;
        int half; /* single: which of the points is data */
        CF_DEVICE Word(bits *line, bool odd_, int word, const Across &across) : odd(odd_) {
            const int point = 2 * word - odd;
            const bool low = across.has(point), high = across.has(point + 1);
            to = line + point;
            whole = low && high;
            single = low != high;
            half = high;
        }
        CF_DEVICE void store(long long offset, unsigned before, unsigned last, bool inside) const {
            const unsigned w = odd ? before >> 16 | last << 16 : last;
            if (inside && whole)
                *reinterpret_cast<unsigned *>(to + offset) = w;
            if (inside && single)
                to[offset + half] = (unsigned short)(half ? w >> 16 : w);
        }
    };
    /* Stores the rows from row j of plane p on; FP32: the part from point x on. */
    CF_DEVICE void store(bits *signal, const PlaneTable<K> &plane_table, int p, int j, int x) const {
        constexpr long long DOWN = K::AXIS_STRIDE[1];
        constexpr int BATCH = 4;
        const int lane = int(threadIdx.x) % 32, word = lane % WORDS, first = lane / WORDS;
        const Down down(plane_table, p);
        const Across across(plane_table, p);
        const int begin = down.low - j - first, end = down.high - j - first;
        bits *const line = signal + ((down.zero + j + first) * DOWN + across.zero);
        const smem<unsigned> from = at(first, word), from_before = at(first, word > 0 ? word - 1 : 0);
        const bool odd = reinterpret_cast<size_t>(line) % 4 != 0, in = across.has(x + word),
                   end_in = across.has(M::N2 - 1);
        const Word words[2] = {{line, odd, word, across}, {line, odd != (DOWN % 2 != 0), word, across}};
#pragma unroll
        for (int batch = 0; batch < ROWS / AT_ONCE; batch += BATCH) {
            unsigned last[BATCH], before[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const int row = (batch + i) * AT_ONCE, place = row * (WORDS / 16) * M::WORD;
                last[i] = from[place];
                before[i] = WHOLE ? from_before[place] : 0;
            }
#pragma unroll
            for (int i = 0; i < BATCH; ++i) {
                const int row = (batch + i) * AT_ONCE;
                const bool inside = row >= begin && row < end;
                if constexpr (WHOLE) {
                    const Word &w = words[row % 2];
                    w.store(row * DOWN, before[i], last[i], inside);
                    if (G::template hi<2>() == M::N2 && inside && w.odd && word == WORDS - 1 && end_in)
                        line[row * DOWN + M::N2 - 1] = (unsigned short)(last[i] >> 16);
                } else if (inside && in) {
                    line[row * DOWN + x + word] = __uint_as_float(last[i]);
                }
            }
        }
    }
};
