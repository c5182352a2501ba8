/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cublas.h"

#include <pthread.h>
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

typedef struct cf_cublas_pooled pooled;
struct cf_cublas_pooled {
    pooled *next;
    cf_cublas_handle handle;
};

struct cf_cublas {
    const cf_gpu *gpu;
    pthread_mutex_t mutex; /* of the list, and of the library until it is open */
    cf_library library;
    cf_cublas_functions functions;
    pooled *spares; /* that nobody holds */
};

conv_fft_status cf_cublas_create(const cf_gpu *gpu, cf_cublas **result) {
    cf_cublas *const cublas = calloc(1, sizeof *cublas);
    if (!cublas)
        return cf_fail_memory(sizeof *cublas, "the pool of cuBLAS handles");
    cublas->gpu = gpu;
    pthread_mutex_init(&cublas->mutex, NULL);
    *result = cublas;
    return CONV_FFT_SUCCESS;
}

void cf_cublas_destroy(cf_cublas *cublas) {
    if (!cublas)
        return;
    const bool entered = cublas->spares && cf_gpu_enter(cublas->gpu) == CONV_FFT_SUCCESS;
    while (cublas->spares) {
        pooled *const next = cublas->spares->next;
        cublas->functions.cublasDestroy(cublas->spares->handle);
        free(cublas->spares);
        cublas->spares = next;
    }
    if (entered)
        cf_gpu_leave(cublas->gpu);
    pthread_mutex_destroy(&cublas->mutex);
    free(cublas);
}

/* The library, opened once, and a spare handle if there is one. */
static conv_fft_status open_and_take(cf_cublas *cublas, pooled **taken) {
    pthread_mutex_lock(&cublas->mutex);
    conv_fft_status status = CONV_FFT_SUCCESS;
    if (!cublas->library.usable)
        status =
            cf_cublas_open(&cublas->library, &cublas->functions, &cublas->gpu->search, cublas->gpu->driver.version);
    *taken = cublas->spares;
    if (*taken)
        cublas->spares = (*taken)->next;
    pthread_mutex_unlock(&cublas->mutex);
    return status;
}

static void put_back(cf_cublas *cublas, pooled *p) {
    pthread_mutex_lock(&cublas->mutex);
    p->next = cublas->spares;
    cublas->spares = p;
    pthread_mutex_unlock(&cublas->mutex);
}

/* cuBLAS allocates when it makes a handle. While a stream is being captured that is allowed to a relaxed thread only. */
static conv_fft_status make(cf_cublas *cublas, pooled **made) {
    const cf_driver *const driver = &cublas->gpu->driver;
    cf_cu_capture_mode mode = CF_CU_CAPTURE_RELAXED;
    pooled *const p = calloc(1, sizeof *p);
    if (!p)
        return cf_fail_memory(sizeof *p, "a cuBLAS handle");
    conv_fft_status status = CF_CU(driver, cuThreadExchangeStreamCaptureMode, &mode);
    if (status == CONV_FFT_SUCCESS) {
        status = CF_CUBLAS(&cublas->functions, cublasCreate, &p->handle);
        driver->cuThreadExchangeStreamCaptureMode(&mode);
    }
    if (status == CONV_FFT_SUCCESS)
        *made = p;
    else
        free(p);
    return status;
}

/* A new stream takes the workspace away, hence the order. */
static conv_fft_status set_up(const cf_cublas_lease *lease, cf_cu_stream stream, cf_cublas_math math, void *workspace,
                              size_t bytes) {
    CF_FORWARD(CF_CUBLAS(lease->call, cublasSetStream, lease->handle, stream));
    CF_FORWARD(CF_CUBLAS(lease->call, cublasSetWorkspace, lease->handle, workspace, bytes));
    return CF_CUBLAS(lease->call, cublasSetMathMode, lease->handle, math);
}

/* With the context current. */
static conv_fft_status lend(cf_cublas *cublas, cf_cu_stream stream, cf_cublas_math math, void *workspace, size_t bytes,
                            cf_cublas_lease *lease) {
    pooled *p = NULL;
    CF_FORWARD(open_and_take(cublas, &p));
    if (!p)
        CF_FORWARD(make(cublas, &p));
    *lease = (cf_cublas_lease){.call = &cublas->functions, .handle = p->handle, .pooled = p};
    const conv_fft_status status = set_up(lease, stream, math, workspace, bytes);
    if (status != CONV_FFT_SUCCESS)
        put_back(cublas, p);
    return status;
}

conv_fft_status cf_cublas_acquire(cf_cublas *cublas, cf_cu_stream stream, cf_cublas_math math, void *workspace,
                                  size_t bytes, cf_cublas_lease *lease) {
    CF_FORWARD(cf_gpu_enter(cublas->gpu));
    const conv_fft_status status = lend(cublas, stream, math, workspace, bytes, lease);
    if (status != CONV_FFT_SUCCESS)
        cf_gpu_leave(cublas->gpu);
    return status;
}

void cf_cublas_release(cf_cublas *cublas, cf_cublas_lease *lease) {
    put_back(cublas, lease->pooled);
    cf_gpu_leave(cublas->gpu);
    *lease = (cf_cublas_lease){0};
}
