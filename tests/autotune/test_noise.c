/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on a CPU while other work takes its processors. The clock is that of test_tune.c. */
#include "autotune/search/noise.h"
#include "support/layer.h"
#include "support/temp_dirs.h"
#include "support/tuning.h"
#include "support/virtual_runs.h"

#include <limits.h>
#include <math.h>
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

/* A tuned plan while other work takes the processors from each `every`-th run before run `until`. */
static choice choose_while_busy(conv_fft_context *context, const conv_fft_plan_options *options, int every, int until,
                                const char **said) {
    virtual_runs.count = 0;
    virtual_runs.lost_every = every;
    virtual_runs.lost_until = until;
    capture_begin();
    const choice c = choose(context, tuned_line, options);
    *said = capture_end();
    virtual_runs.lost_until = 0;
    return c;
}

/* Disturbed runs are repeated, and then the same strategies win as on an idle host. */
static void disturbed_runs_are_repeated(void **state) {
    static const struct { int every, until; } hosts[] = {{5, INT_MAX}, {3, INT_MAX}, {1, 40}, {1, 80}};
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.tune_again = 1;
    options.tune_milliseconds = 60000;
    const choice idle = choose(context, tuned_line, &options);
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; ++i) {
        const char *said;
        const choice busy = choose_while_busy(context, &options, hosts[i].every, hosts[i].until, &said);
        assert_string_equal(said, "");
        assert_string_equal(busy.text, idle.text);
        assert_true(fabs(busy.forward_ms - idle.forward_ms) < 0.01 * idle.forward_ms);
        assert_true(fabs(busy.backward_ms - idle.backward_ms) < 0.01 * idle.backward_ms);
    }
    conv_fft_context_destroy(context);
}

/* If runs stay disturbed, there is no record, and the cost model or an older record decides. */
static void disturbed_searches_leave_no_record(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE), off = options_with(CONV_FFT_TUNE_OFF);
    const choice model = choose(context, tuned_line, &off);
    const char *said;
    const choice busy = choose_while_busy(context, &options, 1, INT_MAX, &said);
    assert_string_equal(busy.text, model.text);
    assert_true(busy.forward_ms < 0.0 && busy.backward_ms < 0.0);
    assert_int_equal(
        occurrences(said, "other work on this host disturbed the measurements: runs of one strategy took "), 2);
    assert_int_equal(occurrences(said, "; the cost model decides"), 2);
    EXPECT_COUNTS(context, 0, 0, 2, 0);
    const choice idle = choose(context, tuned_line, &options);
    EXPECT_COUNTS(context, 2, 0, 4, 0);
    options.tune_again = 1;
    const choice again = choose_while_busy(context, &options, 1, INT_MAX, &said);
    assert_string_equal(again.text, idle.text);
    assert_int_equal(occurrences(said, "; the older record stays"), 2);
    EXPECT_COUNTS(context, 2, 2, 4, 0);
    conv_fft_context_destroy(context);
}

typedef struct verdicts {
    int timed, chosen, set_aside;
} verdicts;

static int note_verdicts(const conv_fft_tune_candidate *c, void *user) {
    verdicts *s = user;
    s->timed += c->measured_ms >= 0.0;
    s->chosen += strstr(c->verdict, "chosen: ") == c->verdict;
    s->set_aside += strcmp(c->verdict, "not chosen: other work on this host disturbed the measurements") == 0;
    return 0;
}

static void disturbed_candidates_are_shown(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_problem p = problem_of(tuned_line);
    const conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    verdicts s = {0};
    virtual_runs.lost_every = 1;
    virtual_runs.lost_until = INT_MAX;
    const conv_fft_status status = conv_fft_tune_candidates(context, &p, &options, note_verdicts, &s);
    virtual_runs.lost_until = 0;
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_true(s.timed >= 4 && s.set_aside >= 2 && s.chosen == 0);
    conv_fft_context_destroy(context);
}

/* The rules of noise.h, each on both sides of its border. Every run has 2 processors and takes 1 s, unless it says. */
static void disturbed_runs_are_known(void **state) {
    static const struct {
        cf_run_time run[5];
        bool disturbed;
    } cases[] = {
        {{{1, 2}, {1, 2}, {1, 2}, {1, 2}, {1, 2}}, false},
        {{{1, 0.9}, {1, 0.9}, {1, 0.9}, {1, 0.9}, {1, 0.9}}, false}, /* one thread */
        {{{1, 0.8}, {1, 0.8}, {1, 0.8}, {1, 0.8}, {1, 0.8}}, true},
        {{{1, 2}, {1, 2}, {1, 2}, {9, 0.8}, {9, 0.8}}, false}, /* the median is good */
        {{{1, 2}, {1, 2}, {1.2, 0.8}, {1, 0.8}, {1, 0.8}}, true},
        {{{1, 2}, {1, 2}, {1.2, 1.4}, {1.2, 1.4}, {1.2, 1.4}},
         true}, /* less of two processors than before, and slower */
        {{{1, 2}, {1, 2}, {1.1, 1.4}, {1.1, 1.4}, {1.1, 1.4}}, false},
        {{{1, 2}, {1, 2}, {1.2, 1.6}, {1.2, 1.6}, {1.2, 1.6}}, false},
        {{{1, 2}, {1.3, 2}, {1.35, 2}, {1.9, 2}, {2, 2}}, false}, /* scatter */
        {{{1, 2}, {1.3, 2}, {2.1, 2}, {2.3, 2}, {2.4, 2}}, true},
        {{{1e-5, 2}, {2.9e-5, 1}, {2.9e-5, 1}, {2.9e-5, 1}, {2.9e-5, 1}}, false}, /* too short to know */
        {{{1e-5, 2}, {3.9e-5, 1}, {3.9e-5, 1}, {3.9e-5, 1}, {3.9e-5, 1}}, true},
        {{{1, HUGE_VAL}, {3, HUGE_VAL}, {3, HUGE_VAL}, {3, HUGE_VAL}, {3, HUGE_VAL}}, false}, /* a GPU */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        assert_int_equal(cf_runs_are_disturbed(cases[i].run, 5), cases[i].disturbed);
    cf_run_time runs[3] = {{2, 1}, {5, 1}, {3, 1}};
    cf_runs_improve(runs, 3, &(cf_run_time){6, 1});
    assert_true(cf_runs_median(runs, 3) == 3);
    cf_runs_improve(runs, 3, &(cf_run_time){1, 1});
    assert_true(cf_runs_median(runs, 3) == 2 && cf_runs_fastest(runs, 3) == 1);
    assert_true(cf_runs_seconds((cf_run_time[]){{2, 1}, {2.2, 1}}, 2) == 2.2);
    assert_true(cf_runs_seconds((cf_run_time[]){{4, 0.5}, {3, 0.8}}, 2) == 2);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(disturbed_runs_are_repeated),
        IN_SCRATCH(disturbed_searches_leave_no_record),
        IN_SCRATCH(disturbed_candidates_are_shown),
        cmocka_unit_test(disturbed_runs_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
