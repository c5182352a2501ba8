/* SPDX-License-Identifier: Apache-2.0 */
/* The expected cycles of kernels that multiply between two transforms. */
#ifndef CF_FBFFT_SHARED_MEMORY_PRODUCT_CYCLES_H
#define CF_FBFFT_SHARED_MEMORY_PRODUCT_CYCLES_H

#include "fbfft/shared_memory/config.h"

/* Cycles of a multiprocessor for one plane of each of `count` signals. shared: bytes of a block. HUGE_VAL: no
 * block fits. */
double cf_shared_fft_product_cycles(const cf_shared_fft_config *configs, int count, int64_t shared,
                                    const cf_gpu_properties *properties);

#endif
