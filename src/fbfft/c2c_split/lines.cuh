/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 complex transforms of N = 256 R points on tensor cores, R = 1, 2, .. 64. Numbers are split into two FP16 words
 * (SplitNumber). Point n = 256 n2 + n1, bin k = k2 + R k1.
 *
 *     points    to shared memory [n2][n1] (kernel.cuh)
 *     columns   R points n2 of each n1, times the twiddle w_N^(k2 n1), in place: [k2][n1]. Up to 8 points are computed
 *               by FP32 units, more as a product of 16 points and a radix-R/16 step.
 *     rows      256 points n1 of each k2 in place: [k2][k1]. Two products of 16 points in the registers of a warp.
 *     bins      to memory
 *
 * Rows with R = 1 need no shared memory.
 *
 * Scales. The 256 or more numbers that a warp transforms together are multiplied by a power of two, so that the largest
 * is in 2^14 .. 2^15. A sum of 16 points may be 16 times as large, so each product of two is followed by a factor of
 * 1 / 16. Magnitudes then never exceed 2^15.5: FP16 does not overflow, and the low words keep bits down to 2^-24. These
 * numbers belong to one row, so a NaN stays in its row.
 *
 * Bank conflicts: a row of 256 numbers in shared memory is 128 chunks of 16 bytes. Chunk c is stored at c ^ (c >> 4 &
 * 7), that of a point with R > 8 at c ^ flip(n2). For the pitch of rows and lines see geometry.h. */
#pragma once

#include "fbfft/c2c_split/geometry.h"
#include "fbfft/common/fp16_dft.cuh"

/* The largest of a warp's nonnegative numbers. */
#ifdef CF_SIMT
CF_DEVICE float split_warp_max(float v) {
    for (int i = 16; i > 0; i /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, i));
    return v;
}
#else
CF_DEVICE float split_warp_max(float v) { return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(v))); }
#endif
CF_DEVICE float split_larger(float most, float4 v) {
    return fmaxf(fmaxf(most, fmaxf(fabsf(v.x), fabsf(v.y))), fmaxf(fabsf(v.z), fabsf(v.w)));
}

/* The power of two that brings numbers up to `most` below 2^15, and that which undoes it. */
struct SplitScale {
    float up, down;
    CF_DEVICE explicit SplitScale(float most) {
        const int exponent = max(int(__float_as_uint(most) >> 23), 15);
        up = __uint_as_float(unsigned(268 - exponent) << 23);
        down = __uint_as_float(unsigned(exponent - 14) << 23);
    }
};

template <class C> struct SplitLine {
    static constexpr int LOG_R = C::LOG_N - 8, N = 1 << C::LOG_N, R = 1 << LOG_R, WARPS = C::THREADS / 32;
    static constexpr int PITCH = cf_c2c_split_pitch(C::LOG_N),
                         LINE = cf_c2c_split_line(C::LOG_N, C::FORM == CF_C2C_SPLIT_ROWS ? 1 : C::LINES);
    /* The orders of slots and results: for rows, lanes then access whole chunks without bank conflicts; for columns. */
    static constexpr int IN = 0x0132, OUT = 0x0213, OUT_COLUMNS = 0x3210;
    /* The place of a chunk. XOR of arguments gives XOR of places. */
    static __host__ __device__ constexpr int chunk(int c) { return c ^ (c >> 4 & 7); }
    static __host__ __device__ constexpr int flip(int n2) {
        return R == 16 ? (n2 >> 3 & 1) << 1 : (n2 / (R / 16) >> 3 & 1) << 1 | (n2 / (R / 16) >> 2 & 1) << 2;
    }
    /* The place of chunk c of points of row n2. */
    static __host__ __device__ constexpr int point(int n2, int c) {
        return n2 * PITCH + (R < 16 ? chunk(c) : c ^ flip(n2 % R));
    }
};

/* Splits a chunk of two numbers into the words of two columns. */
CF_DEVICE void split_chunk(SplitNumber::word (&to)[2], float4 v, float up) {
    to[0] = SplitNumber::pack({up * v.x, up * v.y});
    to[1] = SplitNumber::pack({up * v.z, up * v.w});
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* 256 points: slots (t, i) times 16 plus columns (g, j). A lane's chunks are those of FIRST with XOR of constants. */
template <class C> struct SplitRows {
    typedef SplitLine<C> L;
    Fp16Matrix<16, L::IN, L::OUT, C::INVERSE, SplitNumber> matrix;
    Fp16Twiddles<16, L::IN, L::OUT, C::INVERSE, SplitNumber> twiddles;
    int from, to; /* the first chunk of points and of bins */
    CF_DEVICE SplitRows(int g, int t)
        : matrix(g, t), twiddles(g, t, 0.0625f), from(8 * fp16_slot<L::IN>(t, 0) + fp16_column<L::IN>(g, 0) / 2),
          to(fp16_result<L::OUT>(2 * t, 0) / 2 + 8 * fp16_result<L::OUT>(g, 0)) {}
    static __host__ __device__ constexpr int point(int i) { return 8 * fp16_slot<L::IN>(0, i); }
    static __host__ __device__ constexpr int bin(int x, int e) {
        return fp16_result<L::OUT>(e, 0) / 2 + 8 * fp16_result<L::OUT>(0, x);
    }

    /* store(x, e, chunk): chunk bin(x, e) of this lane. */
    template <class Store> CF_DEVICE void transform(const float4 (&v)[4], float scale, const Store &store) const {
        float most = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i)
            most = split_larger(most, v[i]);
        const SplitScale power(split_warp_max(most));
        SplitNumber::word words[4][2];
        float sum[2][2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            split_chunk(words[i], v[i], power.up);
        fp16_step(matrix, words, sum);
        twiddles.apply(sum, words);
        fp16_step(matrix, words, sum);
        const float down = 16 * power.down;
#pragma unroll
        for (int x = 0; x < 2; ++x)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const cplx a = fp16_times(fp16_times(fp16_sum(sum, x, 0, e), down), scale),
                           b = fp16_times(fp16_times(fp16_sum(sum, x, 1, e), down), scale);
                store(bin(x, e), float4{a.x, a.y, b.x, b.y});
            }
    }
};

/* R = 1. A warp has a line. */
template <class C> CF_DEVICE void split_rows(const float4 *in, float4 *out, long long lines, float scale) {
    typedef SplitRows<C> Rows;
    static_assert(C::LINES == SplitLine<C>::WARPS, "each warp has a line");
    const int lane = (int)threadIdx.x % 32;
    const long long line = (long long)blockIdx.x * C::LINES + threadIdx.x / 32;
    if (line >= lines)
        return;
    const Rows rows(lane / 4, lane % 4);
    const float4 *const from = in + line * 128 + rows.from;
    float4 *const to = out + line * 128 + rows.to;
    float4 v[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = __ldcs(from + Rows::point(i));
    rows.transform(v, scale, [&](int bin, float4 w) { to[bin] = w; });
}

/* ---------------------------------------------------------------------------------------------------------- columns */

/* w_N^(r n1) for r > 0 and neighbouring columns n1. */
template <int R> struct SplitColumnRoots {
    float4 of[R - 1][128];
    __host__ __device__ constexpr SplitColumnRoots() : of{} {
        for (int r = 1; r < R; ++r)
            for (int c = 0; c < 128; ++c)
                of[r - 1][c] = {float(cf_cos(r * 2 * c, 256 * R)), float(-cf_sin(r * 2 * c, 256 * R)),
                                float(cf_cos(r * (2 * c + 1), 256 * R)), float(-cf_sin(r * (2 * c + 1), 256 * R))};
    }
};
template <int R> __device__ const SplitColumnRoots<R> split_column_roots = SplitColumnRoots<R>();

/* R up to 8. A thread has two neighbouring columns at a time. */
template <class C> CF_DEVICE void split_short_columns(smem<float4> tile, int live) {
    typedef SplitLine<C> L;
    static_assert(C::THREADS % 128 == 0, "a thread has the same columns of all lines");
    const int column = (int)threadIdx.x % 128;
    fp16_wait_async();
    __syncthreads();
#pragma unroll 1
    for (int line = (int)threadIdx.x / 128; line < live; line += C::THREADS / 128) {
        const smem<float4> at = tile + (line * L::LINE + L::chunk(column));
        cplx v[2][L::R];
#pragma unroll
        for (int r = 0; r < L::R; ++r) {
            const float4 w = at[r * L::PITCH];
            v[0][r] = {w.x, w.y}, v[1][r] = {w.z, w.w};
        }
        fp16_dft<L::R, C::INVERSE>(v[0]);
        fp16_dft<L::R, C::INVERSE>(v[1]);
#pragma unroll
        for (int r = 0; r < L::R; ++r) {
            cplx a = v[0][r], b = v[1][r];
            if (r > 0) {
                const float4 w = split_column_roots<L::R>.of[r > 0 ? r - 1 : 0][column];
                a = a * fp16_twiddled<C::INVERSE>({w.x, w.y});
                b = b * fp16_twiddled<C::INVERSE>({w.z, w.w});
            }
            at[r * L::PITCH] = float4{a.x, a.y, b.x, b.y};
        }
    }
}

/* exp(-2 pi i k / N) for k < M. */
template <int N, int M> struct SplitFirstRoots {
    cplx w[M];
    __host__ __device__ constexpr SplitFirstRoots() : w{} {
        for (int k = 0; k < M; ++k)
            w[k].x = real(cf_cos(k, N)), w[k].y = real(-cf_sin(k, N));
    }
};
template <int N, int M> __device__ const SplitFirstRoots<N, M> split_first_roots = SplitFirstRoots<N, M>();

/* R = 16 V. Point n2 = V a + v, with slots a. Bin k2 = ka + 16 kv. A warp has 16 columns n1 = 16 u + c at a time, in
 * place. */
template <class C> struct SplitColumns {
    typedef SplitLine<C> L;
    static constexpr int V = L::R / 16, IN = L::IN, OUT = L::OUT_COLUMNS;
    int g, t, own; /* column c of e = j = 0 */
    Fp16Matrix<16, IN, OUT, C::INVERSE, SplitNumber> matrix;
    cplx within[2][2][2]; /* V = 1: the twiddles w_N^(k2 c). Otherwise registers do not suffice for them. */

    /* w_N^(k2 c) */
    CF_DEVICE cplx root(int v, int m, int c) const {
        return fp16_twiddled<C::INVERSE>(split_first_roots<L::N, L::N / 16>.w[(fp16_result<OUT>(g, m) + 16 * v) * c]);
    }
    CF_DEVICE SplitColumns(int g_, int t_) : g(g_), t(t_), own(fp16_column<IN>(2 * t_, 0)), matrix(g_, t_) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int j = 0; j < 2; ++j)
                    within[m][e][j] = root(0, m, own + fp16_column<IN>(e, j));
    }

    /* A lane's points n2 = V a + v of slots a. */
    CF_DEVICE void load(smem<float4> line, int u, int v, float4 (&raw)[4]) const {
        const int row = V * fp16_slot<IN>(t, 0), chunk = 8 * u + (fp16_column<IN>(g, 0) / 2 ^ L::flip(row));
#pragma unroll
        for (int i = 0; i < 4; ++i)
            raw[i] = line[(row + V * fp16_slot<IN>(0, i) + v) * L::PITCH + (chunk ^ L::flip(V * fp16_slot<IN>(0, i)))];
    }
    /* The products of 16 slots a. Returns the power of two that undoes their scale. With V > 1 points are read twice,
     * because registers do not hold all of them. */
    CF_DEVICE float multiply(smem<float4> line, int u, float (&sum)[V][2][2][4]) const {
        float4 raw[4];
        float most = 0;
#pragma unroll
        for (int v = 0; v < V; ++v) {
            load(line, u, v, raw);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                most = split_larger(most, raw[i]);
        }
        const SplitScale power(split_warp_max(most));
        __syncwarp(); /* V = 1: the other lanes have read what this one overwrites */
#pragma unroll
        for (int v = 0; v < V; ++v) {
            if (V > 1)
                load(line, u, v, raw);
            SplitNumber::word words[4][2];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                split_chunk(words[i], raw[i], power.up);
            fp16_step(matrix, words, sum[v]);
        }
        if (V > 1)
            __syncwarp();
        return power.down;
    }

    /* The V points of result (g, m) of column (e, j), transformed. */
    CF_DEVICE void finish(const float (&sum)[V][2][2][4], int m, int e, int j, cplx (&z)[V]) const {
#pragma unroll
        for (int v = 0; v < V; ++v) {
            z[v] = fp16_sum(sum[v], m, j, e);
            if (v > 0)
                z[v] = z[v] * fp16_twiddled<C::INVERSE>(cf_roots<L::R>.w[v * fp16_result<OUT>(g, m)]);
        }
        fp16_dft<V, C::INVERSE>(z);
    }

    /* Columns 16 u on of a line. */
    CF_DEVICE void run(smem<float4> line, int u) const {
        float sum[V][2][2][4];
        cplx at[V][2]; /* w_N^(16 k2 u) */
#pragma unroll
        for (int v = 0; v < V; ++v)
#pragma unroll
            for (int m = 0; m < 2; ++m)
                at[v][m] = fp16_twiddled<C::INVERSE>(cf_roots<16 * L::R>.w[(fp16_result<OUT>(g, m) + 16 * v) * u]);
        const float down = multiply(line, u, sum);
        const int hidden = V == 1 ? own : fp16_hide(own), to = fp16_result<OUT>(g, 0) * L::PITCH + 8 * u,
                  first = own / 2 ^ (u >> 1 & 7); /* chunk 8 u + c / 2 is at 8 u + (c / 2 ^ u / 2) */
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                cplx z[2][V];
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    finish(sum, m, e, j, z[j]);
#pragma unroll
                    for (int v = 0; v < V; ++v)
                        z[j][v] = z[j][v] * (fp16_times(at[v][m], down) *
                                             (V == 1 ? within[m][e][j] : root(v, m, hidden + fp16_column<IN>(e, j))));
                }
#pragma unroll
                for (int v = 0; v < V; ++v)
                    line[to + (fp16_result<OUT>(0, m) + 16 * v) * L::PITCH + (first ^ fp16_column<IN>(e, 0) / 2)] =
                        float4{z[0][v].x, z[0][v].y, z[1][v].x, z[1][v].y};
            }
    }
};
template <class C> CF_DEVICE void split_long_columns(smem<float4> tile, int live, int lane) {
    typedef SplitLine<C> L;
    const SplitColumns<C> columns(lane / 4, lane % 4); /* while the copies are in flight */
    fp16_wait_async();
    __syncthreads();
#pragma unroll 1
    for (int unit = (int)threadIdx.x / 32; unit < 16 * live; unit += L::WARPS)
        columns.run(tile + unit / 16 * L::LINE, unit % 16);
}
