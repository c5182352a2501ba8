/* SPDX-License-Identifier: Apache-2.0 */
/* One FFT stage (here: step) of c2c_fp16/tile.cuh: up to 256 points of a tile in shared memory.
 *
 * With R = R1 R2, point n = R2 n1 + n2 and bin k = k1 + R1 k2. Step 0 transforms over n1, step 1 over n2. A thread
 * reads 16 bytes at a time, which are four neighbouring columns, so it computes four units of 256 words at once. A unit
 * is 16 slots times 16 columns, one 16 x 16 operand of the tensor cores:
 *
 *     COLUMNS, ROWS    the tile is [n][w]; neighbours are columns w in both steps
 *     LINES            the tile is [w][n]; neighbours are points n2 in step 0 and bins k1 in step 1, and each thread
 *                      transposes 4 x 4 words between the steps
 *
 * Long ROWS are stored in the tile like LINES, so that they can be copied without registers. 4 x 4 words are
 * transposed when the tile is written.
 *
 * Bank conflicts: chunks of 16 bytes are stored at their number, whose lowest three bits are XORed with the higher
 * bits, three at a time. Lanes that differ in three bits of a chunk's number access different banks if the positions
 * of these bits are distinct modulo 3. The orders of slots and columns (IN, OUT) are chosen for that. */
#pragma once

#include "fbfft/common/fp16_dft.cuh"

enum {
    FP16_LINES,
    FP16_COLUMNS,
    FP16_ROWS
};

/* The place of the chunk that contains a word: the XOR of its number with its higher bits. */
__host__ __device__ constexpr int fp16_chunk(int word) {
    const int chunk = word >> 2;
    return chunk ^ ((chunk >> 3 ^ chunk >> 6 ^ chunk >> 9 ^ chunk >> 12) & 7);
}

template <class C> struct Fp16Tile {
    static constexpr int LOG_R = C::LOG_R1 + C::LOG_R2, LOG_TILE = LOG_R + C::LOG_W, CHUNKS = 1 << (LOG_TILE - 2),
                         T = C::THREADS, W = 1 << C::LOG_W, UNITS = 1 << (LOG_TILE - 10), QUARTER = CHUNKS / 4;
    /* LINES: rows follow one another in the tile. NARROW: several tiles share a 128-byte cache line. */
    static constexpr bool LINES = C::FORM == FP16_LINES || (C::FORM == FP16_ROWS && C::LOG_R2 >= 3),
                          NARROW = !LINES && W < 32;
    static_assert(LOG_TILE >= 10 && T >= 32 && (T & (T - 1)) == 0 && T <= QUARTER, "threads have equal shares");
    /* The offset in global memory of a tile's chunk i. */
    static __host__ __device__ constexpr long long memory_chunk(int i) {
        if (C::FORM == FP16_ROWS)
            return ((long long)(i >> (LOG_R - 2)) << (C::LOG_MIDDLE + LOG_R - 2)) + i % (1 << (LOG_R - 2));
        return LINES ? i : ((long long)(i / (W / 4)) << (C::LOG_INNER - 2)) + i % (W / 4);
    }
    static_assert(!LINES || (C::LOG_R1 == 8 && C::LOG_R2 >= 2), "units of a line are its own");
    static_assert(!C::AHEAD || C::FORM != FP16_ROWS, "results of rows leave all at once");
    /* Where step 0 reads a chunk. AHEAD: all but the last quarter have been copied behind the tile. */
    template <int STEP> static CF_DEVICE int find(int chunk) {
        return C::AHEAD && STEP == 0 && chunk < 3 * QUARTER ? chunk + CHUNKS : chunk;
    }
};

/* Where the points, bins and columns of a step are in a tile. All functions are linear in the bits of their
 * arguments, so XOR combines them. */
template <class C, int STEP> struct Fp16Places {
    typedef Fp16Tile<C> Tile;
    static constexpr int POINTS = 1 << (STEP == 0 ? C::LOG_R1 : C::LOG_R2), A = POINTS < 16 ? POINTS : 16,
                         B = POINTS / A, COLUMNS = 256 / POINTS;
    static constexpr bool TWIDDLES = Tile::LINES && STEP == 0;
    static constexpr int LOW =
        (Tile::LINES ? C::LOG_R2 : C::LOG_W) - 2; /* bits of a chunk's neighbours, without the two inside it */

    static __host__ __device__ constexpr int point(int n) {
        if (!Tile::LINES)
            return n << (STEP == 0 ? C::LOG_W + C::LOG_R2 : C::LOG_W);
        return STEP == 0 ? n << C::LOG_R2 : (n & 3) << C::LOG_R2 | n >> 2 << 2;
    }
    static __host__ __device__ constexpr int column(int q) {
        if (!Tile::LINES)
            return STEP == 0 ? q << 2 : (q & ((1 << LOW) - 1)) << 2 | q >> LOW << (C::LOG_W + C::LOG_R2);
        return STEP == 0 ? (q & ((1 << LOW) - 1)) << 2 | q >> LOW << Tile::LOG_R : q << (C::LOG_R2 + 2);
    }
    /* The number of a point in its transform, of a bin in its transform, and of their column in a unit. */
    static __host__ __device__ constexpr int point_of(int slot, int column) { return slot % A * B + column % B; }
    static __host__ __device__ constexpr int bin_of(int slot, int column) { return slot % A + A * (column % B); }
    static __host__ __device__ constexpr int column_of(int slot, int c) {
        return A == 16 ? c / B : c + 16 * (slot / A);
    }
    static __host__ __device__ constexpr int in(int slot, int c) {
        return point(point_of(slot, c)) | column(column_of(slot, c));
    }
    static __host__ __device__ constexpr int out(int slot, int c) {
        return point(TWIDDLES ? bin_of(slot, c) & ~3 : bin_of(slot, c)) | column(column_of(slot, c));
    }

    static __host__ __device__ constexpr bool distinct(int a, int b, int c) {
        const int x = fp16_log(a) % 3, y = fp16_log(b) % 3, z = fp16_log(c) % 3;
        return x != y && x != z && y != z;
    }
    /* A permutation of four bits, decoded from an integer with two bits for each. */
    struct Order {
        int p[4];
        bool all;
        int code;
        __host__ __device__ constexpr Order(int n)
            : p{n & 3, n >> 2 & 3, n >> 4 & 3, n >> 6}, all((1 << p[0] | 1 << p[1] | 1 << p[2] | 1 << p[3]) == 15),
              code(p[0] | p[1] << 4 | p[2] << 8 | p[3] << 12) {}
    };
    /* reads_apart(), writes_apart(): whether an order avoids bank conflicts. The eight lanes that access memory
     * together differ in t and in the lowest bit of g. */
    static __host__ __device__ constexpr bool reads_apart(Order i) {
        return i.all && distinct(in(1 << i.p[0], 0), in(1 << i.p[1], 0), in(0, 1 << i.p[2]));
    }
    static __host__ __device__ constexpr bool writes_apart(Order i, Order o) {
        return o.all && (B > 1 ? distinct(out(0, 1 << o.p[0]), out(1 << o.p[1], 0), out(1 << o.p[2], 0))
                               : distinct(out(1 << o.p[0], 0), out(0, 1 << i.p[0]), out(0, 1 << i.p[1])));
    }
    static __host__ __device__ constexpr int choose_out(Order i) {
        for (int n = 0; n < 256 && !TWIDDLES; ++n)
            if (writes_apart(i, n))
                return Order(n).code;
        return 0;
    }
    static __host__ __device__ constexpr int choose_in() {
        for (int n = 0; n < 256; ++n)
            if (reads_apart(n) && (TWIDDLES || choose_out(n)))
                return n;
        return 0xe4; /* if there is none: the order 3210 */
    }
    static constexpr Order CHOSEN = Order(choose_in());
    static constexpr int IN = CHOSEN.code;
    /* TWIDDLES: a thread has both values of the two lowest bits. */
    static constexpr int OUT = TWIDDLES ? 0x1320 : choose_out(CHOSEN) ? choose_out(CHOSEN) : 0x3210;
};

/* The part of a result's slot and column that is a constant for all threads. */
template <class P> __host__ __device__ constexpr int fp16_slot_of(int x, int e, int y) {
    return P::B > 1 ? fp16_result<P::OUT>(e, y) : fp16_result<P::OUT>(0, x);
}
template <class P> __host__ __device__ constexpr int fp16_column_of(int x, int e, int y) {
    return P::B > 1 ? fp16_result<P::OUT>(0, x) : fp16_column<P::IN>(e, y);
}

/* The twiddles of a step, exp(-+2 pi i turn / 2^32) times a gain, where turn = bin * column * TWIDDLE. From one word of
 * a chunk to the next they are multiplied by the twiddle of bin * EACH: one product instead of a sine and a cosine.
 * SPLIT: the twiddles of x = 1 are those of x = 0 times a factor that is the same for all e and y. */
template <class C, int STEP> struct Fp16Twiddle {
    typedef Fp16Places<C, STEP> P;
    static constexpr bool BETWEEN = STEP == 0 && C::LOG_R2 > 0, LAST = !BETWEEN && C::LOG_TWIDDLE > 0;
    static constexpr unsigned TWIDDLE = 1u << (BETWEEN ? 32 - Fp16Tile<C>::LOG_R : LAST ? 32 - C::LOG_TWIDDLE : 0);
    static constexpr unsigned EACH =
        LAST || Fp16Tile<C>::LINES ? TWIDDLE : 0; /* from one word of a chunk to the next */
    static constexpr bool SPLIT = P::B == 16 && EACH > 0;
    static constexpr int X = SPLIT ? 1 : 2;
    static constexpr float GAIN = C::gain(STEP, 1);
    cplx now[X][2][2], next[X][2][2], shared, shared_next;

    static __host__ __device__ constexpr unsigned bin_of(int k, int q) {
        return STEP == 1 ? ((unsigned)k << C::LOG_R1) + (LAST ? (unsigned)(q >> P::LOW) : 0) : (unsigned)k;
    }
    static __host__ __device__ constexpr unsigned column_of(int q) {
        const unsigned low = (unsigned)(q & ((1 << P::LOW) - 1)) * 4, high = (unsigned)(q >> P::LOW);
        return (BETWEEN && !Fp16Tile<C>::LINES ? high : low) * TWIDDLE;
    }
    static __host__ __device__ constexpr unsigned own_bin(int x, int e, int y) {
        const int s = fp16_slot_of<P>(x, e, y), c = fp16_column_of<P>(x, e, y);
        return bin_of(P::bin_of(s, c), P::column_of(s, c));
    }
    CF_DEVICE Fp16Twiddle(int k, int q, unsigned first) {
        if constexpr (BETWEEN || LAST) {
            const unsigned bin = bin_of(k, q), column = column_of(q) + first * TWIDDLE;
#pragma unroll
            for (int x = 0; x < X; ++x)
#pragma unroll
                for (int e = 0; e < 2; ++e)
#pragma unroll
                    for (int y = 0; y < 2; ++y) {
                        const unsigned b = bin + own_bin(x, e, y),
                                       at = column + column_of(P::column_of(fp16_slot_of<P>(x, e, y),
                                                                            fp16_column_of<P>(x, e, y)));
                        now[x][e][y] = fp16_root<C::INVERSE>(b * at, GAIN);
                        if constexpr (EACH > 0)
                            next[x][e][y] = fp16_root<C::INVERSE>(b * EACH, 1);
                    }
            if constexpr (SPLIT) {
                shared = fp16_root<C::INVERSE>(own_bin(1, 0, 0) * column, 1);
                shared_next = fp16_root<C::INVERSE>(own_bin(1, 0, 0) * EACH, 1);
            }
        }
    }
    CF_DEVICE cplx apply(cplx v, int x, int e, int y) const {
        if constexpr (BETWEEN || LAST)
            return v * (x < X ? now[x][e][y] : now[0][e][y] * shared);
        return GAIN != 1 ? cplx{GAIN * v.x, GAIN * v.y} : v;
    }
    CF_DEVICE void advance() {
        if constexpr (EACH > 0 && (BETWEEN || LAST)) {
#pragma unroll
            for (int x = 0; x < X; ++x)
#pragma unroll
                for (int e = 0; e < 2; ++e)
#pragma unroll
                    for (int y = 0; y < 2; ++y)
                        now[x][e][y] = now[x][e][y] * next[x][e][y];
            if constexpr (SPLIT)
                shared = shared * shared_next;
        }
    }
};

/* Stores the results of four units: w[x][e][y] are results (g, x) of columns (2 t + e, y). */
template <class C, int STEP> CF_DEVICE void fp16_tile_store(smem<uint4> tile, int to, const unsigned (&w)[2][2][2][4]) {
    typedef Fp16Places<C, STEP> P;
#pragma unroll
    for (int x = 0; x < 2; ++x)
#pragma unroll
        for (int e = 0; e < 2; ++e)
#pragma unroll
            for (int y = 0; y < 2; ++y) {
                const int at = P::B > 1 ? P::out(fp16_result<P::OUT>(e, y), fp16_result<P::OUT>(0, x))
                                        : P::out(fp16_result<P::OUT>(0, x), fp16_column<P::IN>(e, y));
                const unsigned(&u)[4] = w[x][e][y];
                tile[to ^ fp16_chunk(at)] = uint4{u[0], u[1], u[2], u[3]};
            }
}

/* TWIDDLES: stores the results of unit u as chunks of four neighbouring bins. */
template <class C, int STEP>
CF_DEVICE void fp16_tile_twiddle(smem<uint4> tile, int to, int u, const unsigned (&w)[2][2][2][4]) {
    typedef Fp16Places<C, STEP> P;
#pragma unroll
    for (int x = 0; x < 2; ++x)
        tile[to ^ fp16_chunk(P::out(0, fp16_result<P::OUT>(0, x)) | P::point(u))] =
            uint4{w[x][0][0][u], w[x][1][0][u], w[x][0][1][u], w[x][1][1][u]};
}

/* The constants of a thread for all units of a step. */
template <class C, int STEP> struct Fp16Tables {
    typedef Fp16Places<C, STEP> P;
    static constexpr bool TWO = P::B > 1;
    Fp16Matrix<P::A, P::IN, P::OUT, C::INVERSE> first;
    Fp16Matrix<TWO ? P::B : 16, P::IN, P::OUT, C::INVERSE> other;
    Fp16Twiddles<P::B, P::IN, P::OUT, C::INVERSE> twiddles;
    CF_DEVICE Fp16Tables(int g, int t) : first(g, t), other(g, t), twiddles(g, t, C::gain(STEP, 0)) {}
};

/* Computes a step in place. column: the first column of the tile, for LOG_TWIDDLE. */
template <class C, int STEP>
CF_DEVICE void fp16_tile_step(smem<uint4> tile, const Fp16Tables<C, STEP> &tables, unsigned column) {
    typedef Fp16Places<C, STEP> P;
    /* AT_ONCE: results are stored unit by unit, to save registers. Which way is faster depends on the length:
     * measured for both. */
    constexpr bool TWO = P::B > 1, AT_ONCE = C::LOG_R2 < 4;
    const int thread = (int)threadIdx.x, lane = thread % 32, g = lane / 4, t = lane % 4;
    const int slot = TWO ? fp16_result<P::OUT>(2 * t, 0) : fp16_result<P::OUT>(g, 0),
              result = TWO ? fp16_result<P::OUT>(g, 0) : fp16_column<P::IN>(2 * t, 0);
#pragma unroll 1
    for (int unit = thread / 32; unit < Fp16Tile<C>::UNITS; unit += Fp16Tile<C>::T / 32) {
        const int base = P::column(unit * P::COLUMNS),
                  from = fp16_chunk(base | P::in(fp16_slot<P::IN>(t, 0), fp16_column<P::IN>(g, 0))),
                  to = fp16_chunk(base | P::out(slot, result));
        Fp16Twiddle<C, STEP> turn(P::bin_of(slot, result), unit * P::COLUMNS + P::column_of(slot, result),
                                  Fp16Twiddle<C, STEP>::LAST ? column : 0);
        unsigned in[4][4][2], w[2][2][2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int at = from ^ fp16_chunk(P::in(fp16_slot<P::IN>(0, i), fp16_column<P::IN>(0, j)));
                const uint4 v = tile[Fp16Tile<C>::template find<STEP>(at)];
                in[0][i][j] = v.x, in[1][i][j] = v.y, in[2][i][j] = v.z, in[3][i][j] = v.w;
            }
        __syncwarp(); /* the other lanes have read what this one overwrites */
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            float sum[2][2][4];
            fp16_step(tables.first, in[u], sum);
            if constexpr (TWO) {
                unsigned next[4][2];
                tables.twiddles.apply(sum, next);
                if constexpr (P::B == 16)
                    fp16_step(tables.first, next, sum);
                else
                    fp16_step(tables.other, next, sum);
            }
#pragma unroll
            for (int x = 0; x < 2; ++x)
#pragma unroll
                for (int e = 0; e < 2; ++e)
#pragma unroll
                    for (int y = 0; y < 2; ++y)
                        w[x][e][y][u] = fp16_pack(turn.apply(fp16_sum(sum, x, y, e), x, e, y));
            turn.advance();
            if constexpr (P::TWIDDLES && AT_ONCE)
                fp16_tile_twiddle<C, STEP>(tile, to, u, w);
        }
        if constexpr (P::TWIDDLES && !AT_ONCE) {
#pragma unroll
            for (int u = 0; u < 4; ++u)
                fp16_tile_twiddle<C, STEP>(tile, to, u, w);
        } else if constexpr (!P::TWIDDLES) {
            fp16_tile_store<C, STEP>(tile, to, w);
        }
    }
}
