/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on the CPU: which candidates are timed, refused, combined and chosen, and what ends a search. The clock is
 * that of test_tune.c. */
#include "autotune/search/elimination.h"
#include "core/clock.h"
#include "support/layer.h"
#include "support/temp_dirs.h"
#include "support/tuning.h"
#include "support/virtual_runs.h"

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

/* "x24 " */
static char spoiled_text[16] = "(none)";

typedef struct seen {
    int candidates, timed, refused, chosen, ordered, timed_shifts;
    double last;
} seen;

static int see(const conv_fft_tune_candidate *c, void *user) {
    seen *s = user;
    ++s->candidates;
    s->timed += c->measured_ms >= 0.0;
    s->timed_shifts += c->measured_ms >= 0.0 && strstr(c->strategy, "dilation=shift");
    s->refused += strstr(c->verdict, "refused") != NULL;
    s->chosen += strstr(c->verdict, "chosen") != NULL;
    if (strstr(c->verdict, "chosen"))
        assert_null(strstr(c->strategy, spoiled_text));
    s->ordered += c->predicted_ms >= s->last;
    s->last = c->predicted_ms;
    return 0;
}

static void candidates_are_shown(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_problem p = problem_of(tuned_line);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_OFF);
    options.passes = CONV_FFT_FORWARD;
    seen s = {0};
    assert_int_equal(conv_fft_tune_candidates(context, &p, &options, see, &s), CONV_FFT_SUCCESS);
    assert_true(s.candidates > 20 && s.timed == 0 && s.chosen == 0);
    assert_int_equal(s.ordered, s.candidates);
    const int all = s.candidates;
    options.tuning = CONV_FFT_TUNE_MEASURE;
    s = (seen){0};
    assert_int_equal(conv_fft_tune_candidates(context, &p, &options, see, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.candidates, all);
    assert_true(s.timed >= 2 && s.timed <= 8 && s.chosen == 1);
    const int few = s.timed;
    options.tuning = CONV_FFT_TUNE_EXHAUSTIVE;
    s = (seen){0};
    assert_int_equal(conv_fft_tune_candidates(context, &p, &options, see, &s), CONV_FFT_SUCCESS);
    assert_true(s.timed > few && s.chosen == 1 && s.candidates == all);
    EXPECT_COUNTS(context, 0, 0, 0, 0); /* no record is made */
    conv_fft_context_destroy(context);
}

/* A dilated layer can be computed with shifts or with spread taps. Both ways are timed, even if the five best
 * candidates of the model all use the same way. */
static void both_ways_of_dilation(void **state) {
    static const char *const lines[] = {"in=2x4x64x64 out=4 kernel=3x3 dilation=16 pad=16",
                                        "in=2x4x64x64 out=4 kernel=5x5 dilation=2",
                                        "in=1x64x128 out=64 kernel=2 dilation=64"};
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.passes = CONV_FFT_FORWARD;
    for (int i = 0; i < 6; ++i) {
        const conv_fft_problem p = problem_of(lines[i % 3]);
        seen s = {0};
        options.tuning = i < 3 ? CONV_FFT_TUNE_MEASURE : CONV_FFT_TUNE_EXHAUSTIVE;
        assert_int_equal(conv_fft_tune_candidates(context, &p, &options, see, &s), CONV_FFT_SUCCESS);
        assert_true(s.timed_shifts > 0 && s.timed > s.timed_shifts);
    }
    conv_fft_context_destroy(context);
}

/* A fast strategy that computes wrong results never wins. */
static void wrong_candidates_are_refused(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_problem p = problem_of("in=2x4x20x21 out=6 kernel=21x21 pad=10");
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_EXHAUSTIVE);
    options.passes = CONV_FFT_FORWARD;
    /* The strategy with the best prediction, which every search tries. It has a basis, because the kernel is large. */
    seen s = {0};
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    assert_int_equal(conv_fft_plan_create(context, &p, NULL, &plan), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    snprintf(spoiled_text, sizeof spoiled_text, "x%d ", (int)d.basis[1]);
    virtual_runs.spoiled_basis = d.basis[1];
    virtual_runs.spoiled = 0;
    const conv_fft_status status = conv_fft_tune_candidates(context, &p, &options, see, &s);
    const int wrong_runs = virtual_runs.spoiled;
    virtual_runs.spoiled_basis = 0;
    strcpy(spoiled_text, "(none)");
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_true(wrong_runs > 0);
    assert_true(s.refused >= 1);
    assert_int_equal(s.chosen, 1);
    conv_fft_context_destroy(context);
}

static void take_bases(cf_candidate *c, int data, int weights) {
    const int basis[2] = {data, weights};
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 2; ++i) {
        char line[256];
        snprintf(line, sizeof line,
                 "staged basis=%dx%d tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 chunk=2 groups=1 "
                 "keep=none",
                 basis[i], basis[i]);
        assert_int_equal(cf_strategy_parse(line, 2, &c->strategy[i == 0 ? CF_PASS_DATA : CF_PASS_WEIGHTS]),
                         CONV_FFT_SUCCESS);
    }
}

/* Two candidates each lose nearly all their time in one of the gradients. The search combines them to a third one that
 * does not. */
static void combine(const char *directory, bool refuse) {
    conv_fft_context *context = tuning_context(directory);
    const conv_fft_problem p = problem_of("in=2x3x12x12 out=3 kernel=3x3");
    cf_layer job_layer;
    cf_candidate two[2];
    assert_int_equal(cf_layer_make(&p, &job_layer), CONV_FFT_SUCCESS);
    const cf_tuning_job job = {.context = context, .layer = &job_layer, .passes = CONV_FFT_BACKWARD};
    cf_candidates list = {0};
    take_bases(&two[0], 14, 160);
    take_bases(&two[1], 160, 14);
    for (size_t i = 0; i < 2; ++i)
        assert_int_equal(cf_candidates_insert(&list, i, &two[i]), CONV_FFT_SUCCESS);
    cf_elimination elimination = {.job = &job, .list = &list}, *const eliminations[] = {&elimination};
    const double end = cf_clock_seconds() + 60.0;
    assert_int_equal(cf_eliminations_plan(eliminations, 1, CONV_FFT_TUNE_EXHAUSTIVE, end), CONV_FFT_SUCCESS);
    assert_int_equal(cf_elimination_open(&elimination, end), CONV_FFT_SUCCESS);
    assert_int_equal(elimination.count, 2);
    for (size_t i = 0; i < 2; ++i)
        assert_int_equal(cf_bench_buffers_run(&elimination.buffers, list.items[i].plan), CONV_FFT_SUCCESS);
    for (int again = 0; again < 2; ++again) { /* the second time it is there already */
        assert_int_equal(cf_elimination_combine(&elimination), CONV_FFT_SUCCESS);
        assert_int_equal(elimination.count, 3);
        assert_int_equal(list.count, 3);
        assert_int_equal(list.items[2].strategy[CF_PASS_DATA].basis[2], 14);
        assert_int_equal(list.items[2].strategy[CF_PASS_WEIGHTS].basis[2], 14);
    }
    if (refuse) {
        list.items[2].measured = 1.0;
        cf_elimination_drop(&elimination, 2, "refused");
        assert_int_equal(cf_elimination_combine(&elimination), CONV_FFT_SUCCESS);
        assert_int_equal(elimination.count, 2);
        assert_int_equal(list.count, 3);
    } else {
        assert_int_equal(cf_elimination_run(&elimination), CONV_FFT_SUCCESS);
        const cf_candidate *fastest = &list.items[0];
        for (size_t i = 1; i < list.count; ++i)
            fastest = list.items[i].measured < fastest->measured ? &list.items[i] : fastest;
        assert_int_equal(fastest->strategy[CF_PASS_DATA].basis[2], 14);
        assert_int_equal(fastest->strategy[CF_PASS_WEIGHTS].basis[2], 14);
    }
    cf_elimination_close(&elimination);
    cf_candidates_clear(&list);
    conv_fft_context_destroy(context);
}

static void best_passes_are_combined(void **state) { combine(*state, false); }

/* A candidate that was timed and refused is not combined again. Otherwise the search would not end. */
static void refused_combinations_do_not_return(void **state) { combine(*state, true); }

/* Tensors longer than the host's random numbers repeat them, up to the last element. */
static void long_tensors_are_filled(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_problem p = problem_of("in=1x1x3000x3500 kernel=3x3");
    const cf_bench_buffers_sizes sizes = {0};
    cf_layer checked;
    cf_bench_buffers buffers;
    assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
    assert_int_equal(cf_bench_buffers_create(context->device, NULL, &checked, CONV_FFT_FORWARD, &sizes, &buffers),
                     CONV_FFT_SUCCESS);
    const float *x = buffers.x.data;
    const size_t count = 3000 * 3500, again = (1 << 24) / sizeof *x;
    assert_int_equal(buffers.x.bytes, count * sizeof *x);
    for (size_t i = 0; i < count; ++i)
        assert_true(i < again ? fabsf(x[i]) >= 0.5F && fabsf(x[i]) <= 1.0F : x[i] == x[i - again]);
    cf_bench_buffers_destroy(&buffers);
    conv_fft_context_destroy(context);
}

static void too_little_time(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE), off = options_with(CONV_FFT_TUNE_OFF);
    const char *line = "in=8x32x64x64 out=32 kernel=5x5";
    const choice model = choose(context, line, &off);
    options.tune_milliseconds = 1;
    capture_begin();
    const choice c = choose(context, line, &options);
    const char *said = capture_end();
    assert_string_equal(c.text, model.text);
    assert_true(c.forward_ms < 0.0);
    assert_non_null(strstr(said, "too short"));
    assert_non_null(strstr(said, "the cost model decides"));
    EXPECT_COUNTS(context, 0, 0, 2, 0);
    conv_fft_context_destroy(context);
}

/* A search of a hundred slow candidates ends when its time is over. Each pass has its own time. */
static void search_ends_in_time(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_EXHAUSTIVE);
    options.tune_milliseconds = 1200;
    virtual_runs.steady = true;
    virtual_runs.count = 0;
    const choice c = choose(context, tuned_line, &options);
    virtual_runs.steady = false;
    assert_true(c.forward_ms > 0.0);
    assert_true(virtual_runs.count > 8 && virtual_runs.count < 120); /* a run each would be more than 300 */
    conv_fft_context_destroy(context);
}

/* A run takes 20 ms, so each search takes longer than its share of 100 ms. Both are measured all the same. */
static void each_search_has_its_share(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.tune_milliseconds = 100;
    virtual_runs.steady = true;
    capture_begin();
    const choice c = choose(context, tuned_line, &options);
    const char *said = capture_end();
    virtual_runs.steady = false;
    assert_null(strstr(said, "too short"));
    assert_true(c.forward_ms > 0.0);
    EXPECT_COUNTS(context, 2, 0, 2, 0);
    conv_fft_context_destroy(context);
}

/* Workspaces in a search whose candidates all take 20 ms: of the winner, and of candidates that are as fast. */
typedef struct tied {
    uint64_t chosen, others[256];
    int chosen_count, count;
} tied;

static int note_tie(const conv_fft_tune_candidate *c, void *user) {
    tied *t = user;
    if (strncmp(c->verdict, "chosen", strlen("chosen")) == 0) {
        t->chosen = c->workspace_bytes;
        ++t->chosen_count;
    } else if (strncmp(c->verdict, "as fast", strlen("as fast")) == 0) {
        assert_true(t->count < 256);
        t->others[t->count++] = c->workspace_bytes;
    }
    return 0;
}

/* Among candidates whose times are equal within 2 %, the smallest workspace wins. */
static void smallest_workspace_wins_ties(void **state) {
    conv_fft_context *context = tuning_context(*state);
    const conv_fft_problem p = problem_of(tuned_line);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.passes = CONV_FFT_FORWARD;
    int larger = 0; /* that lost by their workspace */
    tied t = {.count = 0};
    virtual_runs.steady = true;
    const conv_fft_status status = conv_fft_tune_candidates(context, &p, &options, note_tie, &t);
    virtual_runs.steady = false;
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(t.chosen_count, 1);
    for (int i = 0; i < t.count; ++i) {
        assert_true(t.others[i] >= t.chosen);
        larger += t.others[i] > t.chosen;
    }
    assert_true(larger > 0);
    conv_fft_context_destroy(context);
}

/* If the workspace limit excludes candidates, others are tried instead. */
static void limit_excludes_candidates(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE);
    options.workspace_limit = 300000;
    const choice c = choose(context, "in=4x8x24x24 out=8 kernel=5x5 pad=2", &options);
    assert_true(c.forward_ms > 0.0 && c.backward_ms > 0.0);
    EXPECT_COUNTS(context, 2, 0, 2, 0);
    conv_fft_context_destroy(context);
}

/* The measured time of one strategy. */
typedef struct timed_strategy {
    char strategy[256];
    double ms;
} timed_strategy;

static int note_time(const conv_fft_tune_candidate *c, void *user) {
    timed_strategy *t = user;
    if (strcmp(c->strategy, t->strategy) == 0)
        t->ms = c->measured_ms;
    return 0;
}

static int check_model_time(const conv_fft_tune_record *r, void *user) {
    const timed_strategy *t = user;
    if (r->pass == CONV_FFT_FORWARD) {
        assert_true(r->ms < r->model_ms);
        assert_true(r->fastest_ms > 0 && r->fastest_ms <= r->ms);
        assert_true(r->processors > 0.5);
        assert_true(fabs(r->model_ms - t->ms) < 1e-6 * t->ms);
        assert_string_not_equal(r->strategy, t->strategy);
    }
    return 0;
}

/* A record has the time of what the cost model alone chooses, and that is not the winner here. */
static void record_has_time_of_models_choice(void **state) {
    conv_fft_context *context = tuning_context(*state);
    conv_fft_plan_options options = options_with(CONV_FFT_TUNE_MEASURE), off = options_with(CONV_FFT_TUNE_OFF);
    const conv_fft_problem p = problem_of(tuned_line);
    conv_fft_description d;
    conv_fft_plan *plan;
    assert_int_equal(conv_fft_plan_create(context, &p, &off, &plan), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    timed_strategy model = {.ms = -1.0};
    snprintf(model.strategy, sizeof model.strategy, "%s", d.strategy);
    assert_int_equal(conv_fft_tune_candidates(context, &p, &options, note_time, &model), CONV_FFT_SUCCESS);
    assert_true(model.ms > 0.0);
    assert_int_equal(conv_fft_tune_problems(context, &p, 1, &options, NULL, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_foreach(context, check_model_time, &model), CONV_FFT_SUCCESS);
    conv_fft_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(candidates_are_shown),
        IN_SCRATCH(both_ways_of_dilation),
        IN_SCRATCH(wrong_candidates_are_refused),
        IN_SCRATCH(best_passes_are_combined),
        IN_SCRATCH(refused_combinations_do_not_return),
        IN_SCRATCH(long_tensors_are_filled),
        IN_SCRATCH(too_little_time),
        IN_SCRATCH(search_ends_in_time),
        IN_SCRATCH(each_search_has_its_share),
        IN_SCRATCH(smallest_workspace_wins_ties),
        IN_SCRATCH(limit_excludes_candidates),
        IN_SCRATCH(record_has_time_of_models_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
