/* SPDX-License-Identifier: Apache-2.0 */
/* Planes in shared memory, and the four steps of DFT kernels (planes.cuh). */
#pragma once

#include "conv/dft/tables.cuh"

/* ----------------------------------------------------------------------------------------------------------- planes */

/* Copies plane `sample` of a channel, or zeros if there is none. The elements around it are zeros already. The plane is
 * there after a wait and a barrier. S: X or Y. A thread has the same part of every ROWS-th row. */
template <class F, class S>
CF_DEVICE void dft_load(smem<uint4> plane, const cf_dft_side &s, long long samples, long long sample, long long group) {
    constexpr int EACH = cf_max_of(S::GRANULE, 2), OF_ROW = (S::COLUMNS + EACH - 1) / EACH,
                  ROWS = Dft<F>::THREADS / OF_ROW;
    const int first = int(threadIdx.x) / OF_ROW, column = int(threadIdx.x) % OF_ROW * EACH;
    if (first >= ROWS)
        return;
    const bool there = sample < samples;
    const unsigned short *from = static_cast<const unsigned short *>(s.memory);
    if (there)
        from += sample * s.sample_stride + group * s.group_stride + first * s.row_stride + column;
    const long long step = there ? ROWS * s.row_stride : 0;
    smem<unsigned> to = smem_cast<unsigned>(plane + first * Dft<F>::PITCH) + column / 2;
    unroll<0, (S::ROWS + ROWS - 1) / ROWS>([&](auto n) {
        if (first + n * ROWS >= S::ROWS)
            return;
        smem<unsigned> place = to + n * (ROWS * Dft<F>::PITCH * 4);
        if constexpr (S::GRANULE > 1) {
            copy_async<EACH / 2>(smem_cast<float>(place), reinterpret_cast<const float *>(from), there);
        } else {
            unsigned value = there ? __ldg(from) : 0u;
            if (there && column + 1 < S::COLUMNS)
                value |= unsigned(__ldg(from + 1)) << 16;
            place[0] = value;
        }
        from += step;
    });
}

#ifdef CF_SIMT
CF_DEVICE void dft_commit() {}
CF_DEVICE void dft_wait() {}
#else
CF_DEVICE void dft_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
CF_DEVICE void dft_wait() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }
#endif

CF_DEVICE void dft_clear(smem<uint4> memory, int units, int threads) {
    for (int i = int(threadIdx.x); i < units; i += threads)
        memory[i] = make_uint4(0, 0, 0, 0);
}

/* The largest element of a plane in shared memory: each warp stores that of its part. */
template <class F> CF_DEVICE void dft_absmax(smem<unsigned> largest_of_warps, smem<uint4> plane) {
    typedef Dft<F> D;
    unsigned largest = 0;
#pragma unroll
    for (int i = int(threadIdx.x); i < D::PLANE; i += D::THREADS) {
        const uint4 v = plane[i];
        largest = larger_halves(larger_halves(largest, v.x), v.y);
        largest = larger_halves(larger_halves(largest, v.z), v.w);
    }
    largest = larger_halves(largest, largest >> 16);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = larger_halves(largest, __shfl_xor_sync(~0u, largest, lanes));
    if (int(threadIdx.x) % 32 == 0)
        largest_of_warps[int(threadIdx.x) / 32] = largest;
}

/* The scale of a plane from what all warps have stored. */
template <class F> CF_DEVICE DftScale dft_scale(smem<unsigned> largest_of_warps) {
    if (!Dft<F>::N::SCALED)
        return DftScale(1);
    unsigned largest = 0;
    unroll<0, Dft<F>::TILES>([&](auto i) { largest = larger_halves(largest, largest_of_warps[int(i)]); });
    return DftScale(float(Dft<F>::N::pair(largest).x));
}

/* ------------------------------------------------------------------------------------------------------------ steps */

/* Step 1: d = D of a plane times `up`, as operand A of step 2. LOW: `low` gets what d lacks. */
template <class F, bool LOW>
CF_DEVICE void dft_rows(unsigned (&d)[Dft<F>::STEPS_Y][4], unsigned (&low)[Dft<F>::STEPS_Y][4], smem<uint4> plane,
                        float up, const DftTables<F> &tables) {
    typedef Dft<F> D;
    const int lane = int(threadIdx.x) % 32, tile = int(threadIdx.x) / 32, at = lane % 8 * D::PITCH + lane / 8;
    float sum[D::READ_EIGHTS][4];
    unroll<0, D::READ_EIGHTS * 4>([&](auto i) { sum[i / 4][i % 4] = 0; });
    unroll<0, (D::STEPS_X + 1) / 2>([&](auto pair) {
        constexpr int STEP = 2 * decltype(pair)::value;
        unsigned b[D::READ_EIGHTS][4];
        unroll<0, D::READ_EIGHTS>([&](auto n) { ldmatrix_x4(b[n], plane, at + 8 * n * D::PITCH + 4 * pair); });
        unroll<0, 2>([&](auto half) {
            if constexpr (STEP + decltype(half)::value < D::STEPS_X) {
                const uint4 word = tables.first[(tile * D::STEPS_X + STEP + half) * 32 + lane];
                const unsigned a[4] = {word.x, word.y, word.z, word.w};
                unroll<0, D::READ_EIGHTS>(
                    [&](auto n) { D::N::multiply(sum[n], a, b[n][2 * half], b[n][2 * half + 1]); });
            }
        });
    });
    unroll<0, D::STEPS_Y>([&](auto step) {
        unroll<0, 4>([&](auto i) {
            constexpr int ROW = 2 * decltype(step)::value + decltype(i)::value / 2, PART = decltype(i)::value % 2 * 2;
            if constexpr (ROW < D::READ_EIGHTS) {
                const float v[2] = {D::N::SCALED && !LOW ? up * sum[ROW][PART] : sum[ROW][PART],
                                    D::N::SCALED && !LOW ? up * sum[ROW][PART + 1] : sum[ROW][PART + 1]};
                d[step][i] = D::N::word(v[0], v[1]);
                if (LOW) {
                    const cplx high = D::N::pair(d[step][i]);
                    low[step][i] = D::N::word(v[0] - float(high.x), v[1] - float(high.y));
                }
            } else {
                d[step][i] = 0;
                low[step][i] = 0;
            }
        });
    });
}

/* P and Q of eight frequencies. */
struct DftBins {
    float p[4], q[4];
};

/* Step 2 for eight k, of COUNT planes. */
template <class F, int COUNT, int EIGHTH>
CF_DEVICE void dft_columns(DftBins (&bins)[COUNT], const unsigned (&d)[COUNT][Dft<F>::STEPS_Y][4],
                           const DftTables<F> &tables) {
    typedef Dft<F> D;
    unroll<0, COUNT>([&](auto plane) { unroll<0, 4>([&](auto i) { bins[plane].p[i] = bins[plane].q[i] = 0; }); });
    unroll<0, D::STEPS_Y>([&](auto step) {
        const uint4 b = tables.y[(step * D::EIGHTS + EIGHTH) * 32 + int(threadIdx.x) % 32];
        unroll<0, COUNT>([&](auto plane) {
            D::N::multiply(bins[plane].p, d[plane][step], b.x, b.y);
            D::N::multiply(bins[plane].q, d[plane][step], b.z, b.w);
        });
    });
}

/* s and t: S and T of bins n (0 or 1) of a lane, (re, im). */
CF_DEVICE void dft_product(float (&s)[2], float (&t)[2], const DftBins &x, const DftBins &w, int n) {
    const float p0 = x.p[n], p2 = x.p[2 + n], q0 = x.q[n], q2 = x.q[2 + n], wp0 = w.p[n], wp2 = w.p[2 + n],
                wq0 = w.q[n], wq2 = w.q[2 + n];
    s[0] = p0 * wp0 - p2 * wp2 + q2 * wq2 - q0 * wq0;
    s[1] = p0 * wp2 + p2 * wp0 - q2 * wq0 - q0 * wq2;
    t[0] = p0 * wq2 + p2 * wq0 + q2 * wp0 + q0 * wp2;
    t[1] = p2 * wq2 - p0 * wq0 + q2 * wp2 - q0 * wp0;
}

/* Operand A of step 3 for eight k. */
template <class N> CF_DEVICE void dft_operand(unsigned (&a)[4], const float (&s)[2][2], const float (&t)[2][2]) {
    a[0] = N::word(s[0][0], s[1][0]);
    a[1] = N::word(s[0][1], s[1][1]);
    a[2] = N::word(-t[0][1], -t[1][1]);
    a[3] = N::word(t[0][0], t[1][0]);
}

/* Step 3 of COUNT planes. store(eight, sums): eight rows of H of all planes. */
template <class F, int COUNT, class STORE>
CF_DEVICE void dft_columns_back(const unsigned (&a)[COUNT][Dft<F>::EIGHTS][4], const DftTables<F> &tables,
                                const STORE &store) {
    typedef Dft<F> D;
    unroll<0, D::OUT_PAIRS>([&](auto pair) {
        float sum[2][COUNT][4];
        unroll<0, COUNT * 8>([&](auto i) { sum[i / 4 / COUNT][i / 4 % COUNT][i % 4] = 0; });
        unroll<0, D::EIGHTS>([&](auto k) {
            const uint4 b = tables.rows[(k * D::OUT_PAIRS + pair) * 32 + int(threadIdx.x) % 32];
            unroll<0, COUNT>([&](auto plane) {
                D::N::multiply(sum[0][plane], a[plane][k], b.x, b.y);
                if constexpr (2 * decltype(pair)::value + 1 < D::OUT_EIGHTS)
                    D::N::multiply(sum[1][plane], a[plane][k], b.z, b.w);
            });
        });
        store(2 * pair, sum[0]);
        if constexpr (2 * decltype(pair)::value + 1 < D::OUT_EIGHTS)
            store(2 * pair + 1, sum[1]);
    });
}

/* Stores eight rows of H of a warp to `mid`. */
template <class F> CF_DEVICE void dft_put(smem<uint4> mid, int tile, int eight, const float (&sum)[4]) {
    typedef Dft<F> D;
    const int lane = int(threadIdx.x) % 32;
    smem<unsigned> to = smem_cast<unsigned>(mid + ((16 * tile + lane / 4) * D::MID_PITCH + eight)) + lane % 4;
    to[0] = D::N::word(sum[0], sum[1]);
    to[8 * D::MID_PITCH * 4] = D::N::word(sum[2], sum[3]);
}

/* Step 4: adds 16 rows of H, of `mid`, to sums of 32 columns of y. */
template <class F>
CF_DEVICE void dft_rows_back(float (&sum)[4][4], smem<uint4> mid, int rows, int half, const DftTables<F> &tables) {
    typedef Dft<F> D;
    const int lane = int(threadIdx.x) % 32, at = (lane / 16 * 8 + lane % 8) * D::MID_PITCH + 2 * rows + lane / 8 % 2;
    unsigned a[D::TILES][4];
    unroll<0, D::TILES>([&](auto tile) { ldmatrix_trans_x4(a[tile], mid, at + tile * (16 * D::MID_PITCH)); });
    unroll<0, D::TILES>([&](auto tile) {
        unroll<0, 2>([&](auto pair) {
            const uint4 b = tables.x[((tile * D::HALVES + half) * 2 + pair) * 32 + lane];
            D::N::multiply(sum[2 * pair], a[tile], b.x, b.y);
            D::N::multiply(sum[2 * pair + 1], a[tile], b.z, b.w);
        });
    });
}
