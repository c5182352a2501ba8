/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole rows of a signal, copied as one piece of memory for each plane.
 *
 * Where a tile has whole rows, all rows of a plane are contiguous in memory. One bulk copy then moves them to or
 * from a staging area in shared memory, and no thread waits for it. The staging area has no padding between rows:
 *
 *     plane p begins at element p * SIZE:     | row 0: WIDTH elements | row 1 | ...
 *
 *     FP32, read and written     elements as in memory
 *     16 bits, read              elements as in memory, unconverted. A plane may start or end inside a 16-byte chunk
 *                                of memory; the whole chunk is copied. shift() moves the plane so that chunks are
 *                                aligned on both sides.
 *     16 bits, written           PACKS: rounded elements, two in a word. Whole chunks leave by a bulk copy, and a
 *                                thread stores the ends. Else: FP32 elements, which all threads round and store.
 *
 * The last warp starts all copies, with a thread for each plane.
 */
#pragma once

#include "conv/fused/bulk_copy.cuh"
#include "conv/fused/geometry.h"
#include "conv/fused/plane_store.cuh"
#include "conv/fused/register_tasks.cuh"

/*
 * SERVES: whether the FFT has the two steps along each of two axes that whole_rows_fft.cuh needs. UNIT: elements of
 * 16 bytes.
 */
template <class K> struct WholeRows {
    typedef PlaneGeometry<K> G;
    typedef typename K::Storage Storage;
    typedef typename Storage::bits bits;
    static constexpr bool SERVES = G::O2::STEPS == 2 && G::O1::STEPS == 2 && G::SPLITS_AT_STEP && G::D0 == 1;
    static constexpr int WIDTH = int(K::AXIS[2].size), UNIT = 16 / int(sizeof(bits));
    /* Elements of a plane's staging area. */
    static constexpr long long SIZE = cf_whole_rows_size((long long)K::AXIS[1].count * WIDTH, int(sizeof(bits)));
    static constexpr int LOW = int(K::AXIS[1].lower > 0 ? K::AXIS[1].lower : 0),
                         HIGH = int(K::AXIS[1].upper < K::AXIS[1].size ? K::AXIS[1].upper : K::AXIS[1].size);
    static constexpr bool PACKS =
        cf_whole_rows_pack(int(sizeof(bits)), WIDTH, G::LINE_LO, Step<typename G::O2, 1>::TASKS);
    typedef typename Choice<PACKS, bits, real>::type Staged; /* the type of elements that are to be written */
    /*
     * Calls f(first, at, count): plane p has elements first .. first + count - 1 of its channel, and they are
     * staged from `at` on.
     */
    template <class F> static CF_DEVICE void of_plane(const PlaneTable<K> &plane_table, int p, F f) {
        const int start = plane_table.template start<1>(p), low = start > LOW ? start : LOW,
                  high = start + K::AXIS[1].count < HIGH ? start + K::AXIS[1].count : HIGH;
        if (low < high)
            f(low * WIDTH, p * int(SIZE) + (low - start) * WIDTH, (high - low) * WIDTH);
    }
    /* How many elements element n of plane p is behind a multiple of 16 bytes in memory. */
    static CF_DEVICE int beyond(const PlaneTable<K> &plane_table, const void *memory, int p, int n) {
        if constexpr (Storage::PLAIN)
            return 0;
        else
            return (int(reinterpret_cast<size_t>(memory) / sizeof(bits)) + int(plane_table.signal(p)) + n) & (UNIT - 1);
    }
    /* By how many elements the staged plane is moved, so that 16-byte chunks of shared memory are chunks of memory. */
    static CF_DEVICE int shift(const PlaneTable<K> &plane_table, const void *memory, int p) {
        return beyond(plane_table, memory, p, plane_table.template start<1>(p) * WIDTH);
    }
    /* Starts to load the planes to the staging area. */
    static CF_DEVICE void get(smem<real> rows, const PlaneTable<K> &plane_table, const void *memory,
                              smem<char> barrier) {
        constexpr int BYTES = int(sizeof(bits));
        const int p = in_last_warp<K>();
        if (p < 0 || p >= K::P)
            return;
        int bytes = 0;
        smem<char> to = smem_cast<char>(rows);
        const bits *from = static_cast<const bits *>(memory) + plane_table.signal(p);
        of_plane(plane_table, p, [&](int first, int at, int count) {
            const int before = beyond(plane_table, memory, p, first), all = before + count;
            to = to + (at + shift(plane_table, memory, p) - before) * BYTES;
            from += first - before;
            bytes = (Storage::PLAIN ? all : (all + UNIT - 1) / UNIT * UNIT) * BYTES;
        });
        mbarrier_expect_tx(barrier, bytes);
        if (bytes > 0)
            tma_load(to, from, bytes, barrier);
    }
    /* Stores the staged planes: by one thread for each plane, with PACKS by two, or by all threads. */
    static CF_DEVICE void put(smem<real> rows, const PlaneTable<K> &plane_table, const cf_shared_fft_call &call) {
        if constexpr (Storage::PLAIN) {
            const int p = in_last_warp<K>();
            if (p < 0 || p >= plane_table.live)
                return;
            of_plane(plane_table, p, [&](int first, int at, int count) {
                tma_store(static_cast<real *>(call.out) + plane_table.signal(p) + first, smem_cast<char>(rows + at),
                          count * int(sizeof(real)));
            });
        } else if constexpr (PACKS) {
            static_assert(K::P <= 16, "a warp has two threads for each");
            const int n = in_last_warp<K>(), p = n % 16;
            if (n < 0 || p >= plane_table.live)
                return;
            of_plane(plane_table, p, [&](int first, int at, int count) {
                constexpr int BYTES = int(sizeof(bits));
                bits *const to = static_cast<bits *>(call.out) + plane_table.signal(p) + first;
                smem<char> from = smem_cast<char>(rows) + (at + shift(plane_table, call.out, p)) * BYTES;
                const int before = (UNIT - beyond(plane_table, call.out, p, first)) % UNIT,
                          whole = (count - before) / UNIT * UNIT, end = before + whole;
                if (n < 16) {
                    if (whole > 0)
                        tma_store(to + before, from + before * BYTES, whole * BYTES);
                } else {
                    if (before > 0)
                        *reinterpret_cast<uint2 *>(to) = smem_cast<uint2>(from)[0];
                    if (end < count)
                        *reinterpret_cast<uint2 *>(to + end) = smem_cast<uint2>(from + end * BYTES)[0];
                }
            });
        } else {
#pragma unroll 1
            for (int p = 0; p < plane_table.live; ++p)
                of_plane(plane_table, p, [&](int first, int at, int count) {
                    bits *const to = static_cast<bits *>(call.out) + plane_table.signal(p) + first;
#pragma unroll 2
                    for (int n = 4 * int(threadIdx.x); n < count; n += 4 * K::T) {
                        const float4 four = smem_cast<float4>(rows + at)[n / 4];
                        const real v[4] = {four.x, four.y, four.z, four.w};
                        put_numbers<K, 4, 4>(to + n, v, 0, true, false, call.accumulate);
                    }
                });
        }
    }
    /* Staged elements that were read, from element `first` on, converted to `real`. */
    struct Read {
#ifdef CF_SIMT
        smem<real> rows;
        int first;
        CF_DEVICE Read(smem<real> r, int from) : rows(r), first(from) {}
        CF_DEVICE real operator[](int i) const {
            const int n = first + i;
            if constexpr (Storage::PLAIN)
                return rows[n];
            else
                return Storage::number((unsigned short)(smem_cast<unsigned>(rows)[n / 2] >> n % 2 * 16));
        }
#else
        smem<bits> at; /* constant indices then cost no address arithmetic */
        CF_DEVICE Read(smem<real> rows, int from) : at(smem_cast<bits>(rows) + from) {}
        CF_DEVICE real operator[](int i) const {
            if constexpr (Storage::PLAIN)
                return at[i];
            else
                return Storage::number(at[i]);
        }
#endif
    };
};
