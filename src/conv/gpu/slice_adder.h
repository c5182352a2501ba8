/* SPDX-License-Identifier: Apache-2.0 */
/* Sums that several blocks share: each block has a slice of the terms, and a further kernel adds the slices. How a
 * block of that kernel is divided, for the host, the kernels and the emulator. */
#ifndef CF_CONV_GPU_SLICE_ADDER_H
#define CF_CONV_GPU_SLICE_ADDER_H

#include "core/host_device.h"

enum {
    CF_FEW_SLICES = 8 /* so many are added by one thread */
};

/* A block has `sums` sums. `shares` threads add every shares-th slice of each. */
typedef struct cf_slice_adder {
    int sums, shares;
} cf_slice_adder;

CF_CONSTEXPR cf_slice_adder cf_slice_adder_of(long long slices) {
    cf_slice_adder a = {256, 1};
    if (slices > CF_FEW_SLICES) {
        a.sums = 32;
        a.shares = slices >= 16 * CF_FEW_SLICES ? 16 : (int)((slices + CF_FEW_SLICES - 1) / CF_FEW_SLICES);
    }
    return a;
}

/* Bytes of shared memory, for sums of so many bytes. */
CF_CONSTEXPR int cf_slice_adder_shared(cf_slice_adder a, int bytes) {
    return a.shares > 1 ? a.sums * a.shares * bytes : 0;
}

#endif
