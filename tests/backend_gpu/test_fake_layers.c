/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the substitute GPU of tests/fakes, which computes nothing: plans of every kind, what they compile and load,
 * and what is refused. Their calls are in test_fake_calls.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/error_text.h"
#include "support/fake_gpu.h"
#include "support/fake_layers.h"
#include "support/layer.h"
#include "support/strategy_lines.h"
#include "support/temp_dirs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- plans */

/* Every pass has a workspace and a description. Its strategy makes the same plan again. */
static void check_described(conv_fft_context *context, const conv_fft_problem *p, const conv_fft_plan *plan) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS,
                                           CONV_FFT_BACKWARD};
    conv_fft_description d[4];
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    for (int i = 0; i < 4; i++) {
        size_t bytes = 0;
        assert_int_equal(conv_fft_plan_workspace(plan, passes[i], &bytes), CONV_FFT_SUCCESS);
        assert_int_equal(conv_fft_plan_describe(plan, passes[i], &d[i]), CONV_FFT_SUCCESS);
        assert_int_equal(d[i].workspace_bytes, bytes);
        assert_true(d[i].predicted_ms > 0 && d[i].predicted_ms < 1e6 && d[i].stage_count > 0);
        if (i < 3)
            options.strategy[i] = d[i].strategy;
    }
    conv_fft_plan *again = test_plan(context, p, &options);
    assert_non_null(again);
    for (int i = 0; i < 4; i++) {
        conv_fft_description same;
        assert_int_equal(conv_fft_plan_describe(again, passes[i], &same), CONV_FFT_SUCCESS);
        assert_string_equal(same.strategy, d[i].strategy);
        assert_int_equal(same.workspace_bytes, d[i].workspace_bytes);
    }
    conv_fft_plan_destroy(again);
}

static void plans(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    for (int i = 0; i < FAKE_LAYERS; i++) {
        const conv_fft_problem p = test_problem(fake_layer_lines[i]);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        assert_non_null(plan);
        const int before = fake_compilations();
        check_described(context, &p, plan); /* a plan of the same kernels compiles nothing */
        assert_int_equal(fake_compilations(), before);
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

/* Passes share kept spectra of w for all numbers of tiles, although tiles decide where rows begin. */
static void passes_share_spectra_of_w(void **state) {
    static const char *const layers[] = {
        "in=3x64x40x40 out=64 kernel=12x12 pad=3", "in=2x4x248x248 out=4 kernel=11x11 pad=1",
        "in=2x8x104x104 out=8 kernel=27x27 pad=21", "in=1x8x4320 out=8 kernel=30 pad=3 math=tf32",
        "in=64x64x16384 out=64 kernel=3 pad=1 dtype=fp16 math=half"};
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    int differing = 0;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const conv_fft_problem p = test_problem(layers[i]);
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        options.keep = CONV_FFT_OPERAND_W;
        conv_fft_plan *const plan = test_plan(context, &p, &options);
        conv_fft_description y, gx;
        size_t bytes = 0;
        if (conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &bytes) != CONV_FFT_SUCCESS)
            fail_msg("%s: %s", layers[i], conv_fft_last_error());
        assert_true(bytes > 0);
        assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &y), CONV_FFT_SUCCESS);
        assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_BACKWARD_DATA, &gx), CONV_FFT_SUCCESS);
        differing += memcmp(y.tiles, gx.tiles, sizeof y.tiles) != 0;
        conv_fft_plan_destroy(plan);
    }
    assert_true(differing > 0);
    fake_context_destroy(context);
}

static void *make_plans(void *context) {
    uintptr_t failures = 0;
    for (int i = 0; i < FAKE_LAYERS; i++) {
        conv_fft_problem p;
        conv_fft_plan *plan = NULL;
        failures += conv_fft_problem_parse(fake_layer_lines[i], &p, NULL, 0) != CONV_FFT_SUCCESS ||
                    conv_fft_plan_create(context, &p, NULL, &plan) != CONV_FFT_SUCCESS;
        conv_fft_plan_destroy(plan);
    }
    return (void *)failures;
}

static void plans_by_threads(void **state) {
    enum {
        THREADS = 3
    };
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, make_plans, context), 0);
    for (int t = 0; t < THREADS; t++) {
        void *failures = state;
        assert_int_equal(pthread_join(threads[t], &failures), 0);
        assert_null(failures);
    }
    fake_context_destroy(context);
}

static void workspace_limits(void **state) {
    /* A workspace limit never leads to cuFFT or cuDNN, which are available here. */
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    for (int i = 0; i < 6; i++) {
        const conv_fft_problem p =
            test_problem(i < 5 ? fake_layer_lines[i] : "in=4x12x16x16 out=12 kernel=7x7 pad=1 layout=last");
        conv_fft_plan_options options;
        conv_fft_plan *plan = NULL;
        size_t bytes = 0;
        conv_fft_plan_options_init(&options);
        options.workspace_limit = smallest_workspace_limit(context, &p, &options);
        assert_true(options.workspace_limit > 1);
        plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        assert_int_equal(conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD, &bytes), CONV_FFT_SUCCESS);
        assert_true(bytes <= options.workspace_limit);
        conv_fft_plan_destroy(plan);
        options.workspace_limit--;
        EXPECT_INVALID(conv_fft_plan_create(context, &p, &options, &plan), "workspace_limit", "at least");
    }
    fake_context_destroy(context);
}

/* -------------------------------------------------------------------------------------------------- what is missing */

static void without_blas(void **state) {
    conv_fft_context *context = fake_context_create(WITHOUT_BLAS, *state, false);
    for (int i = 0; i < FAKE_LAYERS; i++) {
        const conv_fft_problem p = test_problem(fake_layer_lines[i]);
        const strategies s = chosen_strategies(context, &p);
        for (int pass = 0; pass < 3; pass++)
            assert_null(strstr(s.line[pass], " product=blas "));
    }
    fake_context_destroy(context);
}

/* Transforms that are too large are not chosen, and are refused if a strategy names them. */
static void large_bases_are_refused(void **state) {
    static const struct {
        const char *line, *absmax, *beyond, *limit;
    } cases[] = {
        {"in=1x1x20000 out=1 kernel=3", "16384", "32768", "of one axis they have up to 16384 points"},
        {"in=1x1x20000 out=1 kernel=3 dtype=fp64", "8192", "16384", "in FP64 they have up to 8192 points"},
        {"in=1x1x300x300 out=1 kernel=3", "256x256", "512x256", "up to 256 points an axis"},
        {"in=1x1x3x300 out=1 kernel=3", "4x256", "4x512", "up to 256 points an axis"},
        {"in=1x1x3x3x300 out=1 kernel=1", "4x4x256", "4x4x512", "up to 256 points an axis"},
    };
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const conv_fft_problem p = test_problem(cases[i].line);
        conv_fft_plan_options options;
        conv_fft_plan *plan = NULL;
        char line[256], edited[256];
        conv_fft_plan_options_init(&options);
        options.passes = CONV_FFT_FORWARD;
        const strategies chosen = chosen_strategies(context, &p);
        edit_strategy(chosen.line[0], "tiles",
                      p.rank == 1   ? "4"
                      : p.rank == 2 ? (p.input[0] == 3 ? "1x2" : "2x2")
                                    : "1x1x2",
                      edited, sizeof edited);
        edit_strategy(edited, "basis", cases[i].beyond, line, sizeof line);
        options.strategy[0] = line;
        EXPECT(NOT_SUPPORTED, conv_fft_plan_create(context, &p, &options, &plan), "too large for the GPU's transforms",
               cases[i].limit, "device");
        edit_strategy(edited, "basis", cases[i].absmax, line, sizeof line);
        plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

/* A problem that no family can run is refused with the limit that it exceeds. */
static void problems_beyond_memory_are_refused(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const conv_fft_problem p = test_problem("in=1x1x1048576x1048576 out=1 kernel=500000x500000 pad=1 mode=reflect");
    conv_fft_plan *plan = NULL;
    EXPECT_INVALID(conv_fft_plan_create(context, &p, NULL, &plan), "too large: its ", "64 TiB");
    assert_null(plan);
    fake_context_destroy(context);
}

/* Kernels larger than the library's transforms are cut into segments. Smaller kernels are not. */
static void long_kernels_are_cut(void **state) {
    static const struct {
        const char *line, *segments;
    } cases[] = {
        {"in=1x1x600x600 out=1 kernel=257x257 mode=reflect pad=3", "x"},
        {"in=1x2x40x600 out=2 kernel=1x300 stride=1x2 layout=last", NULL},
        {"in=1x2x600x40 out=2 kernel=300x7 layout=last", "x1"},
        {"in=1x2x70000 out=2 kernel=20000 dtype=fp16", ""},
        {"in=1x2x600x40 out=2 kernel=100x7", NULL},
    };
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const conv_fft_problem p = test_problem(cases[i].line);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        conv_fft_description d;
        assert_non_null(plan);
        for (int pass = 0; pass < 3; ++pass) {
            assert_int_equal(conv_fft_plan_describe(plan, (conv_fft_pass)(1 << pass), &d), CONV_FFT_SUCCESS);
            const char *field = strstr(d.strategy, " segments=");
            if ((field != NULL) != (cases[i].segments != NULL))
                fail_msg("%s: %s", cases[i].line, d.strategy);
            assert_true(!field || strstr(field, cases[i].segments));
        }
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

/* Every public way to create a context on a GPU gives one that makes layers. */
static void public_contexts_make_layers(void **state) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_plan *plan = NULL;
    const conv_fft_problem p = test_problem(fake_layer_lines[0]);
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = *state;
    setenv("CONV_FFT_LIBRARY_PATH", WITH_BLAS, 1);
    const conv_fft_status status = conv_fft_context_create(&options, &context);
    unsetenv("CONV_FFT_LIBRARY_PATH");
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_context_device(context), 0);
    assert_non_null(strstr(conv_fft_context_description(context), "Substitute GPU"));
    plan = test_plan(context, &p, NULL);
    assert_non_null(plan);
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    assert_true(nothing_open(DRIVER));
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(plans),
        IN_SCRATCH(passes_share_spectra_of_w),
        IN_SCRATCH(plans_by_threads),
        IN_SCRATCH(workspace_limits),
        IN_SCRATCH(without_blas),
        IN_SCRATCH(large_bases_are_refused),
        IN_SCRATCH(problems_beyond_memory_are_refused),
        IN_SCRATCH(long_kernels_are_cut),
        IN_SCRATCH(public_contexts_make_layers),
    };
    return cmocka_run_group_tests_name("layers on the substitute GPU", tests, NULL, NULL);
}
