/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OVERLAPS_IN_GRAPHS = 12030 /* the first driver that captures such launches */
};

static conv_fft_status read_attributes(cf_kernel *k) {
    const cf_driver *const driver = &k->gpu->driver;
    CF_FORWARD(CF_CU(driver, cuFuncGetAttribute, &k->registers, CF_CU_FUNCTION_REGISTERS, k->function));
    CF_FORWARD(CF_CU(driver, cuFuncGetAttribute, &k->local_bytes, CF_CU_FUNCTION_LOCAL_BYTES, k->function));
    return CF_CU(driver, cuFuncGetAttribute, &k->static_shared, CF_CU_FUNCTION_SHARED_BYTES, k->function);
}

static conv_fft_status allow_shared(const cf_kernel *k, size_t bytes) {
    const int64_t limit = k->gpu->properties.shared_per_block - k->static_shared;
    if ((int64_t)bytes > limit)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "kernel %s asks for %zu bytes of shared memory; GPU %d (%s) has %lld for it", k->name, bytes,
                       k->gpu->ordinal, k->gpu->properties.name, (long long)limit);
    if (bytes == 0)
        return CONV_FFT_SUCCESS;
    return CF_CU(&k->gpu->driver, cuFuncSetAttribute, k->function, CF_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, (int)bytes);
}

static conv_fft_status load(cf_kernel *k, const cf_cubin *cubin, const cf_source *source, bool *refused) {
    const cf_driver *const driver = &k->gpu->driver;
    const cf_cu_result result = driver->cuModuleLoadData(&k->module, cubin->data);
    *refused = result == CF_CU_INVALID_IMAGE || result == CF_CU_NO_BINARY_FOR_GPU;
    CF_FORWARD(cf_driver_status(driver, result, "cuModuleLoadData"));
    CF_FORWARD(CF_CU(driver, cuModuleGetFunction, &k->function, k->module, source->name));
    CF_FORWARD(read_attributes(k));
    return allow_shared(k, source->dynamic_shared);
}

conv_fft_status cf_kernel_load(const cf_gpu *gpu, const cf_cubin *cubin, const cf_source *source, cf_kernel **kernel,
                               bool *refused) {
    *refused = false;
    cf_kernel *const k = calloc(1, sizeof *k);
    if (!k)
        return cf_fail_memory(sizeof *k, "a kernel");
    k->gpu = gpu;
    k->overlaps = source->pdl_wait && gpu->properties.compute_major >= 9 && gpu->driver.version >= OVERLAPS_IN_GRAPHS;
    snprintf(k->name, sizeof k->name, "%s", source->name);
    conv_fft_status status = cf_gpu_enter(gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_left(gpu, load(k, cubin, source, refused));
    if (status == CONV_FFT_SUCCESS)
        *kernel = k;
    else
        cf_kernel_destroy(k);
    return status;
}

void cf_kernel_destroy(cf_kernel *kernel) {
    if (!kernel)
        return;
    if (kernel->module && cf_gpu_enter(kernel->gpu) == CONV_FFT_SUCCESS) {
        kernel->gpu->driver.cuModuleUnload(kernel->module);
        cf_gpu_leave(kernel->gpu);
    }
    free(kernel);
}

conv_fft_status cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                cf_cu_stream stream) {
    const cf_driver *const driver = &kernel->gpu->driver;
    cf_cu_launch_attribute attribute = {.id = CF_CU_LAUNCH_OVERLAPS, .value = 1};
    cf_cu_launch_config config = {.dynamic_shared_bytes = (unsigned)launch->dynamic_shared,
                                  .stream = stream,
                                  .attributes = &attribute,
                                  .attribute_count = kernel->overlaps};
    memcpy(config.grid, launch->grid, sizeof config.grid);
    memcpy(config.block, launch->block, sizeof config.block);
    const cf_cu_result result =
        driver->cuLaunchKernelEx((const struct CUlaunchConfig_st *)&config, kernel->function, parameters, NULL);
    if (result == 0)
        return CONV_FFT_SUCCESS;
    char call[128];
    snprintf(call, sizeof call, "the launch of kernel %s", kernel->name);
    return cf_driver_status(driver, result, call);
}
