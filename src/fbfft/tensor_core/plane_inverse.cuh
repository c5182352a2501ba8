/* SPDX-License-Identifier: Apache-2.0 */
/* Frequency-major spectra of 16 bits to real planes. The method and the layouts are in plane.cuh.
 *
 * First warps transform columns and write words (re, im) to shared memory: z[plane][column][row], or
 * [column][row][plane] in channels-last layout. Then they transform rows by products, add the bias, and store points.
 *
 * Lanes that cannot store eight bytes at a time put their points where the words were that their warp has read
 * (plane_rows.cuh). From there the warp stores whole rows: neighbouring lanes store neighbouring words of memory. */
#pragma once

#include "fbfft/tensor_core/plane_rows.cuh"

/* Loads a lane's words of a column of one plane: bins 4 R t to 4 R t + 4 R - 1. */
template <class K> CF_DEVICE void mma_bins(unsigned *w, const unsigned *plane, int column, int t, long long unit) {
    typedef MmaFft<K> M;
    const unsigned *from = plane + bin_of<K>(0, 4 * M::R * t, column, unit);
    const long long down = bin_of<K>(0, 1, 0, unit);
#pragma unroll
    for (int i = 0; i < 4 * M::R; ++i)
        w[i] = __ldcs(from + i * down);
}

/* u += the products of a column's words, for each class. The matrix for real parts gives imaginary parts when words
 * are changed to (im, -re); sign: the bit that this changes. */
template <class K>
CF_DEVICE void mma_classes(float (&u)[MmaFft<K>::R][2][4], const MmaSquare &a, const unsigned *w,
                           unsigned sign = 0x80000000u) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int c = 0; c < M::R; ++c) {
        const unsigned b[4] = {w[c], w[M::R + c], w[2 * M::R + c], w[3 * M::R + c]};
        unsigned rotated[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            rotated[i] = mma_swapped(b[i]) ^ sign;
        mma_column<K>(u[c][0], a, b);
        mma_column<K>(u[c][1], a, rotated);
    }
}

/* Bins of column 0 or N2 / 2 that are their own mirror images are real: clears their imaginary parts. */
CF_DEVICE void mma_mirrors(unsigned *w, int t) {
    if (t % 2 == 0)
        w[0] = w[0] & 0xffffu;
}

/* The twiddles of the classes of rows j = g and g + 8. */
template <class K> CF_DEVICE void mma_twiddles_back(cplx (&twiddle)[2][MmaFft<K>::R], int g) {
#pragma unroll
    for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int c = 1; c < MmaFft<K>::R; ++c)
            twiddle[h][c] = conj(cf_roots<MmaFft<K>::N1>.w[c * (g + 8 * h)]);
}

template <class K>
CF_DEVICE void mma_inverse_columns(smem<unsigned> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const unsigned *const plane = static_cast<const unsigned *>(call.in) + plane_table.spectrum(g);
    unsigned next[4 * M::R];
    mma_bins<K>(next, plane, mma_warp<K>(), t, call.bin_unit);
    const MmaSquare a = mma_square(&mma_columns<M::SCALED, true, false, M::DOWN>.of[0][lane]);
    cplx twiddle[2][M::R];
    mma_twiddles_back<K>(twiddle, g);
    smem<unsigned> own = z + (M::INTERLEAVED ? 8 * g + 2 * t : 2 * t * M::PLANE + g);
#pragma unroll 1
    for (int k = mma_warp<K>(); k < M::N2 / 2; k += M::WARPS) {
        unsigned w[4 * M::R];
        float u[M::R][2][4] = {};
#pragma unroll
        for (int i = 0; i < 4 * M::R; ++i)
            w[i] = next[i];
        if (k == 0) { /* both real columns at once, the second one times i */
            mma_bins<K>(next, plane, M::N2 / 2, t, call.bin_unit);
            mma_mirrors(w, t);
            mma_mirrors(next, t);
#pragma unroll
            for (int i = 0; i < 4 * M::R; ++i)
                next[i] = mma_swapped(next[i]) ^ 0x8000u;
            mma_classes<K>(u, a, next);
        }
        if (k + M::WARPS < M::N2 / 2)
            mma_bins<K>(next, plane, k + M::WARPS, t, call.bin_unit);
        mma_classes<K>(u, a, w);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            unsigned words[2][M::TILES]; /* of planes 2 t and 2 t + 1 */
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                cplx v[M::R];
#pragma unroll
                for (int c = 0; c < M::R; ++c) {
                    v[c] = {u[c][0][2 * h + e], u[c][1][2 * h + e]};
                    if (c > 0)
                        v[c] = v[c] * twiddle[h][c];
                }
                dft_inverse<M::R>(v);
#pragma unroll
                for (int r = 0; r < M::TILES; ++r)
                    words[e][r] = K::Bins::pack(v[M::FIRST + r].x, v[M::FIRST + r].y);
            }
#pragma unroll
            for (int r = 0; r < M::TILES; ++r) {
                const int row = 16 * r + 8 * h;
                if constexpr (M::INTERLEAVED) {
                    smem_cast<uint2>(own + (k * M::WORD + 8 * row))[0] = make_uint2(words[0][r], words[1][r]);
                } else {
                    own[k * M::WORD + row] = words[0][r];
                    own[M::PLANE + k * M::WORD + row] = words[1][r];
                }
            }
        }
    }
}

/* Stores VECTOR numbers of a row. */
template <class K, int VECTOR> CF_DEVICE void mma_write(float *to, const float *u) {
    if constexpr (VECTOR == 4)
        *reinterpret_cast<float4 *>(to) = make_float4(u[0], u[1], u[2], u[3]);
    else if constexpr (VECTOR == 2)
        *reinterpret_cast<float2 *>(to) = make_float2(u[0], u[1]);
    else
        *to = u[0];
}
template <class K, int VECTOR> CF_DEVICE void mma_write(unsigned short *to, const float *u) {
    if constexpr (VECTOR == 8)
        *reinterpret_cast<uint4 *>(to) = make_uint4(K::Bins::pack(u[0], u[1]), K::Bins::pack(u[2], u[3]),
                                                    K::Bins::pack(u[4], u[5]), K::Bins::pack(u[6], u[7]));
    else if constexpr (VECTOR == 4)
        *reinterpret_cast<uint2 *>(to) = make_uint2(K::Bins::pack(u[0], u[1]), K::Bins::pack(u[2], u[3]));
    else if constexpr (VECTOR == 2)
        *reinterpret_cast<unsigned *>(to) = K::Bins::pack(u[0], u[1]);
    else
        *to = K::Storage::rounded(u[0]);
}

/* Stores a lane's eight numbers of 32 points of a row. */
template <class K>
CF_DEVICE void mma_put_row(const float v[8], typename K::Storage::bits *row, int part, int t, int start, float bias,
                           bool accumulate) {
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    constexpr int VECTOR = K::VECTOR;
#pragma unroll
    for (int e = 0; e < 8; e += VECTOR) {
        const int x = mma_point<MmaFft<K>::WAY>(part, t, e);
        bool in = x >= G::template lo<2>() && x < G::template hi<2>();
        const Offset at = offset_of<K, 2, Offset>(in ? x : G::template lo<2>(), start, in);
        if (!in)
            continue;
        typename K::Storage::bits *const to = row + at;
        float u[VECTOR];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            u[i] = v[e + i] + bias;
        if (accumulate) {
#pragma unroll
            for (int i = 0; i < VECTOR; ++i)
                u[i] += K::Storage::load(to + i);
        }
        mma_write<K, VECTOR>(to, u);
    }
}

/* The product of 16 rows with the matrix, for 32 points. */
template <class K>
CF_DEVICE void mma_row_part(float (&sum)[4][4], const unsigned (&a)[MmaFft<K>::STEPS][4], const MmaWords *table,
                            int part) {
    typedef MmaFft<K> M;
#pragma unroll
    for (int n = 0; n < 4; ++n) {
#pragma unroll
        for (int pair = 0; pair < M::N2 / 32; ++pair) {
            const MmaWords b = mma_fetch(table, (4 * part + n) * (M::N2 / 32) + pair);
            multiply_bins<typename K::Bins>(sum[n], a[2 * pair], b.of[0], b.of[1]);
            multiply_bins<typename K::Bins>(sum[n], a[2 * pair + 1], b.of[2], b.of[3]);
        }
    }
}

template <class K>
CF_DEVICE void mma_inverse_rows(smem<unsigned> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    typedef typename K::Storage::bits bits;
    typedef MmaRowStage<K> Stage;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MmaWords *const table = &mma_points<M::SCALED, M::N2, M::WAY>.of[0][0][lane];
#pragma unroll 1
    for (int task = int(threadIdx.x) / 32; task < plane_table.live * M::TILES; task += M::WARPS) {
        const int p = task / M::TILES, m = task % M::TILES;
        smem<unsigned> from = z + (p * M::PLANE + 16 * m + g + t * M::WORD);
        unsigned a[M::STEPS][4];
#pragma unroll
        for (int step = 0; step < M::STEPS; ++step)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                a[step][i] = from[(8 * step + i / 2 * 4) * M::WORD + i % 2 * 8];
        const float factor = float(call.scale) * (float(2 << M::DOWN) / M::GAIN) * plane_table.factor(p);
        float bias = 0;
        if (call.bias)
            bias = bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS + plane_table.channel(p));
        bool always = true;
        const Offset plane = offset_of<K, 0, Offset>(G::template lo<0>(), plane_table.template start<0>(p), always);
        bits *const signal = static_cast<bits *>(call.out) + plane_table.signal(p) + plane;
        const Stage stage = {z + (p * M::PLANE + 16 * m)};
        const bool staged = Stage::USED && !call.accumulate;
        const auto store = [&](int row, int x) {
            __syncwarp();
            if (always)
                stage.store(signal, plane_table, p, 16 * (M::FIRST + m) + row, x);
            __syncwarp();
        };
        if (staged)
            __syncwarp(); /* all lanes have read their words */
        bits *row[2];
        bool inside[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int j = 16 * (M::FIRST + m) + g + 8 * h;
            inside[h] = always && j >= G::template lo<1>() && j < G::template hi<1>();
            row[h] = signal + offset_of<K, 1, Offset>(inside[h] ? j : G::template lo<1>(),
                                                      plane_table.template start<1>(p), inside[h]);
        }
#pragma unroll
        for (int part = 0; part < M::N2 / 32; ++part) {
            if (32 * part >= G::template hi<2>() || 32 * part + 32 <= G::template lo<2>())
                continue;
            float sum[4][4] = {};
            mma_row_part<K>(sum, a, table, part);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float v[8];
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    v[i] = factor * sum[i / 2][2 * h + i % 2];
                if (staged) {
                    stage.put(v, Stage::WHOLE ? g + 8 * h : g, part, t, bias);
                    if (!Stage::WHOLE)
                        store(8 * h, 32 * part);
                } else if (inside[h]) {
                    mma_put_row<K>(v, row[h], part, t, plane_table.template start<2>(p), bias, call.accumulate);
                }
            }
        }
        if (staged && Stage::WHOLE)
            store(0, 0);
    }
}

/* Stores numbers of COUNT neighbouring planes, up to VECTOR at a time. */
template <class K, int COUNT>
CF_DEVICE void mma_put_planes(typename K::Storage::bits *to, const float *sum, float factor, const float *bias,
                              bool accumulate) {
    float u[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        u[i] = factor * sum[i] + bias[i];
        if (accumulate)
            u[i] += K::Storage::load(to + i);
    }
    constexpr int PIECE = K::VECTOR < COUNT ? K::VECTOR : COUNT;
#pragma unroll
    for (int i = 0; i < COUNT; i += PIECE)
        mma_write<K, PIECE>(to + i, u + i);
}

/* The results of PLANES planes in row h that this lane stores. Four planes: two plane groups are transformed by the
 * same lanes, so lanes 2 (t % 2) and 2 (t % 2) + 1 pass on what they have of both. */
template <int PLANES> CF_DEVICE void mma_interleaved_values(float *v, const float (&sum)[2][4], int h, int half) {
    const int lane = int(threadIdx.x) % 32, t = lane % 4;
#pragma unroll
    for (int i = 0; i < PLANES; ++i) {
        v[i] = sum[h][2 * half + i % 2];
        if constexpr (PLANES == 4) {
            const int from = lane / 4 * 4 + t % 2 * 2 + i / 2;
            const float low = __shfl_sync(0xffffffffu, v[i], from),
                        high = __shfl_sync(0xffffffffu, sum[1][2 * half + i % 2], from);
            v[i] = t < 2 ? low : high;
        }
    }
}

/* Transforms rows in channels-last layout. A task of a warp is two rows of one plane group, or one row of two plane
 * groups, which are the right operand. places and z are those of the block. */
template <class K>
CF_DEVICE void mma_inverse_interleaved(smem<unsigned> z, const PlaneTable<K> &plane_table,
                                       const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef PlaneGeometry<K> G;
    typedef typename K::Offset Offset;
    typedef typename K::Storage::bits bits;
    constexpr bool TWO = M::PLANE_GROUPS == 2;
    constexpr int LO = G::template lo<1>(), HI = G::template hi<1>(), ROWS = TWO ? 1 : 2, PLANES = TWO ? 4 : 2;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4, own = PLANES * t; /* planes to store */
    const MmaWords *const table = &mma_spots<M::SCALED, M::N2>.of[0][0][lane];
    const float factor = float(call.scale) * (float(2 << M::DOWN) / M::GAIN) * plane_table.factor(own);
    float bias[PLANES] = {};
    if (call.bias)
#pragma unroll
        for (int i = 0; i < PLANES; ++i)
            bias[i] = bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS + plane_table.channel(own + i));
    bool always = true;
    const Offset plane = offset_of<K, 0, Offset>(G::template lo<0>(), plane_table.template start<0>(own), always);
    bits *const signal = static_cast<bits *>(call.out) + plane_table.signal(own) + plane;
#pragma unroll 1
    for (int first = LO + ROWS * (int(threadIdx.x) / 32); first < HI; first += ROWS * (K::T / 32)) {
        unsigned b[2][M::STEPS][2];
        bits *row[2];
        bool inside[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int next = TWO ? 0 : h, j = first + next < HI ? first + next : first;
            inside[h] = always && first + next < HI;
            row[h] = signal + offset_of<K, 1, Offset>(j, plane_table.template start<1>(own), inside[h]);
            smem<unsigned> from = z + ((TWO ? h * M::INVERSE : 0) + t * M::WORD + 8 * (j - 16 * M::FIRST) + g);
#pragma unroll
            for (int step = 0; step < M::STEPS; ++step)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    b[h][step][i] = from[(8 * step + 4 * i) * M::WORD];
        }
#pragma unroll
        for (int n = 0; n < M::N2 / 16; ++n) {
            if (16 * n >= G::template hi<2>() || 16 * n + 16 <= G::template lo<2>())
                continue;
            float sum[2][4] = {};
#pragma unroll
            for (int step = 0; step < M::STEPS; ++step) {
                const MmaWords a = mma_fetch(table, n * M::STEPS + step);
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    multiply_bins<typename K::Bins>(sum[h], a.of, b[h][step][0], b[h][step][1]);
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int x = 16 * n + 8 * half + g;
#pragma unroll
                for (int h = 0; h < ROWS; ++h) {
                    bool in = inside[h] && x >= G::template lo<2>() && x < G::template hi<2>();
                    const Offset at =
                        offset_of<K, 2, Offset>(in ? x : G::template lo<2>(), plane_table.template start<2>(own), in);
                    float v[PLANES];
                    mma_interleaved_values<PLANES>(v, sum, h, half);
                    if (in)
                        mma_put_planes<K, PLANES>(row[h] + at, v, factor, bias, call.accumulate);
                }
            }
        }
    }
}

template <class K> CF_DEVICE void mma_plane_inverse(const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> z = smem_cast<unsigned>(shared + M::G::TABLE);
    const PlaneTable<K> plane_table = find_planes<K, true>(shared, call);
    mma_inverse_columns<K>(z + mma_plane_group<K>() * M::INVERSE, mma_places<K>(plane_table, mma_plane_group<K>()),
                           call);
    __syncthreads();
    if constexpr (M::INTERLEAVED)
        mma_inverse_interleaved<K>(z, plane_table, call);
    else
        mma_inverse_rows<K>(z, plane_table, call);
}
