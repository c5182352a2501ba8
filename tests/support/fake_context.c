/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_context.h"

#include "autotune/records/record_store.h"
#include "conv/gpu/backend.h"
#include "fakes/fake.h"
#include "support/fake_gpu.h"
#include "support/layer.h"

#include <stdio.h>
#include <stdlib.h>

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, conv_fft_last_error());
    abort();
}

conv_fft_context *fake_context_create(const char *folders, const char *cache, bool compiler) {
    conv_fft_context *c = test_alloc(sizeof *c);
    *c = (conv_fft_context){.log_level = CONV_FFT_LOG_WARNING};
    need(open_gpu(folders, cache, 0, &c->gpu) == CONV_FFT_SUCCESS, "no substitute GPU");
    const cf_search search = cf_search_default();
    cf_jit real;
    if (compiler && cf_jit_open(&real, &search, 0, CONV_FFT_LOG_WARNING) == CONV_FFT_SUCCESS)
        c->gpu->jit = real;
    need(cf_gpu_layers_create(c->gpu, &c->device) == CONV_FFT_SUCCESS, "no device of layers");
    need(cf_tuner_create(c, cache) == CONV_FFT_SUCCESS, "no tuner");
    return c;
}

void fake_context_destroy(conv_fft_context *c) {
    cf_tuner_destroy(c->tuner);
    cf_gpu_layers_destroy(c->device);
    cf_gpu_close(c->gpu);
    free(c);
    need(nothing_open(FAKES "/good/libcuda.so.1"), "something of the substitute driver is still open");
}

int fake_launches(void) {
    return ((const fake_cuda *)inside_fake(FAKES "/good/libcuda.so.1", "fake_cuda_state"))->launches;
}

conv_fft_status forced_plan(conv_fft_context *context, const char *line, int passes, const char *strategy,
                            uint64_t workspace_limit, conv_fft_plan **plan) {
    const conv_fft_problem p = test_problem(line);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.any_alignment = tensor_alignment(1) < 16;
    options.passes = passes;
    options.workspace_limit = workspace_limit;
    for (int i = 0; i < 3; i++)
        options.strategy[i] = strategy;
    *plan = NULL;
    return conv_fft_plan_create(context, &p, &options, plan);
}

conv_fft_plan *good_forced_plan(conv_fft_context *context, const char *line, int passes, const char *strategy) {
    conv_fft_plan *plan;
    need(forced_plan(context, line, passes, strategy, 0, &plan) == CONV_FFT_SUCCESS, line);
    return plan;
}
