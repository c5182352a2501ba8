/* SPDX-License-Identifier: Apache-2.0 */
/* FP16 complex transforms of R = 2^LOG_R points along one axis, as matrix products on tensor cores. A block copies a
 * tile to shared memory, transforms it there in one or two steps of up to 256 points, and writes it. There are three
 * forms; a word is one complex number:
 *
 *     LINES      [row][R]: tiles of 2^LOG_W rows, in place
 *     COLUMNS    [outer][R][2^LOG_INNER]: tiles of R x W neighbouring columns, in place. With LOG_TWIDDLE, bin k of
 *                column j is multiplied by exp(-2 pi i j k / 2^LOG_TWIDDLE): every kernel of a longer transform but
 *                the last
 *     ROWS       [outer][2^LOG_FIRST][2^LOG_MIDDLE][R] to [outer][R][2^LOG_MIDDLE][2^LOG_FIRST]: the last kernel of a
 *                longer transform; tiles of W rows
 *
 * What one kernel leaves to the next is loaded and stored with ordinary cache hints: with streaming hints it took a
 * tenth longer. */
#pragma once

#include "fbfft/c2c_fp16/step.cuh"

/* Transposes 4 x 4 words. */
CF_DEVICE void fp16_transpose(uint4 (&v)[4]) {
    const uint4 w[4] = {v[0], v[1], v[2], v[3]};
    v[0] = uint4{w[0].x, w[1].x, w[2].x, w[3].x};
    v[1] = uint4{w[0].y, w[1].y, w[2].y, w[3].y};
    v[2] = uint4{w[0].z, w[1].z, w[2].z, w[3].z};
    v[3] = uint4{w[0].w, w[1].w, w[2].w, w[3].w};
}

/* Copies a tile of ROWS to shared memory. A thread has every T-th chunk; offsets from its first one are constants. */
template <class C> CF_DEVICE void fp16_rows_load(smem<uint4> tile, const uint4 *in) {
    typedef Fp16Tile<C> Tile;
    constexpr int T = Tile::T, ALONG = 1 << (Tile::LOG_R - 2); /* chunks of a row */
    constexpr long long STRIDE = 1ll << (C::LOG_MIDDLE + Tile::LOG_R - 2);
    const auto place = [](int i) { return fp16_chunk(i % ALONG << (C::LOG_W + 2) | i / ALONG << 2); };
    const int first = (int)threadIdx.x, to = place(first);
    const uint4 *const from = in + (first / ALONG * (4 * STRIDE) + first % ALONG);
#pragma unroll
    for (int k = 0; k < Tile::CHUNKS / 4 / T; ++k) {
        uint4 v[4]; /* four points of four rows, to be transposed */
#pragma unroll
        for (int r = 0; r < 4; ++r)
            v[r] = __ldcg(from + (k * T / ALONG * (4 * STRIDE) + k * T % ALONG + r * STRIDE));
        fp16_transpose(v);
#pragma unroll
        for (int p = 0; p < 4; ++p)
            tile[to ^ place(k * T) ^ fp16_chunk(p << C::LOG_W)] = v[p];
    }
}

/* Copies chunks BEGIN to END of a tile to shared memory. */
template <class C, int BEGIN, int END>
CF_DEVICE void fp16_tile_load(smem<uint4> tile, const uint4 *in, long long chunks) {
    typedef Fp16Tile<C> Tile;
    const int first = (int)threadIdx.x + BEGIN, to = fp16_chunk(4 * first);
    const uint4 *const from = in + Tile::memory_chunk(first);
#pragma unroll
    for (int k = 0; k < END - BEGIN; k += Tile::T) {
        const bool inside = C::FORM != FP16_LINES || first + k < chunks;
        fp16_copy_async<Tile::NARROW>(tile + (to ^ fp16_chunk(4 * k)), inside ? from + Tile::memory_chunk(k) : in,
                                      inside);
    }
}

/* Writes chunks BEGIN to END of the results to global memory: a multiple of a quarter of the tile. */
template <class C, int BEGIN, int END> CF_DEVICE void fp16_tile_unload(smem<uint4> tile, uint4 *out, long long chunks) {
    typedef Fp16Tile<C> Tile;
    constexpr int T = Tile::T, VECTOR = Tile::W / 4,
                  RESULT = C::FORM == FP16_ROWS ? C::LOG_FIRST + C::LOG_MIDDLE : C::LOG_INNER;
    const int first = (int)threadIdx.x + BEGIN;
    if constexpr (C::FORM == FP16_LINES) {
        /* Bins k1 + 256 k2 in memory, four at a time. AHEAD: the quarters are those of the tile in shared memory,
         * that is, the highest bits of rows and of k1. */
        const auto bins = [](int i) {
            constexpr int OF_K1 = C::LOG_W < 2 ? 2 - C::LOG_W : 0, LOW = 6 - OF_K1;
            const int quarter = i / Tile::QUARTER, rest = i % Tile::QUARTER;
            return !C::AHEAD ? i
                             : (rest & ((1 << LOW) - 1)) | (quarter & ((1 << OF_K1) - 1)) << LOW | rest >> LOW << 6 |
                                   quarter >> OF_K1 << (Tile::LOG_TILE - 2 - C::LOG_W);
        };
        const auto place = [](int i) {
            const int k1 = i & 63, k2 = i >> 6 & ((1 << C::LOG_R2) - 1), line = i >> (C::LOG_R2 + 6);
            return fp16_chunk(k1 << (C::LOG_R2 + 2) | (k2 & 3) << C::LOG_R2 | k2 >> 2 << 2 | line << Tile::LOG_R);
        };
        const int begin = bins(first), from = place(begin);
#pragma unroll
        for (int k = 0; k < END - BEGIN; k += T)
            if (begin + bins(k) < chunks)
                __stcs(out + (begin + bins(k)), tile[from ^ place(bins(k))]);
    } else {
        const auto place = [](int i) {
            const int row = i / VECTOR, k = row >> C::LOG_R2 | (row & ((1 << C::LOG_R2) - 1)) << C::LOG_R1;
            return ((long long)k << (RESULT - 2)) + i % VECTOR;
        };
        const int from = fp16_chunk(4 * first);
        uint4 *const to = out + place(first);
#pragma unroll
        for (int k = 0; k < END - BEGIN; k += T)
            to[place(k)] = tile[from ^ fp16_chunk(4 * k)];
    }
}

/* Writes a tile of ROWS that is stored like LINES: transposes bins k1 + 256 k2 of four rows. */
template <class C> CF_DEVICE void fp16_rows_unload(smem<uint4> tile, uint4 *out) {
    typedef Fp16Tile<C> Tile;
    constexpr int T = Tile::T, VECTOR = Tile::W / 4;
    constexpr long long STRIDE = 1ll << (C::LOG_FIRST + C::LOG_MIDDLE - 2);
    const auto place = [](int i) {
        const int k1 = i / VECTOR & 63, k2 = i / VECTOR >> 6;
        return fp16_chunk(k1 << (C::LOG_R2 + 2) | (k2 & 3) << C::LOG_R2 | k2 >> 2 << 2 |
                          i % VECTOR << (Tile::LOG_R + 2));
    };
    const auto memory = [](int i) { return ((i / VECTOR & 63) * 4 + (i / VECTOR >> 6 << 8)) * STRIDE + i % VECTOR; };
    const int first = (int)threadIdx.x, from = place(first);
    uint4 *const to = out + memory(first);
#pragma unroll
    for (int k = 0; k < Tile::QUARTER; k += T) {
        uint4 v[4];
#pragma unroll
        for (int r = 0; r < 4; ++r)
            v[r] = tile[from ^ place(k) ^ fp16_chunk(r << Tile::LOG_R)];
        fp16_transpose(v);
#pragma unroll
        for (int p = 0; p < 4; ++p)
            to[memory(k) + p * STRIDE] = v[p];
    }
}

/* Where a block's tile is: its chunks in global memory, and its first column. */
template <class C> struct Fp16Block {
    typedef Fp16Tile<C> Tile;
    long long from, to, chunks;
    unsigned column;
    /* lines: for LINES only; the last tile may have fewer rows. */
    CF_DEVICE Fp16Block(long long block, long long lines) : chunks(Tile::CHUNKS), column(0) {
        if constexpr (C::FORM == FP16_LINES) {
            from = to = block * Tile::CHUNKS;
            chunks = (lines << (Tile::LOG_R - 2)) - from;
        } else if constexpr (C::FORM == FP16_COLUMNS) {
            constexpr int TILES = C::LOG_INNER - C::LOG_W;
            column = (unsigned)(block & ((1 << TILES) - 1)) << C::LOG_W;
            from = to = (block >> TILES << (Tile::LOG_R + C::LOG_INNER - 2)) + column / 4;
        } else {
            constexpr int TILES = C::LOG_FIRST - C::LOG_W, ALL = C::LOG_FIRST + C::LOG_MIDDLE + Tile::LOG_R;
            const long long first = block & ((1 << TILES) - 1), middle = block >> TILES & ((1 << C::LOG_MIDDLE) - 1),
                            outer = block >> (TILES + C::LOG_MIDDLE) << (ALL - 2);
            from = outer + (first << (C::LOG_W + C::LOG_MIDDLE + Tile::LOG_R - 2)) + (middle << (Tile::LOG_R - 2));
            to = outer + (middle << (C::LOG_FIRST - 2)) + (first << (C::LOG_W - 2));
        }
    }
};

template <class C> CF_DEVICE void fp16_tile_begin(smem<uint4> tile, const uint4 *in, const Fp16Block<C> &block) {
    if constexpr (C::FORM == FP16_ROWS && !Fp16Tile<C>::LINES)
        fp16_rows_load<C>(tile, in + block.from);
    else
        fp16_tile_load<C, 0, Fp16Tile<C>::CHUNKS>(tile, in + block.from, block.chunks);
    const int lane = (int)threadIdx.x % 32;
    const Fp16Tables<C, 0> tables(lane / 4, lane % 4); /* while the copies are in flight */
    fp16_wait_async();
    __syncthreads();
    fp16_tile_step<C, 0>(tile, tables, block.column);
}

template <class C> CF_DEVICE void fp16_tile_end(smem<uint4> tile, uint4 *out, const Fp16Block<C> &block) {
    if constexpr (C::LOG_R2 > 0) {
        const int lane = (int)threadIdx.x % 32;
        const Fp16Tables<C, 1> tables(lane / 4, lane % 4);
        fp16_tile_step<C, 1>(tile, tables, block.column);
        __syncthreads();
    }
    if constexpr (C::FORM == FP16_ROWS && Fp16Tile<C>::LINES)
        fp16_rows_unload<C>(tile, out + block.to);
    else
        fp16_tile_unload<C, 0, Fp16Tile<C>::CHUNKS>(tile, out + block.to, block.chunks);
}

/* The kernel body with prefetch (AHEAD): a block has several tiles. While it works on one, three quarters of the next
 * one are copied behind the tile, where step 0 reads them. The last quarter is copied to the place of results that
 * have been written. */
template <class C> CF_DEVICE void fp16_tiles(smem<uint4> tile, const uint4 *in, uint4 *out, long long lines) {
    typedef Fp16Tile<C> Tile;
    constexpr int FEW = 3 * Tile::QUARTER, ALL = Tile::CHUNKS;
    const long long tiles = (lines + Tile::W - 1) >> C::LOG_W;
    long long number = blockIdx.x;
    Fp16Block<C> block(number, lines);
    fp16_tile_load<C, 0, FEW>(tile + ALL, in + block.from, block.chunks);
    fp16_tile_load<C, FEW, ALL>(tile, in + block.from, block.chunks);
    for (;;) {
        const int lane = fp16_hide((int)threadIdx.x % 32);
        number += gridDim.x;
        const bool more = number < tiles;
        const Fp16Block<C> next(more ? number : 0, lines);
        {
            const Fp16Tables<C, 0> tables(lane / 4, lane % 4);
            fp16_wait_async();
            __syncthreads();
            fp16_tile_step<C, 0>(tile, tables, block.column);
            __syncthreads();
        }
        if (more)
            fp16_tile_load<C, 0, FEW>(tile + ALL, in + next.from, next.chunks);
        if constexpr (C::LOG_R2 > 0) {
            const Fp16Tables<C, 1> tables(lane / 4, lane % 4);
            fp16_tile_step<C, 1>(tile, tables, block.column);
            __syncthreads();
        }
        fp16_tile_unload<C, FEW, ALL>(tile, out + block.to, block.chunks);
        __syncthreads();
        if (more)
            fp16_tile_load<C, FEW, ALL>(tile, in + next.from, next.chunks);
        fp16_tile_unload<C, 0, FEW>(tile, out + block.to, block.chunks);
        if (!more)
            return;
        block = next;
    }
}

/* The kernel body. AHEAD: as many blocks as the GPU runs at a time. Otherwise one block per tile. */
template <class C> CF_DEVICE void fp16_tile(const uint4 *in, uint4 *out, long long lines) {
    const smem<uint4> tile = cf_dynamic_shared<uint4>();
    if constexpr (C::AHEAD) {
        fp16_tiles<C>(tile, in, out, lines);
        return;
    }
    const Fp16Block<C> block(blockIdx.x, lines);
    fp16_tile_begin(tile, in, block);
    __syncthreads();
    fp16_tile_end(tile, out, block);
}

/* The entry point. FUNCTION: fp16_lines or fp16_tile. NUMBER: the type of a complex number. */
#define CF_C2C_FP16_KERNEL(FUNCTION, NUMBER, THREADS, BLOCKS)                                 \
    CF_KERNEL(THREADS, BLOCKS) cf_c2c_fp16(const void *in, void *out, long long lines) {      \
        cf_pdl_wait();                                                                        \
        FUNCTION<Config>(static_cast<const NUMBER *>(in), static_cast<NUMBER *>(out), lines); \
    }
