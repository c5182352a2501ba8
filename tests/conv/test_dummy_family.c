/* SPDX-License-Identifier: Apache-2.0 */
/* A new family is one source file and one line in the table: dummy_family.c, and the table here, which replaces
 * conv/families.c. Plans accept it in strategy lines, the cost model predicts it, and searches list it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "conv/dummy_family.h"
#include "conv/staged/staged.h"
#include "conv_fft.h"

const cf_family *const cf_families[] = {&cf_staged_family, &dummy_family, NULL};

static conv_fft_context *cpu_context(void) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    assert_int_equal(conv_fft_context_options_init(&options), CONV_FFT_SUCCESS);
    options.device = CONV_FFT_DEVICE_CPU;
    assert_int_equal(conv_fft_context_create(&options, &context), CONV_FFT_SUCCESS);
    return context;
}

static conv_fft_status make_plan(conv_fft_context *context, const char *line, conv_fft_plan **plan) {
    conv_fft_problem p;
    conv_fft_plan_options options;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_options_init(&options), CONV_FFT_SUCCESS);
    options.passes = CONV_FFT_FORWARD;
    options.strategy[0] = "scale";
    return conv_fft_plan_create(context, &p, &options, plan);
}

static void plans_and_runs(void **unused) {
    (void)unused;
    float x[12], y[12], w = 3;
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    conv_fft_context *context = cpu_context();
    assert_int_equal(make_plan(context, "in=2x1x6 out=1 kernel=1", &plan), CONV_FFT_SUCCESS);
    for (int i = 0; i < 12; ++i)
        x[i] = (float)i;
    assert_int_equal(conv_fft_forward(plan, x, &w, NULL, y, NULL, 0, NULL), CONV_FFT_SUCCESS);
    for (int i = 0; i < 12; ++i)
        assert_true(y[i] == 3 * x[i]);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    assert_string_equal(d.strategy, "scale");
    assert_true(d.predicted_ms > 0);
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
}

static void refuses(void **unused) {
    (void)unused;
    conv_fft_plan *plan = NULL;
    conv_fft_context *context = cpu_context();
    assert_int_equal(make_plan(context, "in=2x1x6 out=1 kernel=2", &plan), CONV_FFT_INVALID_ARGUMENT);
    assert_non_null(strstr(conv_fft_last_error(), "it scales one channel, forward"));
    conv_fft_context_destroy(context);
}

static int note(const conv_fft_tune_candidate *candidate, void *user) {
    *(int *)user += strcmp(candidate->strategy, "scale") == 0 && candidate->predicted_ms > 0;
    return 0;
}

static void is_searched(void **unused) {
    (void)unused;
    int found = 0;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_context *context = cpu_context();
    assert_int_equal(conv_fft_problem_parse("in=2x1x6 out=1 kernel=1", &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_options_init(&options), CONV_FFT_SUCCESS);
    options.passes = CONV_FFT_FORWARD;
    options.tuning = CONV_FFT_TUNE_OFF;
    assert_int_equal(conv_fft_tune_candidates(context, &p, &options, note, &found), CONV_FFT_SUCCESS);
    assert_int_equal(found, 1);
    conv_fft_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_and_runs), cmocka_unit_test(refuses),
                                       cmocka_unit_test(is_searched)};
    return cmocka_run_group_tests_name("a dummy family", tests, NULL, NULL);
}
