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
 * their line (fp16_swizzle()) so that the reads of a warp meet no bank conflicts. */
#pragma once

#include "conv/gpu/gemm/cgemm_fp16_config.cuh"

/* The permutation of units in a line: the XOR of unit numbers. It puts the accesses of a warp into different banks:
 * eight units of eight neighbouring lines if k is contiguous, otherwise single words of four lines. */
template <class P, bool DENSE, int R> CF_DEVICE int fp16_swizzle(int line) {
    if constexpr (DENSE)
        return (P::CHUNK == 16 ? line / 2 : line) % (P::CHUNK / 4);
    else
        return R % 32 == 0 ? line % 4 * 2 : 0;
}

/* Which units (four words) of R rows a thread copies. For the i-th copy, i a multiple of T: its unit and line, its
 * place in shared memory, and its offset in global memory. ROW: words of a line in global memory. */
template <class P, bool DENSE, int R, int ROW> struct Fp16Units {
    static constexpr int ACROSS = (DENSE ? P::CHUNK : R) / 4, LINES = DENSE ? R : P::CHUNK, ALL = ACROSS * LINES,
                         PITCH = cf_fp16_cgemm_pitch(DENSE, P::CHUNK, R) / 4;
    /* WHOLE_LINES: the T threads cover whole lines. Then a thread has the same unit each time. EVEN: the distance
     * between two copies of a thread is also a constant in shared memory. */
    static constexpr bool WHOLE_LINES = P::T % ACROSS == 0, EVEN = WHOLE_LINES && P::T / ACROSS % (DENSE ? 8 : 4) == 0;
    static CF_DEVICE int unit(int i, int tid) { return (WHOLE_LINES ? tid : i + tid) % ACROSS; }
    static CF_DEVICE int line(int i, int tid) { return WHOLE_LINES ? tid / ACROSS + i / ACROSS : (i + tid) / ACROSS; }
    static CF_DEVICE bool is_beyond(int i, int tid) {
        return ALL % P::T != 0 && i + P::T > ALL && line(i, tid) >= LINES;
    }
    static CF_DEVICE int place(int i, int tid) {
        const int n = line(EVEN ? 0 : i, tid), u = unit(i, tid);
        return n * PITCH + (u ^ fp16_swizzle<P, DENSE, R>(n)) + (EVEN ? i / ACROSS * PITCH : 0);
    }
    static CF_DEVICE long long start(int tid) { return (long long)line(0, tid) * ROW + 4 * unit(0, tid); }
    static CF_DEVICE long long next(int i, int tid) {
        return WHOLE_LINES ? (long long)(i / ACROSS) * ROW
                           : (long long)(line(i, tid) - line(0, tid)) * ROW + 4 * (unit(i, tid) - unit(0, tid));
    }
};

/* Copies four words. Source and destination are constant offsets from two addresses. */
template <int TO, int FROM> CF_DEVICE void fp16_copy_near(smem<char> to, const unsigned *from) {
#ifdef CF_SIMT
    copy_async<4>(smem_cast<real>(to + TO), reinterpret_cast<const real *>(from + FROM), true);
#else
    asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %3], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "n"(TO), "n"(FROM * 4)
                 : "memory");
#endif
}
template <class U, class P, int ROW, int I>
CF_DEVICE void fp16_copy_even(smem<char> to, const unsigned *from, int tid) {
    if constexpr (I < U::ALL) {
        if (!U::is_beyond(I, tid))
            fp16_copy_near<I / U::ACROSS * U::PITCH * 16, I / U::ACROSS * ROW>(to, from);
        fp16_copy_even<U, P, ROW, I + P::T>(to, from, tid);
    }
}

/* Hides a value from the compiler. What is computed from it is computed where it is used, and does not occupy a
 * register from tile to tile. */
CF_DEVICE int fp16_again(int value) {
#ifndef CF_SIMT
    asm volatile("" : "+r"(value));
#endif
    return value;
}

/* Copies R rows of an operand's chunk to shared memory. `from`: the thread's first unit. Elements outside the operand
 * become zero. VECTOR: units of 16 bytes are aligned. FULL: the whole chunk is inside the operand. */
template <class P, bool DENSE, int R, int ROW, bool VECTOR, bool FULL>
CF_DEVICE void fp16_copy_as(smem<char> raw, const unsigned *from, int rows, int k0, int k_end, int tid) {
    typedef Fp16Units<P, DENSE, R, ROW> Units;
    if constexpr (FULL && Units::EVEN) {
        fp16_copy_even<Units, P, ROW, 0>(raw + 16 * Units::place(0, tid), from, tid);
    } else {
#pragma unroll(VECTOR ? 64 : 1)
        for (int i = 0; i < Units::ALL; i += P::T) {
            if (Units::is_beyond(i, tid))
                break;
            const int unit = Units::unit(i, tid), line = Units::line(i, tid);
            const int row = DENSE ? line : 4 * unit, k = k0 + (DENSE ? 4 * unit : line);
            const smem<real> to = smem_cast<real>(raw + 16 * Units::place(i, tid));
            const real *const p = reinterpret_cast<const real *>(from + Units::next(i, tid));
            const bool inside = FULL || (row < rows && k < k_end);
            if (VECTOR)
                copy_async<4>(to, p, inside);
            else
                for (int j = 0; j < 4; ++j)
                    copy_async<1>(to + j, p + j, inside && (DENSE ? k + j < k_end : row + j < rows));
        }
    }
}
template <class P, bool DENSE, int R, int ROW>
CF_DEVICE void fp16_copy(smem<char> to, const unsigned *from, int rows, int k0, int k_end, int tid, bool aligned) {
    constexpr bool WHOLE_SUMS = !P::WEIGHTS && P::A_ROW % (P::CHUNK * P::SLICES) == 0;
    if (aligned && rows >= R && (WHOLE_SUMS || k0 + P::CHUNK <= k_end))
        fp16_copy_as<P, DENSE, R, ROW, true, true>(to, from, rows, k0, k_end, tid);
    else if (aligned)
        fp16_copy_as<P, DENSE, R, ROW, true, false>(to, from, rows, k0, k_end, fp16_again(tid));
    else
        fp16_copy_as<P, DENSE, R, ROW, false, false>(to, from, rows, k0, k_end, fp16_again(tid));
}
