/* SPDX-License-Identifier: Apache-2.0 */
/* A search on the CPU is ended at each of its steps. Nothing runs after that, and earlier decisions are kept. */
#include "conv/plan/run.h"
#include "support/layer.h"
#include "support/selection.h"
#include "support/temp_dirs.h"
#include "support/virtual_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char line[] = "in=1x2x9x9 kernel=3x3";

/* Calls of `progress` so far, the number of the call that cancels (0: none), and runs of passes after it. */
static int calls, cancel_at, runs_after;

/* options.cancel, and the run of a pass that sets it (0: none). */
static volatile int cancel;
static int runs_so_far, cancel_in;

static int follow(int64_t done, int64_t total, void *user) {
    assert_ptr_equal(user, &calls);
    assert_int_equal(total, 2);
    assert_in_range(done, 0, 2);
    assert_true(cancel_at == 0 || calls < cancel_at); /* never asked again */
    return ++calls == cancel_at;
}

double __wrap_cf_clock_seconds(void); /* virtual_clock.c, and the next one */
double __wrap_cf_clock_process_seconds(void);
conv_fft_status __wrap_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);

conv_fft_status __real_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    runs_after += (cancel_at > 0 && calls >= cancel_at) || cancel;
    cancel = cancel || ++runs_so_far == cancel_in;
    clock_advance(clock_seconds_of(plan, set));
    return __real_cf_staged_run(plan, set, call);
}

static conv_fft_context *context_in(const char *directory) { return test_context_in(directory, 1); }

static int64_t records_in(const char *directory) {
    conv_fft_tune_statistics s;
    conv_fft_context *context = context_in(directory);
    assert_int_equal(conv_fft_tune_stats(context, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.corrupt, 0);
    conv_fft_context_destroy(context);
    return s.records;
}

/* Tune both problems in an empty directory, and cancel at this call of `progress`. */
static conv_fft_status tune(const char *directory, int at) {
    conv_fft_problem problems[2];
    conv_fft_context *context = context_in(directory);
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(conv_fft_problem_parse(line, &problems[i], NULL, 0), CONV_FFT_SUCCESS);
        problems[i].input[0] += i;
    }
    calls = runs_after = 0;
    cancel_at = at;
    const conv_fft_status status = conv_fft_tune_problems(context, problems, 2, NULL, follow, &calls);
    conv_fft_context_destroy(context);
    return status;
}

static void cancelled_at_every_step(void **state) {
    enum {
        STRIDE = TEST_AMOUNT(3, 17) /* of the steps that are tried: a search has some thirty */
    };
    char name[32], sentence[64];
    int64_t before = 0;
    bool seen[5] = {false};
    conv_fft_status status = CONV_FFT_CANCELLED;
    for (int at = 1 + (int)(test_seed() % STRIDE); status == CONV_FFT_CANCELLED; at += STRIDE) {
        snprintf(name, sizeof name, "at-%d", at);
        const char *directory = scratch_path(*state, name);
        status = tune(directory, at);
        if (status != CONV_FFT_CANCELLED)
            break;
        const int64_t records = records_in(directory);
        assert_int_equal(calls, at);
        assert_int_equal(runs_after, 0);
        assert_in_range(records, 0, 4);
        /* The number of steps differs a little from search to search. */
        assert_true(records + 1 >= before);
        snprintf(sentence, sizeof sentence, "progress ended the tuning after %d of 2 problems", (int)(records / 2));
        assert_non_null(strstr(conv_fft_last_error(), sentence));
        seen[records] = true;
        before = records;
    }
    assert_int_equal(status, CONV_FFT_SUCCESS);
    print_message("          %d steps\n", calls);
    /* Cancel within each of the four searches. */
    for (int records = 0; records < 4; ++records)
        assert_true(seen[records]);
}

/* The next run completes a cancelled one, and measures nothing twice. */
static void next_run_continues(void **state) {
    conv_fft_status status = CONV_FFT_CANCELLED;
    int runs = 0, most = 0;
    assert_int_equal(tune(scratch_path(*state, "whole"), 0), CONV_FFT_SUCCESS);
    const int part = 2 * calls / 3; /* more than any of the four searches takes */
    for (; status == CONV_FFT_CANCELLED && runs < 100; ++runs) {
        status = tune(scratch_path(*state, "parts"), part);
        most = calls > most ? calls : most;
    }
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_in_range(runs, 2, 99);
    assert_in_range(most, 2, part);
    assert_int_equal(records_in(scratch_path(*state, "parts")), 4);
}

static int note_candidate(const conv_fft_tune_candidate *candidate, void *user) {
    (void)candidate;
    ++*(int *)user;
    return 0;
}

/* options.cancel ends each call that measures, after the run in which it was set. */
static void cancelled_by_the_options(void **state) {
    static const char *const calls_of_the_library[] = {"plan", "candidates", "problems"};
    for (int call = 0; call < 3; ++call) {
        const char *directory = scratch_path(*state, calls_of_the_library[call]);
        conv_fft_context *context = context_in(directory);
        conv_fft_plan_options options;
        conv_fft_problem problem;
        conv_fft_plan *plan = NULL;
        int shown = 0;
        conv_fft_plan_options_init(&options);
        assert_int_equal(conv_fft_problem_parse(line, &problem, NULL, 0), CONV_FFT_SUCCESS);
        options.tuning = CONV_FFT_TUNE_MEASURE;
        options.cancel = &cancel;
        cancel = runs_so_far = cancel_at = runs_after = 0;
        cancel_in = 3;
        const conv_fft_status status =
            call == 0   ? conv_fft_plan_create(context, &problem, &options, &plan)
            : call == 1 ? conv_fft_tune_candidates(context, &problem, &options, note_candidate, &shown)
                        : conv_fft_tune_problems(context, &problem, 1, &options, NULL, NULL);
        assert_int_equal(status, CONV_FFT_CANCELLED);
        assert_null(plan);
        assert_int_equal(shown, 0);
        assert_int_equal(cancel, 1);
        assert_int_equal(runs_after, 0);
        /* Set from the beginning: nothing runs, also where there are no searches. */
        runs_so_far = 0;
        assert_int_equal(conv_fft_tune_problems(context, &problem, 1, &options, NULL, NULL), CONV_FFT_CANCELLED);
        assert_non_null(strstr(conv_fft_last_error(), "options.cancel ended the tuning after 0 of 1 problems"));
        assert_int_equal(runs_so_far, 0);
        cancel = cancel_in = 0;
        conv_fft_context_destroy(context);
        assert_int_equal(records_in(directory), 0);
    }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(cancelled_at_every_step),
        IN_SCRATCH(next_run_continues),
        IN_SCRATCH(cancelled_by_the_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
