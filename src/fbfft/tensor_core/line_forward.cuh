/* SPDX-License-Identifier: Apache-2.0 */
/* Real 1-D signals of 256 to 4096 points to frequency-major spectra of 16 bits. The method is in line_twiddles.cuh.
 *
 * A warp transforms rows of one signal: eight rows are the right operand of a product with the N2-point DFT matrix.
 * Rows R j .. R j + R - 1 are neighbours in memory, and one lane loads them. Results go to shared memory as words
 * (re, im):
 *
 *     y[r][k][plane of 8][j], with LINE words from one k to the next; column k = N2 / 2 as FP32 numbers
 *
 * Then each warp transforms columns: 16 words of each of eight signals are the right operand, and the last sums over
 * r and their twiddles stay in registers. Neighbouring lanes store the bins of neighbouring signals. */
#pragma once

#include "fbfft/tensor_core/line_addressing.cuh"
#include "fbfft/tensor_core/line_twiddles.cuh"
#include "fbfft/tensor_core/plane_forward.cuh"

/* Loads R neighbouring points, as they are stored in memory. Points outside the data become zero. */
template <class K, class Line, int R>
CF_DEVICE void mma_neighbours(float (&v)[R], const Line &line, int x, bool whole) {
    constexpr int VECTOR = K::VECTOR;
#pragma unroll
    for (int e = 0; e < R; e += VECTOR) {
        bool in;
        const float *const from = line.at(x + e, whole, in);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            v[e + i] = 0;
        if (!in)
            continue;
        if constexpr (VECTOR == 4) {
            const float4 q = __ldg(reinterpret_cast<const float4 *>(from));
            v[e] = q.x, v[e + 1] = q.y, v[e + 2] = q.z, v[e + 3] = q.w;
        } else if constexpr (VECTOR == 2) {
            const float2 q = __ldg(reinterpret_cast<const float2 *>(from));
            v[e] = q.x, v[e + 1] = q.y;
        } else {
            v[e] = __ldg(from);
        }
    }
}
template <class K, class Line, int WORDS>
CF_DEVICE void mma_neighbours(unsigned (&w)[WORDS], const Line &line, int x, bool whole) {
    constexpr int R = MmaFft<K>::R, VECTOR = K::VECTOR;
#pragma unroll
    for (int i = 0; i < WORDS; ++i)
        w[i] = 0;
#pragma unroll
    for (int e = 0; e < R; e += VECTOR) {
        bool in;
        const unsigned short *const from = line.at(x + e, whole, in);
        if (!in)
            continue;
        if constexpr (VECTOR == 4) {
            const uint2 v = __ldg(reinterpret_cast<const uint2 *>(from));
            w[0] = v.x, w[1] = v.y;
        } else if constexpr (VECTOR == 2) {
            w[e / 2] = __ldg(reinterpret_cast<const unsigned *>(from));
        } else {
            w[e / 2] |= unsigned(__ldg(from)) << (16 * (e % 2));
        }
    }
}

/* Puts points e and e + 1 of a lane into the R rows that start at row R j. */
template <class K>
CF_DEVICE void mma_two_points(MmaRow<K, true> (&rows)[MmaFft<K>::R], int part, int e,
                              const float (&first)[MmaFft<K>::R], const float (&second)[MmaFft<K>::R]) {
#pragma unroll
    for (int r = 0; r < MmaFft<K>::R; ++r) {
        rows[r].of[part][e] = first[r];
        rows[r].of[part][e + 1] = second[r];
    }
}
template <class K, int WORDS>
CF_DEVICE void mma_two_points(MmaRow<K, false> (&rows)[MmaFft<K>::R], int part, int e, const unsigned (&first)[WORDS],
                              const unsigned (&second)[WORDS]) {
#pragma unroll
    for (int r = 0; r < MmaFft<K>::R; ++r)
        rows[r].of[part][e / 2] =
            r % 2 ? first[r / 2] >> 16 | (second[r / 2] & 0xffff0000u) : (first[r / 2] & 0xffffu) | second[r / 2] << 16;
}

/* Loads a lane's points of R neighbouring rows. */
template <class K, class Line> CF_DEVICE void mma_rows_of_line(MmaRow<K> (&rows)[MmaFft<K>::R], const Line &line) {
    typedef MmaFft<K> M;
    typedef typename Choice<K::Storage::PLAIN, float, unsigned>::type Piece;
    constexpr int PIECES = K::Storage::PLAIN ? M::R : (M::R + 1) / 2;
#pragma unroll
    for (int i = 0; i < M::N2 / 4; i += 2) {
        Piece piece[2][PIECES] = {};
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int first = 4 * (i + h) * M::N1;
            if (!mma_empty<K>(first, 4 * M::N1))
                mma_neighbours<K>(piece[h], line, first, mma_whole<K>(first, 4 * M::N1));
        }
        mma_two_points<K>(rows, i / 8, i % 8, piece[0], piece[1]);
    }
}

/* Writes columns 8 m + g of two rows j of each of the R classes to shared memory, times the twiddle w_N^nk and
 * `factor`. Column N2 / 2 is real here: it is written as FP32 numbers, times `factor` only. */
template <class K>
CF_DEVICE void mma_put_line(smem<unsigned> to, const float (&sum)[MmaFft<K>::R][4], float factor, int q, int m) {
    typedef MmaFft<K> M;
    const MmaTwiddles<M::N1, M::N2> &twiddles = mma_twiddles<M::N1, M::N2>;
    const int lane = int(threadIdx.x) % 32, g = lane / 4;
    const bool first = m == 0 && g == 0;
    if (first)
#pragma unroll
        for (int r = 0; r < M::R; ++r)
            smem_cast<uint2>(to + (r * M::COLUMNS + M::N2 / 2) * M::LINE)[0] =
                make_uint2(__float_as_uint(factor * sum[r][2]), __float_as_uint(factor * sum[r][3]));
    MmaRoots row = mma_fetch(&twiddles.row[q][m][lane]);
#pragma unroll
    for (int i = 0; i < 2; ++i)
        row.of[i] = {factor * row.of[i].x, factor * row.of[i].y};
#pragma unroll
    for (int r = 0; r < M::R; r += 2) {
        MmaRoots next = {};
        if (M::R > 1)
            next = mma_fetch(&twiddles.next[m][g][r / 2]);
#pragma unroll
        for (int c = r; c < r + 2 && c < M::R; ++c) {
            unsigned word[2];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const cplx v = {sum[c][i], first ? 0.0f : sum[c][2 + i]};
                const cplx y = v * (c == 0 ? row.of[i] : row.of[i] * next.of[c % 2]);
                word[i] = K::Bins::pack(y.x, y.y);
            }
            smem_cast<uint2>(to + (c * M::COLUMNS + 8 * m + g) * M::LINE)[0] = make_uint2(word[0], word[1]);
        }
    }
}

template <class K>
CF_DEVICE void mma_line_through(const MmaNumbers<K> (&rows)[MmaFft<K>::R], const MmaWords *table, float factor, int q,
                                smem<unsigned> to) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int m = 0; m < M::N2 / 16; ++m) {
        float sum[M::R][4] = {};
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step) {
            if (mma_empty<K>(16 * step * M::N1, 16 * M::N1))
                continue;
            const MmaWords a = mma_fetch(table, m * M::STEPS + step);
#pragma unroll
            for (int r = 0; r < M::R; ++r)
                multiply_bins<typename K::Bins>(sum[r], a.of, rows[r].of[step / 2][step % 2 * 2],
                                                rows[r].of[step / 2][step % 2 * 2 + 1]);
        }
        mma_put_line<K>(to, sum, factor, q, m);
    }
}

/* Transforms rows. A task of a warp is half of the rows of one signal: j = 8 q + g are the columns of the right
 * operand. */
template <class K>
CF_DEVICE void mma_line_rows(smem<unsigned> y, smem<float> parts, const PlaneTable<K> &plane_table,
                             const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef typename K::Storage::bits bits;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MmaWords *const table = &mma_rows<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
#pragma unroll 1
    for (int task = mma_warp<K>(); task < 16; task += M::WARPS) {
        const int p = task / 2, q = task % 2;
        MmaRow<K> raw[M::R];
        mma_rows_of_line<K>(raw, MmaLine<K, const bits>(static_cast<const bits *>(call.in), plane_table, p,
                                                        M::N1 * t + M::R * (8 * q + g)));
        float whole;
        if constexpr (K::FINDS) {
            const float most = absmax_of_warp(mma_absmax<K>(raw));
            whole = mma_power(Factor<K>::exponent(most));
            if (lane == 0)
                parts[task] = most;
        }
        if constexpr (!K::FINDS)
            whole = plane_table.factor(min(p, plane_table.live - 1));
        MmaNumbers<K> rows[M::R];
#pragma unroll
        for (int r = 0; r < M::R; ++r)
            rows[r] = mma_numbers<K>(raw[r], mma_up<K>() * whole);
        mma_line_through<K>(rows, table, (K::Storage::PLAIN ? 1 / mma_up<K>() : whole) / M::GAIN, q,
                            y + (p * 16 + 8 * q + 2 * t));
    }
}

/* Transforms columns; a warp takes every WARPS-th one. BOTH: mma_stores_both() is true. */
template <class K, bool BOTH>
CF_DEVICE void mma_line_columns_of(smem<unsigned> from, const MmaSquare &re, const MmaSquare &im, unsigned *out,
                                   long long second, int live, long long unit, unsigned share) {
    typedef MmaFft<K> M;
    const int g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
    const long long down = bin_of<K>(0, 0, 8 * M::N2, unit);
    cplx twiddle[2][M::R]; /* of m = g and g + 8 */
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int r = 1; r < M::R; ++r)
            twiddle[h][r] = cf_roots<M::N1>.w[r * (g + 8 * h)];
#pragma unroll 1
    for (int column = mma_warp<K>(); column < M::COLUMNS; column += M::WARPS) {
        float x[M::R][4] = {}, y[M::R][4] = {};
#pragma unroll
        for (int r = 0; r < M::R; ++r) {
            const uint4 w = smem_cast<uint4>(from)[(r * M::COLUMNS + column) * (M::LINE / 4)];
            unsigned b[4] = {w.x, w.y, w.z, w.w};
            if (column == M::N2 / 2)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const cplx root = cf_roots<2 * M::N1>.w[M::R * (4 * t + i) + r];
                    const float number = __uint_as_float(b[i]);
                    b[i] = K::Bins::pack(number * root.x, number * root.y);
                }
            if constexpr (K::FINDS)
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    b[i] = product_of_fp16(b[i], share);
            mma_column<K>(x[r], re, b);
            mma_column<K>(y[r], im, b);
        }
        const int bin = column + M::N2 * g;
        unsigned *const to = out + bin_of<K>(0, 0, bin, unit), *const image =
                                                                   out + bin_of<K>(0, 0, M::N1 * M::N2 - bin, unit);
        const bool own = column == 0 || column == M::N2 / 2, last = column == 0 && g == 0; /* this lane has bin N / 2 */
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            cplx v[2][M::R];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
#pragma unroll
                for (int r = 0; r < M::R; ++r) {
                    v[e][r] = {x[r][2 * h + e], y[r][2 * h + e]};
                    if (r > 0)
                        v[e][r] = v[e][r] * twiddle[h][r];
                }
                dft<M::R>(v[e]);
            }
#pragma unroll
            for (int c = 0; c < M::R; ++c) {
                const int eighth = 2 * c + h;
                const bool mirrored = 8 * eighth >= M::N1 / 2;
                if (mirrored && own && !(8 * eighth == M::N1 / 2 && last))
                    continue;
                const float sign = mirrored ? -1.0f : 1.0f;
                unsigned *const at = mirrored ? image - eighth * down : to + eighth * down;
                mma_store_two<BOTH>(at, second, live, K::Bins::pack(v[0][c].x, sign * v[0][c].y),
                                    K::Bins::pack(v[1][c].x, sign * v[1][c].y));
            }
        }
    }
}

template <class K>
CF_DEVICE void mma_line_columns(smem<unsigned> y, smem<float> parts, const PlaneTable<K> &plane_table,
                                const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    unsigned share = 0; /* rescales the words of plane g; the words from j = 4 t on belong to one half */
    if constexpr (K::FINDS)
        share = mma_share<K>(parts[2 * g + t / 2], mma_plane_group_exponent<K>(parts, call));
    const MmaSquare re = mma_square(&mma_columns<M::SCALED, false, false, 0>.of[0][lane]);
    const MmaSquare im = mma_imaginary(re);
    const long long plane = plane_table.spectrum(2 * t), second = plane_table.spectrum(2 * t + 1) - plane;
    unsigned *const out = static_cast<unsigned *>(call.out) + plane;
    const int live = plane_table.live - 2 * t;
    if (mma_stores_both<K>(plane_table, call))
        mma_line_columns_of<K, true>(y + 4 * lane, re, im, out, second, live, call.bin_unit, share);
    else
        mma_line_columns_of<K, false>(y + 4 * lane, re, im, out, second, live, call.bin_unit, share);
}

template <class K> CF_DEVICE void mma_line_forward(const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> y = smem_cast<unsigned>(shared + M::G::TABLE) + mma_plane_group<K>() * M::FORWARD;
    smem<float> parts = smem_cast<float>(y + (M::FORWARD - M::PARTS));
    const PlaneTable<K> all = find_planes<K, false>(shared, call),
                        plane_table = mma_places<K>(all, mma_plane_group<K>());
    if constexpr (K::Bins::SCALED && !K::FINDS) {
        find_factors<K>(shared, call, all.live);
        __syncthreads();
    }
    if (M::PLANE_GROUPS == 1 || plane_table.live > 0)
        mma_line_rows<K>(y, parts, plane_table, call);
    __syncthreads();
    if (M::PLANE_GROUPS == 1 || plane_table.live > 0)
        mma_line_columns<K>(y, parts, plane_table, call);
}
