/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of backward weights over slices of rows. Blocks of a pass each have a slice of the rows and write sums of
 * their own, [slice][group][output][input][bin]. This kernel adds the slices, always in the same order, so that
 * results are reproducible.
 */
#pragma once

#include "conv/fused/bins.cuh"

/*
 * sums[0][i] = sum over slices of sums[slice][i], with one thread for each i. BATCH loads are issued before the
 * first one is needed.
 */
template <int BATCH> CF_DEVICE void fused_add_slices(cplx *sums, long long count, long long slices) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const cplx *from = sums + i;
    cplx sum = *from;
#pragma unroll 1
    for (int left = int(slices) - 1; left > 0; left -= BATCH) {
        cplx v[BATCH];
        unroll<0, BATCH>([&](auto b) {
            v[b] = {0, 0};
            from += count;
            if (b < left)
                v[b] = get_weight(from);
        });
        unroll<0, BATCH>([&](auto b) {
            if (b < left)
                sum = sum + v[b];
        });
    }
    sums[i] = sum;
}

/* The entry point. */
#define CF_ADD_SLICES_KERNEL(THREADS, BATCH, PDL_TRIGGER)                                                           \
    extern "C" __global__ void __launch_bounds__(THREADS) cf_fused(cplx *sums, long long count, long long slices) { \
        cf_pdl_wait();                                                                                              \
        if (PDL_TRIGGER)                                                                                            \
            cf_pdl_trigger();                                                                                       \
        fused_add_slices<BATCH>(sums, count, slices);                                                               \
    }
