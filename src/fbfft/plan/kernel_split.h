/* SPDX-License-Identifier: Apache-2.0 */
/* How a transform is cut into kernels: one where a plane fits a block's shared memory (frequency-major: as many planes as make pieces of
 * 32 bytes), else one more for each axis that does not; of spectra in 16 bits one more at most. */
#ifndef CF_FBFFT_PASSES_H
#define CF_FBFFT_PASSES_H

#include "fbfft/shared_memory/config.h"
#include "fbfft/tensor_core/config.h"
#include "fbfft/warp/config.h"

#define CF_FFT_MAX_PASSES 3
#define CF_FFT_SECTOR 32 /* bytes that memory moves at least */

/* One kernel, for pointers aligned as it likes them and for others. */
typedef struct cf_fft_pass {
    bool plain;  /* dense real planes: real1d.cuh and real2d.cuh; else shared_memory/kernel.cuh */
    bool matrix; /* but those of tensor_core */
    cf_fft_config real[2];
    cf_shared_fft_config tile[2];
} cf_fft_pass;

/* Passes in the order of a forward transform; the inverse runs them backwards. Between pass i and the next, rows of the transform wait
 * in memory, between[i] bytes each. */
typedef struct cf_fft_passes {
    int count;
    cf_fft_pass pass[CF_FFT_MAX_PASSES];
    int64_t between[CF_FFT_MAX_PASSES - 1];
    int64_t chunk; /* rows that go through all passes before others do */
} cf_fft_passes;

/* NOT_SUPPORTED: too large for the GPU even so. */
conv_fft_status cf_fft_passes_of(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                 cf_fft_passes *passes);

/* Two forward transforms of one pass each, and no plain one, as one launch: whether there is a kernel for both, which both are matrix products or
 * neither is, but where planes are small: others beside each other take longer than one behind the other; how it is cut for aligned pointers (variant 0) or others; and its
 * text, with a call of each. */
bool cf_fft_can_pair(const cf_fft_pass *const pass[2]);
void cf_fft_pair_tiles(const cf_fft_pass *const pass[2], int variant, const cf_gpu_properties *properties,
                       cf_shared_fft_config pair[2]);
void cf_fft_emit_pair(const cf_fft_pass *const pass[2], const cf_shared_fft_config pair[2], cf_text *text);

#endif
