/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/context.h"

#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>

conv_fft_status cf_context_create(const conv_fft_context_options *options, conv_fft_context **result) {
    if (options->device >= 0)
        return cf_fail(CONV_FFT_NO_DEVICE,
                       "device is %d; this version of the library has no GPU backend yet, use CONV_FFT_DEVICE_CPU (%d)",
                       options->device, CONV_FFT_DEVICE_CPU);
    conv_fft_context *context = calloc(1, sizeof *context);
    if (!context)
        return cf_fail_memory(sizeof *context, "a context");
    context->ordinal = CONV_FFT_DEVICE_CPU;
    context->log_level = cf_log_level(options->log_level);
    const conv_fft_status status = cf_cpu_create(options->threads, context->log_level, &context->device);
    if (status != CONV_FFT_SUCCESS) {
        free(context);
        return status;
    }
    snprintf(context->description, sizeof context->description, "%s; %s", cf_cpu_description(context->device),
             options->device == CONV_FFT_DEVICE_CPU ? "the CPU was asked for"
                                                    : "this version of the library has no GPU backend yet");
    cf_log(context->log_level, CONV_FFT_LOG_INFO, "%s", context->description);
    *result = context;
    return CONV_FFT_SUCCESS;
}

void cf_context_destroy(conv_fft_context *context) {
    if (!context)
        return;
    cf_cpu_destroy(context->device);
    free(context);
}
