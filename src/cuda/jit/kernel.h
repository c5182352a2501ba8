/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: from text to something that can be launched. */
#ifndef CF_DEVICE_KERNEL_H
#define CF_DEVICE_KERNEL_H

#include "cuda/driver/gpu.h"

/* A kernel on a GPU. Immutable; launches may come from many threads. */
typedef struct cf_kernel {
    const cf_gpu *gpu;
    char name[64];
    int registers, local_bytes; /* of a thread; local memory holds spills, indexed arrays and the stack */
    int static_shared;          /* bytes of a block, besides what a launch asks for */
    bool overlaps;              /* launches may begin early: the kernel waits itself */
    cf_cu_module module;
    cf_cu_function function;
} cf_kernel;

/* Machine code of each source, from the cache or else compiled (several at once) and stored there. Needs no GPU. cubins
 * begin as {0}; on failure they are cleared. LIBRARY_MISSING: one is not in the cache and there is no NVRTC. COMPILE_ERROR,
 * OUT_OF_MEMORY. */
conv_fft_status cf_cubins_make(const cf_jit *jit, cf_cubin_cache *cache, const char *architecture,
                               const cf_source *sources, int count, cf_cubin *cubins);

/* Load kernels onto the GPU. A cubin of the cache that the driver refuses is compiled again. On failure no kernel is left.
 * As cf_cubins_make(); NOT_SUPPORTED: a kernel asks for more shared memory than the GPU has; DEVICE_ERROR. */
conv_fft_status cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **kernels);
void cf_kernel_destroy(cf_kernel *kernel); /* NULL is allowed. No launch of it may be running */

/* Load machine code. *refused: the driver says that it is none, or none for this GPU. */
conv_fft_status cf_kernel_load(const cf_gpu *gpu, const cf_cubin *cubin, const cf_source *source, cf_kernel **kernel,
                               bool *refused);

/* Blocks of the kernel that one multiprocessor runs at once. */
conv_fft_status cf_kernel_occupancy(const cf_kernel *kernel, int threads, size_t dynamic_shared, int *blocks);

typedef struct cf_launch {
    unsigned grid[3], block[3]; /* x, y, z */
    size_t dynamic_shared;      /* at most what the source named */
} cf_launch;

/* parameters: the address of each parameter of the kernel, in order. The sentence of a failure names the kernel. NOT_SUPPORTED: kernel is NULL,
 * the one for tensors at any address of a plan that is for aligned ones. */
conv_fft_status cf_kernel_launch(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                 cf_cu_stream stream);

#endif
