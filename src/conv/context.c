/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/context.h"

#include "conv/gpu.h"

#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>

static conv_fft_status open_cpu(const conv_fft_context_options *options, conv_fft_context *context) {
    CF_FORWARD(cf_cpu_create(options->threads, context->log_level, &context->device));
    snprintf(context->description, sizeof context->description, "%s; %s", cf_cpu_description(context->device),
             options->device == CONV_FFT_DEVICE_CPU ? "the CPU was asked for"
                                                    : "layers run on the CPU in this version of the library");
    return CONV_FFT_SUCCESS;
}

static conv_fft_status open_gpu(const conv_fft_context_options *options, conv_fft_context *context) {
    const cf_gpu_options gpu = {options->device, options->cache_directory, context->log_level, cf_search_default()};
    const conv_fft_status status = cf_gpu_open(&gpu, &context->gpu);
    /* Whatever stands in the way, the GPU that was asked for by number is not usable. */
    if (status == CONV_FFT_LIBRARY_MISSING || status == CONV_FFT_NOT_SUPPORTED || status == CONV_FFT_NO_DEVICE) {
        char why[512];
        snprintf(why, sizeof why, "%s", conv_fft_last_error());
        return cf_fail(CONV_FFT_NO_DEVICE, "options.device is %d, a GPU that is not usable: %s", options->device, why);
    }
    CF_FORWARD(status);
    CF_FORWARD(cf_gpu_layers_create(context->gpu, &context->device));
    snprintf(context->description, sizeof context->description, "GPU %d, %s, %s; it was asked for", options->device,
             context->gpu->facts.name, context->gpu->architecture);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_context_create(const conv_fft_context_options *options, conv_fft_context **result) {
    conv_fft_context *context = calloc(1, sizeof *context);
    if (!context)
        return cf_fail_memory(sizeof *context, "a context");
    context->ordinal = options->device >= 0 ? options->device : CONV_FFT_DEVICE_CPU;
    context->log_level = cf_log_level(options->log_level);
    const conv_fft_status status = options->device >= 0 ? open_gpu(options, context) : open_cpu(options, context);
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
