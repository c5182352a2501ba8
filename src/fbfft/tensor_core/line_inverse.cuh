/* SPDX-License-Identifier: Apache-2.0 */
/* Frequency-major spectra of 16 bits to real 1-D signals of 256 to 4096 points. The method is in line_twiddles.cuh.
 *
 * A warp transforms columns of eight signals, as forward, and writes words (re, im) to shared memory:
 *
 *     z[plane of 8][k][n], with PLANE words from one signal to the next and WORD words from one k to the next
 *
 * Column k = 0 has the real columns 0 and N2 / 2 in one word. Then a warp transforms rows: the inverse DFT matrix of
 * N2 points is the left operand, eight rows n are the right operand, and the results are the points n + N1 i. */
#pragma once

#include "fbfft/tensor_core/line_addressing.cuh"
#include "fbfft/tensor_core/line_twiddles.cuh"
#include "fbfft/tensor_core/plane_inverse.cuh"

/* The left operand of columns: as MmaColumns, but from m = 8 on conjugated, because these words are loaded from
 * the mirrored bins. */
template <bool SCALED, int DOWN> struct MmaImages {
    MmaWords of[2][32]; /* step, lane */
    __host__ __device__ constexpr MmaImages() : of{} {
        const MmaCosines<SCALED, 16, DOWN> roots;
        for (int step = 0; step < 2; ++step)
            for (int lane = 0; lane < 32; ++lane)
                for (int i = 0; i < 4; ++i) {
                    const int m = 4 * (lane % 4) + 2 * step + i / 2, twiddle = (lane / 4 + i % 2 * 8) * m;
                    of[step][lane].of[i] =
                        mma_word(roots.cos(twiddle), m < 8 ? mma_minus(roots.sin(twiddle)) : roots.sin(twiddle));
                }
    }
};
template <bool SCALED, int DOWN> __device__ const MmaImages<SCALED, DOWN> mma_images = MmaImages<SCALED, DOWN>();

/* Loads a signal's words of a column, as mma_bins(). Bins beyond N / 2 are loaded from their mirror images. */
template <class K> CF_DEVICE void mma_line_bins(unsigned *w, const unsigned *line, int column, int t, long long unit) {
    typedef MmaFft<K> M;
    const int bin = column + M::N2 * 4 * M::R * t;
    const unsigned *const from = line + bin_of<K>(0, 0, t < 2 ? bin : M::N1 * M::N2 - bin, unit);
    const long long down = bin_of<K>(0, 0, t < 2 ? M::N2 : -M::N2, unit);
#pragma unroll
    for (int i = 0; i < 4 * M::R; ++i)
        w[i] = __ldcs(from + i * down);
}

template <class K>
CF_DEVICE void mma_line_bins_through(smem<unsigned> z, const PlaneTable<K> &plane_table,
                                     const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const unsigned *const line = static_cast<const unsigned *>(call.in) + plane_table.spectrum(g);
    const unsigned imaginary = t < 2 ? 0x80000000u : 0x8000u; /* makes (im, -re), or from mirrored bins (-im, re) */
    /* Column N2 / 2 is transformed before column 0. The rows of both become real, and one word holds both. */
    int column = mma_warp<K>() > 0 ? mma_warp<K>() : M::N2 / 2;
    unsigned next[4 * M::R];
    mma_line_bins<K>(next, line, column, t, call.bin_unit);
    const MmaSquare a = mma_square(&mma_images<M::SCALED, M::DOWN>.of[0][lane]);
    cplx twiddle[2][M::R];
    mma_twiddles_back<K>(twiddle, g);
    smem<unsigned> own = z + (2 * t * M::PLANE + g);
    for (bool more = true; more;) {
        const int k = column;
        unsigned w[4 * M::R];
#pragma unroll
        for (int i = 0; i < 4 * M::R; ++i)
            w[i] = next[i];
        column = k == M::N2 / 2 ? 0 : k + M::WARPS;
        more = column < M::N2 / 2;
        if (more)
            mma_line_bins<K>(next, line, column, t, call.bin_unit);
        if (k == 0) /* bins 0 and N / 2 */
            mma_mirrors(w, t);
        float u[M::R][2][4] = {};
        mma_classes<K>(u, a, w, imaginary);
        MmaRoots back[M::R];
#pragma unroll
        for (int r = 0; r < M::R; ++r)
            back[r] = mma_fetch(&mma_returns<M::N1, M::N2>.of[k][r][g]);
        unsigned words[2][2][M::R]; /* h, plane 2 t or 2 t + 1, r */
#pragma unroll
        for (int h = 0; h < 2; ++h)
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
                for (int r = 0; r < M::R; ++r) {
                    const cplx y = v[r] * back[r].of[h];
                    words[h][e][r] = K::Bins::pack(y.x, y.y);
                }
            }
        smem<unsigned> to = own + (k < M::N2 / 2 ? k : 0) * M::WORD;
        const bool real_rows = k == 0 || k == M::N2 / 2;
        unsigned *const w0 = &words[0][0][0];
#pragma unroll
        for (int i = 0; i < 4 * M::R; ++i) {
            const int row = i / M::R % 2 * M::PLANE + 16 * (i % M::R) + i / (2 * M::R) * 8;
            if (!real_rows)
                to[row] = w0[i];
        }
        if (real_rows) {
#pragma unroll
            for (int i = 0; i < 4 * M::R; ++i) {
                const int row = i / M::R % 2 * M::PLANE + 16 * (i % M::R) + i / (2 * M::R) * 8;
                to[row] = k > 0 ? w0[i] << 16 : (w0[i] & 0xffffu) | (to[row] & 0xffff0000u);
            }
        }
    }
}

/* Stores COUNT numbers of a signal from point x on, plus the bias. ADDS: adds to the old contents. */
template <class K, bool ADDS, int COUNT, class Line>
CF_DEVICE void mma_put_numbers(const float *v, const Line &line, int x, bool whole, float bias) {
    constexpr int VECTOR = K::VECTOR < COUNT ? K::VECTOR : COUNT;
#pragma unroll
    for (int e = 0; e < COUNT; e += VECTOR) {
        bool in;
        typename K::Storage::bits *const to = line.at(x + e, whole, in);
        if (!in)
            continue;
        float u[VECTOR];
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
            u[i] = v[e + i] + bias;
            if (ADDS)
                u[i] += K::Storage::load(to + i);
        }
        mma_write<K, VECTOR>(to, u);
    }
}

/* Stores eight rows of points through shared memory, so that neighbouring lanes store neighbouring points. v: numbers
 * of a lane as in mma_line_points(). own: the part of shared memory whose words this task has already read. line:
 * starts at the lane's first point. */
template <class K, int EACH, class Line>
CF_DEVICE void mma_put_through(smem<unsigned> own, const float *v, const Line &line, int begin, float bias) {
    typedef MmaFft<K> M;
    constexpr int WIDTH = 8 * EACH, INTERLEAVED = 32 / WIDTH; /* numbers of a row, rows at once */
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    float u[2 * EACH];
#pragma unroll
    for (int i = 0; i < 2 * EACH; ++i)
        u[i] = v[i] + bias;
    __syncwarp(); /* the other lanes have read the previous contents */
    if constexpr (K::Storage::PLAIN) {
#pragma unroll
        for (int i = 0; i < 2 * EACH; ++i)
            own[g * M::WORD + EACH * (t + i / EACH * 4) + i % EACH] = __float_as_uint(u[i]);
    } else {
#pragma unroll
        for (int i = 0; i < EACH; i += 2)
            smem_cast<uint2>(own + (g / 2 * M::WORD + g % 2 * (WIDTH / 2) + EACH * t + i))[0] =
                make_uint2(K::Bins::pack(u[2 * i], u[2 * i + 1]), K::Bins::pack(u[2 * i + 2], u[2 * i + 3]));
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; i += INTERLEAVED) {
        const int row = i + lane / WIDTH, column = lane % WIDTH;
        bool in;
        typename K::Storage::bits *const to = line.at(begin + M::N1 * i, mma_whole<K>(begin, 8 * M::N1), in);
        if constexpr (K::Storage::PLAIN) {
            const float number = __uint_as_float(own[row * M::WORD + column]);
            if (in)
                *to = number;
        } else {
            const unsigned both = own[row / 2 * M::WORD + row % 2 * (WIDTH / 2) + column / 2];
            if (in)
                *to = (unsigned short)(both >> 16 * (column % 2));
        }
    }
}

/* Loads the operands of all steps of a lane: EACH neighbouring words at a time. */
template <class M, int EACH> CF_DEVICE void mma_line_words(unsigned (&b)[M::STEPS][2][EACH], smem<unsigned> from) {
#pragma unroll
    for (int step = 0; step < M::STEPS; ++step)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = (8 * step + 4 * i) * M::WORD;
            if constexpr (EACH == 4) {
                const uint4 v = smem_cast<uint4>(from + at)[0];
                b[step][i][0] = v.x, b[step][i][1] = v.y, b[step][i][2] = v.z, b[step][i][3] = v.w;
            } else {
                const uint2 v = smem_cast<uint2>(from + at)[0];
                b[step][i][0] = v.x, b[step][i][1] = v.y;
            }
        }
}

/* Transforms rows and stores points. A task of a warp is 8 EACH rows of one signal, which are the right operand.
 * Results 2 t and 2 t + 1 of EACH products are neighbours in memory; FP32 results are stored in two parts. ADDS: adds
 * to the old contents. */
template <class K, bool ADDS>
CF_DEVICE void mma_line_points(smem<unsigned> z, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    typedef typename K::Storage::bits bits;
    constexpr bool PIECES = K::Storage::PLAIN;
    constexpr int EACH = M::R < 2 ? 2 : 4, WIDTH = 8 * EACH, TASKS = M::N1 / WIDTH;
    /* THROUGH: stores of less than eight bytes per lane would write the same sectors several times, so results go
     * through shared memory. */
    constexpr bool THROUGH = !ADDS && K::VECTOR * int(sizeof(bits)) < 8;
    const int lane = int(threadIdx.x) % 32, g = lane / 4, t = lane % 4;
    const MmaWords *const table = &mma_spots<M::SCALED, M::N2>.of[0][0][lane];
#pragma unroll 1
    for (int task = mma_warp<K>(); task < min(plane_table.live, 8) * TASKS; task += M::WARPS) {
        const int p = task / TASKS, first = task % TASKS * WIDTH;
        smem<unsigned> own = z + (p * M::PLANE + first);
        smem<unsigned> from = own + (t * M::WORD + EACH * (PIECES ? g / 2 + g % 2 * 4 : g));
        unsigned b[M::STEPS][2][EACH];
        mma_line_words<M>(b, from);
        const float factor = float(call.scale) * (float(2 << M::DOWN) / M::GAIN) * plane_table.factor(p);
        float bias = 0;
        if (call.bias)
            bias = bias_at<K>(call.bias, (long long)blockIdx.y * K::CHANNELS + plane_table.channel(p));
        const MmaLine<K, bits> line(
            static_cast<bits *>(call.out), plane_table, p,
            first + (THROUGH ? M::N1 * (lane / WIDTH) + lane % WIDTH : M::N1 * g + (PIECES ? 1 : 2) * EACH * t));
#pragma unroll
        for (int n = 0; n < M::N2 / 16; ++n) {
            if (mma_empty<K>(16 * n * M::N1, 16 * M::N1))
                continue;
            float sum[EACH][4] = {};
#pragma unroll
            for (int step = 0; step < M::STEPS; ++step) {
                const MmaWords a = mma_fetch(table, n * M::STEPS + step);
#pragma unroll
                for (int i = 0; i < EACH; ++i)
                    multiply_bins<typename K::Bins>(sum[i], a.of, b[step][0][i], b[step][1][i]);
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int begin = (16 * n + 8 * half) * M::N1;
                const bool whole = mma_whole<K>(begin, 8 * M::N1);
                if (mma_empty<K>(begin, 8 * M::N1))
                    continue;
                float v[2 * EACH];
#pragma unroll
                for (int i = 0; i < 2 * EACH; ++i)
                    v[i] = factor * sum[i % EACH][2 * half + i / EACH];
                if constexpr (THROUGH) {
                    mma_put_through<K, EACH>(own, v, line, begin, bias);
                } else if constexpr (PIECES) {
                    mma_put_numbers<K, ADDS, EACH>(v, line, begin, whole, bias);
                    mma_put_numbers<K, ADDS, EACH>(v + EACH, line, begin + 4 * EACH, whole, bias);
                } else {
                    mma_put_numbers<K, ADDS, 2 * EACH>(v, line, begin, whole, bias);
                }
            }
        }
    }
}

template <class K> CF_DEVICE void mma_line_inverse(const cf_shared_fft_call &call) {
    typedef MmaFft<K> M;
    smem<char> shared = cf_dynamic_shared<char>();
    smem<unsigned> z = smem_cast<unsigned>(shared + M::G::TABLE) + mma_plane_group<K>() * M::INVERSE;
    const PlaneTable<K> plane_table = mma_places<K>(find_planes<K, true>(shared, call), mma_plane_group<K>());
    if (M::PLANE_GROUPS == 1 || plane_table.live > 0)
        mma_line_bins_through<K>(z, plane_table, call);
    __syncthreads();
    if (call.accumulate)
        mma_line_points<K, true>(z, plane_table, call);
    else
        mma_line_points<K, false>(z, plane_table, call);
}
