/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that adds slices of complex sums (slices.cuh). */
#ifndef CF_CONV_GPU_SLICES_H
#define CF_CONV_GPU_SLICES_H

#include "conv/gpu/slice_adder.h"
#include "cuda/jit/launch.h"
#include "cuda/jit/nvrtc.h"

/* `to` <- sum over slices of sums[slice][count], (+ old contents). `to` may be the first slice. */
typedef struct cf_slice_sums {
    void *to;
    const void *sums;
    int64_t count, slices;
    bool accumulate;
} cf_slice_sums;

/* Its source, for at most so many slices; its text is to be freed. dtype: of a real part, FP32 or FP64.
 * OUT_OF_MEMORY. */
conv_fft_status cf_slices_source(int64_t max_slices, conv_fft_dtype dtype, cf_source *source);

/* Launch it. max_slices and dtype: those of its source. */
conv_fft_status cf_slices_add(const cf_kernel *kernel, const cf_slice_sums *sums, int64_t max_slices,
                              conv_fft_dtype dtype, struct CUstream_st *stream);

#endif
