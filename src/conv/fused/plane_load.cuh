/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels-first planes from memory to shared memory. plane_access.cuh says which thread loads what.
 *
 *     load_rows()     elements are held in registers for a batch of rows; with ASYNC, cp.async copies them
 *     Singles         few 16-bit elements: all are loaded to registers before the first one is used
 *
 *     shared memory, STAGED     a line holds its two rows unchanged, one behind the other; row 1 begins at
 *                               element STAGED_ROW
 *     shared memory, else       complex points in the order of the FFT's first step (G::O2::time())
 */
#pragma once

#include "conv/fused/plane_access.cuh"

/*
 * copy_async() from `from + FROM` to `to + TO`. The two constants are part of the instruction and cost nothing. If
 * the element is not inside, nothing is read, and zeros are written.
 */
template <int VECTOR, int TO, int FROM> CF_DEVICE void copy_near(smem<real> to, const real *from, bool inside) {
#ifdef CF_SIMT
    copy_async<VECTOR>(to + TO, from + FROM, inside);
#else
    constexpr int UNIT = int(sizeof(real)), BYTES = VECTOR * UNIT;
    const unsigned place = (unsigned)__cvta_generic_to_shared(to);
    const int wanted = inside ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0 + %3], [%1 + %4], 16, %2;" ::"r"(place), "l"(from), "r"(wanted),
                     "n"(TO * UNIT), "n"(FROM * UNIT)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0 + %3], [%1 + %4], %5, %2;" ::"r"(place), "l"(from), "r"(wanted),
                     "n"(TO * UNIT), "n"(FROM * UNIT), "n"(BYTES)
                     : "memory");
#endif
}

/*
 * Loads all planes of the block. ASYNC: by cp.async; the elements are there after wait_async() and a barrier. Lines
 * that are not STAGED then take one element at a time.
 */
template <class K, int VECTOR, bool ASYNC = K::STAGED &&K::Storage::PLAIN>
CF_DEVICE void load_rows(smem<cplx> z, const PlaneTable<K> &plane_table, const void *memory) {
    static_assert(!ASYNC || K::STAGED || (K::KIND == TWO_ROWS_AS_COMPLEX && VECTOR == 1),
                  "numbers of two rows stand side by side");
    typedef Sweep<K, VECTOR> S;
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage::bits bits;
    constexpr int ROWS = S::PAIRED ? 2 : 1, MOST = ASYNC ? 16 : 32 / (ROWS * S::PIECE),
                  BATCH = S::EACH < MOST ? S::EACH : MOST;
    /* Whether the rows of a batch are small constant distances apart, which fit the instruction. */
    constexpr long long STEP = K::AXIS[1].step * K::AXIS_STRIDE[1], FAR = 2 * BATCH * S::OF_A_PLANE * STEP;
    constexpr bool NEAR = STRAIGHT<K> && FAR < 1 << 20 && FAR > -(1 << 20);
    S::each_column([&](int p, int row, int x) {
        const Column<K, VECTOR> c(plane_table, p, row, x);
        const Rows<K, S, STRAIGHT<K>> rows(plane_table, p, row);
        const bits *const column = static_cast<const bits *>(memory) + plane_table.signal(p) + c.across;
#pragma unroll 1
        for (int first = 0; first < S::EACH; first += BATCH) {
            const bits *const from = column + rows.base(first);
            const auto exists = [&](int i) { return c.exists(i) && (S::EACH % BATCH == 0 || i < S::EACH); };
            smem<cplx> lines = z + c.offset(first);
            if constexpr (ASYNC && NEAR) {
                smem<real> to = smem_cast<real>(K::STAGED ? lines : lines + c.place[0]) + (K::STAGED ? x : 0);
                unroll<0, BATCH>([&](auto b) {
                    constexpr int B = decltype(b)::value * S::OF_A_PLANE;
                    const int i = first + b;
                    if (!exists(i))
                        return;
                    unroll<0, 2>([&](auto h) {
                        constexpr int H = decltype(h)::value;
                        copy_near<VECTOR, 2 * B * G::PITCH + H *(K::STAGED ? G::STAGED_ROW : 1),
                                  int((2 * B + H) * STEP)>(to, from, c.inside && rows.inside(row, i, h));
                    });
                });
                continue;
            }
            if constexpr (ASYNC) {
                unroll<0, BATCH>([&](auto b) {
                    const int i = first + b;
                    if (!exists(i))
                        return;
                    smem<cplx> line = lines + (c.offset(i) - c.offset(first));
                    smem<real> to = smem_cast<real>(K::STAGED ? line : line + c.place[0]) + (K::STAGED ? x : 0);
                    unroll<0, 2>([&](auto h) {
                        const bool in = c.inside && rows.inside(row, i, h);
                        copy_async<VECTOR>(to + h * (K::STAGED ? G::STAGED_ROW : 1),
                                           in ? from + rows.at(first, i, h) : column, in);
                    });
                });
                continue;
            }
            real v[BATCH * ROWS * S::PIECE];
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                const bool there = exists(i);
                unroll<0, ROWS>([&](auto h) {
                    const bool in = there && rows.inside(row, i, h);
                    get_numbers<K, S::PIECE, VECTOR>(v + (b * ROWS + h) * S::PIECE, from + rows.at(first, i, h),
                                                     c.second, in && c.inside, in && c.second_inside);
                });
            });
            unroll<0, BATCH>([&](auto b) {
                const int i = first + b;
                if (!exists(i))
                    return;
                const real *const u = v + b * ROWS * S::PIECE;
                smem<cplx> line = lines + (c.offset(i) - c.offset(first));
                unroll<0, S::PIECE>([&](auto e) {
                    if constexpr (K::STAGED) {
                        smem_cast<real>(line)[x + e] = u[e];
                        smem_cast<real>(line)[x + e + G::STAGED_ROW] = u[S::PIECE + e];
                    } else if constexpr (S::PAIRED) {
                        line[c.place[e]] = {u[e], u[S::PIECE + e]};
                    } else if constexpr (S::PIECE / 2 > decltype(e)::value) {
                        line[c.place[e]] = {u[2 * e], u[2 * e + 1]};
                    }
                });
            });
        }
    });
}

/* The elements of a thread, if they are loaded one at a time. */
template <class K> constexpr int singles_of_thread() {
    if constexpr (!CAN_SWEEP<K>)
        return 0;
    else
        return Sweep<K, 1>::PLANES * Sweep<K, 1>::TIMES * Sweep<K, 1>::EACH * 2;
}
/* Whether elements have 16 bits, are loaded one at a time, and are few enough for registers. */
template <class K>
constexpr bool FEW_SINGLES = CAN_SWEEP<K> &&K::KIND == TWO_ROWS_AS_COMPLEX && !K::Storage::PLAIN && K::VECTOR == 1 &&
                             !K::STAGED && singles_of_thread<K>() <= 16;
/* All elements of a thread in registers: load() issues all loads, put() writes to shared memory. */
template <class K> struct Singles {
    typedef Sweep<K, 1> S;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    unsigned v[S::PLANES][S::TIMES][S::EACH][2];
    CF_DEVICE void load(const PlaneTable<K> &plane_table, const void *memory) {
        unroll<0, S::PLANES * S::TIMES>([&](auto n) {
            constexpr int Q = decltype(n)::value / S::TIMES, J = decltype(n)::value % S::TIMES;
            int p, row, x;
            /* Threads without a column load another column, which saves a test of each element. */
            const bool exists = S::find(Q, J, p, row, x);
            p = exists ? p : 0;
            row = exists ? row : 0;
            const Column<K, 1> c(plane_table, p, row, exists ? x : S::LO);
            const Rows<K, S, STRAIGHT<K>> rows(plane_table, p, row);
            const bits *const from =
                static_cast<const bits *>(memory) + plane_table.signal(p) + c.across + rows.base(0);
            unroll<0, S::EACH>([&](auto i) {
                unroll<0, 2>([&](auto h) {
                    v[Q][J][i][h] = 0;
                    if ((!K::AXIS[2].checked || c.inside) && c.exists(i) && rows.inside(row, i, h))
                        v[Q][J][i][h] = __ldg(from + rows.at(0, i, h));
                });
            });
        });
    }
    CF_DEVICE void put(smem<cplx> z, const PlaneTable<K> &plane_table) const {
        unroll<0, S::PLANES * S::TIMES>([&](auto n) {
            constexpr int Q = decltype(n)::value / S::TIMES, J = decltype(n)::value % S::TIMES;
            int p, row, x;
            if (!S::find(Q, J, p, row, x))
                return;
            const Column<K, 1> c(plane_table, p, row, x);
            unroll<0, S::EACH>([&](auto i) {
                if (c.exists(i))
                    z[c.offset(i) + c.place[0]] = {Storage::number(bits(v[Q][J][i][0])),
                                                   Storage::number(bits(v[Q][J][i][1]))};
            });
        });
    }
};
