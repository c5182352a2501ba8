/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of arithmetic SPLIT: between memory and the lines of lines.cuh in shared memory. Three forms, with
 * 2^LOG_INNER columns:
 *
 *     rows      [row][point] to [row][bin]
 *     columns   [outer][point][column] to [outer][bin][column], in place: an axis that is not the last
 *               Axes of up to 16 points are computed by FP32 units.
 *     first     [outer][point][column] to [outer][column][bin], times exp(-2 pi i column bin / (columns N)): the first
 *               of two kernels for rows of columns N points. The second has the form `columns`, with N columns.
 *
 * Points of rows go to shared memory without registers, so that all of a tile are under way at once. Those of columns
 * are transposed in registers, two by two. */
#pragma once

#include "fbfft/c2c_split/lines.cuh"

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

/* Bins of shared memory to columns. */
template <class C> CF_DEVICE void split_scatter(smem<float4> tile, float4 *out) {
    typedef SplitPairs<C> Pairs;
    typedef SplitLine<C> L;
#pragma unroll 4
    for (int i = (int)threadIdx.x; i < Pairs::COUNT; i += C::THREADS) {
        const Pairs at(i);
        const smem<float4> from = tile + (2 * at.pair * L::LINE + at.n2 * L::PITCH + L::chunk(at.c));
        const float4 a = from[0], b = from[L::LINE];
        float4 *const to = out + ((at.n2 + 2 * L::R * at.c) * Pairs::STRIDE + at.pair);
        to[0] = float4{a.x, a.y, b.x, b.y};
        to[L::R * Pairs::STRIDE] = float4{a.z, a.w, b.z, b.w};
    }
}

/* Bins k and k + 1 of a column, times their twiddles in the form `first`. */
template <class C> CF_DEVICE float4 split_twiddled(cplx a, cplx b, int k, int column) {
    if constexpr (C::FORM == CF_C2C_SPLIT_FIRST) {
        constexpr float STEP = 2.0f / (1 << (C::LOG_N + C::LOG_INNER)); /* phases are below 2^24, so they are exact */
        cplx w[2];
        sincospif(STEP * float(k * column), &w[0].y, &w[0].x);
        sincospif(STEP * float((k + 1) * column), &w[1].y, &w[1].x);
        a = a * fp16_twiddled<!C::INVERSE>(w[0]);
        b = b * fp16_twiddled<!C::INVERSE>(w[1]);
    }
    return float4{a.x, a.y, b.x, b.y};
}

/* Bins of shared memory to rows in memory, two neighbours at a time. Half a warp accesses all banks: up to four
 * neighbouring pairs of k2, of four or more k1. R = 1: chunks as they are. column: that of the first line. */
template <class C> CF_DEVICE void split_bins(smem<float4> tile, float4 *out, int live, int column) {
    typedef SplitLine<C> L;
    constexpr int LOG_P = L::R > 1 ? L::LOG_R - 1 : 0, LOW = LOG_P < 2 ? LOG_P : 2, HIGH = LOG_P - LOW, HALF = L::N / 2;
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
            out[line * HALF + to] = split_twiddled<C>(a, b, 2 * to, column + line);
        }
    }
}

/* Where a block's lines are: in rows one after the other, in columns neighbours. */
template <class C> struct SplitBlock {
    typedef SplitLine<C> L;
    long long from, to;
    int live, column;
    CF_DEVICE explicit SplitBlock(long long lines) {
        const long long first = (long long)blockIdx.x * C::LINES;
        live = lines - first < C::LINES ? int(lines - first) : C::LINES;
        column = int(first & ((1ll << C::LOG_INNER) - 1));
        from = to = first * (L::N / 2);
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
    const SplitBlock<C> block(lines);
    const int lane = (int)threadIdx.x % 32;
    if constexpr (C::FORM == CF_C2C_SPLIT_ROWS)
        split_copy<C>(tile, in + block.from, block.live);
    else
        split_gather<C>(tile, in + block.from);
    if constexpr (L::R == 1)
        __syncthreads();
    else if constexpr (L::R < 16)
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
    if constexpr (C::FORM == CF_C2C_SPLIT_COLUMNS)
        split_scatter<C>(tile, out + block.to);
    else
        split_bins<C>(tile, out + block.to, block.live, block.column);
}

/* Columns of up to 16 points by FP32 units. A thread has two neighbours. */
template <class C> CF_DEVICE void split_units(const float4 *in, float4 *out, long long lines, float scale) {
    constexpr int N = 1 << C::LOG_N;
    constexpr long long STRIDE = 1ll << (C::LOG_INNER - 1);
    static_assert(C::FORM == CF_C2C_SPLIT_COLUMNS && C::LINES == 2 * C::THREADS, "a thread has two columns");
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

/* The body of the kernel. C has LOG_N, INVERSE, THREADS, LINES (the lines of a block), FORM and LOG_INNER. */
template <class C> CF_DEVICE void split_lines(const float4 *in, float4 *out, long long lines, float scale) {
    if constexpr (C::LOG_N < 8)
        split_units<C>(in, out, lines, scale);
    else if constexpr (C::LOG_N == 8 && C::FORM == CF_C2C_SPLIT_ROWS)
        split_rows<C>(in, out, lines, scale);
    else
        split_tile<C>(in, out, lines, scale);
}

#define CF_C2C_SPLIT_KERNEL(THREADS, BLOCKS)                                                            \
    CF_KERNEL(THREADS, BLOCKS) cf_c2c_split(const void *in, void *out, long long lines, float scale) {  \
        cf_pdl_wait();                                                                                  \
        split_lines<Config>(static_cast<const float4 *>(in), static_cast<float4 *>(out), lines, scale); \
    }
