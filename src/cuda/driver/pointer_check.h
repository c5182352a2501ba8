/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a GPU can access the memory that a caller passes. Each pointer costs one question to the driver, some
 * tenths of a microsecond. The question does not wait, and is allowed while the stream is being captured. */
#ifndef CF_DEVICE_POINTER_H
#define CF_DEVICE_POINTER_H

#include "core/device_ops.h"
#include "cuda/driver/gpu.h"

typedef cf_memory_argument cf_gpu_argument;

/*
 * INVALID_ARGUMENT: the sentence names the argument. CUDA does not know the address (memory of the host, or memory that
 * has been freed); or the memory belongs to another GPU or to the host, and this GPU cannot access it; or its
 * allocation ends too early. Managed memory, page-locked memory of the host, and memory of a GPU with peer access are
 * allowed. Ends are compared for plain allocations only: for memory that is mapped in parts or comes from a pool, the
 * driver may give other bounds.
 *
 * stream: INVALID_ARGUMENT if it belongs to another context than the GPU's primary one. Default streams fit any
 * context.
 */
conv_fft_status cf_gpu_check_in_context(const cf_gpu *gpu, const cf_gpu_argument *arguments, int count,
                                        cf_cu_stream stream); /* the context is current */
static inline conv_fft_status cf_gpu_check_arguments(const cf_gpu *gpu, const cf_gpu_argument *arguments, int count,
                                                     cf_cu_stream stream) {
    CF_FORWARD(cf_gpu_enter(gpu));
    return cf_gpu_left(gpu, cf_gpu_check_in_context(gpu, arguments, count, stream));
}

#endif
