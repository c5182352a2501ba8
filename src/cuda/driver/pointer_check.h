/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a GPU can work on what a caller hands in: one question to the driver for each pointer, some tenths of a
 * microsecond. It does not wait, and may be asked while the stream is being captured. */
#ifndef CF_DEVICE_POINTER_H
#define CF_DEVICE_POINTER_H

#include "cuda/driver/gpu.h"

/* An argument of a call, and the bytes from it on that the call may touch. */
typedef struct cf_gpu_argument {
    const char *name;
    const void *pointer; /* NULL: not given */
    size_t bytes;        /* 0: it is not touched */
} cf_gpu_argument;

/*
 * INVALID_ARGUMENT, with a sentence that names the argument: CUDA does not know the address (memory of the host, or
 * memory that has been freed); it belongs to another GPU, or to the host, in a way that this GPU cannot access; its
 * allocation ends too early. Managed memory is fine, and so is page-locked memory of the host, and memory of a GPU
 * with peer access. Ends are compared for plain allocations only: for memory that is mapped piece by piece, or comes
 * from a pool, the driver may name other bounds.
 *
 * stream: INVALID_ARGUMENT if it is of another context than the GPU's primary one. The default streams fit any context.
 */
conv_fft_status cf_gpu_check_arguments(const cf_gpu *gpu, const cf_gpu_argument *arguments, int count,
                                       cf_cu_stream stream);

#endif
