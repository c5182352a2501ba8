/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tuning.h"

#include "autotune/records/record_store.h"
#include "conv/plan/context.h"
#include "support/layer.h"
#include "support/virtual_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

const char tuned_line[] = "in=2x4x20x21 out=6 kernel=3x4 pad=1";

conv_fft_context *tuning_context(const char *directory) {
    virtual_runs = (virtual_run_state){0};
    return test_context_in(directory, 2);
}

conv_fft_problem problem_of(const char *line) {
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
    return p;
}

conv_fft_plan_options options_with(conv_fft_tuning tuning) {
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = tuning;
    return options;
}

choice choose(conv_fft_context *context, const char *line, const conv_fft_plan_options *options) {
    const conv_fft_problem p = problem_of(line);
    conv_fft_plan *plan = NULL;
    conv_fft_description d[3], both;
    choice c = {.forward_ms = -1.0, .backward_ms = -1.0};
    if (conv_fft_plan_create(context, &p, options, &plan) != CONV_FFT_SUCCESS)
        fail_msg("%s", conv_fft_last_error());
    for (int pass = 0; pass < 3; ++pass)
        assert_int_equal(conv_fft_plan_describe(plan, (conv_fft_pass)(1 << pass), &d[pass]), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_BACKWARD, &both), CONV_FFT_SUCCESS);
    snprintf(c.text, sizeof c.text, "%s\n%s\n%s", d[0].strategy, d[1].strategy, d[2].strategy);
    c.forward_ms = d[0].measured_ms;
    c.backward_ms = both.measured_ms;
    conv_fft_plan_destroy(plan);
    return c;
}

conv_fft_tune_statistics statistics_of(conv_fft_context *context) {
    conv_fft_tune_statistics s;
    assert_int_equal(conv_fft_tune_stats(context, &s), CONV_FFT_SUCCESS);
    return s;
}

void put_record(conv_fft_context *context, const char *line, int passes, int keep, uint64_t limit, uint64_t workspace,
                const char *const strategy[3]) {
    const conv_fft_problem p = problem_of(line);
    cf_layer checked;
    cf_record record;
    memset(&record, 0, sizeof record);
    assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
    assert_int_equal(cf_record_key_make(&checked, passes, keep, limit, &record.key), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < 3; ++pass)
        snprintf(record.strategy[pass], sizeof record.strategy[pass], "%s", strategy[pass] ? strategy[pass] : "");
    record.ms = 1.0;
    record.direct_ms = -1.0;
    record.mode = CONV_FFT_TUNE_MEASURE;
    record.workspace_bytes = workspace;
    assert_int_equal(cf_tuner_put(context->tuner, &record), CONV_FFT_SUCCESS);
}
