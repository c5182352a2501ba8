/* SPDX-License-Identifier: Apache-2.0 */
/* Measured tuning on the CPU: records are made, found again, ignored where they do not fit, and never wrong. The clock
 * moves only when a plan runs, so each seed has other winners, and nothing here waits. */
#include "support/layer.h"
#include "support/temp_dirs.h"
#include "support/tuning.h"
#include "support/virtual_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* support/virtual_clock.c and support/virtual_runs.c */
double __wrap_cf_clock_seconds(void);
double __wrap_cf_clock_process_seconds(void);
conv_fft_status __wrap_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);
conv_fft_status __wrap_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *call);

static void measured_once(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_plan_options cached = options_with(CONV_FFT_TUNE_CACHED), off = options_with(CONV_FFT_TUNE_OFF);
    const conv_fft_plan_options measure = options_with(CONV_FFT_TUNE_MEASURE);
    const choice model = choose(context, tuned_line, &off);
    assert_true(model.forward_ms < 0.0 && model.backward_ms < 0.0);
    EXPECT_COUNTS(context, 0, 0, 0, 0);
    assert_string_equal(choose(context, tuned_line, &cached).text, model.text);
    EXPECT_COUNTS(context, 0, 0, 2, 0); /* forward, and both gradients */

    const choice tuned = choose(context, tuned_line, &measure);
    assert_true(tuned.forward_ms > 0.0 && tuned.backward_ms > 0.0);
    EXPECT_COUNTS(context, 2, 0, 4, 0);
    const choice again = choose(context, tuned_line, &measure), found = choose(context, tuned_line, &cached);
    EXPECT_COUNTS(context, 2, 4, 4, 0);
    assert_string_equal(again.text, tuned.text);
    assert_string_equal(found.text, tuned.text);
    assert_true(again.forward_ms == found.forward_ms && again.backward_ms == found.backward_ms);
    assert_string_equal(choose(context, tuned_line, &off).text, model.text); /* looks at no record */
    EXPECT_COUNTS(context, 2, 4, 4, 0);
    conv_fft_context_destroy(context);

    context = tuning_context(*state); /* another process would find the same */
    const choice later = choose(context, tuned_line, NULL);
    EXPECT_COUNTS(context, 2, 2, 0, 0);
    assert_string_equal(later.text, tuned.text);
    assert_true(later.forward_ms > 0.99 * tuned.forward_ms && later.forward_ms < 1.01 * tuned.forward_ms);
    /* Another batch size makes another problem. */
    choose(context, "in=3x4x20x21 out=6 kernel=3x4 pad=1", &cached);
    EXPECT_COUNTS(context, 2, 2, 2, 0);
    conv_fft_context_destroy(context);
}

/* Tuned plans compute right results, whatever strategy won. */
static void tuned_layers_are_right(void **state) {
    static const char *const lines[] = {
        "in=2x4x20x21 out=6 kernel=3x4 pad=1 groups=2",
        "in=1x2x300 out=3 kernel=7 dilation=3 dtype=fp64",
        "in=2x2x6x7x5 out=2 kernel=3x3x2 mode=circular pad=1",
        "in=2x3x31x30 out=4 kernel=4x3 pad=2 stride=2 mode=reflect dtype=fp16 gw=fp32 layout=last",
        "in=2x6x40x40 out=6 kernel=5x5 pad=same groups=6",
        "in=2x4x24x25 out=6 kernel=3x4 pad=1 groups=2 dtype=bf16 w=fp32",
    };
    conv_fft_context *context = tuning_context(*state);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        for (int mode = CONV_FFT_TUNE_MEASURE; mode <= (i < 2 ? CONV_FFT_TUNE_EXHAUSTIVE : CONV_FFT_TUNE_MEASURE);
             ++mode) {
            const conv_fft_plan_options options = options_with((conv_fft_tuning)mode);
            generator g = test_generator(i);
            layer l = layer_create(&p, &g);
            conv_fft_plan *plan = test_plan(context, &p, &options);
            assert_non_null(plan);
            layer_check_all(&l, plan);
            conv_fft_plan_destroy(plan);
            layer_destroy(&l);
        }
    }
    EXPECT_COUNTS(context, 12, 4, 12, 0); /* exhaustive finds the records of measure, and makes better ones */
    assert_int_equal(case_failures(), 0);
    conv_fft_context_destroy(context);
}

static int note_mode(const conv_fft_tune_record *record, void *user) {
    *(conv_fft_tuning *)user = record->tuning;
    return 0;
}

static void better_modes_measure_again(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.passes = CONV_FFT_FORWARD;
    const conv_fft_problem p = problem_of(tuned_line);
    const conv_fft_tuning modes[] = {CONV_FFT_TUNE_MEASURE, CONV_FFT_TUNE_EXHAUSTIVE, CONV_FFT_TUNE_MEASURE};
    const conv_fft_tuning kept[] = {CONV_FFT_TUNE_MEASURE, CONV_FFT_TUNE_EXHAUSTIVE, CONV_FFT_TUNE_EXHAUSTIVE};
    for (int i = 0; i < 4; ++i) {
        conv_fft_plan *plan = NULL;
        conv_fft_tuning mode = CONV_FFT_TUNE_OFF;
        options.tune_again = i == 3;
        options.tuning = modes[i % 3];
        assert_int_equal(conv_fft_plan_create(context, &p, &options, &plan), CONV_FFT_SUCCESS);
        conv_fft_plan_destroy(plan);
        assert_int_equal(conv_fft_tune_foreach(context, note_mode, &mode), CONV_FFT_SUCCESS);
        assert_int_equal(mode, i == 3 ? CONV_FFT_TUNE_MEASURE : kept[i]);
    }
    EXPECT_COUNTS(context, 1, 3, 1, 0);
    conv_fft_context_destroy(context);
}

/* ---- records as hints */

static void unfit_records_are_ignored(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_plan_options off = options_with(CONV_FFT_TUNE_OFF);
    const choice model = choose(context, tuned_line, &off);
    static const char *const bad[] = {
        "",
        "nonsense",
        "staged",
        "unheard-of basis=24x24",
        STAGED_LINE("8x8", "1x1"),
        STAGED_LINE("22x24", "1x1"),
        STAGED_LINE("24", "1"),
        STAGED_LINE("24x24x24", "1x1x1"),
        STAGED_LINE("4194304x4194304", "1x1"),
        "cudnn algorithm=old:FFT:fma",
        "cufft basis=24x24 chunk=1",
    };
    const int count = (int)(sizeof bad / sizeof bad[0]);
    for (int i = 0; i < count; ++i) {
        const char *const strategy[] = {bad[i], NULL, NULL};
        put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 0, 100, strategy);
        assert_string_equal(choose(context, tuned_line, NULL).text, model.text);
    }
    EXPECT_COUNTS(context, 1, 0, 2 * count, count);
    const char *const good[] = {STAGED_LINE("24x24", "1x1"), NULL, NULL};
    put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 0, 100, good);
    assert_non_null(strstr(choose(context, tuned_line, NULL).text, "basis=24x24 tiles=1x1"));
    EXPECT_COUNTS(context, 1, 1, 2 * count + 1, count);
    conv_fft_context_destroy(context);
}

static void records_and_limits(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const char *const whole[] = {STAGED_LINE("24x24", "1x1"), NULL, NULL}, *const tiled[] = {
                                                                               STAGED_LINE("16x16", "2x2"), NULL, NULL};
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_CACHED);
    put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 0, 1 << 20, whole);
    put_record(context, tuned_line, CONV_FFT_FORWARD, 0, 300000, 200000, tiled); /* class 262144 */
    static const struct {
        uint64_t limit;
        const char *found; /* NULL: none */
    } cases[] = {{0, "24x24"},      {1 << 20, "24x24"}, {1 << 21, "24x24"}, {300000, "16x16"},
                 {262144, "16x16"}, {524287, "16x16"},  {600000, NULL},     {199999, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const int64_t hits = statistics_of(context).hits;
        options.workspace_limit = cases[i].limit;
        const choice c = choose(context, tuned_line, &options);
        assert_int_equal(statistics_of(context).hits - hits, cases[i].found != NULL);
        if (cases[i].found)
            assert_non_null(strstr(c.text, cases[i].found));
    }
    conv_fft_context_destroy(context);
}

/* One gradient alone, as in a network's first layer, uses its part of the record of both gradients, unless it is
 * measured itself. */
static void one_gradient_uses_the_joint_record(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const char *const both[] = {NULL, STAGED_LINE("24x24", "1x1"), STAGED_LINE("25x25", "1x1")};
    const char *const own[] = {NULL, NULL, STAGED_LINE("27x27", "1x1")};
    const conv_fft_problem p = problem_of(tuned_line);
    put_record(context, tuned_line, CONV_FFT_BACKWARD, 0, 0, 100, both);
    for (int turn = 0; turn < 3; ++turn) {
        const int passes = turn == 0 ? CONV_FFT_BACKWARD_DATA : CONV_FFT_BACKWARD_WEIGHTS;
        conv_fft_plan_options options = options_with(CONV_FFT_TUNE_CACHED);
        options.passes = passes;
        conv_fft_plan *plan = NULL;
        conv_fft_description d;
        if (turn == 2)
            put_record(context, tuned_line, CONV_FFT_BACKWARD_WEIGHTS, 0, 0, 100, own);
        assert_int_equal(conv_fft_plan_create(context, &p, &options, &plan), CONV_FFT_SUCCESS);
        assert_int_equal(conv_fft_plan_describe(plan, (conv_fft_pass)passes, &d), CONV_FFT_SUCCESS);
        assert_non_null(strstr(d.strategy, turn == 0 ? "basis=24x24" : turn == 1 ? "basis=25x25" : "basis=27x27"));
        conv_fft_plan_destroy(plan);
    }
    EXPECT_COUNTS(context, 2, 3, 0, 0);
    conv_fft_plan_options measure = options_with(CONV_FFT_TUNE_MEASURE);
    measure.passes = CONV_FFT_BACKWARD_DATA;
    conv_fft_plan *plan = NULL;
    assert_int_equal(conv_fft_plan_create(context, &p, &measure, &plan), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    EXPECT_COUNTS(context, 3, 3, 1, 0);
    conv_fft_context_destroy(context);
}

/* With FP32 weights, the record of 16-bit weights serves, unless there is one of its own or it is measured itself. */
static void fp32_weights_use_the_record_of_16bit_weights(void **state) {
    static const char with_short[] = "in=2x4x20x21 out=6 kernel=3x4 pad=1 dtype=fp16",
                      with_fp32[] = "in=2x4x20x21 out=6 kernel=3x4 pad=1 dtype=fp16 w=fp32",
                      other_short[] = "in=3x4x20x21 out=6 kernel=3x4 pad=1 dtype=fp16",
                      other_fp32[] = "in=3x4x20x21 out=6 kernel=3x4 pad=1 dtype=fp16 w=fp32";
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_plan_options cached = options_with(CONV_FFT_TUNE_CACHED);
    const char *const given[] = {STAGED_LINE("24x24", "1x1"), NULL, NULL};
    const char *const own[] = {STAGED_LINE("27x27", "1x1"), NULL, NULL};
    put_record(context, with_short, CONV_FFT_FORWARD, 0, 0, 100, given);
    assert_non_null(strstr(choose(context, with_fp32, &cached).text, "basis=24x24"));
    EXPECT_COUNTS(context, 1, 1, 1, 0); /* the gradients have no record of either */
    put_record(context, with_fp32, CONV_FFT_FORWARD, 0, 0, 100, own);
    assert_non_null(strstr(choose(context, with_fp32, &cached).text, "basis=27x27"));
    EXPECT_COUNTS(context, 2, 2, 2, 0);
    put_record(context, other_fp32, CONV_FFT_FORWARD, 0, 0, 100, own);
    choose(context, other_short, &cached); /* 16-bit weights do not use the record of FP32 weights */
    EXPECT_COUNTS(context, 3, 2, 4, 0);
    conv_fft_plan_options measure = options_with(CONV_FFT_TUNE_MEASURE);
    measure.passes = CONV_FFT_FORWARD;
    conv_fft_plan *plan = NULL;
    const conv_fft_problem p = problem_of("in=4x4x20x21 out=6 kernel=3x4 pad=1 dtype=fp16 w=fp32");
    put_record(context, "in=4x4x20x21 out=6 kernel=3x4 pad=1 dtype=fp16", CONV_FFT_FORWARD, 0, 0, 100, given);
    assert_int_equal(conv_fft_plan_create(context, &p, &measure, &plan), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    EXPECT_COUNTS(context, 5, 2, 5, 0); /* it was measured, and has a record of its own */
    conv_fft_context_destroy(context);
}

/* With kept spectra, all passes need strategies that share a spectrum. A record that does not is ignored. */
static void kept_spectra(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    const conv_fft_problem p = test_problem(tuned_line);
    generator g = test_generator(5);
    layer l = layer_create(&p, &g);
    for (int i = 0; i < 2; ++i) {
        conv_fft_plan *plan = test_plan(context, &p, &options);
        assert_non_null(plan);
        layer_check_all(&l, plan);
        layer_check_kept(&l, plan);
        conv_fft_plan_destroy(plan);
        options.tuning = CONV_FFT_TUNE_CACHED;
    }
    EXPECT_COUNTS(context, 1, 1, 1, 0);
    const char *const torn[] = {STAGED_LINE("24x24", "1x1"), STAGED_LINE("25x25", "1x1"), STAGED_LINE("27x27", "1x1")};
    put_record(context, tuned_line, CONV_FFT_ALL_PASSES, options.keep, 0, 100, torn);
    conv_fft_plan *plan = test_plan(context, &p, &options);
    size_t bytes;
    assert_int_equal(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_X, &bytes), CONV_FFT_SUCCESS);
    layer_check_kept(&l, plan);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    assert_int_equal(case_failures(), 0);
    conv_fft_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(measured_once),
        IN_SCRATCH(tuned_layers_are_right),
        IN_SCRATCH(better_modes_measure_again),
        IN_SCRATCH(unfit_records_are_ignored),
        IN_SCRATCH(records_and_limits),
        IN_SCRATCH(one_gradient_uses_the_joint_record),
        IN_SCRATCH(fp32_weights_use_the_record_of_16bit_weights),
        IN_SCRATCH(kept_spectra),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
