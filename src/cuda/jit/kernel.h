/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: built from source text, loaded, and launched. */
#ifndef CF_DEVICE_KERNEL_H
#define CF_DEVICE_KERNEL_H

#include "cuda/driver/gpu.h"

/* A kernel on a GPU. It never changes, so many threads may launch it. */
typedef struct cf_kernel {
    const cf_gpu *gpu;
    char name[64];
    int registers, local_bytes; /* of a thread; local memory holds spills, indexed arrays and the stack */
    int static_shared;          /* bytes of a block, without dynamic shared memory */
    bool overlaps;              /* the kernel has a PDL wait, so a launch may begin before the previous kernel ends */
    cf_cu_module module;
    cf_cu_function function;
} cf_kernel;

/* Load kernels onto the GPU. Their machine code comes from the cache. If it is not there, it is compiled, several
 * kernels at the same time, and stored there. If the driver refuses machine code from the cache, the kernel is
 * compiled again. After a failure no kernel is left. LIBRARY_MISSING: a kernel is not in the cache, and there is no
 * NVRTC. COMPILE_ERROR. OUT_OF_MEMORY. DEVICE_ERROR. NOT_SUPPORTED: a kernel asks for more shared memory than the GPU
 * has. */
conv_fft_status cf_kernels_build(cf_gpu *gpu, const cf_source *sources, int count, cf_kernel **kernels);
void cf_kernel_destroy(cf_kernel *kernel); /* NULL is allowed; no launch may be running */

/* Load machine code. *refused: the driver does not accept it for this GPU. */
conv_fft_status cf_kernel_load(const cf_gpu *gpu, const cf_cubin *cubin, const cf_source *source, cf_kernel **kernel,
                               bool *refused);

/* A parameter of a kernel. */
typedef struct cf_parameter {
    unsigned bytes;     /* 0: there is no further parameter */
    uint64_t addresses; /* bit i: the i-th word of 8 bytes is an address */
} cf_parameter;

/* The bit of a struct's member that is an address. */
#define CF_ADDRESS(type, member) ((uint64_t)1 << offsetof(type, member) / 8)

enum {
    CF_MAX_PARAMETERS = 8
};

typedef struct cf_launch {
    unsigned grid[3], block[3];     /* x, y, z */
    size_t dynamic_shared;          /* bytes, at most what the source asked for */
    const cf_parameter *parameters; /* the kernel's, for a recording; NULL: the launch cannot be recorded */
} cf_launch;

/* Launch a kernel at once. The context is current. parameters: the address of each parameter of the kernel, in order.
 * The message of a failure names the kernel. cf_kernel_launch() of launch.h makes the context current first. */
conv_fft_status cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                cf_cu_stream stream);

#endif
