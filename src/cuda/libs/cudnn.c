/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libs/cudnn.h"

#include "cuda/libs/cublas.h"
#include "cuda/libs/cudnn_causal.h"
#include "cuda/libs/handle_pool.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the library */

static bool accept(const void *table, int driver_version, cf_library *library) {
    const cf_cudnn_functions *const functions = table;
    int version[3] = {0, 0, 0};
    for (unsigned i = 0; i < 3 && functions->cudnnGetProperty; ++i)
        functions->cudnnGetProperty(i, &version[i]);
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version[0], version[1], version[2]);
    const size_t cuda = functions->cudnnGetCudartVersion ? functions->cudnnGetCudartVersion() : 0;
    return cf_library_fits(library, "cuDNN", (int)(cuda / 1000), driver_version);
}

static const char *const sonames[] = {"libcudnn.so.9", "libcudnn.so.8", NULL};

#define CF_SYMBOL(member, parameters) {#member, offsetof(cf_cudnn_functions, member)},
static const cf_symbol symbols[] = {CF_CUDNN_FUNCTIONS(CF_SYMBOL) CF_CUDNN_RANKINGS(CF_SYMBOL, int, int, int){
                                        "cudnnGetCudartVersion", offsetof(cf_cudnn_functions, cudnnGetCudartVersion)},
                                    {"cudnnGetErrorString", offsetof(cf_cudnn_functions, cudnnGetErrorString)}};
#undef CF_SYMBOL

static const cf_library_spec spec = {
    .name = "cuDNN",
    .sonames = sonames,
    .how_to_get = "optional: install it from developer.nvidia.com/cudnn, or pip install nvidia-cudnn-cu13 (CUDA 12: "
                  "nvidia-cudnn-cu12) and name the folder of its library in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

/* cuDNN finds cuBLAS only if the loader finds it, or if it is loaded already. So cuBLAS is loaded first. */
conv_fft_status cf_cudnn_open(cf_library *library, cf_cudnn_functions *functions, const cf_search *search,
                              int driver_version) {
    cf_library cublas;
    cf_cublas_functions unused;
    cf_cublas_open(&cublas, &unused, search, driver_version);
    return cf_library_open(library, &spec, search, driver_version, functions);
}

conv_fft_status cf_cudnn_check(const cf_cudnn_functions *functions, cf_cudnn_status status, const char *call) {
    if (status == 0)
        return CONV_FFT_SUCCESS;
    const bool unsupported = status == CF_CUDNN_NOT_SUPPORTED_8 || status == CF_CUDNN_COMPILATION_FAILED ||
                             status / 1000 == CF_CUDNN_NOT_SUPPORTED / 1000;
    return cf_fail(unsupported ? CONV_FFT_NOT_SUPPORTED : CONV_FFT_DEVICE_ERROR, "%s failed with %s (%u)", call,
                   functions->cudnnGetErrorString(status), status);
}

/* ---- the pool */

struct cf_cudnn {
    cf_handle_pool pool;
    cf_cudnn_functions functions;
    cf_handle_pool causal; /* without handles */
    cf_cudnn_causal_functions causal_functions;
};

static conv_fft_status make(const void *table, void **handle) {
    cf_cudnn_handle made = NULL;
    CF_FORWARD(CF_CUDNN((const cf_cudnn_functions *)table, cudnnCreate, &made));
    *handle = made;
    return CONV_FFT_SUCCESS;
}

static void destroy(const void *table, void *handle) { ((const cf_cudnn_functions *)table)->cudnnDestroy(handle); }

conv_fft_status cf_cudnn_create(const cf_gpu *gpu, cf_cudnn **result) {
    cf_cudnn *const cudnn = calloc(1, sizeof *cudnn);
    if (!cudnn)
        return cf_fail_memory(sizeof *cudnn, "the pool of cuDNN handles");
    cudnn->pool =
        (cf_handle_pool){.gpu = gpu, .spec = &spec, .table = &cudnn->functions, .make = make, .destroy = destroy};
    cudnn->causal = (cf_handle_pool){.gpu = gpu, .spec = &cf_cudnn_causal_spec, .table = &cudnn->causal_functions};
    cf_handle_pool_begin(&cudnn->pool);
    cf_handle_pool_begin(&cudnn->causal);
    *result = cudnn;
    return CONV_FFT_SUCCESS;
}

void cf_cudnn_destroy(cf_cudnn *cudnn) {
    if (!cudnn)
        return;
    cf_handle_pool_end(&cudnn->pool);
    cf_handle_pool_end(&cudnn->causal);
    free(cudnn);
}

const cf_library *cf_cudnn_library(cf_cudnn *cudnn) {
    cf_handle_pool_open(&cudnn->pool);
    return &cudnn->pool.library;
}

const cf_library *cf_cudnn_causal_library(cf_cudnn *cudnn) {
    cf_handle_pool_open(&cudnn->causal);
    return &cudnn->causal.library;
}

const cf_cudnn_causal_functions *cf_cudnn_causal_calls(const cf_cudnn *cudnn) { return &cudnn->causal_functions; }

/* The context is current. */
static conv_fft_status lend(cf_cudnn *cudnn, cf_cu_stream stream, cf_cudnn_guard *guard) {
    cf_handle *h = NULL;
    CF_FORWARD(cf_handle_pool_take(&cudnn->pool, &h));
    *guard = (cf_cudnn_guard){.call = &cudnn->functions, .handle = h->handle, .pooled = h};
    guard->mode = cf_handle_pool_relax(cudnn->pool.gpu, CF_CU_CAPTURE_RELAXED);
    const conv_fft_status status = CF_CUDNN(guard->call, cudnnSetStream, guard->handle, stream);
    if (status == CONV_FFT_SUCCESS)
        return status;
    cf_handle_pool_relax(cudnn->pool.gpu, guard->mode);
    cf_handle_pool_put(&cudnn->pool, h);
    return status;
}

conv_fft_status cf_cudnn_guard_acquire(cf_cudnn *cudnn, cf_cu_stream stream, cf_cudnn_guard *guard) {
    CF_FORWARD(cf_gpu_enter(cudnn->pool.gpu));
    const conv_fft_status status = lend(cudnn, stream, guard);
    if (status != CONV_FFT_SUCCESS)
        cf_gpu_leave(cudnn->pool.gpu);
    return status;
}

void cf_cudnn_guard_release(cf_cudnn *cudnn, cf_cudnn_guard *guard) {
    cf_handle_pool_relax(cudnn->pool.gpu, guard->mode);
    cf_handle_pool_put(&cudnn->pool, guard->pooled);
    cf_gpu_leave(cudnn->pool.gpu);
    *guard = (cf_cudnn_guard){0};
}
