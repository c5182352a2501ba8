/* SPDX-License-Identifier: Apache-2.0 */
/* Family `cufft` on substitutes of the GPU, cuFFT and cuBLAS: which problems it takes, what it lists, and what its
 * calls launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/plan/family.h"
#include "fakes/fake.h"
#include "support/error_text.h"
#include "support/fake_context.h"
#include "support/fake_gpu.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <string.h>

static const fake_cufft *cufft_state(void) {
    return inside_fake(FAKES "/with_cudnn/libcufft.so.12", "fake_cufft_state");
}
static int products(void) {
    return ((const fake_cublas *)inside_fake(FAKES "/with_cublas/libcublas.so.13", "fake_cublas_state"))->products;
}

#define DENSE "in=5x8x12x13 out=16 kernel=3x4 pad=1"

static void feasible_problems(void **state) {
    static const struct {
        const char *line, *strategy, *why; /* NULL: it is feasible */
    } cases[] = {
        {DENSE, "cufft basis=14x14 chunk=0", NULL},
        {DENSE, "cufft basis=14x15 chunk=2", NULL},
        {"in=5x8x40 out=16 kernel=7 pad=6:1 dtype=fp64", "cufft basis=48 chunk=0", NULL},
        {"in=2x8x6x7x8 out=12 kernel=3x2x3 groups=4", "cufft basis=6x7x8 chunk=0", NULL},
        {DENSE " math=tf32", "cufft basis=16x16 chunk=0", NULL},
        {"in=5x8x12x13 out=16 kernel=3x4 pad=20", "cufft basis=50x50 chunk=0", NULL},
        {DENSE, "cufft basis=12x14 chunk=0", "a basis is too small"},
        {DENSE, "cufft basis=13x14 chunk=0", "powers of 2, 3, 5 and 7"},
        {DENSE " stride=2", "cufft basis=16x16 chunk=0", "no stride and no dilation"},
        {DENSE " dilation=2", "cufft basis=16x16 chunk=0", "no stride and no dilation"},
        {DENSE " mode=circular", "cufft basis=16x16 chunk=0", "pads with zeros only"},
        {DENSE " layout=last", "cufft basis=16x16 chunk=0", "channels first"},
        {DENSE " wlayout=last", "cufft basis=16x16 chunk=0", "channels first"},
        {DENSE " dtype=fp16", "cufft basis=16x16 chunk=0", "FP32 and FP64"},
        {"in=5x8x12x1 out=16 kernel=3x1", "cufft basis=16x1 chunk=0", "at least 2 for cuFFT"},
    };
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        conv_fft_plan *plan;
        if (cases[i].why)
            EXPECT_INVALID(forced_plan(context, cases[i].line, CONV_FFT_ALL_PASSES, cases[i].strategy, 0, &plan),
                           cases[i].why);
        else
            conv_fft_plan_destroy(good_forced_plan(context, cases[i].line, CONV_FFT_ALL_PASSES, cases[i].strategy));
    }
    assert_int_equal(cufft_state()->plans, 0);
    fake_context_destroy(context);
}

static void without_libraries(void **state) {
    conv_fft_plan *plan;
    conv_fft_context *context = fake_context_create(FAKES_PLAIN, *state, false);
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0", 0, &plan),
           "libcufft.so.12 was not found", "pip install nvidia-cufft");
    fake_context_destroy(context);
    context = fake_context_create(FAKES "/good:" FAKES "/with_cudnn", *state, false);
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0", 0, &plan),
           "cuBLAS is missing");
    fake_context_destroy(context);
    context = test_context(1);
    EXPECT(NOT_SUPPORTED, forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0", 0, &plan),
           "cuFFT needs a GPU");
    conv_fft_context_destroy(context);
}

/* The substitute of cuFFT fails for 13 planes. */
static void failing_cufft_plans(void **state) {
    conv_fft_plan *plan;
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    EXPECT(
        OUT_OF_MEMORY,
        forced_plan(context, "in=13x1x8x8 out=1 kernel=3x3", CONV_FFT_ALL_PASSES, "cufft basis=8x8 chunk=0", 0, &plan),
        "cufftMakePlanMany64 failed with result 2 of cuFFT");
    assert_int_equal(cufft_state()->plans, 0);
    fake_context_destroy(context);
}

static bool visit(const cf_strategy *strategy, void *user) {
    char line[256];
    cf_strategy_format(strategy, 2, line, sizeof line);
    strcat(strcat(user, line), "; ");
    return true;
}

static void candidates_are_listed(void **state) {
    static const struct {
        const char *line, *list;
    } cases[] = {
        {DENSE, "cufft basis=14x14 chunk=0; cufft basis=16x16 chunk=0; "},
        {"in=5x8x12x15 out=16 kernel=3x4", "cufft basis=12x15 chunk=0; cufft basis=12x16 chunk=0; cufft "
                                           "basis=16x16 chunk=0; "},
        {"in=5x8x8x8 out=16 kernel=3x4", "cufft basis=8x8 chunk=0; "},
        {DENSE " stride=2", ""},
    };
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    assert_int_equal(context->device->ops->prepare(context->device), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const conv_fft_problem p = test_problem(cases[i].line);
        cf_layer checked;
        char list[1024] = "";
        assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
        assert_int_equal(cf_family_named("cufft")->candidates(&checked, context->device, CF_PASS_DATA, visit, list),
                         CONV_FFT_SUCCESS);
        assert_string_equal(list, cases[i].list);
    }
    fake_context_destroy(context);
}

static void plan_is_described(void **state) {
    static const char *const names[] = {"transform w", "transform x", "product y", "inverse y"};
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan = good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x14 chunk=2");
    conv_fft_description d;
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    assert_string_equal(d.strategy, "cufft basis=16x14 chunk=2");
    assert_true(d.basis[0] == 16 && d.basis[1] == 14 && d.tiles[0] == 1);
    assert_int_equal(d.stage_count, 4);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(d.stages[i].name, names[i]);
        assert_true(d.stages[i].predicted_ms < 0 && d.stages[i].bytes > 0);
    }
    assert_true(d.predicted_ms < 0);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_BACKWARD, &d), CONV_FFT_SUCCESS);
    assert_true(d.stage_count <= CONV_FFT_MAX_STAGES && d.predicted_ms < 0);
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

/* Transforms, products and kernels of the three passes, in chunks of samples. */
static void calls(void **state) {
    static const struct {
        const char *chunk;
        int chunks;
    } cases[] = {{"cufft basis=16x16 chunk=0", 1}, {"cufft basis=16x16 chunk=2", 3}};
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    const conv_fft_problem p = test_problem(DENSE);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    for (int i = 0; i < 2; i++) {
        conv_fft_plan *plan = good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, cases[i].chunk);
        guarded ws = layer_workspace(&l, plan, CONV_FFT_BACKWARD);
        const int n = cases[i].chunks, before = cufft_state()->runs, multiplied = products(),
                  launched = fake_launches();
        assert_int_equal(conv_fft_backward(plan, l.x.tensor.memory.data, l.w.tensor.memory.data,
                                           l.gy.tensor.memory.data, l.gx.tensor.memory.data, l.gw.tensor.memory.data,
                                           NULL, 0, ws.data, ws.bytes, NULL),
                         CONV_FFT_SUCCESS);
        assert_int_equal(cufft_state()->runs - before, (1 + 2 * n) + (2 * n + 1));
        assert_int_equal(fake_launches() - launched, 2 * ((1 + 2 * n) + (2 * n + 1)));
        assert_int_equal(products() - multiplied, 2 * n);
        assert_true(release_workspace(&ws, "conv_fft_backward"));
        conv_fft_plan_destroy(plan);
    }
    layer_destroy(&l);
    assert_int_equal(cufft_state()->plans, 0);
    fake_context_destroy(context);
}

static void workspace_limits(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan;
    conv_fft_description d;
    EXPECT_INVALID(forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0", 1, &plan),
                   "workspace_limit is 1 bytes");
    const uint64_t least = largest_number(conv_fft_last_error());
    assert_int_equal(forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0", least, &plan),
                     CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    assert_string_equal(d.strategy, "cufft basis=16x16 chunk=1");
    assert_true(d.workspace_bytes <= least);
    conv_fft_plan_destroy(plan);
    EXPECT_INVALID(forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0", least - 1, &plan),
                   "at least");
    fake_context_destroy(context);
}

/* The kernels compile in both precisions if there is a compiler. */
static void kernels(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, true);
    conv_fft_plan_destroy(good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0"));
    conv_fft_plan_destroy(
        good_forced_plan(context, DENSE " dtype=fp64", CONV_FFT_ALL_PASSES, "cufft basis=16x16 chunk=0"));
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(feasible_problems),     IN_SCRATCH(without_libraries), IN_SCRATCH(failing_cufft_plans),
        IN_SCRATCH(candidates_are_listed), IN_SCRATCH(plan_is_described), IN_SCRATCH(calls),
        IN_SCRATCH(workspace_limits),      IN_SCRATCH(kernels),
    };
    return cmocka_run_group_tests_name("family cufft", tests, NULL, NULL);
}
