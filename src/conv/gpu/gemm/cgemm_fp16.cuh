/* SPDX-License-Identifier: Apache-2.0 */
/* Complex products of 16-bit spectra: the kernel.
 *
 * A block computes one M x N tile of C for one or more matrices (bins), one after the other. It copies chunks of A
 * and B to shared memory asynchronously, STAGES - 1 chunks ahead, also across the end of a matrix. With SLICES above
 * 1 the warps of a block share the sum over k (split-K).
 *
 * Dynamic shared memory, in this order:
 *
 *     tables of the block (TABLES bytes, FP16 only)    factors, largest scales, and scratch of their search
 *     for each slice                                   STAGES chunks of A and B, then the shifts of one part of k */
#pragma once

#include "conv/gpu/gemm/cgemm_fp16_multiply.cuh"
#include "conv/gpu/gemm/cgemm_fp16_results.cuh"

/* The matrix (bin of a group) that a block computes, and the step to its next one. */
struct Fp16Bin {
    int bin, group;
    CF_DEVICE Fp16Bin(const cf_fp16_cgemm_call &call, int matrix)
        : bin((call.first + matrix) % call.bins), group((call.first + matrix) / call.bins) {}
    CF_DEVICE void next(const cf_fp16_cgemm_call &call, int step) {
        for (bin += step; bin >= call.bins; bin -= call.bins)
            ++group;
    }
};

/* Addresses of the tables in shared memory. Tables of the block come first. Behind them each slice has its chunks and
 * the tables of its part of k. */
template <class P> struct Fp16Tables {
    smem<float> found, b_found, differing;
    Fp16Factors factors;
    Fp16Absmax a, b;
    smem<unsigned> a_lows, b_lows; /* of this slice */
    /* Offset of a slice's chunks, in bytes. */
    static CF_DEVICE int chunks_at(int slice) { return P::TABLES + slice * P::SLICE_BYTES; }
    explicit CF_DEVICE Fp16Tables(int slice) {
        const smem<float> tables = cf_dynamic_shared<float>(), tops = tables + P::FACTORS;
        found = tops + 2 * (P::A_TOPS + P::B_TOPS);
        b_found = found + (P::A_DENSE ? 0 : 2 * P::FOUND * P::WARPS);
        differing = found + P::ALL_FOUND;
        factors = {tables, tables + P::M, tables + (P::M + P::N)};
        a = {tops, tops + P::A_TOPS};
        b = {tops + 2 * P::A_TOPS, tops + (2 * P::A_TOPS + P::B_TOPS)};
        a_lows = smem_cast<unsigned>(cf_dynamic_shared<char>() + (chunks_at(slice) + P::STAGES * P::RAW));
        b_lows = a_lows + P::A_LOWS / 4;
    }
};

/* Finds the scales of a group: fills the tables of the block. Returns whether scales of one sum differ, so that words
 * must be rescaled. */
template <class P>
CF_APART bool fp16_search(const float *a_scales, const float *b_scales, int rows, int columns, int k_all) {
    const Fp16Tables<P> t(0); /* only the tables of the block are used */
    __syncthreads();
    bool differ = fp16_find_tops<P, P::A_DENSE, P::M, P::A_ROW>(t.a, t.found, a_scales, rows, k_all, 0);
    differ = fp16_find_tops<P, P::B_DENSE, P::N, P::B_ROW>(t.b, t.b_found, b_scales, columns, k_all,
                                                           P::A_DENSE ? P::M : 0) ||
             differ;
    __syncthreads();
    differ = fp16_merge_absmax<P, P::A_DENSE, P::M>(t.a, t.found) || differ;
    differ = fp16_merge_absmax<P, P::B_DENSE, P::N>(t.b, t.b_found) || differ;
    float votes = differ ? 1.0f : 0.0f;
    for (int other = 16; other > 0; other /= 2)
        votes = fmaxf(votes, __shfl_xor_sync(0xffffffffu, votes, other));
    if (threadIdx.x % 32 == 0)
        t.differing[(int)threadIdx.x / 32] = votes;
    __syncthreads();
    fp16_find_factors<P>(t.factors, t.a, t.b); /* read after the barrier of the first chunk */
    differ = false;
    for (int i = 0; i < P::WARPS; ++i)
        differ = differ || t.differing[i] > 0;
    return differ;
}
/* Fills the shift tables of one part of k: how far each scale is below the largest one of its sum. */
template <class P>
CF_APART void fp16_search_part(const float *a_scales, const float *b_scales, int rows, int columns, int k, int k_all) {
    const int tid = (int)threadIdx.x % P::T;
    const Fp16Tables<P> t((int)threadIdx.x / P::T);
    __syncthreads();
    fp16_find_lows<P, P::A_DENSE, P::M, P::A_ROW>(t.a_lows, t.a.inverse, a_scales, rows, k, k_all, tid);
    fp16_find_lows<P, P::B_DENSE, P::N, P::B_ROW>(t.b_lows, t.b.inverse, b_scales, columns, k, k_all, tid);
    __syncthreads();
}

/* The kernel body. A block computes one tile of C for several matrices. It loads the first chunks of the next matrix
 * while it multiplies and stores the current one. The grid has the same number of blocks for each tile. */
template <class P> CF_DEVICE void fp16_cgemm_run(const cf_fp16_cgemm_call &call) {
    constexpr int A_EIGHTS = (P::A_ROW + 7) / 8, B_EIGHTS = (P::B_ROW + 7) / 8, C_EIGHTS = (P::C_ROW + 7) / 8;
    const int m_all = P::WEIGHTS ? P::A_ROW : call.rows;
    const int m_tiles = (m_all + P::M - 1) / P::M, n_tiles = (P::COLUMNS + P::N - 1) / P::N;
    /* With ROW_SLICES a block has one matrix. */
    const int k_all = product_depth<P>(call, call.first + (int)blockIdx.x / (m_tiles * n_tiles));
    const int tile = (int)blockIdx.x % (m_tiles * n_tiles), step = (int)gridDim.x / (m_tiles * n_tiles);
    /* Rows and columns from the tile's corner to the end of C. With four blocks per multiprocessor a thread has 128
     * registers, and the sums and one chunk need nearly all of them. So values that are needed only between two tiles
     * are computed again there (fp16_again()), or in functions that are not inlined. Spilled registers made FP16
     * weight gradients a third slower. */
    const int rows = m_all - tile / n_tiles * P::M, columns = P::COLUMNS - tile % n_tiles * P::N;
    const auto row0 = [&] { return m_all - fp16_again(rows); };
    const auto column0 = [&] { return P::COLUMNS - fp16_again(columns); };
    constexpr bool ONE = P::SLICES == 1;
    constexpr unsigned T = P::T;
    const int thread = (int)threadIdx.x, slice = ONE ? 0 : thread / T, tid = ONE ? thread : thread % T,
              warp = tid / 32u, lane = tid % 32u;

    const Fp16Tables<P> tables(slice);
    const smem<char> shared = cf_dynamic_shared<char>();
    const int own = tables.chunks_at(slice);
    constexpr int LAST = (P::STAGES - 1) * P::RAW;
    constexpr long long A_STEP = P::A_DENSE ? P::CHUNK : (long long)P::CHUNK * P::A_ROW,
                        B_STEP = P::B_DENSE ? P::CHUNK : (long long)P::CHUNK * P::B_ROW; /* elements per chunk */
    const int chunks = (k_all + P::CHUNK * P::SLICES - 1) / (P::CHUNK * P::SLICES), k_first = slice * chunks * P::CHUNK;
    const int end = call.first + call.matrices;
    Fp16Bin at(call, (int)blockIdx.x / (m_tiles * n_tiles)), from = at;
    const unsigned *a, *b;
    const auto begin = [&] {
        const int m0 = row0(), n0 = column0(), t = fp16_again(thread), id = ONE ? t : t % T,
                  skipped = ONE ? 0 : int(t / T) * chunks;
        a = call.a + (from.bin * call.a_bin + from.group * call.a_group + (P::A_DENSE ? (long long)m0 * P::A_ROW : m0) +
                      skipped * A_STEP + Fp16Units<P, P::A_DENSE, P::M, P::A_ROW>::start(id));
        b = call.b + (from.bin * call.b_bin + from.group * call.b_group + (P::B_DENSE ? (long long)n0 * P::B_ROW : n0) +
                      skipped * B_STEP + Fp16Units<P, P::B_DENSE, P::N, P::B_ROW>::start(id));
    };
    begin();
    int coming_chunk = 0; /* next chunk to copy; `chunks` once everything is copied */
    const auto copy = [&](int stage) {
        if (coming_chunk < chunks) {
            const smem<char> to = shared + (own + stage);
            const int k = k_first + coming_chunk * P::CHUNK;
            fp16_copy<P, P::A_DENSE, P::M, P::A_ROW>(to, a, rows, k, k_all, tid, call.wide_a);
            fp16_copy<P, P::B_DENSE, P::N, P::B_ROW>(to + P::A_BYTES, b, columns, k, k_all, tid, call.wide_b);
            a += A_STEP;
            b += B_STEP;
            if (++coming_chunk == chunks) {
                from.next(call, step);
                if (from.group * call.bins + from.bin < end) {
                    coming_chunk = 0;
                    begin();
                }
            }
        }
        product_commit();
    };
    constexpr int NONE = -1, UNKNOWN = -2, EQUAL = 1 << 30; /* states of `part` that are no part of k */
    int stage = 0, part = UNKNOWN; /* byte offset of the next stage to multiply; part of k that the tables describe */
    const auto a_scales = [&] {
        return call.a_scales +
               (fp16_again(at.group) * call.a_scale_group + (P::A_DENSE ? (long long)row0() * A_EIGHTS : row0() / 8));
    };
    const auto b_scales = [&] {
        return call.b_scales + (fp16_again(at.group) * call.b_scale_group +
                                (P::B_DENSE ? (long long)column0() * B_EIGHTS : column0() / 8));
    };
    for (int i = 0; i < P::STAGES - 1; ++i)
        copy(i * P::RAW);
    while (at.group * call.bins + at.bin < end) {
        if (P::SCALED && part == UNKNOWN)
            part = fp16_search<P>(a_scales(), b_scales(), rows, columns, k_all) ? NONE : EQUAL;
        CgemmSums<P> sums = {};
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const int bytes = own + stage, before = stage == 0 ? LAST : stage - P::RAW;
            if (P::SCALED && part != EQUAL) {
                const int k = chunk * P::CHUNK, t = fp16_again(tid);
                if (k % P::PART == 0 && part != k / P::PART) {
                    part = k / P::PART;
                    fp16_search_part<P>(a_scales(), b_scales(), rows, columns, k_first + k, k_all);
                }
                product_wait<P::STAGES - 2>();
                fp16_share<P, P::A_DENSE, P::M, P::A_ROW>(shared + bytes, tables.a_lows, k, t);
                fp16_share<P, P::B_DENSE, P::N, P::B_ROW>(shared + (bytes + P::A_BYTES), tables.b_lows, k, t);
            } else {
                product_wait<P::STAGES - 2>();
            }
            __syncthreads(); /* the chunk has arrived, and no thread reads the previous one */
            copy(before);
            fp16_chunk<P>(sums, shared, (unsigned)bytes / 4, warp, lane);
            stage = stage == LAST ? 0 : stage + P::RAW;
        }
        const int m0 = row0(), n0 = column0(), t = fp16_again(thread), w = t % T / 32u, l = t % 32u;
        if (P::SLICES > 1) { /* with split-K a block has one matrix */
            product_gather<P>(sums, cf_dynamic_shared<float>() + P::TABLES / 4, int(t / T), int(t % T));
            if (t / T > 0)
                return;
        }
        if constexpr (P::SCALED)
            fp16_finish<P>(sums, tables.factors, w, l);
        if constexpr (P::SCALED && P::NARROW)
            if (at.bin == 0)
                fp16_note<P>(call.c_scales + (at.group * call.c_scale_group + (long long)m0 * C_EIGHTS + n0 / 8),
                             tables.a, tables.factors, rows, columns);
        const long long first = at.bin * call.c_bin + at.group * call.c_group + (long long)m0 * P::C_ROW + n0;
        if constexpr (P::NARROW)
            fp16_store<P>(sums, static_cast<unsigned *>(call.c) + first, rows, columns, w, l, call.wide_c);
        else
            product_store<P>(sums, static_cast<cplx *>(call.c) + first, rows, columns, w, l, call.wide_c,
                             call.accumulate);
        const int group = at.group;
        at.next(call, step);
        if (P::SCALED && at.group != group)
            part = UNKNOWN;
    }
}

/* The entry point of both kinds of product. PREFIX: fp16_, or nothing. */
#define CF_CGEMM_KERNEL(PREFIX, THREADS, BLOCKS)                              \
    CF_KERNEL(THREADS, BLOCKS) cf_cgemm(const cf_##PREFIX##cgemm_call call) { \
        cf_pdl_wait();                                                        \
        PREFIX##cgemm_run<Config>(call);                                      \
    }
