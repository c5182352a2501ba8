/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libs/cufft.h"

#include "cuda/libs/handle_pool.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the library */

static bool accept(const void *table, int driver_version, cf_library *library) {
    const cf_cufft_functions *const functions = table;
    int version[3] = {0, 0, 0};
    for (unsigned i = 0; i < 3 && functions->cufftGetProperty; ++i)
        functions->cufftGetProperty(i, &version[i]);
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version[0], version[1], version[2]);
    return cf_library_fits(library, "cuFFT", version[0] + 1, driver_version); /* cuFFT 11 belongs to CUDA 12 */
}

static const char *const sonames[] = {"libcufft.so.12", "libcufft.so.11", NULL};

#define CF_SYMBOL(member, parameters) {#member, offsetof(cf_cufft_functions, member)},
static const cf_symbol symbols[] = {CF_CUFFT_FUNCTIONS(CF_SYMBOL)};
#undef CF_SYMBOL

static const cf_library_spec spec = {
    .name = "cuFFT",
    .sonames = sonames,
    .how_to_get = "optional: it comes with the CUDA toolkit, or pip install nvidia-cufft (CUDA 12: nvidia-cufft-cu12) "
                  "and name the folder of its library in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

conv_fft_status cf_cufft_open(cf_library *library, cf_cufft_functions *functions, const cf_search *search,
                              int driver_version) {
    return cf_library_open(library, &spec, search, driver_version, functions);
}

struct cf_cufft {
    cf_handle_pool pool;
    cf_cufft_functions functions;
};

conv_fft_status cf_cufft_create(const cf_gpu *gpu, cf_cufft **result) {
    cf_cufft *const cufft = calloc(1, sizeof *cufft);
    if (!cufft)
        return cf_fail_memory(sizeof *cufft, "the table of cuFFT");
    cufft->pool = (cf_handle_pool){.gpu = gpu, .spec = &spec, .table = &cufft->functions};
    cf_handle_pool_begin(&cufft->pool);
    *result = cufft;
    return CONV_FFT_SUCCESS;
}

void cf_cufft_destroy(cf_cufft *cufft) {
    if (!cufft)
        return;
    cf_handle_pool_end(&cufft->pool);
    free(cufft);
}

const cf_library *cf_cufft_library(cf_cufft *cufft) {
    cf_handle_pool_open(&cufft->pool);
    return &cufft->pool.library;
}

/* ---- plans */

struct cf_cufft_plan {
    const cf_gpu *gpu;
    const cf_cufft_functions *call;
    cf_cufft_handle handle;
    cf_cufft_type type;
    size_t work_bytes;
};

static conv_fft_status check(cf_cufft_result result, const char *call) {
    if (result == 0)
        return CONV_FFT_SUCCESS;
    return cf_fail(result == CF_CUFFT_ALLOC_FAILED ? CONV_FFT_OUT_OF_MEMORY : CONV_FFT_DEVICE_ERROR,
                   "%s failed with result %u of cuFFT", call, result);
}
#define CUFFT(call, name, ...) check((call)->name(__VA_ARGS__), #name)

static conv_fft_status make(cf_cufft_plan *p, const int64_t n[3], int64_t batch, bool inverse) {
    const int first = n[0] > 1 ? 0 : n[1] > 1 ? 1 : 2;
    long long real[3], complex[3], distance[2] = {1, 1};
    for (int a = 0; a < 3; ++a) {
        real[a] = n[a];
        complex[a] = a == 2 ? n[a] / 2 + 1 : n[a];
        distance[0] *= real[a];
        distance[1] *= complex[a];
    }
    long long n_of_axes[3] = {n[0], n[1], n[2]};
    long long *const in = inverse ? complex : real, *const out = inverse ? real : complex;
    CF_FORWARD(CUFFT(p->call, cufftSetAutoAllocation, p->handle, 0));
    return CUFFT(p->call, cufftMakePlanMany64, p->handle, 3 - first, n_of_axes + first, in + first, 1,
                 distance[inverse], out + first, 1, distance[!inverse], p->type, batch, &p->work_bytes);
}

conv_fft_status cf_cufft_plan_create(cf_cufft *cufft, const int64_t n[3], int64_t batch, bool inverse, bool doubles,
                                     cf_cufft_plan **plan) {
    CF_FORWARD(cf_handle_pool_open(&cufft->pool));
    cf_cufft_plan *const p = calloc(1, sizeof *p);
    if (!p)
        return cf_fail_memory(sizeof *p, "a plan of cuFFT");
    *p = (cf_cufft_plan){.gpu = cufft->pool.gpu, .call = &cufft->functions, .handle = -1};
    p->type = doubles ? (inverse ? CF_CUFFT_Z2D : CF_CUFFT_D2Z) : (inverse ? CF_CUFFT_C2R : CF_CUFFT_R2C);
    conv_fft_status status = cf_gpu_enter(p->gpu);
    if (status == CONV_FFT_SUCCESS) {
        status = CUFFT(p->call, cufftCreate, &p->handle);
        if (status == CONV_FFT_SUCCESS)
            status = make(p, n, batch, inverse);
        cf_gpu_leave(p->gpu);
    }
    if (status == CONV_FFT_SUCCESS)
        *plan = p;
    else
        cf_cufft_plan_destroy(p);
    return status;
}

void cf_cufft_plan_destroy(cf_cufft_plan *plan) {
    if (!plan)
        return;
    if (plan->handle != -1 && cf_gpu_enter(plan->gpu) == CONV_FFT_SUCCESS) {
        plan->call->cufftDestroy(plan->handle);
        cf_gpu_leave(plan->gpu);
    }
    free(plan);
}

size_t cf_cufft_plan_work_bytes(const cf_cufft_plan *plan) { return plan->work_bytes; }

static conv_fft_status execute(const cf_cufft_plan *p, void *in, void *out) {
    switch (p->type) {
    case CF_CUFFT_R2C:
        return CUFFT(p->call, cufftExecR2C, p->handle, in, out);
    case CF_CUFFT_C2R:
        return CUFFT(p->call, cufftExecC2R, p->handle, in, out);
    case CF_CUFFT_D2Z:
        return CUFFT(p->call, cufftExecD2Z, p->handle, in, out);
    default:
        return CUFFT(p->call, cufftExecZ2D, p->handle, in, out);
    }
}

static conv_fft_status run(const cf_cufft_plan *p, void *in, void *out, void *work, cf_cu_stream stream) {
    CF_FORWARD(CUFFT(p->call, cufftSetStream, p->handle, stream));
    CF_FORWARD(CUFFT(p->call, cufftSetWorkArea, p->handle, work));
    return execute(p, in, out);
}

conv_fft_status cf_cufft_plan_run(const cf_cufft_plan *plan, void *in, void *out, void *work, cf_cu_stream stream) {
    CF_FORWARD(cf_gpu_enter(plan->gpu));
    const cf_cu_capture_mode mode = cf_handle_pool_relax(plan->gpu, CF_CU_CAPTURE_RELAXED); /* kernels may be loaded */
    const conv_fft_status status = run(plan, in, out, work, stream);
    cf_handle_pool_relax(plan->gpu, mode);
    return cf_gpu_left(plan->gpu, status);
}
