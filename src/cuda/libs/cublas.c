/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libs/cublas.h"

#include "cuda/libs/handle_pool.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the library */

static bool accept(const void *table, int driver_version, cf_library *library) {
    const cf_cublas_functions *const functions = table;
    int version[3] = {0, 0, 0};
    for (unsigned i = 0; i < 3 && functions->cublasGetProperty; ++i)
        functions->cublasGetProperty(CF_CUBLAS_MAJOR_VERSION + i, &version[i]);
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version[0], version[1], version[2]);
    return cf_library_fits(library, "cuBLAS", version[0], driver_version); /* its major version is CUDA's */
}

static const char *const sonames[] = {"libcublas.so.13", "libcublas.so.12", NULL};

#define CF_SYMBOL(member, symbol, parameters) {#symbol, offsetof(cf_cublas_functions, member)},
static const cf_symbol symbols[] = {
    CF_CUBLAS_FUNCTIONS(CF_SYMBOL){"cublasGetStatusName", offsetof(cf_cublas_functions, cublasGetStatusName)}};
#undef CF_SYMBOL

static const cf_library_spec spec = {
    .name = "cuBLAS",
    .sonames = sonames,
    .how_to_get = "install the CUDA toolkit, or pip install nvidia-cublas (CUDA 12: nvidia-cublas-cu12) and name the "
                  "folder of its "
                  "library in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

conv_fft_status cf_cublas_open(cf_library *library, cf_cublas_functions *functions, const cf_search *search,
                               int driver_version) {
    return cf_library_open(library, &spec, search, driver_version, functions);
}

conv_fft_status cf_cublas_status(const cf_cublas_functions *functions, cf_cublas_result result, const char *call) {
    if (result == 0)
        return CONV_FFT_SUCCESS;
    return cf_fail(result == CF_CUBLAS_ALLOC_FAILED ? CONV_FFT_OUT_OF_MEMORY : CONV_FFT_DEVICE_ERROR,
                   "%s failed with %s (%u)", call, functions->cublasGetStatusName(result), result);
}

/* ---- the pool */

struct cf_cublas {
    cf_handle_pool pool;
    cf_cublas_functions functions;
};

static conv_fft_status make(const void *table, void **handle) {
    cf_cublas_handle made = NULL;
    CF_FORWARD(CF_CUBLAS((const cf_cublas_functions *)table, cublasCreate, &made));
    *handle = made;
    return CONV_FFT_SUCCESS;
}

static void destroy(const void *table, void *handle) { ((const cf_cublas_functions *)table)->cublasDestroy(handle); }

conv_fft_status cf_cublas_create(const cf_gpu *gpu, cf_cublas **result) {
    cf_cublas *const cublas = calloc(1, sizeof *cublas);
    if (!cublas)
        return cf_fail_memory(sizeof *cublas, "the pool of cuBLAS handles");
    cublas->pool =
        (cf_handle_pool){.gpu = gpu, .spec = &spec, .table = &cublas->functions, .make = make, .destroy = destroy};
    cf_handle_pool_begin(&cublas->pool);
    *result = cublas;
    return CONV_FFT_SUCCESS;
}

void cf_cublas_destroy(cf_cublas *cublas) {
    if (!cublas)
        return;
    cf_handle_pool_end(&cublas->pool);
    free(cublas);
}

/* The stream is set first, because setting it resets the workspace. */
static conv_fft_status set_up(const cf_cublas_guard *guard, cf_cu_stream stream, cf_cublas_math math, void *workspace,
                              size_t bytes) {
    CF_FORWARD(CF_CUBLAS(guard->call, cublasSetStream, guard->handle, stream));
    CF_FORWARD(CF_CUBLAS(guard->call, cublasSetWorkspace, guard->handle, workspace, bytes));
    return CF_CUBLAS(guard->call, cublasSetMathMode, guard->handle, math);
}

/* The context is current. */
static conv_fft_status lend(cf_cublas *cublas, cf_cu_stream stream, cf_cublas_math math, void *workspace, size_t bytes,
                            cf_cublas_guard *guard) {
    cf_handle *h = NULL;
    CF_FORWARD(cf_handle_pool_take(&cublas->pool, &h));
    *guard = (cf_cublas_guard){.call = &cublas->functions, .handle = h->handle, .pooled = h};
    const conv_fft_status status = set_up(guard, stream, math, workspace, bytes);
    if (status != CONV_FFT_SUCCESS)
        cf_handle_pool_put(&cublas->pool, h);
    return status;
}

conv_fft_status cf_cublas_guard_acquire(cf_cublas *cublas, cf_cu_stream stream, cf_cublas_math math, void *workspace,
                                        size_t bytes, cf_cublas_guard *guard) {
    CF_FORWARD(cf_gpu_enter(cublas->pool.gpu));
    const conv_fft_status status = lend(cublas, stream, math, workspace, bytes, guard);
    if (status != CONV_FFT_SUCCESS)
        cf_gpu_leave(cublas->pool.gpu);
    return status;
}

void cf_cublas_guard_release(cf_cublas *cublas, cf_cublas_guard *guard) {
    cf_handle_pool_put(&cublas->pool, guard->pooled);
    cf_gpu_leave(cublas->pool.gpu);
    *guard = (cf_cublas_guard){0};
}
