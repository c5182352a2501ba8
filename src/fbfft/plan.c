/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan.h"

#include "core/arith.h"
#include "fbfft/kernel_text.h"

#include <stdlib.h>
#include <string.h>

/* The whole text of a configuration's kernel, or NULL. */
static char *make_text(const cf_fft_config *config) {
    char tail[2048];
    cf_text t = {tail, sizeof tail, 0};
    cf_fft_emit(config, &t);
    const size_t length = strlen(cf_fbfft_kernel_text);
    char *text = malloc(length + t.length + 1);
    if (!text)
        return NULL;
    memcpy(text, cf_fbfft_kernel_text, length);
    memcpy(text + length, tail, t.length + 1);
    return text;
}

conv_fft_status cf_fft_plan_create(cf_gpu *gpu, const fbfft_desc *desc, fbfft_plan **result) {
    cf_fft_config config;
    CF_FORWARD(cf_fft_configure(desc, &gpu->facts, &config));
    fbfft_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    plan->desc = *desc;
    plan->config[0] = config;
    plan->config[1] = cf_fft_unaligned(&config);
    const int count = config.quads ? 2 : 1;
    char *text[2] = {NULL, NULL};
    cf_source sources[2] = {{0}};
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < count; ++i) {
        text[i] = make_text(&plan->config[i]);
        if (!text[i]) {
            status = cf_fail_memory(strlen(cf_fbfft_kernel_text), "the text of a kernel");
            goto done;
        }
        sources[i] = (cf_source){.name = "cf_fft",
                                 .text = text[i],
                                 .options = {CF_FFT_OPTION},
                                 .dynamic_shared = (size_t)plan->config[i].shared};
    }
    status = cf_kernels_build(gpu, sources, count, plan->kernel);
    if (status != CONV_FFT_SUCCESS)
        goto done;
    if (count == 1)
        plan->kernel[1] = plan->kernel[0];
    cf_text line = {plan->description, sizeof plan->description, 0};
    cf_fft_describe(&config, &line);
    cf_text_add(&line, ", registers %d", plan->kernel[0]->registers);
    *result = plan;
    plan = NULL;
done:
    free(text[0]);
    free(text[1]);
    cf_fft_plan_destroy(plan);
    return status;
}

void cf_fft_plan_destroy(fbfft_plan *plan) {
    if (!plan)
        return;
    if (plan->kernel[1] != plan->kernel[0])
        cf_kernel_destroy(plan->kernel[1]);
    cf_kernel_destroy(plan->kernel[0]);
    free(plan);
}

conv_fft_status cf_fft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch,
                               struct CUstream_st *stream) {
    if (batch == 0)
        return CONV_FFT_SUCCESS;
    const int variant = ((uintptr_t)in | (uintptr_t)out) % 16 ? 1 : 0;
    const cf_fft_config config = cf_fft_for_batch(&plan->config[variant], batch);
    const int64_t blocks = cf_ceil_div(batch, config.planes);
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "batch is %lld; one call takes at most %lld", (long long)batch,
                       (long long)INT32_MAX * config.planes);
    const cf_launch launch = {{(unsigned)blocks, 1, 1}, {(unsigned)config.threads, 1, 1}, (size_t)config.shared};
    float scale = (float)plan->desc.scale;
    long long count = batch;
    void *parameters[] = {&in, &out, &scale, &count};
    return cf_kernel_launch(plan->kernel[variant], &launch, parameters, stream);
}
