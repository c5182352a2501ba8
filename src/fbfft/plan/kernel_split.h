/* SPDX-License-Identifier: Apache-2.0 */
/* How a transform is divided into kernels. One kernel is enough if a plane fits a block's shared memory
 * (frequency-major: as many planes as make accesses of 32 bytes). Otherwise each axis that does not fit gets one more
 * kernel. Transforms with 16-bit spectra have at most two kernels. */
#ifndef CF_FBFFT_PASSES_H
#define CF_FBFFT_PASSES_H

#include "fbfft/shared_memory/config.h"
#include "fbfft/tensor_core/config.h"
#include "fbfft/warp/config.h"

#define CF_FFT_MAX_PASSES 3
#define CF_FFT_SECTOR 32 /* bytes of the smallest memory access */

/* One kernel, in two variants: for pointers as aligned as it needs, and for others. */
typedef struct cf_fft_pass {
    bool plain;       /* dense real planes: fbfft/warp; else shared_memory/kernel.cuh */
    bool tensor_core; /* tensor_core in place of shared_memory/kernel.cuh */
    cf_fft_config real[2];
    cf_shared_fft_config tile[2];
} cf_fft_pass;

/* Kernels in the order of a forward transform. The inverse runs them in reverse order. Between kernel i and the next,
 * each row of the transform needs between[i] bytes in memory. */
typedef struct cf_fft_passes {
    int count;
    cf_fft_pass pass[CF_FFT_MAX_PASSES];
    int64_t between[CF_FFT_MAX_PASSES - 1];
    int64_t chunk; /* rows that go through all kernels before the next rows */
} cf_fft_passes;

/* NOT_SUPPORTED: the transform is too large for the GPU even with several kernels. */
conv_fft_status cf_fft_passes_of(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                 cf_fft_passes *passes);

/* Two forward transforms of one kernel each, neither of them plain, as one launch. Returns whether there is a kernel
 * for both: both use matrix products, or neither does. Small planes may differ; larger ones would take longer in one
 * launch than in two. It gives the config for aligned pointers (variant 0) or others, and the text, with a call of
 * each. */
bool cf_fft_can_pair(const cf_fft_pass *const pass[2]);
void cf_fft_pair_tiles(const cf_fft_pass *const pass[2], int variant, const cf_gpu_properties *properties,
                       cf_shared_fft_config pair[2]);
void cf_fft_emit_pair(const cf_fft_pass *const pass[2], const cf_shared_fft_config pair[2], cf_text *text);

#endif
