/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA library of a GPU, opened when it is first needed (that takes a while), and a pool of its handles: each
 * serves one user at a time, and making one takes long. */
#ifndef CF_DEVICE_SERVICE_H
#define CF_DEVICE_SERVICE_H

#include "cuda/driver/gpu.h"

#include <pthread.h>

typedef struct cf_handle {
    struct cf_handle *next;
    void *handle; /* the library's own */
} cf_handle;

typedef struct cf_service {
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
} cf_service;

/* The members down to `destroy` are set before. Opens nothing. */
void cf_service_begin(cf_service *service);
void cf_service_end(cf_service *service); /* every handle is back */

/* Tried once: what is missing then stays missing. LIBRARY_MISSING: as service->library.problem says. */
conv_fft_status cf_service_open(cf_service *service);

/* Open the library, and take a handle: one that is made if none is spare. With the context current. */
conv_fft_status cf_service_take(cf_service *service, cf_handle **taken);
void cf_service_put(cf_service *service, cf_handle *handle);

/* While a stream is being captured, a library that allocates or loads kernels may do so in a relaxed thread only.
 * Returns the mode of before, for the next call. With the context current. */
cf_cu_capture_mode cf_service_relax(const cf_gpu *gpu, cf_cu_capture_mode mode);

#endif
