/* SPDX-License-Identifier: Apache-2.0 */
/* Complex matrix products of 16-bit spectra on tensor cores: compile-time configuration.
 *
 * The mathematics and the three kinds of product are those of cgemm_split_fp16.cuh: C[m][n] = sum over k of A[m][k]
 * conj(B[n][k]), one matrix per frequency bin. The operands are already stored as words: the real part of a number in
 * the low 16 bits, the imaginary part in the high 16 bits, both FP16 or both BF16. Tensor cores read these words
 * directly, so nothing is split or rounded on the way.
 *
 * Files: cgemm_fp16_copy.cuh brings operands to shared memory, cgemm_fp16_scales.cuh handles the scales of FP16
 * spectra, cgemm_fp16_multiply.cuh multiplies one chunk, cgemm_fp16_results.cuh stores results, cgemm_fp16.cuh is the
 * kernel. */
#pragma once

#include "conv/gpu/gemm/cgemm_split_fp16.cuh"

/* Template arguments as in CgemmConfig. NARROW: the result also has 16 bits. */
template <int KIND_, int IN_, int OUT_, int WARPS_M_, int WARPS_N_, int MT_, int NT_, int STAGES_, int CHUNK_,
          int SLICES_, class BINS, bool NARROW_, bool ROW_SLICES_ = false>
struct Fp16CgemmConfig {
    typedef BINS Bins;
    static constexpr int KIND = KIND_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, MT = MT_, NT = NT_, STAGES = STAGES_,
                         CHUNK = CHUNK_, SLICES = SLICES_;
    static constexpr bool NARROW = NARROW_, WEIGHTS = KIND == 2, ROW_SLICES = ROW_SLICES_;
    static constexpr bool A_DENSE = !WEIGHTS, B_DENSE = KIND == 0; /* k is contiguous in memory */
    static constexpr bool SCALED = Bins::SCALED;
    static constexpr int A_ROW = KIND == 0 ? IN_ : OUT_, B_ROW = IN_,
                         C_ROW = KIND == 0 ? OUT_ : IN_;   /* row lengths in memory */
    static constexpr int COLUMNS = KIND == 0 ? OUT_ : IN_; /* columns of C (n) */
    static constexpr int M = cf_cgemm_tile_rows(MT, WARPS_M), N = cf_cgemm_tile_columns(NT, WARPS_N),
                         T = cf_cgemm_tile_threads(WARPS_M, WARPS_N);
    /* Row of C of a thread's sum, within its warp. If lines are one k each, a thread reads two neighbouring words of
     * a line at once, so its two rows are neighbours. */
    static CF_DEVICE int row_of(int m, int half, int lane) {
        return 16 * m + (A_DENSE ? 8 * half + lane / 4 : lane / 4 * 2 + half);
    }
    static constexpr int WARPS = T * SLICES / 32, FOUND = CF_CGEMM_FOUND;
    static constexpr cf_fp16_cgemm_layout LAYOUT =
        cf_fp16_cgemm_layout_of(KIND, M, N, WARPS, CHUNK, STAGES, SLICES, A_ROW, SCALED);
    static constexpr int A_PITCH = LAYOUT.a_pitch, B_PITCH = LAYOUT.b_pitch, A_BYTES = LAYOUT.a_bytes, RAW = LAYOUT.raw;
    static constexpr int A_TOPS = LAYOUT.a_tops, B_TOPS = LAYOUT.b_tops, ALL_FOUND = LAYOUT.found, PART = LAYOUT.part,
                         A_LOWS = LAYOUT.a_lows, FACTORS = LAYOUT.factors, TABLES = LAYOUT.tables;
    static constexpr int SLICE_BYTES = LAYOUT.slice, SHARED = LAYOUT.shared;
    static_assert((CHUNK == 16 || CHUNK == 32) && NT % 2 == 0 && MT <= 2, "whole instructions");
    static_assert(!(NARROW && WEIGHTS), "sums over rows are added to");
    static_assert(WEIGHTS || !ROW_SLICES, "only sums over rows have slices");
    static_assert(SLICES == 1 || (SLICES - 1) * 8 * MT * NT * T * 4 <= SLICES * SLICE_BYTES,
                  "room for the slices' sums");
    static_assert(M <= 8 * FOUND && N <= 8 * FOUND, "warps have room for what they find");
    static_assert(PART % CHUNK == 0, "a chunk is in one part");
    /* A 16-bit result is multiplied by 2^-DOWN, so that its words stay as small as those of the operands. */
    static constexpr int DOWN = 15 + bits_of(A_ROW);
};
