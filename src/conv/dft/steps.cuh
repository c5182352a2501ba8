/* SPDX-License-Identifier: Apache-2.0 */
/* Planes in shared memory, and the four steps of DFT kernels (planes.cuh). */
#pragma once

#include "conv/dft/tables.cuh"

/* ----------------------------------------------------------------------------------------------------------- planes */

/* Copies plane `sample` of a channel, or zeros if there is none. The elements around it are zeros already. The plane is
 * there after a wait and a barrier. S: X or Y. thread: of a team. It has the same part of every ROWS-th row. */
template <class F, class S>
CF_DEVICE void dft_load(smem<uint4> plane, const cf_dft_side &s, int samples, int sample, long long group, int thread) {
    constexpr int EACH = cf_max_of(S::GRANULE, 2), OF_ROW = (S::COLUMNS + EACH - 1) / EACH,
                  ROWS = Dft<F>::TEAM / OF_ROW;
    const int first = thread / OF_ROW, column = thread % OF_ROW * EACH;
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

/* A barrier of a team. In the emulator it is one of the block: all teams come to as many. */
template <class F> CF_DEVICE void dft_sync([[maybe_unused]] int team) {
#ifdef CF_SIMT
    constexpr bool OF_BLOCK = true;
#else
    constexpr bool OF_BLOCK = F::TEAMS == 1;
    if (!OF_BLOCK)
        asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(Dft<F>::TEAM) : "memory");
#endif
    if (OF_BLOCK)
        __syncthreads();
}

CF_DEVICE void dft_clear(smem<uint4> memory, int units, int threads) {
    for (int i = int(threadIdx.x); i < units; i += threads)
        memory[i] = make_uint4(0, 0, 0, 0);
}

/* ------------------------------------------------------------------------------------------------------------ steps */

/* Operand A of step 1 of a warp. */
template <class F> struct DftFirst {
    typedef Dft<F> D;
    unsigned a[D::STEPS_X][4];
    CF_DEVICE DftFirst(const DftTables<F> &tables, int warp) {
        unroll<0, D::STEPS_X>([&](auto step) {
            const uint4 word = tables.first[(warp * D::STEPS_X + step) * 32 + int(threadIdx.x) % 32];
            a[step][0] = word.x;
            a[step][1] = word.y;
            a[step][2] = word.z;
            a[step][3] = word.w;
        });
    }
};

/* Step 1: d = D of a plane, as operand A of step 2. FP16 planes are multiplied by a power of two; the one that undoes
 * it is returned. LOW: the plane has no scale, and `low` gets what d lacks. */
template <class F, bool LOW>
CF_DEVICE float dft_rows(unsigned (&d)[Dft<F>::STEPS_Y][4], unsigned (&low)[Dft<F>::STEPS_Y][4], smem<uint4> plane,
                         const DftFirst<F> &first) {
    typedef Dft<F> D;
    constexpr bool SCALED = D::N::SCALED && !LOW;
    const int lane = int(threadIdx.x) % 32, at = lane % 8 * D::PITCH + lane / 8;
    float sum[D::READ_EIGHTS][4], up = 1, down = 1;
    unsigned largest = 0;
    unroll<0, D::READ_EIGHTS * 4>([&](auto i) { sum[i / 4][i % 4] = 0; });
    unroll<0, (D::STEPS_X + 1) / 2>([&](auto pair) {
        constexpr int STEP = 2 * decltype(pair)::value;
        unsigned b[D::READ_EIGHTS][4];
        unroll<0, D::READ_EIGHTS>([&](auto n) { ldmatrix_x4(b[n], plane, at + 8 * n * D::PITCH + 4 * pair); });
        unroll<0, 2>([&](auto half) {
            if constexpr (STEP + decltype(half)::value < D::STEPS_X)
                unroll<0, D::READ_EIGHTS>(
                    [&](auto n) { D::N::multiply(sum[n], first.a[STEP + half], b[n][2 * half], b[n][2 * half + 1]); });
        });
        if constexpr (SCALED)
            unroll<0, D::READ_EIGHTS * 4>([&](auto i) { largest = larger_halves(largest, b[i / 4][i % 4]); });
    });
    if constexpr (SCALED) {
        const DftScale scale(float(D::N::pair(largest_of_warp(largest)).x));
        up = scale.up;
        down = scale.down;
    }
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
    return down;
}

/* P and Q of eight frequencies. */
struct DftBins {
    float p[4], q[4];
    CF_DEVICE DftBins() {}
    CF_DEVICE DftBins(float4 a, float4 b) : p{a.x, a.y, a.z, a.w}, q{b.x, b.y, b.z, b.w} {}
};

/* Step 2 for eight k, of COUNT planes. table: of these k and this lane. */
template <class F, int COUNT>
CF_DEVICE void dft_columns(DftBins (&bins)[COUNT], const unsigned (&d)[COUNT][Dft<F>::STEPS_Y][4], smem<uint4> table) {
    typedef Dft<F> D;
    unroll<0, COUNT>([&](auto plane) { unroll<0, 4>([&](auto i) { bins[plane].p[i] = bins[plane].q[i] = 0; }); });
    unroll<0, D::STEPS_Y>([&](auto step) {
        const uint4 b = table[step * 32];
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

/* Step 3 for eight k: adds to H of COUNT planes. table: as for step 2. */
template <class F, int COUNT>
CF_DEVICE void dft_columns_back(float (&sum)[Dft<F>::OUT_EIGHTS][COUNT][4], const unsigned (&a)[COUNT][4],
                                smem<uint4> table) {
    typedef Dft<F> D;
    unroll<0, D::OUT_PAIRS>([&](auto pair) {
        constexpr int FIRST = 2 * decltype(pair)::value;
        const uint4 b = table[(D::STEPS_Y + pair) * 32];
        unroll<0, COUNT>([&](auto plane) { D::N::multiply(sum[FIRST][plane], a[plane], b.x, b.y); });
        if constexpr (FIRST + 1 < D::OUT_EIGHTS)
            unroll<0, COUNT>([&](auto plane) { D::N::multiply(sum[FIRST + 1][plane], a[plane], b.z, b.w); });
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

/* Operands B of step 4 for 32 columns of y. */
template <class F> struct DftLast {
    typedef Dft<F> D;
    uint4 b[D::TILES][2];
    CF_DEVICE DftLast(const DftTables<F> &tables, int half) {
        unroll<0, D::TILES>([&](auto tile) {
            unroll<0, 2>([&](auto pair) {
                b[tile][pair] = tables.x[((tile * D::HALVES + half) * 2 + pair) * 32 + int(threadIdx.x) % 32];
            });
        });
    }
};

/* Step 4: adds 16 rows of H, of `mid`, to sums of 32 columns of y. */
template <class F> CF_DEVICE void dft_rows_back(float (&sum)[4][4], smem<uint4> mid, int part, const DftLast<F> &last) {
    typedef Dft<F> D;
    const int lane = int(threadIdx.x) % 32, at = (lane / 16 * 8 + lane % 8) * D::MID_PITCH + 2 * part + lane / 8 % 2;
    unsigned a[D::TILES][4];
    unroll<0, D::TILES>([&](auto tile) { ldmatrix_trans_x4(a[tile], mid, at + tile * (16 * D::MID_PITCH)); });
    unroll<0, D::TILES>([&](auto tile) {
        unroll<0, 2>([&](auto pair) {
            const uint4 b = last.b[tile][pair];
            D::N::multiply(sum[2 * pair], a[tile], b.x, b.y);
            D::N::multiply(sum[2 * pair + 1], a[tile], b.z, b.w);
        });
    });
}

/* Calls f(part, half, operands) for a warp's share of the parts of 16 rows and 32 columns. */
template <class F, class FUNCTION> CF_DEVICE void dft_parts(const DftTables<F> &tables, int warp, const FUNCTION &f) {
    typedef Dft<F> D;
    constexpr int PARTS = D::MID_ROWS * D::HALVES, EACH = (PARTS + D::TILES - 1) / D::TILES;
    const int end = (warp + 1) * EACH < PARTS ? (warp + 1) * EACH : PARTS;
#pragma unroll 1
    for (int i = warp * EACH; i < end;) {
        const int half = i / D::MID_ROWS, stop = (half + 1) * D::MID_ROWS < end ? (half + 1) * D::MID_ROWS : end;
        const DftLast<F> last(tables, half);
#pragma unroll 1
        for (; i < stop; ++i)
            f(i - half * D::MID_ROWS, half, last);
    }
}
