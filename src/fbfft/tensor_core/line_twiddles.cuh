/* SPDX-License-Identifier: Apache-2.0 */
/* Real 1-D signals of 256 to 4096 points on tensor cores: the method, and its tables of twiddles.
 *
 * With N = N1 N2 a signal is a matrix of N1 rows of N2 points: row n has the points n + N1 i. Rows and columns are
 * transformed as those of a plane (plane.cuh), with a twiddle between them, and R = N1 / 16:
 *
 *     forward    y[n][k] = w_N^nk sum over i of x[n + N1 i] w_N2^ik,
 *                X[k + N2 (m + 16 c)] = sum over r of w_R^rc w_N1^rm (sum over j of y[R j + r][k] w_16^jm)
 *     inverse    u[c][j] = w_N1^-jc sum over m of X[k + N2 (R m + c)] w_16^-jm,
 *                y[j + 16 r][k] = w_N^-(j + 16 r)k sum over c of u[c][j] w_R^-rc,
 *                x[n + N1 i] = sum over k of y[n][k] w_N2^-ik
 *
 * The signal is real, so k goes from 0 to N2 / 2 only. Bins beyond N / 2 are conjugates of others and are stored and
 * loaded as those. Columns 0 and N2 / 2 contain both bins of each such pair.
 *
 * Each table entry has two twiddles (16 bytes), which a lane loads at once. */
#pragma once

#include "fbfft/tensor_core/plane.cuh"

struct __align__(16) MmaRoots {
    cplx of[2];
};
CF_DEVICE MmaRoots mma_fetch(const MmaRoots *p) {
    const float4 v = __ldg(reinterpret_cast<const float4 *>(p));
    return {{{v.x, v.y}, {v.z, v.w}}};
}
__host__ __device__ constexpr cplx mma_root(int k, int n) { return {real(cf_cos(k % n, n)), real(-cf_sin(k % n, n))}; }

/* Forward: w_N^nk of a lane's first two rows (row), where k = 8 m + g, and w_N^rk of the R rows from each of them on
 * (next). */
template <int N1, int N2> struct MmaTwiddles {
    static constexpr int R = N1 / 16;
    MmaRoots row[2][N2 / 16][32], next[N2 / 16][8][(R + 1) / 2]; /* row: [q][m][lane]; next: [m][g][r / 2] */
    __host__ __device__ constexpr MmaTwiddles() : row{}, next{} {
        for (int m = 0; m < N2 / 16; ++m)
            for (int g = 0; g < 8; ++g) {
                const int k = 8 * m + g;
                for (int r = 0; r < R; ++r)
                    next[m][g][r / 2].of[r % 2] = mma_root(r * k, N1 * N2);
                for (int i = 0; i < 16; ++i)
                    row[i / 8][m][4 * g + i / 2 % 4].of[i % 2] = mma_root(R * i * k, N1 * N2);
            }
    }
};
template <int N1, int N2> __device__ const MmaTwiddles<N1, N2> mma_twiddles = MmaTwiddles<N1, N2>();

/* Inverse: w_N^-nk of rows n = g + 8 h + 16 r of column k. */
template <int N1, int N2> struct MmaReturns {
    static constexpr int R = N1 / 16;
    MmaRoots of[N2 / 2 + 1][R][8]; /* [k][r][g], with two h each */
    __host__ __device__ constexpr MmaReturns() : of{} {
        for (int k = 0; k <= N2 / 2; ++k)
            for (int n = 0; n < N1; ++n) {
                const cplx w = mma_root(n * k, N1 * N2);
                of[k][n / 16][n % 8].of[n / 8 % 2] = {w.x, -w.y};
            }
    }
};
template <int N1, int N2> __device__ const MmaReturns<N1, N2> mma_returns = MmaReturns<N1, N2>();
