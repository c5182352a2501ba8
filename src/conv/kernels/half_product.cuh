/* SPDX-License-Identifier: Apache-2.0 */
/* The products of product.cuh of spectra that stand in memory in 16 bits: words (re, im), as tensor cores take them. Nothing is split or
 * rounded on the way; a row of words times a column of words is the real part of a product with the conjugate, and, A's words turned,
 * the imaginary part.
 *
 * Rows of FP16 spectra are to be multiplied by powers of two (the scales). Of X and Y, forward and backward data, these go to the rows
 * of the result, and W has one for all its rows. A sum over rows has A's words multiplied by the share that their row's two scales have of
 * the largest such product, so that rows far below others lose bits, never these. A result in FP16 is left small enough that no sum
 * overflows: bins stay below 2^15, and a sum of K products below 2^30 K. */
#pragma once

#include "conv/kernels/product.cuh"

struct HalfProductCall {
    const unsigned *a, *b;
    void *c;
    const float *a_scales, *b_scales;
    float *c_scales;
    long long a_bin, b_bin, c_bin, a_group, b_group, c_group; /* strides */
    long long a_scale_group, b_scale_group, c_scale_group;
    int bins, rows;             /* of a group; of X and Y */
    int first;                  /* matrix, of all bins of all groups, that this launch begins with */
    int wide_a, wide_b, wide_c; /* all rows begin at multiples of 16 bytes, of a narrow result 8 */
    int accumulate;
};

/* As ProductConfig. NARROW: the result is in 16 bits, too. */
template <int KIND_, int IN_, int OUT_, int WARPS_M_, int WARPS_N_, int MT_, int NT_, int STAGES_, int CHUNK_,
          int SLICES_, class BINS, bool NARROW_>
struct HalfProductConfig {
    typedef BINS Bins;
    static constexpr int KIND = KIND_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, MT = MT_, NT = NT_, STAGES = STAGES_,
                         CHUNK = CHUNK_, SLICES = SLICES_;
    static constexpr bool NARROW = NARROW_, WEIGHTS = KIND == 2;
    static constexpr bool A_DENSE = !WEIGHTS, B_DENSE = KIND == 0; /* k is the index that runs in memory */
    static constexpr bool SHARES = WEIGHTS && Bins::SCALED;        /* A's words are multiplied */
    static constexpr int A_ROW = KIND == 0 ? IN_ : OUT_, B_ROW = IN_,
                         C_ROW = KIND == 0 ? OUT_ : IN_;   /* row lengths in memory */
    static constexpr int COLUMNS = KIND == 0 ? OUT_ : IN_; /* n */
    static constexpr int M = 16 * MT * WARPS_M, N = 8 * NT * WARPS_N, T = 32 * WARPS_M * WARPS_N;
    /* Distances of lines: units of 16 bytes of eight rows in turn, and words of four lines of eight, lie in banks of their own. */
    static constexpr int PITCH = CHUNK + 4, A_PITCH = A_DENSE ? PITCH : M + 8, B_PITCH = B_DENSE ? PITCH : N + 8;
    static constexpr int A_BYTES = 4 * A_PITCH * (A_DENSE ? M : CHUNK), B_BYTES = 4 * B_PITCH * (B_DENSE ? N : CHUNK);
    static constexpr int RAW = A_BYTES + B_BYTES + (SHARES ? 2 * 4 * CHUNK : 0);
    static constexpr int SLICE_BYTES = STAGES * RAW, SHARED = SLICES * SLICE_BYTES + (SHARES ? 128 : 0);
    static_assert(CHUNK % 8 == 0 && NT % 2 == 0, "whole instructions");
    static_assert(!(NARROW && WEIGHTS), "sums over rows are added to");
    /* Of a narrow result: what keeps its numbers as small as the operands'. */
    static constexpr int DOWN = 15 + bits_of(A_ROW);
};

/* R rows of an operand's chunk into shared memory; what is beyond the operand becomes zero. WIDE: whole units; FULL: there is nothing
 * beyond. */
template <class P, bool DENSE, int R, int ROW, int PITCH, bool WIDE, bool FULL>
CF_DEVICE void half_copy_as(smem<real> raw, const unsigned *from, int rows, int k0, int k_end, int tid) {
    constexpr int UNITS = (DENSE ? P::CHUNK : R) / 4, LINES = DENSE ? R : P::CHUNK;
#pragma unroll(WIDE ? 64 : 1)
    for (int i = 0; i < UNITS * LINES; i += P::T) {
        /* Mostly whole lines at a time: then the unit is the same each time, and steps from line to line are constants. */
        constexpr bool WHOLE = P::T % UNITS == 0;
        const int unit = (WHOLE ? tid : i + tid) % UNITS, line = WHOLE ? tid / UNITS + i / UNITS : (i + tid) / UNITS;
        if (UNITS * LINES % P::T != 0 && line >= LINES)
            break;
        const int row = DENSE ? line : 4 * unit, k = k0 + (DENSE ? 4 * unit : line);
        const smem<real> to = raw + (line * PITCH + 4 * unit);
        const real *const p =
            reinterpret_cast<const real *>(from + (DENSE ? (long long)row * ROW + k : (long long)k * ROW + row));
        const bool inside = FULL || (row < rows && k < k_end);
        if (WIDE)
            copy_async<4>(to, p, inside);
        else
            for (int j = 0; j < 4; ++j)
                copy_async<1>(to + j, p + j, inside && (DENSE ? k + j < k_end : row + j < rows));
    }
}
template <class P, bool DENSE, int R, int ROW, int PITCH>
CF_DEVICE void half_copy(smem<char> raw, const unsigned *from, int rows, int k0, int k_end, int tid, bool wide) {
    smem<real> to = smem_cast<real>(raw);
    if (wide && rows >= R && k0 + P::CHUNK <= k_end)
        half_copy_as<P, DENSE, R, ROW, PITCH, true, true>(to, from, rows, k0, k_end, tid);
    else if (wide)
        half_copy_as<P, DENSE, R, ROW, PITCH, true, false>(to, from, rows, k0, k_end, tid);
    else
        half_copy_as<P, DENSE, R, ROW, PITCH, false, false>(to, from, rows, k0, k_end, tid);
}

/* The scales of a sum's rows, behind the operands. */
template <class P>
CF_DEVICE void half_copy_scales(smem<char> raw, const float *a, const float *b, int k0, int k_end, int tid) {
    if constexpr (P::SHARES) {
        smem<real> to = smem_cast<real>(raw + (P::A_BYTES + P::B_BYTES));
        for (int i = tid; i < 2 * P::CHUNK; i += P::T) {
            const int k = k0 + i % P::CHUNK;
            copy_async<1>(to + i, (i < P::CHUNK ? a : b) + k, k < k_end);
        }
    }
}

/* Sixteen rows and eight words of A as multiply_halves() takes them, and the same for the imaginary part of the product. */
template <class P> struct HalfRows { unsigned word[4], turned[4]; };
template <class P>
CF_DEVICE void half_rows(HalfRows<P> &a, smem<char> raw, int row, int step, const unsigned shares[2], int lane) {
    if constexpr (P::A_DENSE) {
        load_matrices(a.word, smem_cast<uint4>(raw), (row + lane % 16) * (P::A_PITCH / 4) + 2 * step + lane / 16);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned w =
                smem_cast<unsigned>(raw)[(8 * step + lane % 4 + i / 2 * 4) * P::A_PITCH + row + lane / 4 + i % 2 * 8];
            a.word[i] = P::SHARES ? product_of_halves(w, shares[i / 2]) : w;
        }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const unsigned w = a.word[i], swapped = w >> 16 | w << 16;
        a.turned[i] = P::KIND == 1 ? swapped : swapped ^ 0x80000000u;
        a.word[i] = P::KIND == 1 ? w ^ 0x80000000u : w;
    }
}

/* Sixteen columns of B, eight words of each. */
template <class P> CF_DEVICE void half_columns(unsigned b[4], smem<char> raw, int column, int step, int lane) {
    if constexpr (P::B_DENSE) {
        load_matrices(b, smem_cast<uint4>(raw),
                      (column + lane / 16 * 8 + lane % 8) * (P::B_PITCH / 4) + 2 * step + lane / 8 % 2);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            b[i] = smem_cast<unsigned>(
                raw)[(8 * step + lane % 4 + i % 2 * 4) * P::B_PITCH + column + lane / 4 + i / 2 * 8];
    }
}

template <class P> CF_DEVICE void half_multiply(float d[4], const unsigned a[4], const unsigned b[2]) {
    if constexpr (P::Bins::SCALED)
        multiply_halves(d, a, b);
    else
        multiply_bf16(d, a, b);
}

/* sums += the product of a chunk. */
template <class P> CF_DEVICE void half_chunk(ProductSums<P> &s, smem<char> raw, float whole, int warp, int lane) {
    const int row = warp % P::WARPS_M * (16 * P::MT), column = warp / P::WARPS_M * (8 * P::NT);
#pragma unroll
    for (int step = 0; step < P::CHUNK / 8; ++step) {
        unsigned shares[2] = {0, 0};
        if constexpr (P::SHARES) {
            smem<float> scales = smem_cast<float>(raw + (P::A_BYTES + P::B_BYTES)) + (8 * step + lane % 4);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float share = scales[4 * i] * scales[P::CHUNK + 4 * i] * whole;
                shares[i] = pack_halves(share, share);
            }
        }
        HalfRows<P> a[P::MT];
#pragma unroll
        for (int m = 0; m < P::MT; ++m)
            half_rows<P>(a[m], raw, row + 16 * m, step, shares, lane);
#pragma unroll
        for (int n = 0; n < P::NT; n += 2) {
            unsigned b[4];
            half_columns<P>(b, raw + P::A_BYTES, column + 8 * n, step, lane);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int m = 0; m < P::MT; ++m) {
                    half_multiply<P>(s.re[m][n + i], a[m].word, b + 2 * i);
                    half_multiply<P>(s.im[m][n + i], a[m].turned, b + 2 * i);
                }
        }
    }
}

/* The largest product of the two scales of a row. Every thread of the block calls this. */
template <class P> CF_DEVICE float largest_scale(const float *a, const float *b, int rows, smem<float> shared) {
    constexpr int WARPS = P::T * P::SLICES / 32;
    float most = 0;
    for (int i = int(threadIdx.x); i < rows; i += P::T * P::SLICES)
        most = max(most, a[i] * b[i]);
    for (int other = 16; other > 0; other /= 2)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, other));
    if (threadIdx.x % 32 == 0)
        shared[int(threadIdx.x) / 32] = most;
    __syncthreads();
    for (int i = 0; i < WARPS; ++i)
        most = max(most, shared[i]);
    return most;
}

template <class P> CF_DEVICE void half_scale_sums(ProductSums<P> &s, const float factor[P::MT][2]) {
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int n = 0; n < P::NT; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s.re[m][n][i] = s.re[m][n][i] * factor[m][i / 2];
                s.im[m][n][i] = s.im[m][n][i] * factor[m][i / 2];
            }
}

template <class P>
CF_DEVICE void half_store(const ProductSums<P> &s, unsigned *c, int rows, int columns, int warp, int lane, bool wide) {
    const int m0 = warp % P::WARPS_M * (16 * P::MT) + lane / 4, n0 = warp / P::WARPS_M * (8 * P::NT) + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = m0 + 16 * m + 8 * half;
            if (row >= rows)
                continue;
#pragma unroll
            for (int n = 0; n < P::NT; ++n) {
                const int column = n0 + 8 * n;
                if (column >= columns)
                    continue;
                unsigned *const to = c + ((long long)row * P::C_ROW + column);
                const unsigned x = P::Bins::pack(s.re[m][n][2 * half], s.im[m][n][2 * half]),
                               y = P::Bins::pack(s.re[m][n][2 * half + 1], s.im[m][n][2 * half + 1]);
                if (wide) { /* then columns are even */
                    *reinterpret_cast<uint2 *>(to) = make_uint2(x, y);
                } else {
                    to[0] = x;
                    if (column + 1 < columns)
                        to[1] = y;
                }
            }
        }
}

/* What sums are multiplied by: rows' scales, or what a narrow result takes, and whose rows' scales are noted. */
template <class P>
CF_DEVICE void half_finish(ProductSums<P> &s, const float *a_scales, const float *b_scales, float *c_scales, int rows,
                           float largest, bool notes, int warp, int lane) {
    constexpr float DOWN = 1.0f / float(1ll << P::DOWN), UP = float(1ll << P::DOWN);
    float factor[P::MT][2];
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = warp % P::WARPS_M * (16 * P::MT) + lane / 4 + 16 * m + 8 * half;
            factor[m][half] = P::NARROW ? DOWN : largest;
            if (!P::WEIGHTS && row < rows) {
                const float scale = a_scales[row] * b_scales[0];
                if (!P::NARROW)
                    factor[m][half] = scale;
                else if (notes && lane % 4 == 0)
                    c_scales[row] = scale * UP;
            }
        }
    half_scale_sums<P>(s, factor);
}

/* A tile of C. The grid has a block for each tile of each bin of each group. */
template <class P> CF_DEVICE void half_product_run(const HalfProductCall &call) {
    const int m_all = P::WEIGHTS ? P::A_ROW : call.rows, k_all = P::WEIGHTS ? call.rows : P::A_ROW;
    const int m_tiles = (m_all + P::M - 1) / P::M, n_tiles = (P::COLUMNS + P::N - 1) / P::N;
    const int tile = (int)blockIdx.x % (m_tiles * n_tiles), matrix = call.first + (int)blockIdx.x / (m_tiles * n_tiles);
    const int m0 = tile / n_tiles * P::M, n0 = tile % n_tiles * P::N;
    const long long bin = matrix % call.bins, group = matrix / call.bins;
    const unsigned *a = call.a +
                        (bin * call.a_bin + group * call.a_group + (P::A_DENSE ? (long long)m0 * P::A_ROW : m0)),
                   *b = call.b +
                        (bin * call.b_bin + group * call.b_group + (P::B_DENSE ? (long long)n0 * P::B_ROW : n0));
    const float *a_scales = call.a_scales + group * call.a_scale_group,
                *b_scales = call.b_scales + group * call.b_scale_group;
    const int slice = (int)threadIdx.x / P::T, tid = (int)threadIdx.x % P::T, warp = tid / 32, lane = tid % 32;

    smem<char> raw = cf_dynamic_shared<char>() + slice * P::SLICE_BYTES;
    const int chunks = (k_all + P::CHUNK * P::SLICES - 1) / (P::CHUNK * P::SLICES), k_first = slice * chunks * P::CHUNK;
    const auto copy = [&](int chunk) {
        if (chunk < chunks) {
            smem<char> to = raw + chunk % P::STAGES * P::RAW;
            const int k = k_first + chunk * P::CHUNK;
            half_copy<P, P::A_DENSE, P::M, P::A_ROW, P::A_PITCH>(to, a, m_all - m0, k, k_all, tid, call.wide_a);
            half_copy<P, P::B_DENSE, P::N, P::B_ROW, P::B_PITCH>(to + P::A_BYTES, b, P::COLUMNS - n0, k, k_all, tid,
                                                                 call.wide_b);
            half_copy_scales<P>(to, a_scales, b_scales, k, k_all, tid);
        }
        product_commit();
    };
    for (int chunk = 0; chunk < P::STAGES - 1; ++chunk)
        copy(chunk);
    float largest = 1;
    if constexpr (P::SHARES)
        largest = largest_scale<P>(a_scales, b_scales, k_all,
                                   smem_cast<float>(cf_dynamic_shared<char>() + P::SLICES * P::SLICE_BYTES));
    ProductSums<P> sums = {};
    for (int chunk = 0; chunk < chunks; ++chunk) {
        product_wait<P::STAGES - 2>();
        __syncthreads(); /* the chunk is there, and nobody reads the one before */
        copy(chunk + P::STAGES - 1);
        half_chunk<P>(sums, raw + chunk % P::STAGES * P::RAW, 1.0f / largest, warp, lane);
    }
    if (P::SLICES > 1) {
        product_gather<P>(sums, cf_dynamic_shared<float>(), slice, tid);
        if (slice > 0)
            return;
    }
    const long long at = bin * call.c_bin + group * call.c_group + (long long)m0 * P::C_ROW + n0;
    if constexpr (P::Bins::SCALED)
        half_finish<P>(sums, a_scales + (P::WEIGHTS ? 0 : m0), b_scales,
                       call.c_scales + group * call.c_scale_group + m0, m_all - m0, largest,
                       bin == 0 && n0 == 0 && warp / P::WARPS_M == 0, warp, lane);
    if constexpr (P::NARROW)
        half_store<P>(sums, static_cast<unsigned *>(call.c) + at, m_all - m0, P::COLUMNS - n0, warp, lane, call.wide_c);
    else
        product_store<P>(sums, static_cast<cplx *>(call.c) + at, m_all - m0, P::COLUMNS - n0, warp, lane, call.wide_c,
                         call.accumulate);
}
