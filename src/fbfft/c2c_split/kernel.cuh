/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of arithmetic SPLIT: between memory and the lines of lines.cuh in shared memory. Three forms, with
 * 2^LOG_INNER columns:
 *
 *     rows      [row][point] to [row][bin], or of reals: [row][M] to [row][M + 1], the inverse back
 *     columns   [outer][point][column] to [outer][bin][column], in place: an axis that is not the last
 *               Axes of up to 16 points are computed by FP32 units.
 *     first     [outer][point][column] to [outer][column][bin], times exp(-2 pi i column bin / (columns N)): the first
 *               of two kernels for rows of columns N points. The second has the form `columns`, with N columns.
 *
 * The longest rows are points of three axes, [n1][n2][n3], and three kernels. The last axis has 2^LOG_LAST points.
 * LOG_LAST is 0 in all other kernels:
 *
 *     first     [n1][n2][n3] to [n3][n2][k1], so that the others work in place
 *     columns   of n2, times exp(-2 pi i n3 k2 / (N2 N3)), to [n3][k2][k1]
 *     columns   of n3, to [k3][k2][k1]
 *
 * Points of rows go to shared memory without registers, so that all of a tile are under way at once. Those of columns
 * are transposed in registers, two by two. */
#pragma once

#include "fbfft/c2c_split/reals.cuh"

/* Points to shared memory, without registers. */
template <class C> CF_DEVICE void split_copy(smem<float4> tile, const float4 *in, int live) {
    typedef SplitLine<C> L;
    const smem<uint4> to = smem_cast<uint4>(tile);
    const uint4 *const from = reinterpret_cast<const uint4 *>(in);
    const int column = (int)threadIdx.x % 128;
#pragma unroll 8
    for (int row = (int)threadIdx.x / 128; row < live * L::R; row += C::THREADS / 128)
        fp16_copy_async<false>(to + L::point(row, column), from + (row * 128 + column), true);
}

/* The place of number n of a line of points, and of a bin, in units of a number. */
template <class C> CF_DEVICE int split_point_at(int n) { return 2 * SplitLine<C>::point(n / 256, n % 256 / 2) + n % 2; }
template <class C> CF_DEVICE int split_bin_at(int k) {
    typedef SplitLine<C> L;
    return 2 * (k % L::R * L::PITCH + L::chunk(k / L::R / 2)) + k / L::R % 2;
}

/* Points of rows of a spectrum of reals to shared memory, merged. */
template <class C> CF_DEVICE void split_merge(smem<float4> tile, const cplx *in, int live) {
    typedef SplitLine<C> L;
    split_real_rows<C>(
        live, [=](int row) { return [=](bool, int bin) { return in[row * (L::N + 1) + bin]; }; },
        [=](int row) {
            return
                [=](bool, int bin, cplx v) { smem_cast<cplx>(tile)[2 * row * L::LINE + split_point_at<C>(bin)] = v; };
        },
        1.0f);
}

/* Bins of shared memory to rows of a spectrum of reals, separated. */
template <class C> CF_DEVICE void split_separate(smem<float4> tile, cplx *out, int live) {
    typedef SplitLine<C> L;
    split_real_rows<C>(
        live,
        [=](int row) {
            return [=](bool, int bin) { return cplx(smem_cast<cplx>(tile)[2 * row * L::LINE + split_bin_at<C>(bin)]); };
        },
        [=](int row) { return [=](bool, int bin, cplx v) { out[row * (L::N + 1) + bin] = v; }; }, 0.5f);
}

/* What iteration i of a thread moves between columns in memory and in shared memory: two numbers of a line, a chunk, of
 * two neighbouring lines. Up to four pairs of lines, 64 bytes of memory, are neighbours. */
template <class C> struct SplitPairs {
    typedef SplitLine<C> L;
    static constexpr int LOG_PAIRS = fp16_log(C::LINES) - 1, LOW = LOG_PAIRS < 2 ? LOG_PAIRS : 2,
                         COUNT = C::LINES * L::N / 4;
    static constexpr long long STRIDE = 1ll << (C::LOG_INNER - 1); /* of two points */
    int pair, n2, c;                                               /* chunk c of row n2 */
    CF_DEVICE explicit SplitPairs(int i)
        : pair((i & ((1 << LOW) - 1)) | i >> (LOW + C::LOG_N - 1) << LOW), n2(i >> (LOW + 7) & (L::R - 1)),
          c(i >> LOW & 127) {}
};

/* Points of columns to shared memory. */
template <class C> CF_DEVICE void split_gather(smem<float4> tile, const float4 *in) {
    typedef SplitPairs<C> Pairs;
    typedef SplitLine<C> L;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < Pairs::COUNT; i += C::THREADS) {
        const Pairs at(i);
        const float4 *const from = in + (2 * (128 * at.n2 + at.c) * Pairs::STRIDE + at.pair);
        const float4 a = __ldcg(from), b = __ldcg(from + Pairs::STRIDE);
        const smem<float4> to = tile + (2 * at.pair * L::LINE + L::point(at.n2, at.c));
        to[0] = float4{a.x, a.y, b.x, b.y};
        to[L::LINE] = float4{a.z, a.w, b.z, b.w};
    }
}

/* exp(-2 pi i phase / 2^LOG), or its conjugate. Phases are between -1/2 and 1/2 of a circle, so that FP32 rounds them
 * little above 2^25. */
template <int LOG, bool INVERSE> CF_DEVICE cplx split_root(int phase) {
    const int near = int(unsigned(phase) << (32 - LOG)) >> (32 - LOG);
    cplx w;
    sincospif(2.0f / (1 << LOG) * float(near), &w.y, &w.x);
    return fp16_twiddled<!INVERSE>(w);
}

/* Bins of shared memory to columns. outer: the number of their n3, see above. */
template <class C> CF_DEVICE void split_scatter(smem<float4> tile, float4 *out, int outer) {
    typedef SplitPairs<C> Pairs;
    typedef SplitLine<C> L;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < Pairs::COUNT; i += C::THREADS) {
        const Pairs at(i);
        const smem<float4> from = tile + (2 * at.pair * L::LINE + at.n2 * L::PITCH + L::chunk(at.c));
        const float4 a = from[0], b = from[L::LINE];
        const int bin = at.n2 + 2 * L::R * at.c;
        float4 *const to = out + (bin * Pairs::STRIDE + at.pair);
        cplx v[2][2] = {{{a.x, a.y}, {b.x, b.y}}, {{a.z, a.w}, {b.z, b.w}}};
        if constexpr (C::LOG_LAST > 0) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
                const cplx w = split_root<C::LOG_N + C::LOG_LAST, C::INVERSE>((bin + k * L::R) * outer);
                v[k][0] = v[k][0] * w, v[k][1] = v[k][1] * w;
            }
        }
        to[0] = float4{v[0][0].x, v[0][0].y, v[0][1].x, v[0][1].y};
        to[L::R * Pairs::STRIDE] = float4{v[1][0].x, v[1][0].y, v[1][1].x, v[1][1].y};
    }
}

/* Bins k and k + 1 of a column, times their twiddles in the form `first`. */
template <class C> CF_DEVICE float4 split_twiddled(cplx a, cplx b, int k, int column) {
    if constexpr (C::FORM == CF_C2C_SPLIT_FIRST) {
        a = a * split_root<C::LOG_N + C::LOG_INNER, C::INVERSE>(k * column);
        b = b * split_root<C::LOG_N + C::LOG_INNER, C::INVERSE>((k + 1) * column);
    }
    return float4{a.x, a.y, b.x, b.y};
}

/* Bins of shared memory to rows in memory, two neighbours at a time. Half a warp accesses all banks: up to four
 * neighbouring pairs of k2, of four or more k1. R = 1: chunks as they are. column: that of the first line. */
template <class C> CF_DEVICE void split_bins(smem<float4> tile, float4 *out, int live, int column) {
    typedef SplitLine<C> L;
    constexpr int LOG_P = L::R > 1 ? L::LOG_R - 1 : 0, LOW = LOG_P < 2 ? LOG_P : 2, HIGH = LOG_P - LOW, HALF = L::N / 2;
    constexpr long long NEXT = (C::LOG_LAST > 0 ? 1ll << (C::LOG_INNER - C::LOG_LAST) : 1) * HALF; /* of two lines */
    const auto pair_of = [](int i) { return (i & ((1 << LOW) - 1)) | (i >> 4 & ((1 << HIGH) - 1)) << LOW; };
    const auto bin_of = [](int i) { return (i >> LOW & ((16 >> LOW) - 1)) | i >> (4 + HIGH) << (4 - LOW); };
    const smem<cplx> words = smem_cast<cplx>(tile);
    const int thread = (int)threadIdx.x, pair = pair_of(thread),
              first = L::chunk(L::R > 1 ? bin_of(thread) / 2 : thread), from = 4 * pair * L::PITCH + bin_of(thread) % 2,
              own = (bin_of(thread) << LOG_P) + pair;
#pragma unroll
    for (int line = 0; line < C::LINES; ++line) {
        if (line >= live)
            return;
#pragma unroll 4
        for (int i = 0; i < HALF; i += C::THREADS) {
            const int to = own + (bin_of(i) << LOG_P) + pair_of(i);
            cplx a, b;
            if constexpr (L::R > 1) {
                const int at =
                    from + 2 * (line * L::LINE + 2 * pair_of(i) * L::PITCH + (first ^ L::chunk(bin_of(i) / 2)));
                a = words[at], b = words[at + 2 * L::PITCH];
            } else {
                const float4 v = tile[line * L::LINE + (first ^ L::chunk(i))];
                a = {v.x, v.y}, b = {v.z, v.w};
            }
            out[line * NEXT + to] = split_twiddled<C>(a, b, 2 * to, column + line);
        }
    }
}

/* Where a block's lines are: in rows one after the other, in columns neighbours. */
template <class C> struct SplitBlock {
    typedef SplitLine<C> L;
    long long first, from, to;
    int live, column, outer;
    CF_DEVICE SplitBlock(long long lines, int number) {
        constexpr int LAST = (1 << C::LOG_LAST) - 1; /* the largest n3 */
        first = (long long)number * C::LINES;
        live = lines - first < C::LINES ? int(lines - first) : C::LINES;
        column = int(first & ((1ll << C::LOG_INNER) - 1));
        outer = int(first >> C::LOG_INNER) & LAST;
        const int line = C::FORM == CF_C2C_SPLIT_FIRST /* in the output: columns are [n2][n3], lines [n3][n2] */
                             ? (column & LAST) << (C::LOG_INNER - C::LOG_LAST) | column >> C::LOG_LAST
                             : column;
        from = to = (first - column + line) * (L::N / 2);
        if (C::FORM != CF_C2C_SPLIT_ROWS)
            from = ((first - column) * L::N + column) / 2;
        if (C::FORM == CF_C2C_SPLIT_COLUMNS)
            to = from;
    }
};

/* A block has C::LINES lines. Other blocks of the multiprocessor compute while it waits for its points. */
template <class C> CF_DEVICE void split_tile(const float4 *in, float4 *out, long long lines, float scale) {
    typedef SplitLine<C> L;
    typedef SplitRows<C> Rows;
    const smem<float4> tile = cf_dynamic_shared<float4>();
    const SplitBlock<C> block(lines, (int)blockIdx.x);
    if constexpr (C::REALS && C::INVERSE)
        split_merge<C>(tile, reinterpret_cast<const cplx *>(in) + block.first * (L::N + 1), block.live);
    else if constexpr (C::FORM == CF_C2C_SPLIT_ROWS)
        split_copy<C>(tile, in + block.from, block.live);
    else
        split_gather<C>(tile, in + block.from);
    const int lane = fp16_hide((int)threadIdx.x % 32); /* registers hold nothing before it is used */
    if constexpr (L::R == 1) {
        fp16_wait_async();
        __syncthreads();
    } else if constexpr (L::R < 16)
        split_short_columns<C>(tile, block.live);
    else
        split_long_columns<C>(tile, block.live, lane);
    {
        const Rows rows(lane / 4, lane % 4);
        const int from = L::chunk(rows.from), to = L::chunk(rows.to);
        if constexpr (L::R > 1)
            __syncthreads();
#pragma unroll 1
        for (int row = (int)threadIdx.x / 32; row < block.live * L::R; row += L::WARPS) {
            const smem<float4> at = tile + (row / L::R * L::LINE + row % L::R * L::PITCH);
            float4 v[4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                v[i] = at[from ^ L::chunk(Rows::point(i))];
            __syncwarp(); /* the other lanes have read what this one overwrites */
            rows.transform(v, scale, [&](int bin, float4 w) { at[to ^ L::chunk(bin)] = w; });
        }
    }
    __syncthreads();
    const SplitBlock<C> same(lines, fp16_hide((int)blockIdx.x)); /* registers did not hold it */
    if constexpr (C::REALS && !C::INVERSE)
        split_separate<C>(tile, reinterpret_cast<cplx *>(out) + same.first * (L::N + 1), same.live);
    else if constexpr (C::FORM == CF_C2C_SPLIT_COLUMNS)
        split_scatter<C>(tile, out + same.to, same.outer);
    else
        split_bins<C>(tile, out + same.to, same.live, same.column);
}

/* Columns of up to 16 points by FP32 units. A thread has two neighbours. */
template <class C> CF_DEVICE void split_units(const float4 *in, float4 *out, long long lines, float scale) {
    constexpr int N = 1 << C::LOG_N;
    constexpr long long STRIDE = 1ll << (C::LOG_INNER - 1);
    static_assert(C::FORM == CF_C2C_SPLIT_COLUMNS && C::LOG_LAST == 0 && C::LINES == 2 * C::THREADS,
                  "a thread has two columns");
    const long long pair = (long long)blockIdx.x * C::THREADS + threadIdx.x, column = pair & (STRIDE - 1),
                    at = (pair - column) * N + column;
    if (2 * pair >= lines)
        return;
    cplx v[2][N];
#pragma unroll
    for (int n = 0; n < N; ++n) {
        const float4 w = __ldcg(in + at + n * STRIDE);
        v[0][n] = {w.x, w.y}, v[1][n] = {w.z, w.w};
    }
    fp16_dft<N, C::INVERSE>(v[0]);
    fp16_dft<N, C::INVERSE>(v[1]);
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const cplx a = fp16_times(v[0][k], scale), b = fp16_times(v[1][k], scale);
        out[at + k * STRIDE] = float4{a.x, a.y, b.x, b.y};
    }
}

/* The body of the kernel. C has LOG_N, INVERSE, THREADS, LINES (the lines of a block), FORM, LOG_INNER, LOG_LAST, REALS
 * (of the form `rows`), and what reals.cuh says. */
template <class C> CF_DEVICE void split_lines(const float4 *in, float4 *out, long long lines, float scale) {
    if constexpr (C::FORM == CF_C2C_SPLIT_REALS)
        split_reals<C>(reinterpret_cast<const cplx *>(in), reinterpret_cast<cplx *>(out), lines, scale);
    else if constexpr (C::LOG_N < 8)
        split_units<C>(in, out, lines, scale);
    else if constexpr (C::LOG_N == 8 && C::FORM == CF_C2C_SPLIT_ROWS && !C::REALS)
        split_rows<C>(in, out, lines, scale);
    else
        split_tile<C>(in, out, lines, scale);
}

#define CF_C2C_SPLIT_KERNEL(THREADS, BLOCKS)                                                            \
    CF_KERNEL(THREADS, BLOCKS) cf_c2c_split(const void *in, void *out, long long lines, float scale) {  \
        cf_pdl_wait();                                                                                  \
        split_lines<Config>(static_cast<const float4 *>(in), static_cast<float4 *>(out), lines, scale); \
    }
