/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the substitute GPU of tests/fakes, which computes nothing: plans of every kind, what they compile and load, what
 * their calls launch, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_context.h"
#include "fake_gpu.h"
#include "fakes/fake.h"
#include "layer.h"
#include "scratch.h"
#include "sentence.h"
#include "strategies.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WITHOUT_BLAS FAKES "/good"
#define WITH_BLAS FAKES "/good:" FAKES "/with_cublas"
#define DRIVER FAKES "/good/libcuda.so.1"

static int launches(void) { return ((const fake_cuda *)inside_fake(DRIVER, "fake_cuda_state"))->launches; }
static int products(void) {
    return ((const fake_cublas *)inside_fake(FAKES "/with_cublas/libcublas.so.13", "fake_cublas_state"))->products;
}

static const char *const lines[] = {
    "in=5x12x13x14 out=10 kernel=3x4 pad=1",
    "in=3x8x30x31 out=8 kernel=7x7 pad=3 groups=8 layout=last dtype=fp16 gw=fp32",
    "in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=reflect groups=2 stride=2 dtype=bf16",
    "in=2x3x2000 out=4 kernel=300 pad=10:20 mode=circular dtype=fp64",
    "in=2x3x9x10x11 out=4 kernel=3x3x3 pad=1 mode=replicate dilation=2",
    "in=2x3x100000 out=4 kernel=7000",
    "in=0x3x9x10 out=4 kernel=3x3",
    "in=64x64x64x64 out=64 kernel=9x9",
};
enum {
    LINES = sizeof lines / sizeof lines[0]
};

/* ----------------------------------------------------------------------------------------------------------- plans */

/* Every pass has its workspace and its description, whose strategy makes the same plan again. */
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
    for (int i = 0; i < LINES; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        assert_non_null(plan);
        const int before = fake_compilations();
        check_described(context, &p, plan); /* a plan of the same kernels compiles nothing */
        assert_int_equal(fake_compilations(), before);
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

static void *make_plans(void *context) {
    uintptr_t failures = 0;
    for (int i = 0; i < LINES; i++) {
        conv_fft_problem p;
        conv_fft_plan *plan = NULL;
        failures += conv_fft_problem_parse(lines[i], &p, NULL, 0) != CONV_FFT_SUCCESS ||
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
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    for (int i = 0; i < 5; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
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

/* ----------------------------------------------------------------------------------------------------------- calls */

/* One forward and one backward call; the memory is the host's, and nothing looks at it. */
static void call_both(layer *l, const conv_fft_plan *plan) {
    guarded forward = layer_workspace(l, plan, CONV_FFT_FORWARD), back = layer_workspace(l, plan, CONV_FFT_BACKWARD);
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data;
    assert_int_equal(conv_fft_forward(plan, x, w, l->bias.tensor.memory.data, l->y.tensor.memory.data, forward.data,
                                      forward.bytes, NULL),
                     CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_backward(plan, x, w, l->gy.tensor.memory.data, l->gx.tensor.memory.data,
                                       l->gw.tensor.memory.data, l->gbias.tensor.memory.data, 0, back.data, back.bytes,
                                       NULL),
                     CONV_FFT_SUCCESS);
    assert_true(release_workspace(&forward, "conv_fft_forward") && release_workspace(&back, "conv_fft_backward"));
}

/* Calls launch, and that is all: they load nothing, compile nothing and take no memory of the device. */
static void calls(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const fake_cuda *const driver = inside_fake(DRIVER, "fake_cuda_state");
    for (int i = 0; i < 5; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        generator g = generator_create(1);
        layer l = layer_create(&p, &g);
        conv_fft_plan *plan = test_plan(context, &p, NULL);
        assert_non_null(plan);
        const int compiled = fake_compilations(), loaded = driver->modules, before = launches();
        call_both(&l, plan);
        print_message("%s: %d launches\n", lines[i], launches() - before);
        assert_true(launches() - before >= 8); /* x, w, y, twice their inverse and gy, gbias */
        assert_int_equal(fake_compilations(), compiled);
        assert_int_equal(driver->modules, loaded);
        assert_int_equal(driver->allocations, 0);
        assert_int_equal(driver->depth, 0);
        conv_fft_plan_destroy(plan);
        layer_destroy(&l);
    }
    fake_context_destroy(context);
}

/* What the strategy says is what runs. */
static void product_variants(void **state) {
    static const char *const variants[] = {"blas", "loop", "tensor"};
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const conv_fft_problem p = test_problem(lines[0]);
    generator g = generator_create(1);
    layer l = layer_create(&p, &g);
    strategies s = chosen_strategies(context, &p);
    int launched[3], multiplied[3];
    for (int v = 0; v < 3; v++) {
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        for (int pass = 0; pass < 3; pass++) {
            char edited[256];
            edit_strategy(s.line[pass], "product", variants[v], edited, sizeof edited);
            memcpy(s.line[pass], edited, sizeof edited);
            options.strategy[pass] = s.line[pass];
        }
        conv_fft_plan *plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        launched[v] = launches();
        multiplied[v] = products();
        call_both(&l, plan);
        launched[v] = launches() - launched[v];
        multiplied[v] = products() - multiplied[v];
        conv_fft_plan_destroy(plan);
    }
    assert_int_equal(multiplied[0], 3);
    assert_int_equal(multiplied[1], 0);
    assert_int_equal(multiplied[2], 0);
    assert_int_equal(launched[1], launched[0] + 3);
    assert_int_equal(launched[2], launched[0] + 3);
    layer_destroy(&l);
    fake_context_destroy(context);
}

/* ---------------------------------------------------------------------------------------------------- what is missing */

static void without_blas(void **state) {
    conv_fft_context *context = fake_context_create(WITHOUT_BLAS, *state, false);
    for (int i = 0; i < LINES; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        const strategies s = chosen_strategies(context, &p);
        for (int pass = 0; pass < 3; pass++)
            assert_null(strstr(s.line[pass], " product=blas "));
    }
    fake_context_destroy(context);
}

/* Transforms that are too large are not chosen, and refused if they are forced. */
static void large_bases(void **state) {
    static const struct {
        const char *line, *largest, *beyond;
    } cases[] = {
        {"in=1x1x20000 out=1 kernel=3", "16384", "32768"},
        {"in=1x1x20000 out=1 kernel=3 dtype=fp64", "8192", "16384"},
        {"in=1x1x300x300 out=1 kernel=3", "256x256", "512x256"},
        {"in=1x1x3x300 out=1 kernel=3", "4x256", "4x512"},
        {"in=1x1x3x3x300 out=1 kernel=1", "4x4x256", "4x4x512"},
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
        EXPECT(NOT_SUPPORTED, conv_fft_plan_create(context, &p, &options, &plan), "no transforms of a basis that large",
               "device");
        edit_strategy(edited, "basis", cases[i].largest, line, sizeof line);
        plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        conv_fft_plan_destroy(plan);
    }
    fake_context_destroy(context);
}

/* Longer than any transform of a GPU. */
static void long_kernel(void **state) {
    conv_fft_context *context = fake_context_create(WITH_BLAS, *state, false);
    const conv_fft_problem p = test_problem("in=1x1x40000 out=1 kernel=20000");
    conv_fft_plan *plan = NULL;
    EXPECT_INVALID(conv_fft_plan_create(context, &p, NULL, &plan), "no strategy");
    fake_context_destroy(context);
}

/* Every public way to a context on a GPU makes layers. */
static void public_context(void **state) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_plan *plan = NULL;
    const conv_fft_problem p = test_problem(lines[0]);
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
        IN_SCRATCH(plans),       IN_SCRATCH(plans_by_threads), IN_SCRATCH(workspace_limits),
        IN_SCRATCH(calls),       IN_SCRATCH(product_variants), IN_SCRATCH(without_blas),
        IN_SCRATCH(large_bases), IN_SCRATCH(long_kernel),      IN_SCRATCH(public_context),
    };
    return cmocka_run_group_tests_name("layers on the substitute GPU", tests, NULL, NULL);
}
