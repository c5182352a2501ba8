/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA library of a GPU, opened when it is first needed (that takes a while), and a pool of its handles: each
 * serves one user at a time, and making one takes long. */
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
    /* With the context current. NULL: the library has no handles. */
    conv_fft_status (*make)(const void *table, void **handle);
    void (*destroy)(const void *table, void *handle);

    pthread_mutex_t mutex; /* of all below */
    bool tried;
    cf_library library;
    cf_handle *spares; /* that nobody holds */
} cf_handle_pool;

/* The members down to `destroy` are set before. Opens nothing. */
void cf_handle_pool_begin(cf_handle_pool *pool);
void cf_handle_pool_end(cf_handle_pool *pool); /* every handle is back */

/* Tried once: what is missing then stays missing. LIBRARY_MISSING: as service->library.problem says. */
conv_fft_status cf_handle_pool_open(cf_handle_pool *pool);

/* Open the library, and take a handle: one that is made if none is spare. With the context current. */
conv_fft_status cf_handle_pool_take(cf_handle_pool *pool, cf_handle **taken);
void cf_handle_pool_put(cf_handle_pool *pool, cf_handle *handle);

/* While a stream is being captured, a library that allocates or loads kernels may do so in a relaxed thread only.
 * Returns the mode of before, for the next call. With the context current. */
cf_cu_capture_mode cf_handle_pool_relax(const cf_gpu *gpu, cf_cu_capture_mode mode);

#endif
