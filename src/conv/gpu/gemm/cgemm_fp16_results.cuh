/* SPDX-License-Identifier: Apache-2.0 */
/* Complex products of 16-bit spectra: the factors that undo the scales of operands, and the store of 16-bit results.
 *
 * Sums are FP32, in registers, in the layout of mma_m16n8k16 (fbfft/common/mma.cuh). A result is FP32 in memory
 * (product_store() of cgemm_split_fp16.cuh), or again 16-bit words (NARROW). An FP16 result gets scales of its own.
 * They are chosen from the largest values that the operands can have, so that no sum overflows: bins stay below 2^15,
 * and a sum of K products stays below 2^30 K. */
#pragma once

#include "conv/gpu/gemm/cgemm_fp16_scales.cuh"

/* Stores a 16-bit result. */
template <class P>
CF_DEVICE void fp16_store(const CgemmSums<P> &s, unsigned *c, int rows, int columns, int warp, int lane, bool aligned) {
    const int m0 = warp % P::WARPS_M * (16 * P::MT) + lane / 4, n0 = warp / P::WARPS_M * (8 * P::NT) + lane % 4 * 2;
    unsigned *const first = c + ((long long)m0 * P::C_ROW + n0);
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (m0 + (16 * m + 8 * half) >= rows)
                continue;
#pragma unroll
            for (int n = 0; n < P::NT; ++n) {
                const int column = n0 + 8 * n;
                unsigned *const to = first + ((16 * m + 8 * half) * P::C_ROW + 8 * n);
                const unsigned x = P::Bins::pack(s.re[m][n][2 * half], s.im[m][n][2 * half]),
                               y = P::Bins::pack(s.re[m][n][2 * half + 1], s.im[m][n][2 * half + 1]);
                if (P::COLUMNS % P::N != 0 && column >= columns)
                    continue;
                if (aligned) { /* then the number of columns is even */
                    *reinterpret_cast<uint2 *>(to) = make_uint2(x, y);
                } else {
                    to[0] = x;
                    if (column + 1 < columns)
                        to[1] = y;
                }
            }
        }
}

/* The factors of sums: the scales of their row and column. For a 16-bit result, the factors also divide by the
 * largest value that is possible in the row and in the eight columns. */
struct Fp16Factors {
    smem<float> row, column, eight; /* eight: the largest possible value of eight columns */
};
template <class P> CF_DEVICE void fp16_find_factors(Fp16Factors f, Fp16Absmax a_tops, Fp16Absmax b_tops) {
    constexpr float DOWN = 1.0f / float(1ll << P::DOWN);
    for (int i = int(threadIdx.x); i < P::M + P::N; i += P::T * P::SLICES) {
        if (i < P::M) {
            const int line = P::A_DENSE ? i : i / 8;
            const float factor = inverse_power(a_tops.inverse[line]);
            f.row[i] = P::NARROW ? factor * inverse_power(a_tops.bound[line]) : factor;
        } else {
            const int column = i - P::M, line = P::B_DENSE ? column : column / 8;
            const float factor = inverse_power(b_tops.inverse[line]);
            float bound = 1;
            if constexpr (P::NARROW) {
                bound = b_tops.bound[P::B_DENSE ? column / 8 * 8 : line];
                for (int j = 1; P::B_DENSE && j < 8; ++j)
                    bound = fmaxf(bound, b_tops.bound[column / 8 * 8 + j]);
                if (column % 8 == 0)
                    f.eight[column / 8] = bound;
            }
            f.column[column] = P::NARROW ? factor * (DOWN * inverse_power(bound)) : factor;
        }
    }
}
template <class P> CF_DEVICE void fp16_finish(CgemmSums<P> &s, Fp16Factors f, int warp, int lane) {
    const int m0 = warp % P::WARPS_M * (16 * P::MT), n0 = warp / P::WARPS_M * (8 * P::NT);
    float of_row[P::MT][2];
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            of_row[m][half] = f.row[m0 + P::row_of(m, half, lane)];
#pragma unroll
    for (int n = 0; n < P::NT; ++n) {
        float of_column[2];
#pragma unroll
        for (int j = 0; j < 2; ++j)
            of_column[j] = f.column[n0 + 8 * n + lane % 4 * 2 + j];
#pragma unroll
        for (int m = 0; m < P::MT; ++m)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float factor = of_row[m][i / 2] * of_column[i % 2];
                s.re[m][n][i] = s.re[m][n][i] * factor;
                s.im[m][n][i] = s.im[m][n][i] * factor;
            }
    }
}
/* Stores the scales of a 16-bit result. */
template <class P> CF_DEVICE void fp16_note(float *c_scales, Fp16Absmax a_tops, Fp16Factors f, int rows, int columns) {
    constexpr float UP = float(1ll << P::DOWN);
#pragma unroll 1
    for (int i = fp16_again(int(threadIdx.x)); i < P::M * (P::N / 8); i += P::T) {
        const int row = i / (P::N / 8), eight = i % (P::N / 8);
        if (row < rows && 8 * eight < columns)
            c_scales[(long long)row * ((P::C_ROW + 7) / 8) + eight] = a_tops.bound[row] * f.eight[eight] * UP;
    }
}
