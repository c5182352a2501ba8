/* SPDX-License-Identifier: Apache-2.0 */
/* The products of cgemm_split_fp16.cuh of spectra that stand in memory in 16 bits: words (re, im), as tensor cores take them. Nothing is split or
 * rounded on the way; a row of words times a column of words is the real part of a product with the conjugate, and, A's words turned,
 * the imaginary part.
 *
 * Every eight neighbouring numbers of a row of FP16 spectra are to be multiplied by a power of two of their own (the scale), if they are not
 * all zeros. Where these differ, words become multiples of one scale for each row or column of the result: of what is summed along a line of
 * memory, the line's largest; of what is summed over lines, that of the eight columns. So numbers far below others of the same sum lose bits, never
 * these. A thread multiplies what it has copied itself, so nobody waits. A result in FP16 is left small enough that no sum overflows: bins stay
 * below 2^15, and a sum of K products below 2^30 K. */
#pragma once

#include "conv/gpu/gemm/cgemm_split_fp16.cuh"

struct HalfProductCall {
    const unsigned *a, *b;
    void *c;
    const float *a_scales, *b_scales;
    float *c_scales;
    long long a_bin, b_bin, c_bin, a_group, b_group, c_group; /* strides */
    long long a_scale_group, b_scale_group, c_scale_group;
    int bins, rows;             /* of a group; of X and Y */
    int first, matrices;        /* of all bins of all groups, those of this launch */
    int wide_a, wide_b, wide_c; /* all rows begin at multiples of 16 bytes, of a narrow result 8 */
    int accumulate;
};

/* Distance of lines of an operand of so many rows. Of those that are a k, four lie in banks of their own, since they are turned (half_turn()) or,
 * where that would leave the line, since there is room between. */
constexpr int half_pitch(bool dense, int chunk, int rows) { return dense ? chunk : rows % 32 == 0 ? rows : rows + 8; }

/* As ProductConfig. NARROW: the result is in 16 bits, too. */
template <int KIND_, int IN_, int OUT_, int WARPS_M_, int WARPS_N_, int MT_, int NT_, int STAGES_, int CHUNK_,
          int SLICES_, class BINS, bool NARROW_>
struct HalfProductConfig {
    typedef BINS Bins;
    static constexpr int KIND = KIND_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, MT = MT_, NT = NT_, STAGES = STAGES_,
                         CHUNK = CHUNK_, SLICES = SLICES_;
    static constexpr bool NARROW = NARROW_, WEIGHTS = KIND == 2;
    static constexpr bool A_DENSE = !WEIGHTS, B_DENSE = KIND == 0; /* k is the index that runs in memory */
    static constexpr bool SCALED = Bins::SCALED;
    static constexpr int A_ROW = KIND == 0 ? IN_ : OUT_, B_ROW = IN_,
                         C_ROW = KIND == 0 ? OUT_ : IN_;   /* row lengths in memory */
    static constexpr int COLUMNS = KIND == 0 ? OUT_ : IN_; /* n */
    static constexpr int M = 16 * MT * WARPS_M, N = 8 * NT * WARPS_N, T = 32 * WARPS_M * WARPS_N;
    /* Of a warp's row, the one that a thread has; where a line is a k, it reads its words of each line at once. */
    static CF_DEVICE int row_of(int m, int half, int lane) {
        return 16 * m + (A_DENSE ? 8 * half + lane / 4 : lane / 4 * 2 + half);
    }
    static constexpr int A_PITCH = half_pitch(A_DENSE, CHUNK, M), B_PITCH = half_pitch(B_DENSE, CHUNK, N);
    static constexpr int A_BYTES = 4 * A_PITCH * (A_DENSE ? M : CHUNK), B_BYTES = 4 * B_PITCH * (B_DENSE ? N : CHUNK);
    /* Of scales: 1 / the largest of lines or of eight columns, as all slices know them, with what warps find for these and what sums are to be
     * multiplied by; and, for a part of a slice's sum, each one's powers of two below its largest. */
    static constexpr int A_TOPS = A_DENSE ? M : M / 8, B_TOPS = B_DENSE ? N : N / 8, WARPS = T * SLICES / 32,
                         FOUND = 16, ALL_FOUND = 2 * FOUND * WARPS * (!A_DENSE + !B_DENSE);
    static constexpr int PART = WEIGHTS || A_ROW > 512 ? 256 : (A_ROW + CHUNK - 1) / CHUNK *CHUNK,
                         A_LOWS = M * PART / 8, B_LOWS = N * PART / 8;
    static constexpr int FACTORS = M + N + N / 8;
    static constexpr int TABLES =
        SCALED ? (4 * (FACTORS + 2 * (A_TOPS + B_TOPS) + ALL_FOUND + WARPS) + 127) / 128 * 128 : 0;
    static constexpr int RAW = A_BYTES + B_BYTES;
    static constexpr int SLICE_BYTES = STAGES * RAW + (SCALED ? (A_LOWS + B_LOWS + 127) / 128 * 128 : 0),
                         SHARED = TABLES + SLICES * SLICE_BYTES;
    static_assert((CHUNK == 16 || CHUNK == 32) && NT % 2 == 0 && MT <= 2, "whole instructions");
    static_assert(!(NARROW && WEIGHTS), "sums over rows are added to");
    static_assert(SLICES == 1 || (SLICES - 1) * 8 * MT * NT * T * 4 <= SLICES * SLICE_BYTES,
                  "room for the slices' sums");
    static_assert(M <= 8 * FOUND && N <= 8 * FOUND, "warps have room for what they find");
    static_assert(PART % CHUNK == 0, "a chunk is in one part");
    /* Of a narrow result: what keeps its numbers as small as the operands'. */
    static constexpr int DOWN = 15 + bits_of(A_ROW);
};

/* Where a unit of four words stands in a line is turned by this, so that those which threads read at a time, of neighbouring lines, are in banks of
 * their own: eight units of a dense operand's, words of four lines of the other kind's. */
template <class P, bool DENSE, int R> CF_DEVICE int half_turn(int line) {
    if constexpr (DENSE)
        return (P::CHUNK == 16 ? line / 2 : line) % (P::CHUNK / 4);
    else
        return R % 32 == 0 ? line % 4 * 2 : 0;
}

/* A thread's units of four words of R rows of an operand's chunk: unit and line of the i-th, i being a multiple of T, and where it stands. ROW: words
 * of a line in memory. */
template <class P, bool DENSE, int R, int ROW> struct HalfUnits {
    static constexpr int ACROSS = (DENSE ? P::CHUNK : R) / 4, LINES = DENSE ? R : P::CHUNK, ALL = ACROSS * LINES,
                         PITCH = half_pitch(DENSE, P::CHUNK, R) / 4;
    /* Mostly whole lines at a time: then the unit is the same each time, and steps from line to line are constants. */
    static constexpr bool WHOLE = P::T % ACROSS == 0, EVEN = WHOLE && P::T / ACROSS % (DENSE ? 8 : 4) == 0;
    static CF_DEVICE int unit(int i, int tid) { return (WHOLE ? tid : i + tid) % ACROSS; }
    static CF_DEVICE int line(int i, int tid) { return WHOLE ? tid / ACROSS + i / ACROSS : (i + tid) / ACROSS; }
    static CF_DEVICE bool is_beyond(int i, int tid) {
        return ALL % P::T != 0 && i + P::T > ALL && line(i, tid) >= LINES;
    }
    static CF_DEVICE int place(int i, int tid) {
        const int n = line(EVEN ? 0 : i, tid), u = unit(i, tid);
        return n * PITCH + (u ^ half_turn<P, DENSE, R>(n)) + (EVEN ? i / ACROSS * PITCH : 0);
    }
    static CF_DEVICE long long start(int tid) { return (long long)line(0, tid) * ROW + 4 * unit(0, tid); }
    static CF_DEVICE long long next(int i, int tid) {
        return WHOLE ? (long long)(i / ACROSS) * ROW
                     : (long long)(line(i, tid) - line(0, tid)) * ROW + 4 * (unit(i, tid) - unit(0, tid));
    }
};

/* Four words at constant distances from two places. */
template <int TO, int FROM> CF_DEVICE void half_copy_near(smem<char> to, const unsigned *from) {
#ifdef CF_SIMT
    copy_async<4>(smem_cast<real>(to + TO), reinterpret_cast<const real *>(from + FROM), true);
#else
    asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "n"(TO), "n"(FROM * 4)
                 : "memory");
#endif
}
template <class U, class P, int ROW, int I>
CF_DEVICE void half_copy_even(smem<char> to, const unsigned *from, int tid) {
    if constexpr (I < U::ALL) {
        if (!U::is_beyond(I, tid))
            half_copy_near<I / U::ACROSS * U::PITCH * 16, I / U::ACROSS * ROW>(to, from);
        half_copy_even<U, P, ROW, I + P::T>(to, from, tid);
    }
}

/* A number that the compiler must not know again: what is computed from it is computed where it stands, rather than kept in a register from tile to
 * tile. */
CF_DEVICE int half_again(int value) {
#ifndef CF_SIMT
    asm volatile("" : "+r"(value));
#endif
    return value;
}

/* R rows of an operand's chunk into shared memory, from a thread's first unit; what is beyond the operand becomes zero. WIDE: whole units; FULL:
 * there is nothing beyond. */
template <class P, bool DENSE, int R, int ROW, bool WIDE, bool FULL>
CF_DEVICE void half_copy_as(smem<char> raw, const unsigned *from, int rows, int k0, int k_end, int tid) {
    typedef HalfUnits<P, DENSE, R, ROW> Units;
    if constexpr (FULL && Units::EVEN) {
        half_copy_even<Units, P, ROW, 0>(raw + 16 * Units::place(0, tid), from, tid);
    } else {
#pragma unroll(WIDE ? 64 : 1)
        for (int i = 0; i < Units::ALL; i += P::T) {
            if (Units::is_beyond(i, tid))
                break;
            const int unit = Units::unit(i, tid), line = Units::line(i, tid);
            const int row = DENSE ? line : 4 * unit, k = k0 + (DENSE ? 4 * unit : line);
            const smem<real> to = smem_cast<real>(raw + 16 * Units::place(i, tid));
            const real *const p = reinterpret_cast<const real *>(from + Units::next(i, tid));
            const bool inside = FULL || (row < rows && k < k_end);
            if (WIDE)
                copy_async<4>(to, p, inside);
            else
                for (int j = 0; j < 4; ++j)
                    copy_async<1>(to + j, p + j, inside && (DENSE ? k + j < k_end : row + j < rows));
        }
    }
}
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void half_copy(smem<char> to, const unsigned *from, int rows, int k0, int k_end, int tid, bool wide) {
    constexpr bool WHOLE_SUMS = !P::WEIGHTS && P::A_ROW % (P::CHUNK * P::SLICES) == 0;
    if (wide && rows >= R && (WHOLE_SUMS || k0 + P::CHUNK <= k_end))
        half_copy_as<P, DENSE, R, ROW, true, true>(to, from, rows, k0, k_end, tid);
    else if (wide)
        half_copy_as<P, DENSE, R, ROW, true, false>(to, from, rows, k0, k_end, half_again(tid));
    else
        half_copy_as<P, DENSE, R, ROW, false, false>(to, from, rows, k0, k_end, half_again(tid));
}

/* ---------------------------------------------------------------------------------------------------------------- scales */

/* 1 / a power of two. */
CF_DEVICE float inverse_power(float power) { return __uint_as_float((254u << 23) - __float_as_uint(power)); }

/* What sums are multiplied by: 1 / the largest scale of each line or of each eight columns, and how large their bins can be. */
struct HalfTops {
    smem<float> inverse, bound;
};

/* These, or what each warp finds of each eight columns; whether scales differ that are no zeros'. `rows` as in half_copy(); the first line is
 * the first-th thread's. */
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE bool half_find_tops(HalfTops tops, smem<float> found, const float *scales, int rows, int k_end, int first) {
    constexpr int EIGHTS = (ROW + 7) / 8, ALL = P::T * P::SLICES;
    const int thread = int(threadIdx.x);
    const float least = 1.17549435e-38f; /* whose reciprocal is a number */
    bool differ = false;
    if constexpr (DENSE) {
        for (int line = (thread + ALL - first % ALL) % ALL; line < R; line += ALL) {
            float most = 0, bound = least;
            if (line < rows)
#pragma unroll 16
                for (int i = 0; i < EIGHTS; ++i) {
                    const float scale = scales[(long long)line * EIGHTS + i], power = power_of_scale(scale);
                    differ = differ || (power > 0 && most > 0 && power != most);
                    most = fmaxf(most, power);
                    bound = fmaxf(bound, bound_of_scale(scale));
                }
            tops.inverse[line] = inverse_power(fmaxf(most, least));
            tops.bound[line] = bound;
        }
    } else {
        /* Neighbouring threads have the eights of a line, and a thread asks for those of many lines before it looks at one: each wait for
         * memory is a part of what a block takes before its first tile. */
        constexpr int ACROSS = 1 << bits_of(R / 8), STEP = ALL / ACROSS, TOGETHER = 16;
        static_assert(ACROSS <= 32 && ACROSS <= P::FOUND, "of a warp, for which there is room");
        const int eight = thread % ACROSS;
        const bool inside = 8 * eight < rows && eight < R / 8;
        float most = 0, bound = least;
#pragma unroll 1
        for (int k = thread / ACROSS; k < k_end; k += TOGETHER * STEP) {
            float scale[TOGETHER];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) /* what is none is like zeros' */
                scale[i] = inside && k + i * STEP < k_end ? scales[(long long)(k + i * STEP) * EIGHTS + eight] : 0.0f;
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                if (i == TOGETHER / 2 && k + i * STEP >= k_end)
                    break; /* of short sums half of the work */
                const float power = power_of_scale(scale[i]);
                differ = differ || (power > 0 && most > 0 && power != most);
                most = fmaxf(most, power);
                bound = fmaxf(bound, bound_of_scale(scale[i]));
            }
        }
#pragma unroll
        for (int other = ACROSS; other <= 16; other *= 2) {
            const float theirs = __shfl_xor_sync(0xffffffffu, most, other);
            differ = differ || (theirs > 0 && most > 0 && theirs != most);
            most = fmaxf(most, theirs);
            bound = fmaxf(bound, __shfl_xor_sync(0xffffffffu, bound, other));
        }
        if (thread % 32 < ACROSS) {
            found[thread / 32 * P::FOUND + eight] = most;
            found[(P::WARPS + thread / 32) * P::FOUND + eight] = bound;
        }
    }
    return differ;
}
template <class P, bool DENSE, int R> CF_DEVICE bool half_join_tops(HalfTops tops, smem<float> found) {
    bool differ = false;
    if constexpr (!DENSE) {
        for (int eight = int(threadIdx.x); eight < R / 8; eight += P::T * P::SLICES) {
            float most = 1.17549435e-38f, bound = most;
            for (int warp = 0; warp < P::WARPS; ++warp) {
                most = fmaxf(most, found[warp * P::FOUND + eight]);
                bound = fmaxf(bound, found[(P::WARPS + warp) * P::FOUND + eight]);
            }
            for (int warp = 0; warp < P::WARPS; ++warp)
                differ = differ || (found[warp * P::FOUND + eight] > 0 && found[warp * P::FOUND + eight] != most);
            tops.inverse[eight] = inverse_power(most);
            tops.bound[eight] = bound;
        }
    }
    return differ;
}

/* How many powers of two the scales of a part are below the largest of their line or eight columns; 0 of zeros. */
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void half_find_lows(smem<unsigned> lows, smem<float> tops, const float *scales, int rows, int k0, int k_end,
                              int tid) {
    constexpr int EIGHTS = (ROW + 7) / 8, ACROSS = DENSE ? P::PART / 8 : R / 8, LINES = DENSE ? R : P::PART;
    for (int i = tid; i < LINES * ACROSS / 4; i += P::T) {
        unsigned four = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int line = (4 * i + j) / ACROSS, eight = (4 * i + j) % ACROSS;
            const int row = DENSE ? line : 8 * eight, k = k0 + (DENSE ? 8 * eight : line);
            float scale = 0;
            if (row < rows && k < k_end)
                scale = scales[DENSE ? (long long)row * EIGHTS + k / 8 : (long long)k * EIGHTS + eight];
            const float share = scale > 0 ? power_of_scale(scale) * tops[DENSE ? line : eight] : 1.0f;
            four |= (127u - (__float_as_uint(share) >> 23)) << 8 * j;
        }
        lows[i] = four;
    }
}

/* The words that a thread has copied, as multiples of the largest scale of their line or of their eight columns. */
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void half_share(smem<char> raw, smem<unsigned> lows, int k, int tid) {
    typedef HalfUnits<P, DENSE, R, ROW> Units;
    constexpr int ACROSS = DENSE ? P::PART / 8 : R / 8, COUNT = (Units::ALL + P::T - 1) / P::T;
    const int first = DENSE ? k % P::PART / 8 : k % P::PART * ACROSS;
    unsigned low[COUNT], all = 0;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        const int i = j * P::T, place = first + Units::line(i, tid) * ACROSS + Units::unit(i, tid) / 2;
        low[j] = Units::is_beyond(i, tid) ? 0 : lows[place / 4] >> place % 4 * 8 & 255u;
        all |= low[j];
    }
    if (all == 0)
        return;
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
        if (Units::is_beyond(j * P::T, tid))
            break;
        const float share = __uint_as_float((127u - low[j]) << 23);
        const unsigned both = pack_halves(share, share);
        smem<uint4> words = smem_cast<uint4>(raw) + Units::place(j * P::T, tid);
        const uint4 w = words[0];
        words[0] = make_uint4(product_of_halves(w.x, both), product_of_halves(w.y, both), product_of_halves(w.z, both),
                              product_of_halves(w.w, both));
    }
}

/* -------------------------------------------------------------------------------------------------------------- operands */

/* Where a thread reads an operand's words of a chunk: of a dense one units, else words; step by step others. */
template <class P> CF_DEVICE int half_rows_at(unsigned chunk, int row, int lane) {
    if constexpr (P::A_DENSE)
        return chunk / 4 + (row + lane % 16) * (P::CHUNK / 4) + (lane / 16 ^ half_turn<P, true, P::M>(lane % 16));
    else
        return chunk + lane % 4 * P::A_PITCH + ((row + lane / 4 * 2) ^ (4 * half_turn<P, false, P::M>(lane)));
}
template <class P> CF_DEVICE int half_columns_at(unsigned chunk, int column, int lane) {
    const int of_eight = lane % 8;
    if constexpr (P::B_DENSE)
        return chunk / 4 + (column + lane / 16 * 8 + of_eight) * (P::CHUNK / 4) +
               (lane / 8 % 2 ^ half_turn<P, true, P::N>(of_eight));
    else
        return chunk + lane % 4 * P::B_PITCH + ((column + lane / 4) ^ (4 * half_turn<P, false, P::N>(lane)));
}

/* So many words behind place `at` of a line that is a k: within a warp's part of it, which begins at a multiple of its length. */
template <int R> CF_DEVICE int half_further(int at, int by) { return R % 32 == 0 ? at ^ by : at + by; }

/* A warp's rows of A, eight words of each as multiply_halves() takes them, and the same for the imaginary part of the product. */
template <class P> struct HalfRows { unsigned word[P::MT][4], turned[P::MT][4]; };
template <class P> CF_DEVICE void half_rows(HalfRows<P> &a, smem<char> shared, int at, int step) {
#pragma unroll
    for (int m = 0; m < P::MT; ++m) {
        if constexpr (P::A_DENSE) {
            load_matrices(a.word[m], smem_cast<uint4>(shared) + 16 * m * (P::CHUNK / 4), at ^ 2 * step);
        } else {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const uint2 w = smem_cast<uint2>(smem_cast<unsigned>(shared) +
                                                 half_further<P::M>(at, 16 * m))[(8 * step + 4 * i) * P::A_PITCH / 2];
                a.word[m][2 * i] = w.x;
                a.word[m][2 * i + 1] = w.y;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned w = a.word[m][i], swapped = w >> 16 | w << 16;
            a.turned[m][i] = P::KIND == 1 ? swapped : swapped ^ 0x80000000u;
            a.word[m][i] = P::KIND == 1 ? w ^ 0x80000000u : w;
        }
    }
}

/* Tiles n and n + 1 of eight columns of B, eight words of each. */
template <class P> CF_DEVICE void half_columns(unsigned b[4], smem<char> shared, int at, int n, int step) {
    if constexpr (P::B_DENSE) {
        load_matrices(b, smem_cast<uint4>(shared) + 8 * n * (P::CHUNK / 4), at ^ 2 * step);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            b[i] = (smem_cast<unsigned>(shared) +
                    half_further<P::N>(at, (n + i / 2) * 8))[(8 * step + i % 2 * 4) * P::B_PITCH];
    }
}

/* sums += the product of a chunk, which begins at a word of shared memory. */
template <class P> CF_DEVICE void half_chunk(ProductSums<P> &s, smem<char> shared, unsigned chunk, int warp, int lane) {
    const int a_at = half_rows_at<P>(chunk, warp % P::WARPS_M * (16 * P::MT), lane),
              b_at = half_columns_at<P>(chunk + P::A_BYTES / 4, warp / P::WARPS_M * (8 * P::NT), lane);
#pragma unroll
    for (int step = 0; step < P::CHUNK / 8; ++step) {
        HalfRows<P> a;
        half_rows<P>(a, shared, a_at, step);
#pragma unroll
        for (int n = 0; n < P::NT; n += 2) {
            unsigned b[4];
            half_columns<P>(b, shared, b_at, n, step);
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int m = 0; m < P::MT; ++m) {
                    multiply_bins<typename P::Bins>(s.re[m][n + i], a.word[m], b[2 * i], b[2 * i + 1]);
                    multiply_bins<typename P::Bins>(s.im[m][n + i], a.turned[m], b[2 * i], b[2 * i + 1]);
                }
        }
    }
}

/* --------------------------------------------------------------------------------------------------------------- results */

/* A narrow result. */
template <class P>
CF_DEVICE void half_store(const ProductSums<P> &s, unsigned *c, int rows, int columns, int warp, int lane, bool wide) {
    const int m0 = warp % P::WARPS_M * (16 * P::MT) + lane / 4, n0 = warp / P::WARPS_M * (8 * P::NT) + lane % 4 * 2;
    unsigned *const first = c + ((long long)m0 * P::C_ROW + n0);
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            if (m0 + (16 * m + 8 * half) >= rows)
                continue;
#pragma unroll
            for (int n = 0; n < P::NT; ++n) {
                const int column = n0 + 8 * n;
                unsigned *const to = first + ((16 * m + 8 * half) * P::C_ROW + 8 * n);
                const unsigned x = P::Bins::pack(s.re[m][n][2 * half], s.im[m][n][2 * half]),
                               y = P::Bins::pack(s.re[m][n][2 * half + 1], s.im[m][n][2 * half + 1]);
                if (P::COLUMNS % P::N != 0 && column >= columns)
                    continue;
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

/* What sums are multiplied by: the scales of their row and column; or, of a narrow result, what makes them multiples of the largest that they can
 * be in the row and eight columns. */
struct HalfFactors {
    smem<float> row, column, eight; /* the last: the largest that the column's factor stands for */
};
template <class P> CF_DEVICE void half_find_factors(HalfFactors f, HalfTops a_tops, HalfTops b_tops) {
    constexpr float DOWN = 1.0f / float(1ll << P::DOWN);
    for (int i = int(threadIdx.x); i < P::M + P::N; i += P::T * P::SLICES) {
        if (i < P::M) {
            const int line = P::A_DENSE ? i : i / 8;
            const float factor = inverse_power(a_tops.inverse[line]);
            f.row[i] = P::NARROW ? factor * inverse_power(a_tops.bound[line]) : factor;
        } else {
            const int column = i - P::M, line = P::B_DENSE ? column : column / 8;
            const float factor = inverse_power(b_tops.inverse[line]);
            float bound = 1;
            if constexpr (P::NARROW) {
                bound = b_tops.bound[P::B_DENSE ? column / 8 * 8 : line];
                for (int j = 1; P::B_DENSE && j < 8; ++j)
                    bound = fmaxf(bound, b_tops.bound[column / 8 * 8 + j]);
                if (column % 8 == 0)
                    f.eight[column / 8] = bound;
            }
            f.column[column] = P::NARROW ? factor * (DOWN * inverse_power(bound)) : factor;
        }
    }
}
template <class P> CF_DEVICE void half_finish(ProductSums<P> &s, HalfFactors f, int warp, int lane) {
    const int m0 = warp % P::WARPS_M * (16 * P::MT), n0 = warp / P::WARPS_M * (8 * P::NT);
    float of_row[P::MT][2];
#pragma unroll
    for (int m = 0; m < P::MT; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
            of_row[m][half] = f.row[m0 + P::row_of(m, half, lane)];
#pragma unroll
    for (int n = 0; n < P::NT; ++n) {
        float of_column[2];
#pragma unroll
        for (int j = 0; j < 2; ++j)
            of_column[j] = f.column[n0 + 8 * n + lane % 4 * 2 + j];
#pragma unroll
        for (int m = 0; m < P::MT; ++m)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float factor = of_row[m][i / 2] * of_column[i % 2];
                s.re[m][n][i] = s.re[m][n][i] * factor;
                s.im[m][n][i] = s.im[m][n][i] * factor;
            }
    }
}
/* Of a narrow result. */
template <class P> CF_DEVICE void half_note(float *c_scales, HalfTops a_tops, HalfFactors f, int rows, int columns) {
    constexpr float UP = float(1ll << P::DOWN);
#pragma unroll 1
    for (int i = half_again(int(threadIdx.x)); i < P::M * (P::N / 8); i += P::T) {
        const int row = i / (P::N / 8), eight = i % (P::N / 8);
        if (row < rows && 8 * eight < columns)
            c_scales[(long long)row * ((P::C_ROW + 7) / 8) + eight] = a_tops.bound[row] * f.eight[eight] * UP;
    }
}

/* A bin of a group, and the next one of a block. */
struct HalfBin {
    int bin, group;
    CF_DEVICE HalfBin(const HalfProductCall &call, int matrix)
        : bin((call.first + matrix) % call.bins), group((call.first + matrix) / call.bins) {}
    CF_DEVICE void next(const HalfProductCall &call, int step) {
        for (bin += step; bin >= call.bins; bin -= call.bins)
            ++group;
    }
};

/* Where the tables stand in shared memory: those of the block, behind which each slice has its chunks and tables of its part of the sums. */
template <class P> struct HalfTables {
    smem<float> found, b_found, differing;
    HalfFactors factors;
    HalfTops a, b;
    smem<unsigned> a_lows, b_lows; /* of a slice */
    /* In bytes, a slice's. */
    static CF_DEVICE int chunks_at(int slice) { return P::TABLES + slice * P::SLICE_BYTES; }
    explicit CF_DEVICE HalfTables(int slice) {
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

/* The tables of a group's scales; whether these differ. */
template <class P>
CF_APART bool half_search(const float *a_scales, const float *b_scales, int rows, int columns, int k_all) {
    const HalfTables<P> t(0); /* of which the block's are used */
    __syncthreads();
    bool differ = half_find_tops<P, P::A_DENSE, P::M, P::A_ROW>(t.a, t.found, a_scales, rows, k_all, 0);
    differ = half_find_tops<P, P::B_DENSE, P::N, P::B_ROW>(t.b, t.b_found, b_scales, columns, k_all,
                                                           P::A_DENSE ? P::M : 0) ||
             differ;
    __syncthreads();
    differ = half_join_tops<P, P::A_DENSE, P::M>(t.a, t.found) || differ;
    differ = half_join_tops<P, P::B_DENSE, P::N>(t.b, t.b_found) || differ;
    float votes = differ ? 1.0f : 0.0f;
    for (int other = 16; other > 0; other /= 2)
        votes = fmaxf(votes, __shfl_xor_sync(0xffffffffu, votes, other));
    if (threadIdx.x % 32 == 0)
        t.differing[(int)threadIdx.x / 32] = votes;
    __syncthreads();
    half_find_factors<P>(t.factors, t.a, t.b); /* read behind the barriers of chunks, of which there is one */
    differ = false;
    for (int i = 0; i < P::WARPS; ++i)
        differ = differ || t.differing[i] > 0;
    return differ;
}
/* The tables of a part of the sums. */
template <class P>
CF_APART void half_search_part(const float *a_scales, const float *b_scales, int rows, int columns, int k, int k_all) {
    const int tid = (int)threadIdx.x % P::T;
    const HalfTables<P> t((int)threadIdx.x / P::T);
    __syncthreads();
    half_find_lows<P, P::A_DENSE, P::M, P::A_ROW>(t.a_lows, t.a.inverse, a_scales, rows, k, k_all, tid);
    half_find_lows<P, P::B_DENSE, P::N, P::B_ROW>(t.b_lows, t.b.inverse, b_scales, columns, k, k_all, tid);
    __syncthreads();
}

/* A tile of C, of some matrices, whose first chunks are on their way while the one before is multiplied and stored. The grid has as many blocks for
 * each tile of a matrix. */
template <class P> CF_DEVICE void half_product_run(const HalfProductCall &call) {
    constexpr int A_EIGHTS = (P::A_ROW + 7) / 8, B_EIGHTS = (P::B_ROW + 7) / 8, C_EIGHTS = (P::C_ROW + 7) / 8;
    const int m_all = P::WEIGHTS ? P::A_ROW : call.rows, k_all = P::WEIGHTS ? call.rows : P::A_ROW;
    const int m_tiles = (m_all + P::M - 1) / P::M, n_tiles = (P::COLUMNS + P::N - 1) / P::N;
    const int tile = (int)blockIdx.x % (m_tiles * n_tiles), step = (int)gridDim.x / (m_tiles * n_tiles);
    /* From the tile's corner on. Four blocks leave a thread 128 registers, of which the sums and what a chunk takes need nearly all: what is used
     * between two tiles only is worked out there (half_again()), or in functions that are called. Spilled, it made gradients of weights in FP16 a
     * third slower. */
    const int rows = m_all - tile / n_tiles * P::M, columns = P::COLUMNS - tile % n_tiles * P::N;
    const auto row0 = [&] { return m_all - half_again(rows); };
    const auto column0 = [&] { return P::COLUMNS - half_again(columns); };
    constexpr bool ONE = P::SLICES == 1;
    constexpr unsigned T = P::T;
    const int thread = (int)threadIdx.x, slice = ONE ? 0 : thread / T, tid = ONE ? thread : thread % T,
              warp = tid / 32u, lane = tid % 32u;

    const HalfTables<P> tables(slice);
    const smem<char> shared = cf_dynamic_shared<char>();
    const int own = tables.chunks_at(slice);
    constexpr int LAST = (P::STAGES - 1) * P::RAW;
    constexpr long long A_STEP = P::A_DENSE ? P::CHUNK : (long long)P::CHUNK * P::A_ROW,
                        B_STEP = P::B_DENSE ? P::CHUNK : (long long)P::CHUNK * P::B_ROW; /* from chunk to chunk */
    const int chunks = (k_all + P::CHUNK * P::SLICES - 1) / (P::CHUNK * P::SLICES), k_first = slice * chunks * P::CHUNK;
    const int end = call.first + call.matrices;
    HalfBin at(call, (int)blockIdx.x / (m_tiles * n_tiles)), from = at;
    const unsigned *a, *b;
    const auto begin = [&] {
        const int m0 = row0(), n0 = column0(), t = half_again(thread), id = ONE ? t : t % T,
                  skipped = ONE ? 0 : int(t / T) * chunks;
        a = call.a + (from.bin * call.a_bin + from.group * call.a_group + (P::A_DENSE ? (long long)m0 * P::A_ROW : m0) +
                      skipped * A_STEP + HalfUnits<P, P::A_DENSE, P::M, P::A_ROW>::start(id));
        b = call.b + (from.bin * call.b_bin + from.group * call.b_group + (P::B_DENSE ? (long long)n0 * P::B_ROW : n0) +
                      skipped * B_STEP + HalfUnits<P, P::B_DENSE, P::N, P::B_ROW>::start(id));
    };
    begin();
    int coming_chunk = 0; /* all of them: nothing comes any more */
    const auto copy = [&](int stage) {
        if (coming_chunk < chunks) {
            const smem<char> to = shared + (own + stage);
            const int k = k_first + coming_chunk * P::CHUNK;
            half_copy<P, P::A_DENSE, P::M, P::A_ROW>(to, a, rows, k, k_all, tid, call.wide_a);
            half_copy<P, P::B_DENSE, P::N, P::B_ROW>(to + P::A_BYTES, b, columns, k, k_all, tid, call.wide_b);
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
    constexpr int NONE = -1, UNKNOWN = -2, EQUAL = 1 << 30; /* parts of a sum that are no part */
    int stage = 0, part = UNKNOWN; /* bytes to the stage that is multiplied next; what the tables are of */
    const auto a_scales = [&] {
        return call.a_scales +
               (half_again(at.group) * call.a_scale_group + (P::A_DENSE ? (long long)row0() * A_EIGHTS : row0() / 8));
    };
    const auto b_scales = [&] {
        return call.b_scales + (half_again(at.group) * call.b_scale_group +
                                (P::B_DENSE ? (long long)column0() * B_EIGHTS : column0() / 8));
    };
    for (int i = 0; i < P::STAGES - 1; ++i)
        copy(i * P::RAW);
    while (at.group * call.bins + at.bin < end) {
        if (P::SCALED && part == UNKNOWN)
            part = half_search<P>(a_scales(), b_scales(), rows, columns, k_all) ? NONE : EQUAL;
        ProductSums<P> sums = {};
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const int bytes = own + stage, before = stage == 0 ? LAST : stage - P::RAW;
            if (P::SCALED && part != EQUAL) {
                const int k = chunk * P::CHUNK, t = half_again(tid);
                if (k % P::PART == 0 && part != k / P::PART) {
                    part = k / P::PART;
                    half_search_part<P>(a_scales(), b_scales(), rows, columns, k_first + k, k_all);
                }
                product_wait<P::STAGES - 2>();
                half_share<P, P::A_DENSE, P::M, P::A_ROW>(shared + bytes, tables.a_lows, k, t);
                half_share<P, P::B_DENSE, P::N, P::B_ROW>(shared + (bytes + P::A_BYTES), tables.b_lows, k, t);
            } else {
                product_wait<P::STAGES - 2>();
            }
            __syncthreads(); /* the chunk is there, and nobody reads the one before */
            copy(before);
            half_chunk<P>(sums, shared, (unsigned)bytes / 4, warp, lane);
            stage = stage == LAST ? 0 : stage + P::RAW;
        }
        const int m0 = row0(), n0 = column0(), t = half_again(thread), w = t % T / 32u, l = t % 32u;
        if (P::SLICES > 1) { /* these have one matrix */
            product_gather<P>(sums, cf_dynamic_shared<float>() + P::TABLES / 4, int(t / T), int(t % T));
            if (t / T > 0)
                return;
        }
        if constexpr (P::SCALED)
            half_finish<P>(sums, tables.factors, w, l);
        if constexpr (P::SCALED && P::NARROW)
            if (at.bin == 0)
                half_note<P>(call.c_scales + (at.group * call.c_scale_group + (long long)m0 * C_EIGHTS + n0 / 8),
                             tables.a, tables.factors, rows, columns);
        const long long first = at.bin * call.c_bin + at.group * call.c_group + (long long)m0 * P::C_ROW + n0;
        if constexpr (P::NARROW)
            half_store<P>(sums, static_cast<unsigned *>(call.c) + first, rows, columns, w, l, call.wide_c);
        else
            product_store<P>(sums, static_cast<cplx *>(call.c) + first, rows, columns, w, l, call.wide_c,
                             call.accumulate);
        const int group = at.group;
        at.next(call, step);
        if (P::SCALED && at.group != group)
            part = UNKNOWN;
    }
}
