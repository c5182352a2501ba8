/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/family_cases.h"

#include "cuda/jit/kernel.h"
#include "fakes/fake.h"
#include "support/fake_context.h"
#include "support/fake_gpu.h"
#include "support/layer_loose_tolerance.h"

#include <stdio.h>
#include <string.h>

conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream);
conv_fft_status __wrap_cf_kernel_start(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                       cf_cu_stream stream) {
    (void)stream;
    return family_emulate(kernel->name, launch->grid, launch->block, launch->dynamic_shared, parameters) == 0
               ? CONV_FFT_SUCCESS
               : cf_fail(CONV_FFT_DEVICE_ERROR, "kernel %s does what it must not", kernel->name);
}

/* The first `count` passes. */
static void check(conv_fft_context *context, const char *line, const char *strategy, int count, size_t alignment) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};
    char text[512];
    conv_fft_problem p;
    conv_fft_plan_options options;
    snprintf(text, sizeof text, "%s  %s", line, strategy);
    case_begin(text, NULL);
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS) {
        case_fail("%s", conv_fft_last_error());
        return;
    }
    generator g = generator_create(1);
    tensor_align(alignment);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options_init(&options);
    options.passes = count == 1 ? CONV_FFT_FORWARD : CONV_FFT_ALL_PASSES;
    for (int i = 0; i < count; i++)
        options.strategy[i] = strategy;
    conv_fft_plan *plan = test_plan(context, &p, &options);
    for (int i = 0; plan && i < count; i++)
        layer_check_pass_roughly(&l, plan, passes[i]);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    tensor_align(0);
}

/* The substitute of cuDNN does not change the result. So y must be the bias, added once. */
static void check_added_bias(conv_fft_context *context, const char *line) {
    conv_fft_problem p;
    conv_fft_plan_options options;
    case_begin(line, NULL);
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS) {
        case_fail("%s", conv_fft_last_error());
        return;
    }
    generator g = generator_create(2);
    tensor_align(64);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_FORWARD;
    options.strategy[0] = "cudnn algorithm=graph:0";
    conv_fft_plan *plan = test_plan(context, &p, &options);
    guarded ws = layer_workspace(&l, plan, CONV_FFT_FORWARD);
    tensor_poison(&l.y.tensor);
    check_status(conv_fft_forward(plan, l.x.tensor.memory.data, l.w.tensor.memory.data, l.bias.tensor.memory.data,
                                  l.y.tensor.memory.data, ws.data, ws.bytes, NULL),
                 "conv_fft_forward");
    const int64_t inner = l.shape.output[0] * l.shape.output[1] * l.shape.output[2];
    for (int64_t i = 0; i < l.y.tensor.count; i++)
        if (!(tensor_load(&l.y.tensor, i) == l.bias.values[i / inner % l.shape.out_channels])) {
            case_fail("y[%lld] is not the bias of its channel", (long long)i);
            break;
        }
    release_workspace(&ws, "conv_fft_forward");
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    tensor_align(0);
}

int family_cases_run(const char *cache_directory) {
    static const struct {
        const char *line, *strategy;
    } reference[] = {
        {"in=5x3x6x7 out=4 kernel=3x4 pad=1", "cufft basis=7x8 chunk=0"},
        {"in=5x3x6x7 out=4 kernel=3x4 pad=1", "cufft basis=8x9 chunk=2"},
        {"in=3x6x5x9 out=8 kernel=2x3 pad=0:2x3:1 groups=2", "cufft basis=8x12 chunk=1"},
        {"in=2x40x4x4 out=36 kernel=3x3 pad=1", "cufft basis=5x5 chunk=0"},
        {"in=3x5x20 out=3 kernel=7 pad=6:0", "cufft basis=27 chunk=2"},
        {"in=2x3x4x3x5 out=2 kernel=2x3x2 pad=1", "cufft basis=5x4x6 chunk=0"},
        {"in=2x3x5x4 out=4 kernel=3x2 pad=6", "cufft basis=15x15 chunk=0"},
        {"in=4x6x7x6 out=6 kernel=3x3 pad=1 groups=6", "cufft basis=8x7 chunk=3"},
    };
    static const char *const plain[] = {
        "in=2x3x6x7 out=4 kernel=3x4 pad=1",
        "in=2x6x7x8 out=4 kernel=3x2 pad=2x1 stride=2x3 dilation=2x1 groups=2 layout=last",
        "in=2x4x9 out=6 kernel=3 stride=2 dtype=fp64",
        "in=2x2x4x3x5 out=2 kernel=2x3x2 pad=1 stride=1x2x1 dilation=2x1x1 dtype=fp16 gw=fp32",
        "in=3x6x5x5 out=12 kernel=3x3 pad=2 groups=6 dtype=bf16 wlayout=last",
    };
    /* The substitute of cuDNN computes these. */
    static const char *const causal[] = {
        "in=2x5x40 out=5 kernel=4 pad=3:0 groups=5",
        "in=2x5x40 out=5 kernel=4 pad=3:0 groups=5 layout=last",
        "in=3x2x19 out=2 kernel=2 pad=1:0 groups=2 dtype=fp16 layout=last",
        "in=1x3x70 out=3 kernel=32 pad=31:0 groups=3 dtype=bf16 layout=last",
        "in=2x300x12 out=300 kernel=7 pad=6:0 groups=300 dtype=fp64 layout=last",
    };
    conv_fft_context *context = fake_context_create(FAKES_ALL ":" FAKES "/with_causal", cache_directory, false);
    conv_fft_plan *plan = NULL;
    const conv_fft_problem p = test_problem(plain[0]);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    for (int i = 0; i < 3; i++)
        options.strategy[i] = "cufft basis=8x8 chunk=0";
    plan = test_plan(context, &p, &options); /* the substitutes are open from here on */
    conv_fft_plan_destroy(plan);
    ((fake_cufft *)inside_fake(FAKES "/with_cudnn/libcufft.so.12", "fake_cufft_state"))->computes = 1;
    ((fake_cublas *)inside_fake(FAKES "/with_cublas/libcublas.so.13", "fake_cublas_state"))->computes = 1;
    for (size_t i = 0; i < sizeof reference / sizeof reference[0]; i++)
        check(context, reference[i].line, reference[i].strategy, 3, 0);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        check(context, plain[i], "cudnn algorithm=graph:0", 3, 0);
    for (size_t i = 0; i < sizeof causal / sizeof causal[0]; i++)
        for (size_t alignment = 0; alignment <= 64; alignment += 64)
            check(context, causal[i], "cudnn algorithm=causal", 1, alignment);
    check_added_bias(context, "in=3x3x6x7 out=5 kernel=3x4 pad=1");
    check_added_bias(context, "in=3x3x6x7 out=5 kernel=3x4 pad=1 layout=last dtype=fp16");
    check_added_bias(context, "in=2x3x6x7x3 out=5 kernel=3x4x1 pad=1x1x0 dtype=fp64");
    fake_context_destroy(context);
    return case_failures();
}
