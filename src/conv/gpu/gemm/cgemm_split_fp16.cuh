/* SPDX-License-Identifier: Apache-2.0 */
/* Complex matrix products of FP32 spectra on tensor cores: C[m][n] = sum over k of A[m][k] conj(B[n][k]), one matrix
 * per frequency bin.
 *
 *     kind (core/device_ops.h)    A    B    C    sum over k
 *     forward              0      X    W    Y    input columns
 *     backward data        1      Y    W    X    output columns (without conj)
 *     backward weights     2      Y    X    W    rows (result conjugated)
 *
 * The operand Y of a backward pass is the spectrum of gy, and a result X or W is that of gx or gw. Matrices are
 * row-major in memory: [group][bin][row][column], complex FP32. K runs along rows of memory ("dense") except for W in
 * backward data and for both operands in backward weights.
 *
 * Tensor cores multiply FP16. With TERMS 2 each number is split into two FP16 numbers, x = high + low, which is as
 * accurate as FP32 in a sum. With TERMS 1 it is rounded to one, which keeps as many bits as TF32. CHUNK numbers of a
 * row have a common scale, a power of two taken from the largest of them. So FP16's exponent range suffices, and no
 * row affects another.
 *
 * The real and imaginary part of a number are one 32-bit word. A row of words (re, im) times a column of words (re,
 * im) gives the real part of the product with the conjugate. With the column changed to (-im, re), or the row
 * to (im, -re), it gives the imaginary part. Tensor cores truncate when they add. So the sum of each chunk starts at
 * zero, its small terms come first, and it is added to the total in FP32 with rounding.
 *
 * A NaN or an infinity makes all results NaN that it contributes to. Two rows whose largest numbers have a product
 * above 2^155 may also give NaN. Terms below 2^-121 count as zero; FP32 rounding errors would be as large, or the
 * results denormal. */
#pragma once

#include "conv/gpu/gemm/call.h"
#include "conv/gpu/gemm/geometry.h"
#include "conv/gpu/gemm/wgmma.cuh"

/* KIND: cf_cgemm_kind. A warp computes 16 MT x 8 NT numbers of C. A block has SLICES groups of WARPS_M x WARPS_N
 * warps; these groups share the sum over k (split-K). GROUPED: four warps multiply together (wgmma). ROW_SLICES: kind
 * 2, where blocks share a sum over rows (product_depth()). */
template <int KIND_, int IN_, int OUT_, int WARPS_M_, int WARPS_N_, int MT_, int NT_, int STAGES_, int TERMS_,
          int SLICES_, bool GROUPED_, bool ROW_SLICES_ = false>
struct CgemmConfig {
    static constexpr int KIND = KIND_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, MT = MT_, NT = NT_, STAGES = STAGES_,
                         TERMS = TERMS_, SLICES = SLICES_;
    static constexpr bool GROUPED = GROUPED_, WEIGHTS = KIND == 2, ROW_SLICES = ROW_SLICES_;
    static constexpr bool A_DENSE = !WEIGHTS, B_DENSE = KIND == 0; /* k is contiguous in memory */
    static constexpr int A_ROW = KIND == 0 ? IN_ : OUT_, B_ROW = IN_,
                         C_ROW = KIND == 0 ? OUT_ : IN_;   /* row lengths in memory */
    static constexpr int COLUMNS = KIND == 0 ? OUT_ : IN_; /* columns of C (n) */
    static constexpr int CHUNK = CF_CGEMM_CHUNK;
    static constexpr int M = cf_cgemm_tile_rows(MT, WARPS_M), N = cf_cgemm_tile_columns(NT, WARPS_N),
                         T = cf_cgemm_tile_threads(WARPS_M, WARPS_N);
    static constexpr cf_cgemm_layout LAYOUT = cf_cgemm_layout_of(M, N, STAGES, TERMS, SLICES);
    static constexpr int RAW = LAYOUT.raw, TERM = LAYOUT.term, SPLIT = LAYOUT.split, SLICE_BYTES = LAYOUT.slice,
                         SHARED = LAYOUT.shared;
    /* Row of C of a thread's sum, within its warp. */
    static CF_DEVICE int row_of(int m, int half, int lane) { return 16 * m + 8 * half + lane / 4; }
    static_assert(WEIGHTS || !ROW_SLICES, "only sums over rows have slices");
    static_assert(!GROUPED || (MT == 1 && NT == 8 && WARPS_M % 4 == 0), "groups of four warps have 64 x 64");
};

/* The terms of each sum of a matrix. With ROW_SLICES the groups of the launch are slices of the rows of one group, with
 * call.rows rows each; the last slice has the rest. */
template <class P, class C> CF_DEVICE int product_depth(const C &call, int matrix) {
    if constexpr (P::ROW_SLICES)
        return min(call.rows, call.all_rows - matrix / call.bins * call.rows);
    else
        return P::WEIGHTS ? call.rows : P::A_ROW;
}

/* The layout of a chunk in shared memory. Dense: a line is a row of eight units of 16 bytes, with k running.
 * Otherwise a line is one k, with rows running. Units are permuted so that two access patterns have no bank
 * conflicts: each thread reads a row of its own, and four lanes read each of eight rows. */
CF_DEVICE int dense_unit(int row, int unit) { return 8 * row + (unit ^ ((row & 1) << 2 | (row >> 1 & 3))); }
CF_DEVICE int sparse_number(int k, int row, int rows) { return k * rows + (row ^ (k >> 1 & 3) << 2); }

/* Copies R rows of an operand's chunk to shared memory. Elements outside the operand become zero. VECTOR: units of 16
 * bytes are aligned. FULL: the whole chunk is inside the operand. */
template <class P, bool DENSE, int R, int ROW, bool VECTOR, bool FULL>
CF_DEVICE void product_copy_as(smem<char> raw, const cplx *from, int rows, int k0, int k_end, int tid) {
    constexpr int UNITS = DENSE ? P::CHUNK / 2 : R / 2, LINES = DENSE ? R : P::CHUNK;
#pragma unroll
    for (int i = 0; i < UNITS * LINES; i += P::T) {
        /* WHOLE_LINES: the T threads cover whole lines. Then a thread has the same unit each time, and line distances
         * are constants. */
        constexpr bool WHOLE_LINES = P::T % UNITS == 0;
        const int unit = (WHOLE_LINES ? tid : i + tid) % UNITS,
                  line = WHOLE_LINES ? tid / UNITS + i / UNITS : (i + tid) / UNITS;
        const int row = DENSE ? line : 2 * unit, k = k0 + (DENSE ? 2 * unit : line);
        if (UNITS * LINES % P::T != 0 && line >= LINES)
            break;
        const int at = DENSE ? dense_unit(line, unit) : sparse_number(line, 2 * unit, R) / 2;
        const smem<real> to = smem_cast<real>(raw + 16 * at);
        const cplx *p = from + (DENSE ? (long long)row * ROW + k : (long long)k * ROW + row);
        const bool inside = FULL || (row < rows && k < k_end);
        if (VECTOR) {
            copy_async<4>(to, &p->x, inside);
        } else {
            copy_async<2>(to, &p->x, inside);
            copy_async<2>(to + 2, &p[1].x, inside && (DENSE ? k + 1 < k_end : row + 1 < rows));
        }
    }
}
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void product_copy(smem<char> raw, const cplx *from, int rows, int k0, int k_end, int tid, bool aligned) {
    if (aligned && rows >= R && k0 + P::CHUNK <= k_end)
        product_copy_as<P, DENSE, R, ROW, true, true>(raw, from, rows, k0, k_end, tid);
    else if (aligned)
        product_copy_as<P, DENSE, R, ROW, true, false>(raw, from, rows, k0, k_end, tid);
    else
        product_copy_as<P, DENSE, R, ROW, false, false>(raw, from, rows, k0, k_end, tid);
}

/* Numbers 2 pair and 2 pair + 1 of a row. */
template <bool DENSE, int R> CF_DEVICE void product_pair(smem<char> raw, int row, int pair, cplx v[2]) {
    if constexpr (DENSE) {
        const float4 q = smem_cast<float4>(raw)[dense_unit(row, pair)];
        v[0] = {q.x, q.y};
        v[1] = {q.z, q.w};
    } else {
        v[0] = smem_cast<cplx>(raw)[sparse_number(2 * pair, row, R)];
        v[1] = smem_cast<cplx>(raw)[sparse_number(2 * pair + 1, row, R)];
    }
}

CF_DEVICE float largest_of(float m, cplx v) { return max(m, max(fabsf(v.x), fabsf(v.y))); }

/* The scale of a row's chunk, which brings its largest number near the end of FP16's range, and the factor that
 * undoes it. */
struct CgemmScale {
    float scale, factor;
};
CF_DEVICE CgemmScale scale_of(float absmax) {
    const unsigned exponent = max(__float_as_uint(absmax) >> 23, 15u);
    return {__uint_as_float((127 + 127 + 14 - exponent) << 23), __uint_as_float((exponent - 14) << 23)};
}
template <int TERMS> CF_DEVICE void split_number(cplx v, float scale, unsigned *high, unsigned *low) {
    const float re = v.x * scale, im = v.y * scale;
    *high = pack_fp16(re, im);
    if (TERMS == 2) {
        const cplx rounded = unpack_fp16(*high);
        *low = pack_fp16(re - rounded.x, im - rounded.y);
    }
}

/* A warp's rows of A, split: the registers that mma_m16n8k16 takes, and the factors of the rows. Lane t of four has
 * numbers 2 t and 2 t + 1 of each eight as its words t and t + 4. B's words have the same order. */
template <class P> struct CgemmRows {
    unsigned word[P::MT][2][P::TERMS][4];
    float factor[P::MT][2];
};
template <class P> CF_DEVICE void product_rows(CgemmRows<P> &a, smem<char> raw, int warp, int lane) {
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = (warp % P::WARPS_M * P::MT + m) * 16 + lane / 4 + 8 * half;
            cplx v[2][2];
            float absmax = 0;
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                product_pair<P::A_DENSE, P::M>(raw, row, 4 * step + lane % 4, v[step]);
                absmax = largest_of(largest_of(absmax, v[step][0]), v[step][1]);
            }
            absmax = max(absmax, __shfl_xor_sync(0xffffffffu, absmax, 1));
            absmax = max(absmax, __shfl_xor_sync(0xffffffffu, absmax, 2));
            const CgemmScale s = scale_of(absmax);
            a.factor[m][half] = s.factor;
#pragma unroll
            for (int step = 0; step < 2; ++step)
#pragma unroll
                for (int i = 0; i < 2; ++i)
                    split_number<P::TERMS>(v[step][i], s.scale, &a.word[m][step][0][half + 2 * i],
                                           &a.word[m][step][P::TERMS - 1][half + 2 * i]);
        }
}

/* Splits B's chunk into shared memory, as [term][row / 8][unit of four words][row % 8], with the factors of its rows.
 * Two threads, 16 lanes apart, have one row. */
template <class P> CF_DEVICE void product_split(smem<char> raw, smem<uint4> split, smem<float> factor, int tid) {
#pragma unroll
    for (int first = 0; first < 2 * P::N; first += P::T) {
        const int row = (first + tid) / 32 * 16 + tid % 16, half = tid / 16 % 2;
        if ((2 * P::N) % P::T != 0 && row >= P::N)
            break; /* whole warps leave, because N is a multiple of 16 */
        cplx v[4][2];
        float absmax = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            product_pair<P::B_DENSE, P::N>(raw, row, 4 * half + i, v[i]);
            absmax = largest_of(largest_of(absmax, v[i][0]), v[i][1]);
        }
        absmax = max(absmax, __shfl_xor_sync(0xffffffffu, absmax, 16));
        const CgemmScale s = scale_of(absmax);
        if (half == 0)
            factor[row] = s.factor;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            unsigned h[4], l[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                split_number<P::TERMS>(P::KIND == 1 ? conj(v[j][i]) : v[j][i], s.scale, &h[j], &l[j]);
            const int at = (row / 8 * 4 + 2 * half + i) * 8 + row % 8;
            split[at] = make_uint4(h[0], h[1], h[2], h[3]);
            if (P::TERMS == 2)
                split[P::TERM / 16 + at] = make_uint4(l[0], l[1], l[2], l[3]);
        }
    }
}

template <class P> struct CgemmSums { float re[P::MT][P::NT][4], im[P::MT][P::NT][4]; };

/* sums += the sums of a chunk, each times the factors of its row and column. */
CF_DEVICE void product_add(float sums[4], const float chunk[4], const float rows[2], float2 columns) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
        sums[i] = fmaf(chunk[i], rows[i / 2] * (i % 2 ? columns.y : columns.x), sums[i]);
}
template <class P> CF_DEVICE float2 product_columns(smem<float> factor, int warp, int lane, int n) {
    return smem_cast<float2>(factor + (warp / P::WARPS_M * P::NT + n) * 8)[lane % 4];
}

/* sums += the product of a chunk, each warp by itself. */
template <class P>
CF_DEVICE void product_chunk(CgemmSums<P> &s, const CgemmRows<P> &a, smem<uint4> split, smem<float> factor, int warp,
                             int lane) {
#pragma unroll
    for (int n = 0; n < P::NT; ++n) {
        unsigned b[P::TERMS][4], rotated[P::TERMS][4];
#pragma unroll
        for (int term = 0; term < P::TERMS; ++term) {
            ldmatrix_x4(b[term], split + term * (P::TERM / 16), (warp / P::WARPS_M * P::NT + n) * 32 + lane);
#pragma unroll
            for (int i = 0; i < 4; ++i)
                rotated[term][i] = (b[term][i] >> 16 | b[term][i] << 16) ^ 0x8000u;
        }
        const float2 columns = product_columns<P>(factor, warp, lane, n);
#pragma unroll
        for (int m = 0; m < P::MT; ++m) {
            float re[4] = {0, 0, 0, 0}, im[4] = {0, 0, 0, 0};
            if constexpr (P::TERMS == 2) {
#pragma unroll
                for (int step = 0; step < 2; ++step) {
                    mma_m16n8k16(re, a.word[m][step][1], b[0][2 * step], b[0][2 * step + 1]);
                    mma_m16n8k16(im, a.word[m][step][1], rotated[0][2 * step], rotated[0][2 * step + 1]);
                    mma_m16n8k16(re, a.word[m][step][0], b[1][2 * step], b[1][2 * step + 1]);
                    mma_m16n8k16(im, a.word[m][step][0], rotated[1][2 * step], rotated[1][2 * step + 1]);
                }
            }
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                mma_m16n8k16(re, a.word[m][step][0], b[0][2 * step], b[0][2 * step + 1]);
                mma_m16n8k16(im, a.word[m][step][0], rotated[0][2 * step], rotated[0][2 * step + 1]);
            }
            product_add(s.re[m][n], re, a.factor[m], columns);
            product_add(s.im[m][n], im, a.factor[m], columns);
        }
    }
}

/* The same with four warps per instruction (wgmma): first the real parts, then the imaginary parts from changed
 * words. */
template <class P>
CF_DEVICE void product_chunk_grouped(CgemmSums<P> &s, CgemmRows<P> &a, smem<uint4> split, smem<float> factor, int warp,
                                     int lane) {
    smem<uint4> high = split + warp / P::WARPS_M * (8 * 32), low = high + P::TERM / 16;
#pragma unroll
    for (int part = 0; part < 2; ++part) { /* real, imaginary */
        float sum[8][4];
        wgmma_fence();
        if constexpr (P::TERMS == 2) {
#pragma unroll
            for (int step = 0; step < 2; ++step) {
                wgmma_mma_async(sum, a.word[0][step][1], high + 16 * step, step == 0);
                wgmma_mma_async(sum, a.word[0][step][0], low + 16 * step, false);
            }
        }
#pragma unroll
        for (int step = 0; step < 2; ++step)
            wgmma_mma_async(sum, a.word[0][step][0], high + 16 * step, P::TERMS == 1 && step == 0);
        wgmma_commit_group();
        wgmma_wait_group<P::TERMS>(sum, a.word[0]);
#pragma unroll
        for (int n = 0; n < P::NT; ++n)
            product_add(part == 0 ? s.re[0][n] : s.im[0][n], sum[n], a.factor[0],
                        product_columns<P>(factor, warp, lane, n));
        if (part == 0) {
#pragma unroll
            for (int step = 0; step < 2; ++step)
#pragma unroll
                for (int half = 0; half < P::TERMS; ++half)
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const unsigned w = a.word[0][step][half][i];
                        a.word[0][step][half][i] = (w >> 16 | w << 16) ^ 0x80000000u;
                    }
        }
    }
}

/* Adds the sums of all slices, in order, to those of slice 0. Every thread of the block must call this. */
template <class P> CF_DEVICE void product_gather(CgemmSums<P> &s, smem<float> shared, int slice, int tid) {
    constexpr int EACH = 8 * P::MT * P::NT;
    static_assert(P::SLICES == 1 || (P::SLICES - 1) * EACH * P::T * 4 <= P::SHARED, "room for the slices' sums");
    __syncthreads();
    if (slice > 0) {
        smem<float> own = shared + (slice - 1) * EACH * P::T;
#pragma unroll
        for (int m = 0; m < P::MT; ++m)
#pragma unroll
            for (int n = 0; n < P::NT; ++n)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    own[((m * P::NT + n) * 8 + j) * P::T + tid] = s.re[m][n][j];
                    own[((m * P::NT + n) * 8 + 4 + j) * P::T + tid] = s.im[m][n][j];
                }
    }
    __syncthreads();
    if (slice > 0)
        return;
    for (int other = 0; other < P::SLICES - 1; ++other) {
        smem<float> theirs = shared + other * EACH * P::T;
#pragma unroll
        for (int m = 0; m < P::MT; ++m)
#pragma unroll
            for (int n = 0; n < P::NT; ++n)
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    s.re[m][n][j] = s.re[m][n][j] + theirs[((m * P::NT + n) * 8 + j) * P::T + tid];
                    s.im[m][n][j] = s.im[m][n][j] + theirs[((m * P::NT + n) * 8 + 4 + j) * P::T + tid];
                }
    }
}

template <class P>
CF_DEVICE void product_store(const CgemmSums<P> &s, cplx *c, int rows, int columns, int warp, int lane, bool aligned,
                             bool accumulate) {
    const int m0 = warp % P::WARPS_M * (16 * P::MT), n0 = warp / P::WARPS_M * (8 * P::NT) + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = m0 + P::row_of(m, half, lane);
            if (row >= rows)
                continue;
#pragma unroll
            for (int n = 0; n < P::NT; ++n) {
                const int column = n0 + 8 * n;
                if (column >= columns)
                    continue;
                cplx *to = c + ((long long)row * P::C_ROW + column);
                const float sign = P::WEIGHTS ? -1.0f : 1.0f;
                float4 v = make_float4(s.re[m][n][2 * half], sign * s.im[m][n][2 * half], s.re[m][n][2 * half + 1],
                                       sign * s.im[m][n][2 * half + 1]);
                if (aligned) { /* then the number of columns is even */
                    float4 *quad = reinterpret_cast<float4 *>(to);
                    *quad = accumulate ? sum_of(*quad, v) : v;
                } else {
                    const cplx x = {v.x, v.y}, y = {v.z, v.w};
                    to[0] = accumulate ? to[0] + x : x;
                    if (column + 1 < columns)
                        to[1] = accumulate ? to[1] + y : y;
                }
            }
        }
}

/* The kernel body. A block computes one tile of C of one bin of one group; the grid has one block for each. */
template <class P> CF_DEVICE void cgemm_run(const cf_cgemm_call &call) {
    const int m_all = P::WEIGHTS ? P::A_ROW : call.rows;
    const int m_tiles = (m_all + P::M - 1) / P::M, n_tiles = (P::COLUMNS + P::N - 1) / P::N;
    const int tile = (int)blockIdx.x % (m_tiles * n_tiles), matrix = call.first + (int)blockIdx.x / (m_tiles * n_tiles);
    const int k_all = product_depth<P>(call, matrix);
    const int m0 = tile / n_tiles * P::M, n0 = tile % n_tiles * P::N;
    const long long bin = matrix % call.bins, group = matrix / call.bins;
    const cplx *a = call.a + (bin * call.a_bin + group * call.a_group + (P::A_DENSE ? (long long)m0 * P::A_ROW : m0)),
               *b = call.b + (bin * call.b_bin + group * call.b_group + (P::B_DENSE ? (long long)n0 * P::B_ROW : n0));
    const int slice = (int)threadIdx.x / P::T, tid = (int)threadIdx.x % P::T, warp = tid / 32, lane = tid % 32;

    smem<char> raw = cf_dynamic_shared<char>() + slice * P::SLICE_BYTES;
    smem<uint4> split = smem_cast<uint4>(raw + P::STAGES * P::RAW);
    smem<float> factor = smem_cast<float>(raw + (P::STAGES * P::RAW + P::SPLIT));
    const int chunks = (k_all + P::CHUNK * P::SLICES - 1) / (P::CHUNK * P::SLICES), k_first = slice * chunks * P::CHUNK;

    const auto copy = [&](int chunk) {
        if (chunk < chunks) {
            smem<char> to = raw + chunk % P::STAGES * P::RAW;
            const int k = k_first + chunk * P::CHUNK;
            product_copy<P, P::A_DENSE, P::M, P::A_ROW>(to, a, m_all - m0, k, k_all, tid, call.wide_a);
            product_copy<P, P::B_DENSE, P::N, P::B_ROW>(to + P::CHUNK * P::M * 8, b, P::COLUMNS - n0, k, k_all, tid,
                                                        call.wide_b);
        }
        product_commit();
    };
    CgemmSums<P> sums = {};
    for (int chunk = 0; chunk < P::STAGES - 1; ++chunk)
        copy(chunk);
    for (int chunk = 0; chunk < chunks; ++chunk) {
        smem<char> from = raw + chunk % P::STAGES * P::RAW;
        CgemmRows<P> rows;
        product_wait<P::STAGES - 2>();
        __syncthreads(); /* the chunk has arrived, and no thread reads the previous one */
        copy(chunk + P::STAGES - 1);
        product_split<P>(from + P::CHUNK * P::M * 8, split, factor, tid);
        product_rows<P>(rows, from, warp, lane);
        if constexpr (P::GROUPED)
            wgmma_fence_proxy<P>();
        __syncthreads();
        if constexpr (P::GROUPED)
            product_chunk_grouped<P>(sums, rows, split, factor, warp, lane);
        else
            product_chunk<P>(sums, rows, split, factor, warp, lane);
    }
    if (P::SLICES > 1) {
        product_gather<P>(sums, cf_dynamic_shared<float>(), slice, tid);
        if (slice > 0)
            return;
    }
    cplx *c = call.c + (bin * call.c_bin + group * call.c_group + (long long)m0 * P::C_ROW + n0);
    product_store<P>(sums, c, m_all - m0, P::COLUMNS - n0, warp, lane, call.wide_c, call.accumulate);
}
