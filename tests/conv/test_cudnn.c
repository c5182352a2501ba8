/* SPDX-License-Identifier: Apache-2.0 */
/* Family `cudnn` on substitutes of the GPU and of cuDNN (tests/fakes/cudnn.c lists its algorithms): which problems and
 * algorithms the family takes, what it lists, and what its calls pass to cuDNN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/cudnn/cudnn.h"
#include "conv/plan/family.h"
#include "fakes/fake.h"
#include "support/error_text.h"
#include "support/fake_context.h"
#include "support/fake_gpu.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fake_cudnn *cudnn_state(void) {
    return inside_fake(FAKES "/with_cudnn/libcudnn.so.9", "fake_cudnn_state");
}

#define ALGORITHM "cudnn algorithm="
#define DENSE "in=2x8x12x13 out=16 kernel=3x3 pad=1"

/* ---------------------------------------------------------------------------------------------------- what it takes */

static void feasible_problems(void **state) {
    static const char *const lines[] = {
        DENSE,
        "in=2x8x40 out=16 kernel=7 pad=3 stride=2",
        "in=2x8x9x10x11 out=16 kernel=3x2x3 dilation=2",
        "in=2x8x12x13 out=8 kernel=3x3 groups=8 layout=last",
        "in=2x8x12x13 out=16 kernel=3x3 wlayout=last dtype=fp16",
        "in=2x8x12x13 out=16 kernel=3x3 dtype=bf16 gw=fp32",
        "in=2x8x12x13 out=16 kernel=3x3 dtype=fp64",
        "in=2x8x12x13 out=16 kernel=3x3 pad=2",
        "in=2x8x12x13 out=16 kernel=3x3 mode=reflect",
    };
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int pass = 1; pass <= 4; pass *= 2) {
            conv_fft_plan_destroy(good_forced_plan(context, lines[i], (conv_fft_pass)pass, ALGORITHM "graph:0"));
            conv_fft_plan_destroy(
                good_forced_plan(context, lines[i], (conv_fft_pass)pass, ALGORITHM "graph:0:k2=27,k13=-1"));
        }
    conv_fft_plan_destroy(good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, ALGORITHM "graph:3"));
    static const char master[] = "in=2x8x12x13 out=16 kernel=3x3 dtype=bf16 w=fp32";
    for (int pass = CONV_FFT_FORWARD; pass <= CONV_FFT_BACKWARD_DATA; pass++)
        EXPECT_INVALID(forced_plan(context, master, pass, ALGORITHM "graph:0", 0, &plan),
                       "weights of the type of the tensors");
    conv_fft_plan_destroy(good_forced_plan(context, master, CONV_FFT_BACKWARD_WEIGHTS, ALGORITHM "graph:0"));
    static const char *const uneven[] = {ALGORITHM "graph:0", ALGORITHM "old:FFT_TILING:fma"};
    for (int i = 0; i < 2; i++)
        EXPECT_INVALID(
            forced_plan(context, "in=2x8x12x13 out=16 kernel=3x3 pad=0:2", CONV_FFT_FORWARD, uneven[i], 0, &plan),
            "forward", "pads both sides of an axis alike");
    EXPECT_INVALID(forced_plan(context, "in=2x8x12x13 out=16 kernel=3x3 pad=3", CONV_FFT_FORWARD, uneven[0], 0, &plan),
                   "less than the kernel covers");
    EXPECT_INVALID(forced_plan(context, "in=2x8x12x13 out=16 kernel=3x5 pad=1", CONV_FFT_FORWARD,
                               ALGORITHM "old:WINOGRAD_NONFUSED:fma", 0, &plan),
                   "loses too many bits");
    EXPECT_INVALID(forced_plan(context, "in=2x8x12x13 out=16 kernel=3x3 pad=1 mode=reflect", CONV_FFT_FORWARD,
                               ALGORITHM "graph:0", 0, &plan),
                   "pads with zeros only");
    assert_int_equal(cudnn_state()->descriptors, 0);
    fake_context_destroy(context);
}

static void strides(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_problem p = test_problem(DENSE);
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    const int64_t spaced[] = {8 * 12 * 14, 12 * 14, 14, 1};
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_FORWARD;
    options.strategy[0] = "cudnn algorithm=graph:0";
    memcpy(p.x_stride, spaced, sizeof spaced);
    EXPECT_INVALID(conv_fft_plan_create(context, &p, &options, &plan), "dense tensors only");
    fake_context_destroy(context);
}

static void refused_algorithms(void **state) {
    static const char *const words[] = {ALGORITHM "graph:",
                                        ALGORITHM "graph:x",
                                        ALGORITHM "graph:1:2=3",
                                        ALGORITHM "graph:1:k2",
                                        ALGORITHM "graph:1,k2=3",
                                        ALGORITHM "old:FFT",
                                        ALGORITHM "old:FFT_TILING:all",
                                        ALGORITHM "old:ALGO_1:fma",
                                        ALGORITHM "fastest",
                                        ALGORITHM "graph:1:k2=3;k4=5"};
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        EXPECT_INVALID(forced_plan(context, DENSE, CONV_FFT_FORWARD, words[i], 0, &plan),
                       "algorithm must be graph:ENGINE");
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:2", 0, &plan),
           "graph:2 of cuDNN does not run forward of this problem: it is not deterministic");
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:1", 0, &plan),
           "fewer bits than the math mode");
    conv_fft_plan_destroy(good_forced_plan(context, DENSE " math=tf32", CONV_FFT_FORWARD, ALGORITHM "graph:1"));
    conv_fft_plan_destroy(good_forced_plan(context, DENSE " dtype=fp16", CONV_FFT_FORWARD, ALGORITHM "graph:1"));
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:4", 0, &plan),
           "cudnnBackendFinalize failed with CUDNN_STATUS_NOT_SUPPORTED (3000)");
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:0:k2=100", 0, &plan),
           "(3000)");
    EXPECT(DEVICE_ERROR, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:9", 0, &plan),
           "graph:9 of cuDNN");
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_BACKWARD_DATA, ALGORITHM "old:ALGO_0:fma", 0, &plan),
           "old:ALGO_0:fma of cuDNN does not run backward data of this problem: it is not deterministic");
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "old:FFT_TILING:default", 0, &plan),
           "the math mode does not allow default");
    assert_int_equal(cudnn_state()->descriptors, 0);
    fake_context_destroy(context);
}

/* Without cuDNN the library works, and the family says what is missing. On the CPU it says that it needs a GPU. */
static void without_cudnn(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_PLAIN, *state, false);
    conv_fft_plan *plan;
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:0", 0, &plan),
           "does not run on this device", "libcudnn.so.9 was not found", "pip install nvidia-cudnn-cu13");
    fake_context_destroy(context);
    context = test_context(1);
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:0", 0, &plan),
           "cuDNN needs a GPU");
    conv_fft_context_destroy(context);
}

/* ---------------------------------------------------------------------------------------------------- what it lists */

typedef struct list {
    char text[1024];
    int count, most;
} list;

static bool visit(const cf_strategy *strategy, void *user) {
    list *l = user;
    char line[256];
    cf_strategy_format(strategy, 2, line, sizeof line);
    strcat(strcat(l->text, line + strlen("cudnn algorithm=")), " ");
    return ++l->count < l->most;
}

static list candidates(conv_fft_context *context, const char *line, int pass, int most) {
    const conv_fft_problem p = test_problem(line);
    cf_layer checked;
    list l = {.most = most};
    assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
    assert_int_equal(cf_family_named("cudnn")->candidates(&checked, context->device, pass, visit, &l),
                     CONV_FFT_SUCCESS);
    assert_int_equal(cudnn_state()->descriptors, 0);
    return l;
}

static void candidates_are_listed(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    list l = candidates(context, DENSE, CF_PASS_FORWARD, 99);
    assert_string_equal(l.text, "graph:0:k2=27,k13=-1 graph:0 old:FFT_TILING:fma old:IMPLICIT_PRECOMP_GEMM:fma "
                                "old:IMPLICIT_GEMM:fma graph:3 graph:4 ");
    l = candidates(context, DENSE, CF_PASS_WEIGHTS, 99);
    assert_string_equal(l.text,
                        "graph:0:k2=27,k13=-1 graph:0 old:WINOGRAD_NONFUSED:fma old:ALGO_1:fma graph:3 graph:4 ");
    l = candidates(context, DENSE " dtype=fp16", CF_PASS_DATA, 99);
    assert_string_equal(l.text, "graph:0:k2=27,k13=-1 graph:0 old:WINOGRAD_NONFUSED:tensor-op old:ALGO_1:tensor-op "
                                "old:WINOGRAD_NONFUSED:default old:ALGO_1:default graph:1 graph:3 graph:4 ");
    l = candidates(context, DENSE, CF_PASS_FORWARD, 2);
    assert_int_equal(l.count, 2);
    l = candidates(context, "in=2x8x12x13 out=16 kernel=3x3 pad=0:2", CF_PASS_FORWARD, 99);
    assert_int_equal(l.count, 0);
    l = candidates(context, "in=2x8x12x13 out=16 kernel=3x3 pad=1 mode=circular", CF_PASS_FORWARD, 99);
    assert_int_equal(l.count, 0);
    fake_context_destroy(context);
}

static void plan_is_described(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan = good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, ALGORITHM "graph:0:k2=27");
    conv_fft_description d;
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    assert_string_equal(d.strategy, "cudnn algorithm=graph:0:k2=27");
    assert_int_equal(d.stage_count, 1);
    assert_string_equal(d.stages[0].name, "convolve y");
    assert_true(d.predicted_ms < 0 && d.stages[0].predicted_ms < 0 && d.stages[0].measured_ms < 0);
    assert_true(d.stages[0].bytes == 4.0 * (2 * 8 * 12 * 13 + 16 * 8 * 9 + 2 * 16 * 12 * 13));
    assert_true(d.stages[0].operations == 2.0 * 2 * 16 * 12 * 13 * 8 * 9);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_BACKWARD, &d), CONV_FFT_SUCCESS);
    assert_int_equal(d.stage_count, 3);
    assert_string_equal(d.stages[0].name, "sum gbias");
    assert_string_equal(d.stages[1].name, "convolve gx");
    assert_string_equal(d.stages[2].name, "convolve gw");
    assert_true(d.predicted_ms < 0 && d.stages[0].predicted_ms > 0);
    size_t bytes;
    EXPECT(NOT_SUPPORTED, conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &bytes), "common spectra of w",
           "options.keep");
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

static void workspace_limit(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    const conv_fft_problem p = test_problem(DENSE);
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    size_t bytes;
    conv_fft_plan_options_init(&options);
    options.passes = CONV_FFT_FORWARD;
    options.strategy[0] = "cudnn algorithm=graph:0";
    options.workspace_limit = 1279; /* 1000 bytes, aligned at both ends */
    EXPECT_INVALID(conv_fft_plan_create(context, &p, &options, &plan), "workspace_limit is 1279", "at least 1280");
    options.workspace_limit = 1280;
    plan = test_plan(context, &p, &options);
    assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &bytes), CONV_FFT_SUCCESS);
    assert_int_equal(bytes, 1280);
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

/* The kernels compile if there is a compiler. */
static void kernels(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, true);
    conv_fft_plan_destroy(good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, ALGORITHM "graph:0"));
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(feasible_problems),     IN_SCRATCH(strides),
        IN_SCRATCH(refused_algorithms),    IN_SCRATCH(without_cudnn),
        IN_SCRATCH(candidates_are_listed), IN_SCRATCH(plan_is_described),
        IN_SCRATCH(workspace_limit),       IN_SCRATCH(kernels),
    };
    return cmocka_run_group_tests_name("family cudnn", tests, NULL, NULL);
}
