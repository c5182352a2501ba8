/* SPDX-License-Identifier: Apache-2.0 */
/* Complex products of 16-bit spectra: how a chunk of an operand lies in shared memory, and the copy from global
 * memory.
 *
 * A chunk is CHUNK values of k. In shared memory it consists of lines of words, and a unit is four words (16 bytes):
 *
 *     dense operand    line = row of the operand (m or n), k runs along the line
 *     other operand    line = one k, rows run along the line
 *
 * Which one applies follows from global memory: the index that runs there runs here, too. Units are permuted within
 * their line (half_turn()) so that the reads of a warp meet no bank conflicts. */
#pragma once

#include "conv/gpu/gemm/cgemm_fp16_config.cuh"

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
