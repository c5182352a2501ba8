/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One GPU of this process: driver, properties, compiler, kernel cache, libraries. All of it belongs to the struct, and
 * nothing to the process. After cf_gpu_open() any number of threads may use it.
 *
 * It uses the device's primary context, as the CUDA runtime does. So pointers and streams are shared with every other
 * CUDA user of the process. Every function here makes the context current while it runs.
 */
#ifndef CF_DEVICE_GPU_H
#define CF_DEVICE_GPU_H

#include "cuda/driver/properties.h"
#include "cuda/jit/cubin_cache.h"

typedef struct cf_cublas cf_cublas;
typedef struct cf_cudnn cf_cudnn;
typedef struct cf_cufft cf_cufft;

typedef struct cf_gpu {
    int ordinal;
    cf_driver driver;
    cf_gpu_properties properties;
    char architecture[CF_ARCHITECTURE_BYTES];
    cf_jit jit; /* jit.library.usable: new kernels can be compiled */
    cf_cubin_cache *cache;
    cf_cublas *cublas; /* these libraries are opened at first use */
    cf_cudnn *cudnn;
    cf_cufft *cufft;
    cf_search search; /* where libraries are searched; the GPU owns the folders */
    char *folders;
    conv_fft_log_level log_level;
    cf_cu_device device;
    cf_cu_context context;
} cf_gpu;

typedef struct cf_gpu_options {
    int ordinal;
    const char *cache_directory; /* NULL: cf_cache_folder_open() finds it */
    conv_fft_log_level log_level;
    cf_search search; /* cf_search_default() */
} cf_gpu_options;

/* The smallest compute capability that kernels are written for. */
#define CF_GPU_MIN_COMPUTE_MAJOR 8

/* A missing NVRTC is not a failure. LIBRARY_MISSING: there is no driver, or it is too old. NO_DEVICE: there is no
 * such GPU. NOT_SUPPORTED: its compute capability is too low. OUT_OF_MEMORY, DEVICE_ERROR. */
conv_fft_status cf_gpu_open(const cf_gpu_options *options, cf_gpu **gpu);
void cf_gpu_close(cf_gpu *gpu);

/* Make the context current until cf_gpu_leave(). This is for calls into CUDA outside src/cuda. */
static inline conv_fft_status cf_gpu_enter(const cf_gpu *gpu) {
    return CF_CU(&gpu->driver, cuCtxPushCurrent, gpu->context);
}
static inline void cf_gpu_leave(const cf_gpu *gpu) {
    cf_cu_context left;
    gpu->driver.cuCtxPopCurrent(&left);
}

/* Call cf_gpu_leave(), then return `status`. */
static inline conv_fft_status cf_gpu_left(const cf_gpu *gpu, conv_fft_status status) {
    cf_gpu_leave(gpu);
    return status;
}

/* Make one call of the driver with the context current, and return its result. */
#define CF_GPU_RETURN(gpu, call, ...)                                      \
    do {                                                                   \
        CF_FORWARD(cf_gpu_enter(gpu));                                     \
        return cf_gpu_left(gpu, CF_CU(&(gpu)->driver, call, __VA_ARGS__)); \
    } while (0)

#endif
