/* SPDX-License-Identifier: Apache-2.0 */
/* Complex products of 16-bit spectra: scales of FP16 operands.
 *
 * An FP16 spectrum has one scale for every eight neighbouring numbers of a row: a[row][column / 8], the same for all
 * bins. A number is its word times the scale, which is a power of two. A tensor core adds words, so all words of one
 * sum must refer to one scale. If they do not, words are multiplied down to the largest scale of the sum:
 *
 *     dense operand    largest scale along its line in memory
 *     other operand    largest scale over all k, of each group of eight columns
 *
 * So numbers far below others of the same sum lose bits, but large numbers never do. A thread rescales the words that
 * it has copied itself, which needs no extra barrier. */
#pragma once

#include "conv/gpu/gemm/cgemm_fp16_copy.cuh"

/* 1 / power, for a power of two. */
CF_DEVICE float inverse_power(float power) { return __uint_as_float((254u << 23) - __float_as_uint(power)); }

/* For each line, or for each eight columns: 1 / the largest scale, and the largest value that a bin can have. */
struct Fp16Absmax {
    smem<float> inverse, bound;
};

/* Fills `tops` if k is contiguous. Otherwise each warp writes what it finds for eight columns to `found`, and
 * fp16_merge_absmax() combines that. Returns whether a thread saw different scales in one sum; scales of zeros do not
 * count. rows: as in fp16_copy(). first: the thread that starts with line 0. */
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE bool fp16_find_tops(Fp16Absmax tops, smem<float> found, const float *scales, int rows, int k_end, int first) {
    constexpr int EIGHTS = (ROW + 7) / 8, ALL = P::T * P::SLICES;
    const int thread = int(threadIdx.x);
    const float least = 1.17549435e-38f; /* smallest float whose reciprocal is finite */
    bool differ = false;
    if constexpr (DENSE) {
        for (int line = (thread + ALL - first % ALL) % ALL; line < R; line += ALL) {
            float most = 0, bound = least;
            if (line < rows)
#pragma unroll 16
                for (int i = 0; i < EIGHTS; ++i) {
                    const float scale = scales[(long long)line * EIGHTS + i], power = power_of_scale(scale);
                    differ = differ || (power > 0 && most > 0 && power != most);
                    most = fmaxf(most, power);
                    bound = fmaxf(bound, bound_of_scale(scale));
                }
            tops.inverse[line] = inverse_power(fmaxf(most, least));
            tops.bound[line] = bound;
        }
    } else {
        /* Neighbouring threads read neighbouring scales of a line. A thread issues the loads of many lines before it
         * uses one, because a block waits for these loads before its first tile. */
        constexpr int ACROSS = 1 << bits_of(R / 8), STEP = ALL / ACROSS, TOGETHER = 16;
        static_assert(ACROSS <= 32 && ACROSS <= P::FOUND, "of a warp, for which there is room");
        const int eight = thread % ACROSS;
        const bool inside = 8 * eight < rows && eight < R / 8;
        float most = 0, bound = least;
#pragma unroll 1
        for (int k = thread / ACROSS; k < k_end; k += TOGETHER * STEP) {
            float scale[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) /* missing lines count as zeros */
                scale[i] = inside && k + i * STEP < k_end ? scales[(long long)(k + i * STEP) * EIGHTS + eight] : 0.0f;
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                if (i == TOGETHER / 2 && k + i * STEP >= k_end)
                    break; /* short sums skip half of the work */
                const float power = power_of_scale(scale[i]);
                differ = differ || (power > 0 && most > 0 && power != most);
                most = fmaxf(most, power);
                bound = fmaxf(bound, bound_of_scale(scale[i]));
            }
        }
#pragma unroll
        for (int other = ACROSS; other <= 16; other *= 2) {
            const float theirs = __shfl_xor_sync(0xffffffffu, most, other);
            differ = differ || (theirs > 0 && most > 0 && theirs != most);
            most = fmaxf(most, theirs);
            bound = fmaxf(bound, __shfl_xor_sync(0xffffffffu, bound, other));
        }
        if (thread % 32 < ACROSS) {
            found[thread / 32 * P::FOUND + eight] = most;
            found[(P::WARPS + thread / 32) * P::FOUND + eight] = bound;
        }
    }
    return differ;
}
template <class P, bool DENSE, int R> CF_DEVICE bool fp16_merge_absmax(Fp16Absmax tops, smem<float> found) {
    bool differ = false;
    if constexpr (!DENSE) {
        for (int eight = int(threadIdx.x); eight < R / 8; eight += P::T * P::SLICES) {
            float most = 1.17549435e-38f, bound = most;
            for (int warp = 0; warp < P::WARPS; ++warp) {
                most = fmaxf(most, found[warp * P::FOUND + eight]);
                bound = fmaxf(bound, found[(P::WARPS + warp) * P::FOUND + eight]);
            }
            for (int warp = 0; warp < P::WARPS; ++warp)
                differ = differ || (found[warp * P::FOUND + eight] > 0 && found[warp * P::FOUND + eight] != most);
            tops.inverse[eight] = inverse_power(most);
            tops.bound[eight] = bound;
        }
    }
    return differ;
}

/* Fills the table of shifts for a part of k: log2 of the largest scale of the sum over each scale. 0 where there is
 * no scale. */
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void fp16_find_lows(smem<unsigned> lows, smem<float> tops, const float *scales, int rows, int k0, int k_end,
                              int tid) {
    constexpr int EIGHTS = (ROW + 7) / 8, ACROSS = DENSE ? P::PART / 8 : R / 8, LINES = DENSE ? R : P::PART;
    for (int i = tid; i < LINES * ACROSS / 4; i += P::T) {
        unsigned four = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int line = (4 * i + j) / ACROSS, eight = (4 * i + j) % ACROSS;
            const int row = DENSE ? line : 8 * eight, k = k0 + (DENSE ? 8 * eight : line);
            float scale = 0;
            if (row < rows && k < k_end)
                scale = scales[DENSE ? (long long)row * EIGHTS + k / 8 : (long long)k * EIGHTS + eight];
            const float share = scale > 0 ? power_of_scale(scale) * tops[DENSE ? line : eight] : 1.0f;
            four |= (127u - (__float_as_uint(share) >> 23)) << 8 * j;
        }
        lows[i] = four;
    }
}

/* Rescales the words that this thread has copied to the largest scale of their line, or of their eight columns. */
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void fp16_share(smem<char> raw, smem<unsigned> lows, int k, int tid) {
    typedef Fp16Units<P, DENSE, R, ROW> Units;
    constexpr int ACROSS = DENSE ? P::PART / 8 : R / 8, COUNT = (Units::ALL + P::T - 1) / P::T;
    const int first = DENSE ? k % P::PART / 8 : k % P::PART * ACROSS;
    unsigned low[COUNT], all = 0;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        const int i = j * P::T, place = first + Units::line(i, tid) * ACROSS + Units::unit(i, tid) / 2;
        low[j] = Units::is_beyond(i, tid) ? 0 : lows[place / 4] >> place % 4 * 8 & 255u;
        all |= low[j];
    }
    if (all == 0)
        return;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        if (Units::is_beyond(j * P::T, tid))
            break;
        const float share = __uint_as_float((127u - low[j]) << 23);
        const unsigned both = pack_fp16(share, share);
        smem<uint4> words = smem_cast<uint4>(raw) + Units::place(j * P::T, tid);
        const uint4 w = words[0];
        words[0] = make_uint4(product_of_fp16(w.x, both), product_of_fp16(w.y, both), product_of_fp16(w.z, both),
                              product_of_fp16(w.w, both));
    }
}
