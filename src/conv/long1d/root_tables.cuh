/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of roots in memory, computed by the compiler. A tree loads two roots with one 16-byte load:
 *
 *     table     [pair of roots][node][2]
 *
 * Neighbouring threads have neighbouring nodes, so their loads are contiguous. Root numbers are those of
 * butterfly_tree.cuh.
 */
#pragma once

#include "conv/long1d/butterfly_tree.cuh"

/* Forward, for a step of R3 points after R1 R2 bins are selected. */
template <int R1, int R2, int R3> struct __align__(16) ForwardRoots {
    static constexpr int NODES = R1 * R2,
                         COUNT = cf_stored_roots(R3); /* of a step of R3 points after R1 R2 bins are known */
    cplx w[COUNT / 2][NODES][2];
    __host__ __device__ constexpr ForwardRoots() : w{} {
        for (int e = 0; e < COUNT; ++e)
            for (int p = 0; p < NODES; ++p) {
                const int known = cf_reversed(p / R2, R1) + R1 * cf_reversed(p % R2, R2),
                          n = 4 * NODES << cf_root_level(e), k = 4 * known - 1 + 4 * NODES * cf_root_index(e);
                w[e / 2][p][e % 2] = {real(cf_cos(k, n)), real(-cf_sin(k, n))};
            }
    }
};
template <int R1, int R2, int R3>
__device__ const ForwardRoots<R1, R2, R3> cf_forward_roots = ForwardRoots<R1, R2, R3>();
/* Inverse, for a step of R bins after C times are selected. */
template <int C, int R> struct __align__(16) BackwardRoots {
    static constexpr int NODES = C, COUNT = cf_stored_roots(R); /* roots of a tree that are stored */
    cplx w[COUNT / 2][NODES][2];
    __host__ __device__ constexpr BackwardRoots() : w{} {
        for (int e = 0; e < COUNT; ++e)
            for (int c = 0; c < C; ++c) {
                const int n = C << cf_root_level(e), k = c + C * cf_root_index(e);
                w[e / 2][c][e % 2] = {real(cf_cos(k, n)), real(cf_sin(k, n))};
            }
    }
};
template <int C, int R> __device__ const BackwardRoots<C, R> cf_backward_roots = BackwardRoots<C, R>();
/*
 * Inverse, last step, after M times are selected. All results must be multiplied by exp(-2 pi i m / 4 H) / H, which
 * undoes the offset -1/4 of the bins and scales; twiddle_all() does the rest of the offset. The factor goes into the
 * trees (see tree()). Roots of all levels but the last are stored without it (LATE of them), those of the last
 * level with it, and behind them the factor itself.
 */
template <int M, int R> struct __align__(16) TwiddleTable {
    static constexpr int LATE = R / 4, STORED = cf_stored_roots(R), COUNT = STORED + 2;
    cplx w[COUNT / 2][M][2];
    __host__ __device__ constexpr TwiddleTable() : w{} {
        const int h = M * R, n = 4 * h;
        for (int m = 0; m < M; ++m) {
            for (int e = 0; e < STORED; ++e) {
                const int k = (m + M * cf_root_index(e)) * (n / (M << cf_root_level(e))) - (e < LATE ? 0 : m);
                const double scale = e < LATE ? 1.0 : 1.0 / h;
                w[e / 2][m][e % 2] = {real(scale * cf_cos(k, n)), real(scale * cf_sin(k, n))};
            }
            w[COUNT / 2 - 1][m][0] = {real(cf_cos(m, n) / h), real(-cf_sin(m, n) / h)};
        }
    }
};
template <int M, int R> __device__ const TwiddleTable<M, R> cf_twiddle_table = TwiddleTable<M, R>();
/* A table as pairs of roots. */
template <class T> CF_DEVICE const float4 *as_quads(const T &roots) {
    return reinterpret_cast<const float4 *>(roots.w);
}
