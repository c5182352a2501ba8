/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of weight spectra in shared memory, which is filled while earlier ones are in use.
 *
 * A kernel processes `count` items one after the other, and multiplies each with COUNT planes of bins. Item i is output
 * i (resident_scatter), input i (resident_gather) or row i (resident_weights), in P planes of one buffer. The ring has
 * room for COUNT + PREFETCH planes of bins:
 *
 *     | COUNT planes of bins, for item i | PREFETCH of the COUNT planes of bins, for item i + 1 |
 *
 * Thus PREFETCH planes of bins for item i + 1 arrive while item i is processed. With BULK, the last warp copies them
 * by bulk copies. Without BULK, PREFETCH is 0, and all threads copy by cp.async.
 *
 * In the kernel of backward weights, the spectra of x take the part of the weights.
 */
#pragma once

#include "conv/fused/bulk_copy.cuh"
#include "conv/fused/register_tasks.cuh"

/*
 * GAP: distance in memory between the COUNT planes of bins of one item. STEP: between those of item i and of
 * item i + 1.
 */
template <class F, int COUNT, long long GAP, long long STEP> struct PrefetchRing {
    typedef Fused<F> U;
    static constexpr int BINS = int(U::BINS), BYTES = BINS * int(sizeof(cplx)), PLACES = COUNT + F::PREFETCH;
    static_assert(F::PREFETCH <= COUNT && (F::BULK || F::PREFETCH == 0), "one plane ahead");
    smem<cplx> at;
    smem<char> barriers; /* two mbarriers: of even and of odd items */
    const cplx *from;
    int count;
    /* The place in the ring of the first plane of bins for item i. */
    static CF_DEVICE int first(int i) { return F::PREFETCH == 0 ? 0 : int(unsigned(i * COUNT) % PLACES); }
    /* Where plane c of bins is, if the first one has place `first`. */
    CF_DEVICE smem<cplx> place(int first, int c) const {
        return at + first * BINS + (first + c < PLACES ? c : c - PLACES) * BINS;
    }
    /* Starts the bulk copy of plane c of bins for item i. */
    CF_DEVICE void get(int i, int c) const {
        smem<char> barrier = barriers + i % 2 * 8;
        if (i >= count)
            return;
        mbarrier_expect_tx(barrier, BYTES);
        tma_load(smem_cast<char>(place(first(i), c)), from + (i * STEP + c * GAP), BYTES, barrier);
    }
    /* Starts to load the bins of item 0. All threads call it. */
    CF_DEVICE void begin() const {
        if constexpr (F::BULK) {
            const int c = in_last_warp<typename F::X>();
            if (threadIdx.x == 0) {
                mbarrier_init(barriers, COUNT);
                mbarrier_init(barriers + 8, COUNT);
            }
            __syncthreads();
            if (c >= 0 && c < F::PREFETCH)
                get(0, c);
        }
        fetch(0);
    }
    /*
     * Starts to load the missing bins of item i, and the first PREFETCH ones of item i + 1. The bins of item i - 1
     * are overwritten.
     */
    CF_DEVICE void fetch(int i) const {
        if constexpr (F::BULK) {
            const int c = in_last_warp<typename F::X>();
            if (c >= 0 && c < COUNT)
                get(c < F::PREFETCH ? i + 1 : i, c);
        } else if (i < count) {
#pragma unroll 1
            for (int c = 0; c < COUNT; ++c)
#pragma unroll 4
                for (int n = int(threadIdx.x); n < BINS; n += F::X::T)
                    copy_async<2>(smem_cast<real>(place(first(i), c) + n),
                                  reinterpret_cast<const real *>(from + (i * STEP + c * GAP + n)), true);
        }
    }
    /* Waits for the bins of item i. Without BULK, the caller has used wait_async() and a barrier already. */
    CF_DEVICE void wait(int i) const {
        if constexpr (F::BULK)
            mbarrier_wait(barriers + i % 2 * 8, i / 2);
    }
};
