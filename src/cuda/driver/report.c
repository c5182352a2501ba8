/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/report.h"

#include "cuda/libs/cublas.h"
#include "cuda/libs/cudnn.h"
#include "cuda/libs/cufft.h"

#include <stdio.h>

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
    cf_cufft_functions cufft_functions;
    cf_cudnn_functions cudnn_functions;
    cf_text_add(text, "libraries\n");
    report_library(text, "CUDA driver", &driver->library);
    cf_jit_open(&jit, search, driver->version, CONV_FFT_LOG_SILENT);
    report_library(text, "NVRTC", &jit.library);
    cf_cublas_open(&library, &cublas_functions, search, driver->version);
    report_library(text, "cuBLAS", &library);
    cf_cufft_open(&library, &cufft_functions, search, driver->version);
    report_library(text, "cuFFT", &library);
    cf_cudnn_open(&library, &cudnn_functions, search, driver->version);
    report_library(text, "cuDNN", &library);
}

static conv_fft_status report_gpu(cf_text *text, const cf_driver *driver, int ordinal) {
    cf_cu_device device;
    cf_gpu_properties properties;
    char architecture[CF_ARCHITECTURE_BYTES];
    CF_FORWARD(CF_CU(driver, cuDeviceGet, &device, ordinal));
    CF_FORWARD(cf_gpu_properties_read(driver, device, &properties));
    cf_gpu_architecture(&properties, architecture);
    if (properties.compute_major >= CF_GPU_MIN_COMPUTE_MAJOR)
        cf_text_add(text, "GPU %d, kernels compiled for %s\n", ordinal, architecture);
    else
        cf_text_add(text, "GPU %d, not used: compute capability %d.0 is needed\n", ordinal, CF_GPU_MIN_COMPUTE_MAJOR);
    cf_gpu_properties_format(&properties, "  ", text);
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
