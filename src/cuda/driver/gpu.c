/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/gpu.h"

#include "cuda/libs/cublas.h"
#include "cuda/libs/cudnn.h"
#include "cuda/libs/cufft.h"

#include <stdlib.h>
#include <string.h>

static conv_fft_status open_device(cf_gpu *gpu) {
    const cf_driver *const driver = &gpu->driver;
    int count = 0;
    CF_FORWARD(CF_CU(driver, cuDeviceGetCount, &count));
    if (gpu->ordinal < 0 || gpu->ordinal >= count)
        return cf_fail(CONV_FFT_NO_DEVICE, "there is no GPU %d: the driver has %d, counted from 0", gpu->ordinal,
                       count);
    CF_FORWARD(CF_CU(driver, cuDeviceGet, &gpu->device, gpu->ordinal));
    CF_FORWARD(cf_gpu_properties_read(driver, gpu->device, &gpu->properties));
    cf_gpu_architecture(&gpu->properties, gpu->architecture);
    if (gpu->properties.compute_major < CF_GPU_MIN_COMPUTE_MAJOR)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "GPU %d (%s) has compute capability %d.%d; at least %d.0 is needed",
                       gpu->ordinal, gpu->properties.name, (int)gpu->properties.compute_major,
                       (int)gpu->properties.compute_minor, CF_GPU_MIN_COMPUTE_MAJOR);
    return CF_CU(driver, cuDevicePrimaryCtxRetain, &gpu->context, gpu->device);
}

static conv_fft_status open_handle_pools(cf_gpu *gpu, const cf_gpu_options *options) {
    gpu->search = options->search;
    if (options->search.folders) { /* the environment owns them and may change */
        gpu->folders = strdup(options->search.folders);
        if (!gpu->folders)
            return cf_fail_memory(strlen(options->search.folders) + 1, "the folders of libraries");
        gpu->search.folders = gpu->folders;
    }
    CF_FORWARD(cf_driver_open(&gpu->driver, &options->search));
    CF_FORWARD(open_device(gpu));
    CF_FORWARD(cf_cubin_cache_create(options->cache_directory, CF_CUBIN_CACHE_LIMIT, options->log_level, &gpu->cache));
    CF_FORWARD(cf_cublas_create(gpu, &gpu->cublas));
    CF_FORWARD(cf_cudnn_create(gpu, &gpu->cudnn));
    CF_FORWARD(cf_cufft_create(gpu, &gpu->cufft));
    /* Without NVRTC, the cache may still have every kernel that is needed. */
    if (cf_jit_open(&gpu->jit, &options->search, gpu->driver.version, options->log_level) != CONV_FFT_SUCCESS)
        cf_log(options->log_level, CONV_FFT_LOG_INFO, "NVRTC is missing, so only kernels of the cache can be used: %s",
               gpu->jit.library.problem);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_open(const cf_gpu_options *options, cf_gpu **result) {
    cf_gpu *const gpu = calloc(1, sizeof *gpu);
    if (!gpu)
        return cf_fail_memory(sizeof *gpu, "a GPU");
    gpu->ordinal = options->ordinal;
    gpu->log_level = options->log_level;
    const conv_fft_status status = open_handle_pools(gpu, options);
    if (status == CONV_FFT_SUCCESS)
        *result = gpu;
    else
        cf_gpu_close(gpu);
    return status;
}

void cf_gpu_close(cf_gpu *gpu) {
    if (!gpu)
        return;
    cf_cufft_destroy(gpu->cufft);
    cf_cudnn_destroy(gpu->cudnn);
    cf_cublas_destroy(gpu->cublas);
    cf_cubin_cache_destroy(gpu->cache);
    if (gpu->context)
        gpu->driver.cuDevicePrimaryCtxRelease(gpu->device);
    free(gpu->folders);
    free(gpu);
}
