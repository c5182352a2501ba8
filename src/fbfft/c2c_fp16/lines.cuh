/* SPDX-License-Identifier: Apache-2.0 */
/* FP16 complex transforms of 2 to 512 points of contiguous rows, without shared memory: [row][point] to [row][bin].
 *
 *     2 to 8 points      one thread per row
 *     16 to 128 points   a warp transforms eight rows at a time (16 for 16 points); rows are columns of the product
 *     256, 512 points    a warp transforms one row at a time, with two products
 *
 * No two rows share a column of a product, so a NaN stays in its row. */
#pragma once

#include "fbfft/common/fp16_dft.cuh"

template <int WORDS> struct Fp16Wide;
template <> struct Fp16Wide<2> { typedef uint2 type; };
template <> struct Fp16Wide<4> { typedef uint4 type; };
CF_DEVICE void fp16_spread(uint2 from, unsigned *to) { to[0] = from.x, to[1] = from.y; }
CF_DEVICE void fp16_spread(uint4 from, unsigned *to) { to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w; }

/* Reads WORDS words from an address that is a multiple of their size, or zeros. */
template <int WORDS> CF_DEVICE void fp16_read(const unsigned *from, bool inside, unsigned *to) {
    typedef typename Fp16Wide<WORDS>::type vector_width;
    fp16_spread(inside ? __ldcs(reinterpret_cast<const vector_width *>(from)) : vector_width{}, to);
}

/* -------------------------------------------------------------------------------------- 2 to 8 points: one thread
 * per row */

/* C has LOG_N, INVERSE, THREADS, EACH (rows of a thread) and gain(). */
template <class C> CF_DEVICE void fp16_short(const unsigned *in, unsigned *out, long long lines) {
    constexpr int N = 1 << C::LOG_N, VECTOR = N < 4 ? N : 4;
    const long long first = (long long)blockIdx.x * (C::THREADS * C::EACH) + threadIdx.x;
    unsigned w[C::EACH][N];
#pragma unroll
    for (int l = 0; l < C::EACH; ++l)
#pragma unroll
        for (int p = 0; p < N; p += VECTOR) {
            const long long line = first + l * C::THREADS;
            fp16_read<VECTOR>(in + (line < lines ? line : 0) * N + p, line < lines, &w[l][p]);
        }
#pragma unroll
    for (int l = 0; l < C::EACH; ++l) {
        cplx v[N];
#pragma unroll
        for (int p = 0; p < N; ++p)
            v[p] = unpack_fp16(w[l][p]);
        fp16_dft<N, C::INVERSE>(v);
        const long long line = first + l * C::THREADS;
#pragma unroll
        for (int p = 0; p < N; p += VECTOR) {
            unsigned r[VECTOR];
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                r[i] = fp16_pack(fp16_times(v[p + i], C::gain(0, 1)));
            unsigned *const to = out + line * N + p;
            if constexpr (VECTOR == 2) {
                if (line < lines)
                    __stcs(reinterpret_cast<uint2 *>(to), uint2{r[0], r[1]});
            } else if (line < lines) {
                __stcs(reinterpret_cast<uint4 *>(to), uint4{r[0], r[1], r[2], r[3]});
            }
        }
    }
}

/* --------------------------------------------------------------- 16 to 128 points: eight rows are the columns of a
 * product */

/* Point n = R a + b: 16 slots a, and one product for each b. Then R points are transformed in registers. Bin k1 + 16
 * k2, where k1 = 2 g + m. */
template <int R> struct Fp16Eights {
    static constexpr int N = 16 * R, J = R > 1 ? 1 : 2, STEPS = R > 1 ? R / 2 : 1, LINES = 8 * J;
    static constexpr int IN = R > 1 ? 0x3210 : 0x0132, OUT = 0x0321;
    unsigned in[STEPS][4][2];

    /* With R = 1 the two columns of a lane are two groups of eight rows instead of two values of b, and slots are 4 t
     * + i. */
    CF_DEVICE void load(const unsigned *from, long long first, long long lines, int g, int t) {
#pragma unroll
        for (int j = 0; j < J; ++j) {
            const long long line = first + g + 8 * j;
            const bool inside = line < lines;
            const unsigned *const at = from + (inside ? line : 0) * N;
            if constexpr (R == 1) {
                unsigned w[4];
                fp16_read<4>(at + 4 * t, inside, w);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    in[0][i][j] = w[i];
            } else {
                constexpr int VECTOR = R < 4 ? R : 4;
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int b = 0; b < R; b += VECTOR) {
                        unsigned w[VECTOR];
                        fp16_read<VECTOR>(at + fp16_slot<IN>(t, i) * R + b, inside, w);
#pragma unroll
                        for (int k = 0; k < VECTOR; ++k)
                            in[(b + k) / 2][i][k % 2] = w[k];
                    }
            }
        }
    }
};

/* The twiddles W_N^(b k1) for both k1 of a lane. */
template <class C, int R> struct Fp16Factors {
    cplx w[2][R];
    CF_DEVICE explicit Fp16Factors(int g) {
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
            for (int b = 1; b < R; ++b)
                w[m][b] = fp16_twiddled<C::INVERSE>(cf_roots<16 * R>.w[b * (2 * g + m)]);
    }
};

template <class C, int R, class M>
CF_DEVICE void fp16_eights_run(const Fp16Eights<R> &data, const M &matrix, const Fp16Factors<C, R> &factors,
                               unsigned *out, long long first, long long lines, int g, int t) {
    typedef Fp16Eights<R> E;
    float sum[E::STEPS][2][2][4];
#pragma unroll
    for (int s = 0; s < E::STEPS; ++s)
        fp16_step(matrix, data.in[s], sum[s]);
#pragma unroll
    for (int j = 0; j < E::J; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            unsigned w[2][R];
#pragma unroll
            for (int m = 0; m < 2; ++m) {
                cplx v[R];
#pragma unroll
                for (int b = 0; b < R; ++b) {
                    v[b] = fp16_sum(sum[b / 2], m, R > 1 ? b % 2 : j, e);
                    if (b > 0)
                        v[b] = v[b] * factors.w[m][b];
                }
                fp16_dft<R, C::INVERSE>(v);
#pragma unroll
                for (int k2 = 0; k2 < R; ++k2)
                    w[m][k2] = fp16_pack(fp16_times(v[k2], C::gain(0, 1)));
            }
            const long long line = first + 8 * j + 2 * t + e;
            if (line < lines)
#pragma unroll
                for (int k2 = 0; k2 < R; ++k2)
                    __stcs(reinterpret_cast<uint2 *>(out + (line * E::N + 16 * k2 + 2 * g)), uint2{w[0][k2], w[1][k2]});
        }
}

/* A warp has EACH times ROUNDS groups of rows. It loads EACH groups before it computes. */
template <class C> CF_DEVICE void fp16_eights(const unsigned *in, unsigned *out, long long lines) {
    constexpr int R = 1 << (C::LOG_N - 4);
    typedef Fp16Eights<R> E;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const Fp16Matrix<16, E::IN, E::OUT, C::INVERSE> matrix(g, t);
    const Fp16Factors<C, R> factors(g);
    const long long warp = (long long)blockIdx.x * (C::THREADS / 32) + threadIdx.x / 32;
#pragma unroll 1
    for (int round = 0; round < C::ROUNDS; ++round) {
        const long long first = (warp * C::ROUNDS + round) * (E::LINES * C::EACH);
        Fp16Eights<R> data[C::EACH];
#pragma unroll
        for (int l = 0; l < C::EACH; ++l)
            data[l].load(in, first + l * E::LINES, lines, g, t);
#pragma unroll
        for (int l = 0; l < C::EACH; ++l)
            fp16_eights_run<C, R>(data[l], matrix, factors, out, first + l * E::LINES, lines, g, t);
    }
}

/* ------------------------------------------------------------------- 256 and 512 points: two products, one after the
 * other */

/* Point n = V (16 a + b) + n2, with slots a and columns b. Bin k1 + 16 k2 + 256 k3. A lane has four neighbouring k1,
 * which it stores at once. */
template <class C> CF_DEVICE void fp16_long(const unsigned *in, unsigned *out, long long lines) {
    constexpr int V = 1 << (C::LOG_N - 8), N = 256 * V, IN = 0x0132, OUT = 0x1320;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const Fp16Matrix<16, IN, OUT, C::INVERSE> matrix(g, t);
    const Fp16Twiddles<16, IN, OUT, C::INVERSE> twiddles(g, t, C::gain(0, 0));
    const long long warp = (long long)blockIdx.x * (C::THREADS / 32) + threadIdx.x / 32;
#pragma unroll 1
    for (int round = 0; round < C::ROUNDS; ++round) {
        const long long first = (warp * C::ROUNDS + round) * C::EACH;
        unsigned data[C::EACH][V][4][2];
#pragma unroll
        for (int l = 0; l < C::EACH; ++l)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const bool inside = first + l < lines;
                unsigned w[2 * V];
                fp16_read<2 * V>(in + (inside ? first + l : 0) * N + fp16_slot<IN>(t, i) * (16 * V) + 2 * V * g, inside,
                                 w);
#pragma unroll
                for (int k = 0; k < 2 * V; ++k)
                    data[l][k % V][i][k / V] = w[k];
            }
#pragma unroll
        for (int l = 0; l < C::EACH; ++l) {
            float sum[V][2][2][4];
#pragma unroll
            for (int v = 0; v < V; ++v) {
                unsigned next[4][2];
                fp16_step(matrix, data[l][v], sum[v]);
                twiddles.apply(sum[v], next);
                fp16_step(matrix, next, sum[v]);
            }
            if (first + l >= lines)
                return;
#pragma unroll
            for (int x = 0; x < 2; ++x) {
                unsigned w[V][4];
#pragma unroll
                for (int e = 0; e < 2; ++e)
#pragma unroll
                    for (int m = 0; m < 2; ++m) {
                        const int k = fp16_result<OUT>(2 * t + e, m) + 16 * fp16_result<OUT>(g, x);
                        cplx v[V];
#pragma unroll
                        for (int n2 = 0; n2 < V; ++n2)
                            v[n2] = fp16_sum(sum[n2], x, m, e);
                        if constexpr (V == 2)
                            v[1] = v[1] * fp16_root<C::INVERSE>((unsigned)k << 23, 1);
                        fp16_dft<V, C::INVERSE>(v);
#pragma unroll
                        for (int k3 = 0; k3 < V; ++k3)
                            w[k3][e + 2 * m] = fp16_pack(fp16_times(v[k3], C::gain(0, 1)));
                    }
#pragma unroll
                for (int k3 = 0; k3 < V; ++k3)
                    __stcs(reinterpret_cast<uint4 *>(
                               out + ((first + l) * N + 256 * k3 + 16 * fp16_result<OUT>(g, x) + 4 * t)),
                           uint4{w[k3][0], w[k3][1], w[k3][2], w[k3][3]});
            }
        }
    }
}

template <class C> CF_DEVICE void fp16_lines(const unsigned *in, unsigned *out, long long lines) {
    if constexpr (C::LOG_N < 4)
        fp16_short<C>(in, out, lines);
    else if constexpr (C::LOG_N < 8)
        fp16_eights<C>(in, out, lines);
    else
        fp16_long<C>(in, out, lines);
}
