/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_tuning.h"

#include "autotune/records/record_store.h"
#include "conv/gpu/backend.h"
#include "support/fake_gpu.h"

#include <string.h>

const char fake_tuned_line[] = "in=2x2x12x13 out=3 kernel=5x5 pad=2";

conv_fft_status open_context(const char *libraries, const char *directory, conv_fft_context *context) {
    memset(context, 0, sizeof *context);
    context->log_level = CONV_FFT_LOG_WARNING;
    conv_fft_status status = open_gpu(libraries, directory, 0, &context->gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_layers_create(context->gpu, &context->device);
    return status == CONV_FFT_SUCCESS ? cf_tuner_create(context, directory) : status;
}

void close_context(conv_fft_context *context) {
    cf_tuner_destroy(context->tuner);
    if (context->device)
        cf_gpu_layers_destroy(context->device);
    cf_gpu_close(context->gpu);
}

conv_fft_status plan_problem(conv_fft_context *context, const char *problem, conv_fft_tuning tuning,
                             char strategy[3][256]) {
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    options.tuning = tuning;
    options.tune_milliseconds = 600000; /* however slowly this machine compiles */
    conv_fft_status status = conv_fft_problem_parse(problem, &p, NULL, 0);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_create(context, &p, &options, &plan);
    for (int pass = 0; pass < 3 && status == CONV_FFT_SUCCESS; ++pass) {
        conv_fft_description d;
        status = conv_fft_plan_describe(plan, (conv_fft_pass)(1 << pass), &d);
        if (status == CONV_FFT_SUCCESS)
            memcpy(strategy[pass], d.strategy, 256);
    }
    conv_fft_plan_destroy(plan);
    return status;
}

conv_fft_status plan_layer(conv_fft_context *context, conv_fft_tuning tuning, char strategy[3][256]) {
    return plan_problem(context, fake_tuned_line, tuning, strategy);
}
