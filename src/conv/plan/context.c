/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/plan/context.h"

#include "conv/gpu/backend.h"
#include "cpu/backend.h"
#include "cuda/jit/cubin_cache.h"

#include <stdio.h>
#include <stdlib.h>

static conv_fft_status open_cpu(const conv_fft_context_options *options, const char *why, conv_fft_context *context) {
    CF_FORWARD(cf_cpu_create(options->threads, context->log_level, &context->device));
    context->ordinal = CONV_FFT_DEVICE_CPU;
    snprintf(context->description, sizeof context->description, "%s; %s", cf_cpu_description(context->device), why);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status open_gpu(const conv_fft_context_options *options, int ordinal, const char *why,
                                conv_fft_context *context) {
    const cf_gpu_options gpu = {ordinal, options->cache_directory, context->log_level, cf_search_default()};
    CF_FORWARD(cf_gpu_open(&gpu, &context->gpu));
    CF_FORWARD(cf_gpu_layers_create(context->gpu, &context->device));
    context->ordinal = ordinal;
    snprintf(context->description, sizeof context->description, "GPU %d, %s, %s; %s", ordinal,
             context->gpu->properties.name, context->gpu->architecture, why);
    return CONV_FFT_SUCCESS;
}

/* If a GPU was asked for by number, every failure means that this GPU is not usable. */
static conv_fft_status open_numbered(const conv_fft_context_options *options, conv_fft_context *context) {
    const conv_fft_status status = open_gpu(options, options->device, "it was asked for", context);
    if (status != CONV_FFT_LIBRARY_MISSING && status != CONV_FFT_NOT_SUPPORTED && status != CONV_FFT_NO_DEVICE)
        return status;
    char why[512];
    snprintf(why, sizeof why, "%s", conv_fft_last_error());
    return cf_fail(CONV_FFT_NO_DEVICE, "options.device is %d, a GPU that is not usable: %s", options->device, why);
}

static bool has_kernels(const cf_gpu *gpu) {
    return gpu->jit.library.usable || cf_cache_folder_trim(cf_cubin_cache_folder(gpu->cache), -1).files > 0;
}

/* Open GPU 0, or the CPU and say why. */
static conv_fft_status open_either(const conv_fft_context_options *options, conv_fft_context *context) {
    char why[400];
    const conv_fft_status status = open_gpu(options, 0, "the first one that is usable", context);
    if (status == CONV_FFT_SUCCESS && has_kernels(context->gpu))
        return CONV_FFT_SUCCESS;
    snprintf(why, sizeof why, "no GPU is usable: %.370s",
             status == CONV_FFT_SUCCESS ? context->gpu->jit.library.problem : conv_fft_last_error());
    cf_gpu_layers_destroy(context->gpu ? context->device : NULL);
    cf_gpu_close(context->gpu);
    context->device = NULL;
    context->gpu = NULL;
    return open_cpu(options, why, context);
}

static conv_fft_status open_device(const conv_fft_context_options *options, conv_fft_context *context) {
    if (options->device == CONV_FFT_DEVICE_AUTO)
        return open_either(options, context);
    return options->device >= 0 ? open_numbered(options, context) : open_cpu(options, "the CPU was asked for", context);
}

conv_fft_status cf_context_create(const conv_fft_context_options *options, conv_fft_context **result) {
    conv_fft_context *context = calloc(1, sizeof *context);
    if (!context)
        return cf_fail_memory(sizeof *context, "a context");
    context->log_level = cf_log_level(options->log_level);
    const conv_fft_status status = open_device(options, context);
    if (status != CONV_FFT_SUCCESS) {
        cf_context_destroy(context);
        return status;
    }
    cf_log(context->log_level, CONV_FFT_LOG_INFO, "%s", context->description);
    *result = context;
    return CONV_FFT_SUCCESS;
}

void cf_context_destroy(conv_fft_context *context) {
    if (!context)
        return;
    if (context->gpu)
        cf_gpu_layers_destroy(context->device);
    else if (context->device)
        cf_cpu_destroy(context->device);
    cf_gpu_close(context->gpu);
    free(context);
}
