/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real 1-D transforms of N points (N even), in one kernel. A line is one such transform.
 *
 * A line is read as H = N / 2 complex numbers z[i] = x[2i] + i x[2i + 1]. Their transform Z gives the transform of x by
 * Hermitian symmetry:
 *
 *     X[k] = E[k] + w_N^k O[k],   E[k] = (Z[k] + conj Z[H - k]) / 2,   O[k] = (Z[k] - conj Z[H - k]) / 2i
 *
 * So lines share nothing.
 *
 * Constants of a config K:
 *
 *     N, IN       points of the transform; points that hold data (forward) or are wanted (inverse)
 *     L           lanes of a line
 *     LINES       lines of a block, a multiple of 32 / L
 *     SCALED      false if the scale of a forward transform is 1
 *     ALIGNED     spectra begin at multiples of 16 bytes
 *     QUADS       signals of IN points begin at multiples of 16 bytes
 *
 * Memory: real [line][IN]; spectrum [line][N / 2 + 1].
 */
#pragma once

#include "fbfft/common/async_copy.cuh"
#include "fbfft/warp/geometry.h"
#include "fbfft/warp/warp_line.cuh"

template <class K> struct Real1d {
    static constexpr int H = K::N / 2, BINS = H + 1, T = K::LINES * K::L, LINES_PER_WARP = 32 / K::L;
    static constexpr int STAGE = cf_fft_stage_1d(K::IN), SHARED = cf_fft_shared_1d(K::LINES, K::N, K::IN);
    static CF_DEVICE int line_at(int i) { return i * STAGE * int(sizeof(real)); }
    static CF_DEVICE int block_at(int i) { return 0 * i; }
};

/* X[k] and X[H - k] from Z[k] and Z[H - k]. */
template <int N> CF_DEVICE void split(cplx &a, cplx &b, cplx root) {
    const cplx even = times_half(a + conj(b)), odd = root * times_minus_i(times_half(a - conj(b)));
    a = even + odd;
    b = conj(even - odd);
}
/* Twice Z[k] and Z[H - k] from X[k] and X[H - k]; `root` as in split(). */
CF_DEVICE void merge(cplx &a, cplx &b, cplx root) {
    const cplx even = a + conj(b), odd = times_i(conj(root) * (a - conj(b)));
    a = even + odd;
    b = conj(even - odd);
}

/* A lane's points of a line, two reals in one complex number. `own`: the line in shared memory; zeros follow it. */
template <class K> CF_DEVICE void line_in(cplx *v, smem<real> own, int lane, real scale) {
    constexpr int R = Real1d<K>::H / K::L, C = R / K::L;
    unroll<0, K::L>([&](auto j) {
        real points[2 * C];
        if constexpr (2 * (R * j + R) <= K::IN) {
            read_reals<2 * C, K::IN % 4 == 0>(points, own + 2 * (R * j + C * lane));
        } else {
#pragma unroll
            for (int q = 0; q < 2 * C; ++q) {
                const int i = 2 * (R * j + C * lane) + q;
                points[q] = 2 * R * j < K::IN && i < K::IN ? own[i] : real(0);
            }
        }
#pragma unroll
        for (int q = 0; q < C; ++q) {
            v[C * j + q] = {points[2 * q], points[2 * q + 1]};
            if (K::SCALED)
                v[C * j + q] = {scale * points[2 * q], scale * points[2 * q + 1]};
        }
    });
}

/* The inverse of line_in(). */
template <class K> CF_DEVICE void line_out(smem<real> own, const cplx *v, int lane, real scale) {
    constexpr int R = Real1d<K>::H / K::L, C = R / K::L;
    unroll<0, K::L>([&](auto j) {
#pragma unroll
        for (int q = 0; q < C; ++q) {
            const int i = 2 * (R * j + C * lane + q);
            const cplx z = {scale * v[C * j + q].x, scale * v[C * j + q].y};
            if (i + 1 < K::IN && K::IN % 2 == 0)
                smem_cast<cplx>(own)[i / 2] = z;
            else {
                if (i < K::IN)
                    own[i] = z.x;
                if (i + 1 < K::IN)
                    own[i + 1] = z.y;
            }
        }
    });
}

/* The spectra of a block in shared memory, from the lanes' transforms of half the points. */
template <class K> CF_DEVICE void split_block(smem<cplx> spectrum, cplx *v, int line, int lane) {
    using P = Real1d<K>;
    smem<cplx> out = spectrum + line * P::BINS;
    if constexpr (K::L == 1) {
        const cplx z = v[0];
        v[0] = {z.x + z.y, 0};
        out[P::H] = {z.x - z.y, 0};
        unroll<1, P::H / 2 + 1>([&](auto k) {
            constexpr cplx root = {real(cf_cos(k, K::N)), real(-cf_sin(k, K::N))};
            cplx a = v[k], b = v[P::H - k];
            split<K::N>(a, b, root);
            v[k] = a;
            v[P::H - k] = 2 * k == P::H ? a : b;
        });
#pragma unroll
        for (int k = 0; k < P::H; ++k)
            out[k] = v[k];
    } else {
#pragma unroll
        for (int r = 0; r < P::H / K::L; ++r)
            out[lane + K::L * r] = v[r];
        __syncthreads();
        constexpr int PAIRS = P::H / 2 + 1;
#pragma unroll 4
        for (int n = (int)threadIdx.x; n < K::LINES * PAIRS; n += P::T) {
            const int k = n % PAIRS;
            smem<cplx> z = spectrum + n / PAIRS * P::BINS;
            cplx a = z[k], b = z[k ? P::H - k : 0];
            split<K::N>(a, b, cf_roots<K::N>.w[k]);
            z[P::H - k] = b;
            z[k] = a;
        }
    }
}

/* The inverse of split_block(). Imaginary parts of bins 0 and N / 2 are ignored. */
template <class K> CF_DEVICE void merge_block(cplx *v, smem<cplx> spectrum, int line, int lane) {
    using P = Real1d<K>;
    smem<cplx> in = spectrum + line * P::BINS;
    if constexpr (K::L == 1) {
#pragma unroll
        for (int k = 0; k < P::H; ++k)
            v[k] = in[k];
        const cplx top = in[P::H];
        v[0] = {v[0].x + top.x, v[0].x - top.x};
        unroll<1, P::H / 2 + 1>([&](auto k) {
            constexpr cplx root = {real(cf_cos(k, K::N)), real(-cf_sin(k, K::N))};
            cplx a = v[k], b = v[P::H - k];
            merge(a, b, root);
            v[k] = a;
            v[P::H - k] = 2 * k == P::H ? a : b;
        });
    } else {
        constexpr int PAIRS = P::H / 2 + 1;
#pragma unroll 4
        for (int n = (int)threadIdx.x; n < K::LINES * PAIRS; n += P::T) {
            const int k = n % PAIRS;
            smem<cplx> z = spectrum + n / PAIRS * P::BINS;
            cplx a = z[k], b = z[P::H - k];
            if (k == 0) {
                a = {a.x, 0};
                b = {b.x, 0};
            }
            merge(a, b, cf_roots<K::N>.w[k]);
            if (k > 0)
                z[P::H - k] = b;
            z[k] = a;
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < P::H / K::L; ++r)
            v[r] = in[lane + K::L * r];
    }
}

template <class K>
CF_DEVICE void real1d_forward(const real *__restrict__ x, cplx *__restrict__ y, real scale, long long batch) {
    using P = Real1d<K>;
    const long long first = (long long)blockIdx.x * K::LINES;
    const int lines = batch - first >= K::LINES ? K::LINES : (int)(batch - first);
    smem<char> shared = cf_dynamic_shared<char>();
    const real *from = x + first * K::IN;
    if constexpr (K::QUADS) {
        copy_in<P::T, K::LINES, K::IN *int(sizeof(real))>(
            shared, [](int i) { return P::line_at(i); }, (const char *)from, lines);
    } else {
        for (int n = (int)threadIdx.x; n < lines * K::IN; n += P::T)
            smem_cast<real>(shared + P::line_at(n / K::IN))[n % K::IN] = __ldg(from + n);
    }
    __syncthreads();
    const int line = (int)threadIdx.x / 32 * P::LINES_PER_WARP + (int)threadIdx.x % P::LINES_PER_WARP;
    const int lane = (int)threadIdx.x % 32 / P::LINES_PER_WARP;
    cplx v[P::H / K::L];
    line_in<K>(v, smem_cast<real>(shared + P::line_at(line < lines ? line : 0)), lane, scale);
    __syncthreads();
    line_forward<P::H, K::L, (K::IN + 1) / 2>(v, lane);
    split_block<K>(smem_cast<cplx>(shared), v, line, lane);
    __syncthreads();
    constexpr int BLOCK = K::LINES * P::BINS * int(sizeof(cplx));
    cplx *to = y + first * P::BINS;
    if (K::ALIGNED && lines == K::LINES && BLOCK % 16 == 0) {
        copy_out<P::T, 1, BLOCK / 16 * 16>((char *)to, shared, [](int i) { return P::block_at(i); }, 1);
    } else {
        for (int n = (int)threadIdx.x; n < lines * P::BINS * 2; n += P::T)
            reinterpret_cast<real *>(to)[n] = smem_cast<real>(shared)[n];
    }
}

template <class K>
CF_DEVICE void real1d_inverse(const cplx *__restrict__ y, real *__restrict__ x, real scale, long long batch) {
    using P = Real1d<K>;
    const long long first = (long long)blockIdx.x * K::LINES;
    const int lines = batch - first >= K::LINES ? K::LINES : (int)(batch - first);
    smem<char> shared = cf_dynamic_shared<char>();
    const cplx *from = y + first * P::BINS;
    constexpr int BLOCK = K::LINES * P::BINS * int(sizeof(cplx));
    if (K::ALIGNED && lines == K::LINES && BLOCK % 16 == 0) {
        copy_in<P::T, 1, BLOCK / 16 * 16>(
            shared, [](int i) { return P::block_at(i); }, (const char *)from, 1);
    } else {
        for (int n = (int)threadIdx.x; n < K::LINES * P::BINS * 2; n += P::T)
            smem_cast<real>(shared)[n] = n < lines * P::BINS * 2 ? reinterpret_cast<const real *>(from)[n] : real(0);
    }
    __syncthreads();
    const int line = (int)threadIdx.x / 32 * P::LINES_PER_WARP + (int)threadIdx.x % P::LINES_PER_WARP;
    const int lane = (int)threadIdx.x % 32 / P::LINES_PER_WARP;
    cplx v[P::H / K::L];
    merge_block<K>(v, smem_cast<cplx>(shared), line, lane);
    __syncthreads();
    line_inverse<P::H, K::L>(v, lane);
    line_out<K>(smem_cast<real>(shared + P::line_at(line)), v, lane, scale);
    __syncthreads();
    real *to = x + first * K::IN;
    if constexpr (K::QUADS) {
        copy_out<P::T, K::LINES, K::IN *int(sizeof(real))>((char *)to, shared, [](int i) { return P::line_at(i); },
                                                           lines);
    } else {
        for (int n = (int)threadIdx.x; n < lines * K::IN; n += P::T)
            to[n] = smem_cast<real>(shared + P::line_at(n / K::IN))[n % K::IN];
    }
}
