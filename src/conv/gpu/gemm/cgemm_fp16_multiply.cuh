/* SPDX-License-Identifier: Apache-2.0 */
/* Complex products of 16-bit spectra: one chunk of k, from shared memory through tensor cores into the sums.
 *
 * A row of words (re, im) times a column of words (re, im) gives re re + im im, the real part of a conj(b). The same
 * row with its words changed to (im, -re) gives the imaginary part. For kind 1, whose product has no conjugate, the
 * rows are (re, -im) and (im, re). */
#pragma once

#include "conv/gpu/gemm/cgemm_fp16_copy.cuh"

/* The address from which a thread reads its words of a chunk: in units if k is contiguous, otherwise in words. The
 * steps of a chunk differ from it by constants. */
template <class P> CF_DEVICE int fp16_rows_at(unsigned chunk, int row, int lane) {
    if constexpr (P::A_DENSE)
        return chunk / 4 + (row + lane % 16) * (P::CHUNK / 4) + (lane / 16 ^ fp16_swizzle<P, true, P::M>(lane % 16));
    else
        return chunk + lane % 4 * P::A_PITCH + ((row + lane / 4 * 2) ^ (4 * fp16_swizzle<P, false, P::M>(lane)));
}
template <class P> CF_DEVICE int fp16_columns_at(unsigned chunk, int column, int lane) {
    const int of_eight = lane % 8;
    if constexpr (P::B_DENSE)
        return chunk / 4 + (column + lane / 16 * 8 + of_eight) * (P::CHUNK / 4) +
               (lane / 8 % 2 ^ fp16_swizzle<P, true, P::N>(of_eight));
    else
        return chunk + lane % 4 * P::B_PITCH + ((column + lane / 4) ^ (4 * fp16_swizzle<P, false, P::N>(lane)));
}

/* `by` words further in a line of one k. A warp's part of the line starts at a multiple of its length, so XOR instead
 * of addition keeps the permutation. */
template <int R> CF_DEVICE int fp16_further(int at, int by) { return R % 32 == 0 ? at ^ by : at + by; }

/* A warp's rows of A, in the registers that mma_m16n8k16 takes. word: for the real part of the product. rotated: for
 * the imaginary part. */
template <class P> struct Fp16Rows { unsigned word[P::MT][4], rotated[P::MT][4]; };
template <class P> CF_DEVICE void fp16_rows(Fp16Rows<P> &a, smem<char> shared, int at, int step) {
#pragma unroll
    for (int m = 0; m < P::MT; ++m) {
        if constexpr (P::A_DENSE) {
            ldmatrix_x4(a.word[m], smem_cast<uint4>(shared) + 16 * m * (P::CHUNK / 4), at ^ 2 * step);
        } else {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint2 w = smem_cast<uint2>(smem_cast<unsigned>(shared) +
                                                 fp16_further<P::M>(at, 16 * m))[(8 * step + 4 * i) * P::A_PITCH / 2];
                a.word[m][2 * i] = w.x;
                a.word[m][2 * i + 1] = w.y;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned w = a.word[m][i], swapped = w >> 16 | w << 16;
            a.rotated[m][i] = P::KIND == 1 ? swapped : swapped ^ 0x80000000u;
            a.word[m][i] = P::KIND == 1 ? w ^ 0x80000000u : w;
        }
    }
}

/* Two neighbouring tiles (n and n + 1) of eight columns of B, eight words of each column. */
template <class P> CF_DEVICE void fp16_columns(unsigned b[4], smem<char> shared, int at, int n, int step) {
    if constexpr (P::B_DENSE) {
        ldmatrix_x4(b, smem_cast<uint4>(shared) + 8 * n * (P::CHUNK / 4), at ^ 2 * step);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            b[i] = (smem_cast<unsigned>(shared) +
                    fp16_further<P::N>(at, (n + i / 2) * 8))[(8 * step + i % 2 * 4) * P::B_PITCH];
    }
}

/* sums += the product of one chunk. chunk: its first word in shared memory. */
template <class P> CF_DEVICE void fp16_chunk(CgemmSums<P> &s, smem<char> shared, unsigned chunk, int warp, int lane) {
    const int a_at = fp16_rows_at<P>(chunk, warp % P::WARPS_M * (16 * P::MT), lane),
              b_at = fp16_columns_at<P>(chunk + P::A_BYTES / 4, warp / P::WARPS_M * (8 * P::NT), lane);
#pragma unroll
    for (int step = 0; step < P::CHUNK / 8; ++step) {
        Fp16Rows<P> a;
        fp16_rows<P>(a, shared, a_at, step);
#pragma unroll
        for (int n = 0; n < P::NT; n += 2) {
            unsigned b[4];
            fp16_columns<P>(b, shared, b_at, n, step);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int m = 0; m < P::MT; ++m) {
                    multiply_bins<typename P::Bins>(s.re[m][n + i], a.word[m], b[2 * i], b[2 * i + 1]);
                    multiply_bins<typename P::Bins>(s.im[m][n + i], a.rotated[m], b[2 * i], b[2 * i + 1]);
                }
        }
    }
}
