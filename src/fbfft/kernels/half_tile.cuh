/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms of 2^LOG_R complex halves along one axis, as matrix products: a block brings a tile into shared memory, transforms it there
 * in one or two steps of up to 256 points each, and writes it. There are three forms, in words of two halves:
 *
 *     LINES    2^LOG_W lines one after the other, transformed where they stand
 *     COLUMNS  [outer][R][2^LOG_INNER]: tiles of R x W neighbouring columns, transformed where they stand; with LOG_TURN, bin k of
 *              column i is multiplied by exp(-2 pi i k i / 2^LOG_TURN), the middle of a longer line's transform
 *     ROWS     [outer][2^LOG_FIRST][2^LOG_MIDDLE][R] to [outer][R][2^LOG_MIDDLE][2^LOG_FIRST]: the end of it; tiles of W rows
 */
#pragma once

#include "fbfft/kernels/half_step.cuh"

/* A thread has every T-th chunk: the first one's place and constants. */
template <class C> CF_DEVICE void half_tile_load(smem<uint4> tile, const uint4 *in, long long chunks) {
    typedef HalfTile<C> Tile;
    constexpr int T = Tile::T;
    const int first = (int)threadIdx.x;
    if constexpr (C::FORM == HALF_ROWS) {
        constexpr int ALONG = 1 << (Tile::LOG_R - 2); /* chunks of a row */
        constexpr long long STRIDE = 1ll << (C::LOG_MIDDLE + Tile::LOG_R - 2);
        const auto place = [](int i) { return half_chunk(i % ALONG << (C::LOG_W + 2) | i / ALONG << 2); };
        const uint4 *const from = in + (first / ALONG * (4 * STRIDE) + first % ALONG);
        const int to = place(first);
#pragma unroll
        for (int k = 0; k < Tile::CHUNKS / 4 / T; ++k) {
            uint4 v[4]; /* four points of four rows, which change places */
#pragma unroll
            for (int r = 0; r < 4; ++r)
                v[r] = __ldcs(from + (k * T / ALONG * (4 * STRIDE) + k * T % ALONG + r * STRIDE));
            const int at = to ^ place(k * T);
            tile[at] = uint4{v[0].x, v[1].x, v[2].x, v[3].x};
            tile[at ^ half_chunk(1 << C::LOG_W)] = uint4{v[0].y, v[1].y, v[2].y, v[3].y};
            tile[at ^ half_chunk(2 << C::LOG_W)] = uint4{v[0].z, v[1].z, v[2].z, v[3].z};
            tile[at ^ half_chunk(3 << C::LOG_W)] = uint4{v[0].w, v[1].w, v[2].w, v[3].w};
        }
    } else {
        const int to = half_chunk(4 * first);
        const uint4 *const from = in + Tile::column_chunk(first);
#pragma unroll
        for (int k = 0; k < Tile::CHUNKS / T; ++k) {
            const bool inside = !Tile::LINES || first + k * T < chunks;
            half_copy_async<Tile::NARROW>(tile + (to ^ half_chunk(4 * k * T)),
                                          inside ? from + Tile::column_chunk(k * T) : in, inside);
        }
    }
}

template <class C> CF_DEVICE void half_tile_unload(smem<uint4> tile, uint4 *out, long long chunks) {
    typedef HalfTile<C> Tile;
    constexpr int T = Tile::T, WIDE = Tile::W / 4,
                  RESULT = C::FORM == HALF_ROWS ? C::LOG_FIRST + C::LOG_MIDDLE : C::LOG_INNER;
    const int first = (int)threadIdx.x;
    if constexpr (Tile::LINES) {
        const auto place = [](int i) { /* of bins k1 + 256 k2, four of them side by side */
                                       const int k1 = i & 63, k2 = i >> 6 & ((1 << C::LOG_R2) - 1),
                                                 line = i >> (C::LOG_R2 + 6);
                                       return half_chunk(k1 << (C::LOG_R2 + 2) | (k2 & 3) << C::LOG_R2 | k2 >> 2 << 2 |
                                                         line << Tile::LOG_R);
        };
        const int from = place(first);
#pragma unroll
        for (int k = 0; k < Tile::CHUNKS / T; ++k)
            if (first + k * T < chunks)
                __stcs(out + (first + k * T), tile[from ^ place(k * T)]);
    } else {
        const auto place = [](int i) {
            const int row = i / WIDE, k = row >> C::LOG_R2 | (row & ((1 << C::LOG_R2) - 1)) << C::LOG_R1;
            return ((long long)k << (RESULT - 2)) + i % WIDE;
        };
        const int from = half_chunk(4 * first);
        uint4 *const to = out + place(first);
#pragma unroll
        for (int k = 0; k < Tile::CHUNKS / T; ++k)
            __stcs(to + place(k * T), tile[from ^ half_chunk(4 * k * T)]);
    }
}

/* Where a block's tile is: chunks of memory, and the first of its columns. */
template <class C> struct HalfBlock {
    typedef HalfTile<C> Tile;
    long long from, to, chunks;
    unsigned column;
    /* lines: of LINES alone; the last tile may have fewer. */
    CF_DEVICE HalfBlock(long long block, long long lines) : chunks(Tile::CHUNKS), column(0) {
        if constexpr (Tile::LINES) {
            from = to = block * Tile::CHUNKS;
            chunks = (lines << (Tile::LOG_R - 2)) - from;
        } else if constexpr (C::FORM == HALF_COLUMNS) {
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

template <class C> CF_DEVICE void half_tile_begin(smem<uint4> tile, const uint4 *in, const HalfBlock<C> &block) {
    half_tile_load<C>(tile, in + block.from, block.chunks);
    const int lane = (int)threadIdx.x % 32;
    const HalfTables<C, 0> tables(lane / 4, lane % 4); /* while what is loaded is on its way */
    half_wait_async();
    __syncthreads();
    half_tile_step<C, 0>(tile, tables, block.column);
}

template <class C> CF_DEVICE void half_tile_end(smem<uint4> tile, uint4 *out, const HalfBlock<C> &block) {
    if constexpr (C::LOG_R2 > 0) {
        const int lane = (int)threadIdx.x % 32;
        const HalfTables<C, 1> tables(lane / 4, lane % 4);
        half_tile_step<C, 1>(tile, tables, block.column);
        __syncthreads();
    }
    half_tile_unload<C>(tile, out + block.to, block.chunks);
}

template <class C> CF_DEVICE void half_tile(const uint4 *in, uint4 *out, long long lines) {
    const smem<uint4> tile = cf_dynamic_shared<uint4>();
    const HalfBlock<C> block(blockIdx.x, lines);
    half_tile_begin(tile, in, block);
    __syncthreads();
    half_tile_end(tile, out, block);
}
