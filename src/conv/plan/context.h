/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CONV_CONTEXT_H
#define CF_CONV_CONTEXT_H

#include "core/device_ops.h"
#include "core/log.h"
#include "cuda/driver/gpu.h"

typedef struct cf_tuner cf_tuner;

struct conv_fft_context {
    int ordinal; /* number of the GPU, or CONV_FFT_DEVICE_CPU */
    conv_fft_log_level log_level;
    cf_device *device; /* the operations of layers */
    cf_gpu *gpu;       /* NULL on the CPU */
    cf_tuner *tuner;   /* src/autotune makes and destroys it; NULL: no records */
    char description[512];
};

conv_fft_status cf_context_create(const conv_fft_context_options *options, conv_fft_context **context);
void cf_context_destroy(conv_fft_context *context);

#endif
