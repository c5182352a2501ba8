/* SPDX-License-Identifier: Apache-2.0 */
#include "device/report.h"

#include "device/cublas.h"

#include <stdio.h>

/* ---- libraries that so far are only looked for */

typedef struct cufft_functions {
    cf_cublas_result (*cufftGetVersion)(int *version);
} cufft_functions;

static bool accept_cufft(const void *table, int driver_version, cf_library *library) {
    const cufft_functions *const functions = table;
    int version = 0;
    if (functions->cufftGetVersion)
        functions->cufftGetVersion(&version);
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version / 1000, version % 1000 / 100,
             version % 100);
    return cf_library_fits(library, "cuFFT", version / 1000 + 1, driver_version); /* cuFFT 11 is of CUDA 12 */
}

typedef struct cudnn_functions {
    size_t (*cudnnGetVersion)(void);
    size_t (*cudnnGetCudartVersion)(void);
} cudnn_functions;

static bool accept_cudnn(const void *table, int driver_version, cf_library *library) {
    const cudnn_functions *const functions = table;
    const int version = functions->cudnnGetVersion ? (int)functions->cudnnGetVersion() : 0;
    const int cuda = functions->cudnnGetCudartVersion ? (int)functions->cudnnGetCudartVersion() : 0;
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version / 10000, version % 10000 / 100,
             version % 100);
    return cf_library_fits(library, "cuDNN", cuda / 1000, driver_version);
}

static const char *const cufft_sonames[] = {"libcufft.so.12", "libcufft.so.11", NULL};
static const cf_symbol cufft_symbols[] = {{"cufftGetVersion", offsetof(cufft_functions, cufftGetVersion)}};
static const cf_library_spec cufft = {
    .name = "cuFFT",
    .sonames = cufft_sonames,
    .how_to_get = "optional: it comes with the CUDA toolkit, or pip install nvidia-cufft (CUDA 12: nvidia-cufft-cu12)",
    .symbols = cufft_symbols,
    .symbol_count = sizeof cufft_symbols / sizeof cufft_symbols[0],
    .accept = accept_cufft,
};

static const char *const cudnn_sonames[] = {"libcudnn.so.9", NULL};
static const cf_symbol cudnn_symbols[] = {
    {"cudnnGetVersion", offsetof(cudnn_functions, cudnnGetVersion)},
    {"cudnnGetCudartVersion", offsetof(cudnn_functions, cudnnGetCudartVersion)},
};
static const cf_library_spec cudnn = {
    .name = "cuDNN",
    .sonames = cudnn_sonames,
    .how_to_get = "optional: install it from developer.nvidia.com/cudnn, or pip install nvidia-cudnn-cu13 (CUDA 12: "
                  "nvidia-cudnn-cu12)",
    .symbols = cudnn_symbols,
    .symbol_count = sizeof cudnn_symbols / sizeof cudnn_symbols[0],
    .accept = accept_cudnn,
};

/* ---- the report */

static void report_library(cf_text *text, const char *name, const cf_library *library) {
    if (library->usable)
        cf_text_add(text, "  %-12s %-10s %s\n", name, library->version, library->file);
    else
        cf_text_add(text, "  %-12s missing    %s\n", name, library->problem);
}

static void report_libraries(cf_text *text, const cf_search *search, const cf_driver *driver) {
    cf_jit jit;
    cf_library library;
    cf_cublas_functions cublas_functions;
    cufft_functions cufft_table;
    cudnn_functions cudnn_table;
    cf_text_add(text, "libraries\n");
    report_library(text, "CUDA driver", &driver->library);
    cf_jit_open(&jit, search, driver->version, CONV_FFT_LOG_SILENT);
    report_library(text, "NVRTC", &jit.library);
    cf_cublas_open(&library, &cublas_functions, search, driver->version);
    report_library(text, "cuBLAS", &library);
    cf_library_open(&library, &cufft, search, driver->version, &cufft_table);
    report_library(text, "cuFFT", &library);
    cf_library_open(&library, &cudnn, search, driver->version, &cudnn_table);
    report_library(text, "cuDNN", &library);
}

static conv_fft_status report_gpu(cf_text *text, const cf_driver *driver, int ordinal) {
    cf_cu_device device;
    cf_gpu_facts facts;
    char architecture[CF_ARCHITECTURE_BYTES];
    CF_FORWARD(CF_CU(driver, cuDeviceGet, &device, ordinal));
    CF_FORWARD(cf_gpu_facts_read(driver, device, &facts));
    cf_gpu_architecture(&facts, architecture);
    if (facts.compute_major >= CF_GPU_LEAST_COMPUTE_MAJOR)
        cf_text_add(text, "GPU %d, kernels compiled for %s\n", ordinal, architecture);
    else
        cf_text_add(text, "GPU %d, not used: compute capability %d.0 is needed\n", ordinal, CF_GPU_LEAST_COMPUTE_MAJOR);
    cf_gpu_facts_format(&facts, "  ", text);
    return CONV_FFT_SUCCESS;
}

static void report_cache(cf_text *text, const char *directory) {
    cf_cache_folder folder;
    cf_cache_folder_open(&folder, directory, false);
    if (folder.descriptor >= 0) {
        const cf_cache_usage usage = cf_cache_folder_trim(&folder, -1);
        cf_text_add(text, "kernel cache\n  %s: %lld kernels, %.1f MB of at most %.1f, %s\n", folder.path,
                    (long long)usage.files, (double)usage.bytes * 1e-6, (double)CF_CUBIN_CACHE_LIMIT * 1e-6,
                    cf_cache_folder_writable(&folder) ? "writable" : "read-only");
    } else {
        cf_text_add(text, "kernel cache\n  %s\n", folder.problem);
    }
    cf_cache_folder_close(&folder);
}

void cf_device_report(const cf_search *search, const char *cache_directory, cf_text *text) {
    cf_driver driver;
    char sentence[512] = "";
    int count = 0;
    if (cf_driver_open(&driver, search) != CONV_FFT_SUCCESS ||
        CF_CU(&driver, cuDeviceGetCount, &count) != CONV_FFT_SUCCESS)
        snprintf(sentence, sizeof sentence, "%s", conv_fft_last_error());
    report_libraries(text, search, &driver);
    if (count == 0)
        cf_text_add(text, "no GPU%s%s\n", *sentence ? ": " : "",
                    driver.library.usable ? sentence : "the driver is missing");
    for (int i = 0; i < count; ++i)
        if (report_gpu(text, &driver, i) != CONV_FFT_SUCCESS)
            cf_text_add(text, "GPU %d: %s\n", i, conv_fft_last_error());
    report_cache(text, cache_directory);
}
