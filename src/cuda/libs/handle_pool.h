/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA library of a GPU, and a pool of its handles. The library is opened at first use, which takes a while. A
 * handle serves one user at a time, and making one takes long. */
#ifndef CF_CUDA_HANDLE_POOL_H
#define CF_CUDA_HANDLE_POOL_H

#include "cuda/driver/gpu.h"

#include <pthread.h>

typedef struct cf_handle {
    struct cf_handle *next;
    void *handle; /* the library's own */
} cf_handle;

typedef struct cf_handle_pool {
    const cf_gpu *gpu;
    const cf_library_spec *spec;
    void *table; /* the library's functions */
    /* Make a handle. The context is current. NULL: the library has no handles. */
    conv_fft_status (*make)(const void *table, void **handle);
    void (*destroy)(const void *table, void *handle);

    pthread_mutex_t mutex; /* guards all members below */
    bool tried;
    cf_library library;
    cf_handle *free_handles; /* handles that nobody uses */
} cf_handle_pool;

/* Begin an empty pool. The caller has set the members down to `destroy`. Nothing is opened. */
void cf_handle_pool_begin(cf_handle_pool *pool);
void cf_handle_pool_end(cf_handle_pool *pool); /* no handle may be in use */

/* Open the library. This is tried once; a missing library stays missing. LIBRARY_MISSING: pool->library.problem says
 * why. */
conv_fft_status cf_handle_pool_open(cf_handle_pool *pool);

/* Open the library and take a handle. If none is free, one is made. The context is current. */
conv_fft_status cf_handle_pool_take(cf_handle_pool *pool, cf_handle **taken);
void cf_handle_pool_put(cf_handle_pool *pool, cf_handle *handle);

/* While a stream is being captured, only a relaxed thread may allocate or load kernels. Returns the mode of before,
 * which the next call restores. The context is current. */
cf_cu_capture_mode cf_handle_pool_relax(const cf_gpu *gpu, cf_cu_capture_mode mode);

#endif
