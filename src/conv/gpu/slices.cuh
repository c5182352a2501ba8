/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds the slices of sums. Families and products whose sums are divided among blocks share it.
 *
 *     sums        [slice][sum]
 *     a block     [share][sum]: a thread adds every SHARES-th slice of a sum, and then the first share adds the shares
 *
 * The order of additions depends on the numbers of slices and shares only, so results are reproducible.
 */
#pragma once

#include "conv/gpu/slice_adder.h"
#include "fbfft/common/storage.cuh"

CF_DEVICE float slice_part(const float *p) { return __ldcg(p); }
CF_DEVICE cplx slice_part(const cplx *p) {
    typedef typename PairOf<real>::type pair;
    const pair v = __ldcg(reinterpret_cast<const pair *>(p));
    return {v.x, v.y};
}

/* The number of the sum that a thread adds to. SUMS: of a block. */
template <int SUMS> CF_DEVICE long long sum_of_thread() {
    return (long long)blockIdx.x * SUMS + int(threadIdx.x) % SUMS;
}

/*
 * The total of sum `index` of `count`, that of sum_of_thread(). Returns whether this thread has it. Every thread of a
 * block must call this. SUMS, SHARES: cf_slice_adder. BATCH loads are issued before the first one is needed.
 */
template <int SUMS, int SHARES, class V>
CF_DEVICE bool add_slices(V &total, const V *sums, long long index, long long count, long long slices) {
    constexpr int BATCH = SHARES > 1 ? CF_FEW_SLICES : 1;
    const int share = int(threadIdx.x) / SUMS;
    total = V();
#pragma unroll 1
    for (int first = share; first < slices && index < count; first += SHARES * BATCH) {
        V v[BATCH];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int slice = first + b * SHARES;
            v[b] = slice < slices ? slice_part(sums + (slice * count + index)) : V();
        }
#pragma unroll
        for (int b = 0; b < BATCH; ++b)
            total = total + v[b];
    }
    if constexpr (SHARES > 1) {
        const smem<V> parts = cf_dynamic_shared<V>() + int(threadIdx.x);
        parts[0] = total;
        __syncthreads();
        if (share > 0)
            return false;
        for (int other = 1; other < SHARES; ++other)
            total = total + parts[other * SUMS];
    }
    return index < count;
}

/* The entry point of a kernel that stores the totals, or adds them to `to`, which may be slice 0. With PDL_TRIGGER the
 * next kernel may begin beside it. */
#define CF_ADD_SLICES_KERNEL(SUMS, SHARES, PDL_TRIGGER)                                                  \
    CF_KERNEL(SUMS *SHARES, 1)                                                                           \
    cf_add_slices(cplx *to, const cplx *sums, long long count, long long slices, long long accumulate) { \
        cf_pdl_wait();                                                                                   \
        if (PDL_TRIGGER)                                                                                 \
            cf_pdl_trigger();                                                                            \
        const long long index = sum_of_thread<SUMS>();                                                   \
        cplx total;                                                                                      \
        if (add_slices<SUMS, SHARES>(total, sums, index, count, slices))                                 \
            to[index] = accumulate ? to[index] + total : total;                                          \
    }
