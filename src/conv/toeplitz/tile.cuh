/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of signals in shared memory (geometry.h): loads of both layouts, and operands of tensor-core products. */
#pragma once

#include "conv/toeplitz/call.h"
#include "conv/toeplitz/geometry.h"
#include "fbfft/common/mma.cuh"
#include "fbfft/common/padding.cuh"

/* How elements are copied: GRANULE of them at a time, or those of a word if these are more. NUMBERS are in a unit. */
template <int NUMBERS, int GRANULE> struct Copies {
    static constexpr int OF_WORD = NUMBERS / 4, EACH = cf_max_of(GRANULE, OF_WORD), WORDS = EACH / OF_WORD;
    static constexpr bool ASYNC = EACH == GRANULE; /* otherwise a word may begin at any address */
};
template <int NUMBERS> struct BitsOf { typedef unsigned short type; };
template <> struct BitsOf<4> { typedef unsigned type; };

/* The tile of one side. The host prints S with NUMBERS (of a unit), ROWS, UNITS, STEP, GRANULE (the elements that one
 * copy moves), MODE (of padding, a conv_fft_padding) and WHOLE: a tile holds a whole plane of HEIGHT x BREADTH
 * elements, the first one in row TOP and column LEFT. With a MODE, ABOVE and BELOW rows of padding surround it, and
 * BEFORE and BEHIND columns. */
template <class S> struct Tile {
    static constexpr cf_toeplitz_tile T = cf_toeplitz_tile_of(S::ROWS, S::UNITS, S::STEP);
    static constexpr int PITCH = T.pitch, SIZE = T.size, LOADED = T.loaded;
    typedef typename BitsOf<S::NUMBERS>::type bits;
    typedef Copies<S::NUMBERS, S::GRANULE> copies;
    /* The place of unit `unit` of those that are loaded. */
    static CF_DEVICE int place(int unit) {
        return S::STEP ? unit + unit / cf_max_of(S::STEP, 1) * (PITCH - S::STEP)
                       : unit / S::UNITS * PITCH + unit % S::UNITS;
    }
    /* The place of unit `unit` of a row, from the beginning of the row on. */
    static constexpr CF_DEVICE int along(int unit) {
        return S::STEP ? unit + unit / cf_max_of(S::STEP, 1) * (PITCH - S::STEP) : unit;
    }
};

/* The element of the signal at which the first unit of a tile stands. */
struct Corner {
    int row, column;
};

/* Row and first column of a loaded unit. */
template <class S> CF_DEVICE Corner unit_corner(Corner tile, int unit) {
    if (S::STEP)
        return {0, tile.column + S::NUMBERS * unit};
    return {tile.row + unit / S::UNITS, tile.column + unit % S::UNITS * S::NUMBERS};
}

CF_DEVICE bool is_inside(const cf_toeplitz_side &s, int row, int column) {
    return unsigned(row) < unsigned(s.rows) && unsigned(column) < unsigned(s.columns);
}

/* Fills tiles with zeros. WHOLE: what surrounds a plane stays zero, and is not loaded again. */
CF_DEVICE void clear_tiles(smem<uint4> tiles, int units) {
    for (int i = int(threadIdx.x); i < units; i += int(blockDim.x))
        tiles[i] = make_uint4(0, 0, 0, 0);
}

/* Channels first: one granule of the row `from`, or zeros where a column is outside. */
template <class S>
CF_DEVICE void load_granule(smem<unsigned> to, const typename Tile<S>::bits *from, const void *any, bool there,
                            int column, int columns) {
    typedef typename Tile<S>::copies C;
    const bool outside = !there || (!S::MODE && (column < 0 || column >= columns));
    if (C::ASYNC && (outside || (column >= 0 && column + C::EACH <= columns))) {
        copy_async<C::WORDS>(smem_cast<float>(to), static_cast<const float *>(outside ? any : from + column), !outside);
        return;
    }
#pragma unroll
    for (int word = 0; word < C::WORDS; ++word) {
        unsigned value = 0;
        for (int i = 0; i < C::OF_WORD; ++i) {
            const int element = padded_index<S::MODE>(column + C::OF_WORD * word + i, columns);
            if (there && unsigned(element) < unsigned(columns))
                value |= unsigned(__ldg(from + element)) << 16 * i;
        }
        to[word] = value;
    }
}

/* Channels first, WHOLE: the elements of PLANES planes, as load_planes(). */
template <class S, int PLANES>
CF_DEVICE void load_whole(smem<uint4> tile, const cf_toeplitz_side &s, long long samples, long long sample,
                          long long group) {
    typedef typename Tile<S>::copies C;
    typedef typename Tile<S>::bits bits;
    constexpr int OF_ROW = (S::BREADTH + C::EACH - 1) / C::EACH, COUNT = S::HEIGHT * OF_ROW;
    const bits *const first = static_cast<const bits *>(s.memory) + sample * s.sample_stride + group * s.group_stride;
    for (int i = int(threadIdx.x); i < PLANES * COUNT; i += int(blockDim.x)) {
        const int plane = PLANES > 1 ? i / COUNT : 0, rest = i - plane * COUNT, row = rest / OF_ROW,
                  column = rest % OF_ROW * C::EACH;
        const int at = (plane * Tile<S>::SIZE + (row + S::TOP) * Tile<S>::PITCH) * 4 + (column + S::LEFT) / C::OF_WORD;
        load_granule<S>(smem_cast<unsigned>(tile) + at, first + (plane * s.sample_stride + row * s.row_stride),
                        s.memory, sample + plane < samples, column, S::BREADTH);
    }
}

/* A word of a row of a whole plane, with the padding that MODE puts in it. */
template <class S> CF_DEVICE unsigned padded_word(smem<unsigned> row, int word) {
    constexpr int OF_WORD = Tile<S>::copies::OF_WORD;
    constexpr unsigned MASK = OF_WORD == 2 ? 0xffffu : ~0u;
    unsigned value = 0;
#pragma unroll
    for (int i = 0; i < OF_WORD; ++i) {
        const int column = OF_WORD * word + i - S::LEFT, from = S::LEFT + padded_index<S::MODE>(column, S::BREADTH);
        if (column >= -S::BEFORE && column < S::BREADTH + S::BEHIND)
            value |= (row[from / OF_WORD] >> 16 * (from % OF_WORD) & MASK) << 16 * i;
    }
    return value;
}

/* Channels first, WHOLE: what MODE puts around PLANES planes that have been copied. Begin and end with a barrier. */
template <class S, int PLANES> CF_DEVICE void pad_planes(smem<uint4> tile) {
    constexpr int OF_WORD = Tile<S>::copies::OF_WORD, PITCH = Tile<S>::PITCH, LINES = S::ABOVE + S::BELOW,
                  FIRST = (S::LEFT - S::BEFORE) / OF_WORD, LEFT = (S::LEFT + OF_WORD - 1) / OF_WORD,
                  RIGHT = (S::LEFT + S::BREADTH) / OF_WORD,
                  END = (S::LEFT + S::BREADTH + S::BEHIND + OF_WORD - 1) / OF_WORD;
    for (int i = int(threadIdx.x); i < PLANES * S::HEIGHT; i += int(blockDim.x)) {
        smem<unsigned> row =
            smem_cast<unsigned>(tile + (i / S::HEIGHT * Tile<S>::SIZE + (S::TOP + i % S::HEIGHT) * PITCH));
        for (int word = FIRST; word < LEFT; ++word)
            row[word] = padded_word<S>(row, word);
        for (int word = RIGHT; word < END; ++word)
            row[word] = padded_word<S>(row, word);
    }
    __syncthreads();
    if constexpr (LINES > 0) {
        for (int i = int(threadIdx.x); i < PLANES * LINES * S::UNITS; i += int(blockDim.x)) {
            const int unit = i % S::UNITS, line = i / S::UNITS % LINES,
                      row = line < S::ABOVE ? line - S::ABOVE : S::HEIGHT + line - S::ABOVE;
            smem<uint4> plane = tile + (i / (S::UNITS * LINES) * Tile<S>::SIZE + S::TOP * PITCH + unit);
            plane[row * PITCH] = uint4(plane[padded_index<S::MODE>(row, S::HEIGHT) * PITCH]);
        }
        __syncthreads();
    }
}

/*
 * Channels first: copies PLANES planes, samples `sample`, sample + 1, ... of one channel. The copies are asynchronous
 * unless rows of 16-bit numbers begin at any address (GRANULE 1). They are there after tiles_wait() and a barrier.
 */
template <class S, int PLANES>
CF_DEVICE void load_planes(smem<uint4> tile, const cf_toeplitz_side &s, long long samples, long long sample,
                           long long group, Corner corner) {
    typedef typename Tile<S>::copies C;
    typedef typename Tile<S>::bits bits;
    if constexpr (S::WHOLE) {
        load_whole<S, PLANES>(tile, s, samples, sample, group);
        return;
    }
    constexpr int OF_UNIT = S::NUMBERS / C::EACH, COUNT = Tile<S>::LOADED * OF_UNIT;
    for (int i = int(threadIdx.x); i < PLANES * COUNT; i += int(blockDim.x)) {
        const int plane = PLANES > 1 ? i / COUNT : 0, rest = i - plane * COUNT, unit = rest / OF_UNIT,
                  part = rest % OF_UNIT;
        const Corner at = unit_corner<S>(corner, unit);
        const int column = at.column + part * C::EACH;
        smem<unsigned> to =
            smem_cast<unsigned>(tile + (plane * Tile<S>::SIZE + Tile<S>::place(unit))) + part * C::WORDS;
        const int row = padded_index<S::MODE>(at.row, s.rows);
        const bool there = sample + plane < samples && unsigned(row) < unsigned(s.rows);
        const bits *from = static_cast<const bits *>(s.memory) + (sample + plane) * s.sample_stride +
                           group * s.group_stride + row * s.row_stride;
        load_granule<S>(to, from, s.memory, there, column, s.columns);
    }
}

/* Two neighbouring channels of one element, or zeros. */
template <class S> CF_DEVICE unsigned channel_pair(const unsigned short *p, bool first, bool second) {
    if (S::GRANULE > 1)
        return first ? __ldg(reinterpret_cast<const unsigned *>(p)) : 0;
    return (first ? unsigned(__ldg(p)) : 0) | (second ? unsigned(__ldg(p + 1)) : 0) << 16;
}

/* Channels last: loads planes of CHANNELS channels of one sample from `group` on. A warp transposes units of eight
 * channels. With GRANULE 2, pairs of channels stand at multiples of four bytes. */
template <class S, int CHANNELS, int WARPS, int MOST>
CF_DEVICE void load_channels(smem<uint4> tile, const cf_toeplitz_side &s, long long groups, long long sample,
                             long long group, Corner corner) {
    /* A warp loads up to MOST units before it stores them, in as few batches as possible. */
    constexpr int EIGHTS = CHANNELS / 8, EACH = (Tile<S>::LOADED + WARPS - 1) / WARPS,
                  BATCHES = (EACH + MOST - 1) / MOST, AHEAD = (EACH + BATCHES - 1) / BATCHES;
    const int lane = int(threadIdx.x) % 32;
    const unsigned short *const from = static_cast<const unsigned short *>(s.memory) + sample * s.sample_stride +
                                       group * s.group_stride + lane % 4 * 2;
    for (int begin = int(threadIdx.x) / 32; begin < Tile<S>::LOADED; begin += AHEAD * WARPS) {
        unsigned word[AHEAD][EIGHTS];
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int unit = begin + i * WARPS;
            const Corner at = unit_corner<S>(corner, unit);
            const int row = padded_index<S::MODE>(at.row, s.rows),
                      column = padded_index<S::MODE>(at.column + lane / 4, s.columns);
            const bool inside = unit < Tile<S>::LOADED && is_inside(s, row, column);
            const unsigned short *p = from + (row * s.row_stride + column * s.column_stride);
#pragma unroll
            for (int e = 0; e < EIGHTS; ++e) {
                const long long channel = group + 8 * e + lane % 4 * 2;
                word[i][e] = channel_pair<S>(p + 8 * e, inside && channel < groups, inside && channel + 1 < groups);
            }
        }
#pragma unroll
        for (int i = 0; i < AHEAD; ++i) {
            const int unit = begin + i * WARPS;
#pragma unroll
            for (int e = 0; e < EIGHTS; ++e) {
                const unsigned transposed = mma_transposed(word[i][e]);
                if (unit < Tile<S>::LOADED)
                    smem_cast<unsigned>(tile + ((8 * e + lane / 4) * Tile<S>::SIZE + Tile<S>::place(unit)))[lane % 4] =
                        transposed;
            }
        }
    }
}

/* Waits until at most PENDING groups of copies are on their way. */
#ifdef CF_SIMT
CF_DEVICE void tiles_commit() {}
template <int PENDING> CF_DEVICE void tiles_wait() {}
CF_DEVICE void block_barrier() { __syncthreads(); }
#else
/* A barrier of the block that its warps may reach at different places of the text. */
CF_DEVICE void block_barrier() { asm volatile("bar.sync 0;" ::: "memory"); }
CF_DEVICE void tiles_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> CF_DEVICE void tiles_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
#endif

/* d += a b for 16-bit numbers of type Storage. */
template <class Storage> CF_DEVICE void multiply_tile(float d[4], const unsigned a[4], unsigned b0, unsigned b1);
template <> CF_DEVICE void multiply_tile<fp16>(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    mma_m16n8k16(d, a, b0, b1);
}
template <> CF_DEVICE void multiply_tile<bf16>(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    multiply_bf16(d, a, b0, b1);
}
template <> CF_DEVICE void multiply_tile<plain>(float d[4], const unsigned a[4], unsigned b0, unsigned b1) {
    multiply_tf32(d, a, b0, b1);
}

/* low_halves, high_halves: of two words. They are volatile, so that compilers do not move them into branches.
 * store_unit: stores 16 bytes. The compiler makes four stores of an assignment, and each takes a sector of the L2
 * cache. */
#ifdef CF_SIMT
CF_DEVICE unsigned low_halves(unsigned a, unsigned b) { return (a & 0xffffu) | b << 16; }
CF_DEVICE unsigned high_halves(unsigned a, unsigned b) { return a >> 16 | (b & 0xffff0000u); }
CF_DEVICE void store_unit(unsigned short *to, const unsigned (&word)[4]) {
    *reinterpret_cast<uint4 *>(to) = make_uint4(word[0], word[1], word[2], word[3]);
}
#else
CF_DEVICE unsigned low_halves(unsigned a, unsigned b) {
    unsigned word;
    asm volatile("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(word) : "r"(a), "r"(b));
    return word;
}
CF_DEVICE unsigned high_halves(unsigned a, unsigned b) {
    unsigned word;
    asm volatile("prmt.b32 %0, %1, %2, 0x7632;" : "=r"(word) : "r"(a), "r"(b));
    return word;
}
CF_DEVICE void store_unit(unsigned short *to, const unsigned (&word)[4]) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]),
                 "r"(word[3]));
}
#endif

/* The items of a block: a number of samples (channels first), or one sample, each with every tile of a plane. */
template <class F> struct Items {
    long long begin, step, count;
    int tiles;
    CF_DEVICE Items(const cf_toeplitz_call &call) {
        tiles = call.tiles_down * call.tiles_across;
        begin = blockIdx.y;
        step = gridDim.y;
        count = (F::LAST ? call.samples : (call.samples + F::PLANES - 1) / F::PLANES) * tiles;
    }
    CF_DEVICE long long sample(long long item) const { return item / tiles * (F::LAST ? 1 : F::PLANES); }
    /* The first output of a tile. */
    CF_DEVICE Corner output(const cf_toeplitz_call &call, long long item) const {
        const int tile = int(item % tiles);
        if (F::LINE)
            return {0, tile * (16 * F::WARPS * F::WIDTH)};
        return {tile / call.tiles_across * (16 * F::WARPS * F::UP_Y), tile % call.tiles_across * F::WIDTH};
    }
    static CF_DEVICE Corner input(const cf_toeplitz_call &call, Corner output) {
        return {F::LINE ? 0 : output.row / F::UP_Y * F::STRIDE_Y - call.row_pad,
                output.column / F::UP_X * F::STRIDE_X - call.column_pad};
    }
};
