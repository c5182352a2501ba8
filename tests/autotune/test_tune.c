/* SPDX-License-Identifier: Apache-2.0 */
/* Measured tuning on the CPU: records are made, found again, passed over where they do not suit, and never wrong. What is measured is time of
 * a clock that only the runs move, so that every seed has other winners, and nothing here waits. */
#include "autotune/records/record_store.h"
#include "autotune/search/elimination.h"
#include "conv/plan/run.h"
#include "core/clock.h"
#include "support/layer.h"
#include "support/temp_dirs.h"
#include "support/virtual_clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* "x24 " */
static char spoiled_text[16] = "(none)";

static const char small_line[] = "in=2x4x20x21 out=6 kernel=3x4 pad=1";

/* Strategies whose last basis is this one are at once done and wrong, as far as `wrong` says. */
static int64_t spoiled_basis;
static int spoiled_runs;

/* Every run of a staged pass takes 20 ms. */
static bool steady;
static int runs;

double __wrap_cf_clock_seconds(void); /* virtual_clock.c, and the next one */
conv_fft_status __wrap_cf_rig_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                     const cf_rig_sizes *sizes, cf_rig *rig);

/* It takes time to make a plan. */
conv_fft_status __real_cf_plan_create_trial(const cf_layer *l, cf_device *device, int passes,
                                            const cf_strategy strategy[CF_PASS_COUNT], uint64_t workspace_limit,
                                            uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create_trial(const cf_layer *l, cf_device *device, int passes,
                                            const cf_strategy strategy[CF_PASS_COUNT], uint64_t workspace_limit,
                                            uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create_trial(const cf_layer *l, cf_device *device, int passes,
                                            const cf_strategy strategy[CF_PASS_COUNT], uint64_t workspace_limit,
                                            uint64_t *smallest, conv_fft_plan **plan) {
    clock_advance(1e-3);
    return __real_cf_plan_create_trial(l, device, passes, strategy, workspace_limit, smallest, plan);
}

conv_fft_status __real_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    const int pass = set & CONV_FFT_FORWARD ? CF_PASS_FORWARD : CF_PASS_WEIGHTS;
    const bool spoiled = spoiled_basis && plan->pass[pass].strategy.basis[2] == spoiled_basis;
    ++runs;
    clock_advance(spoiled ? 1e-6 : steady ? 0.02 : clock_seconds_of(plan, set));
    if (spoiled) {
        ++spoiled_runs;
        if (call->y)
            memset(call->y, 0x3f, 64);
        return CONV_FFT_SUCCESS;
    }
    return __real_cf_staged_run(plan, set, call);
}

static conv_fft_context *context_in(const char *directory) { return test_context_in(directory, 2); }

static conv_fft_problem problem_of(const char *line) {
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
    return p;
}

static conv_fft_plan_options options_of(conv_fft_tuning tuning) {
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = tuning;
    return options;
}

/* The strategies of a plan's passes, in one line. */
typedef struct choice {
    char text[800];
    double forward_ms, backward_ms;
} choice;

static choice choose(conv_fft_context *context, const char *line, const conv_fft_plan_options *options) {
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

static conv_fft_tune_statistics statistics_of(conv_fft_context *context) {
    conv_fft_tune_statistics s;
    assert_int_equal(conv_fft_tune_stats(context, &s), CONV_FFT_SUCCESS);
    return s;
}

#define EXPECT_COUNTS(context, expected_records, expected_hits, expected_misses, expected_unusable) \
    do {                                                                                            \
        const conv_fft_tune_statistics s_ = statistics_of(context);                                 \
        assert_int_equal(s_.records, expected_records);                                             \
        assert_int_equal(s_.hits, expected_hits);                                                   \
        assert_int_equal(s_.misses, expected_misses);                                               \
        assert_int_equal(s_.unusable, expected_unusable);                                           \
        assert_int_equal(s_.corrupt, 0);                                                            \
    } while (0)

static void measured_once(void **state) {
    conv_fft_context *context = context_in(*state);
    const conv_fft_plan_options cached = options_of(CONV_FFT_TUNE_CACHED), off = options_of(CONV_FFT_TUNE_OFF);
    const conv_fft_plan_options measure = options_of(CONV_FFT_TUNE_MEASURE);
    const choice model = choose(context, small_line, &off);
    assert_true(model.forward_ms < 0.0 && model.backward_ms < 0.0);
    EXPECT_COUNTS(context, 0, 0, 0, 0);
    assert_string_equal(choose(context, small_line, &cached).text, model.text);
    EXPECT_COUNTS(context, 0, 0, 2, 0); /* forward, and both gradients */

    const choice tuned = choose(context, small_line, &measure);
    assert_true(tuned.forward_ms > 0.0 && tuned.backward_ms > 0.0);
    EXPECT_COUNTS(context, 2, 0, 4, 0);
    const choice again = choose(context, small_line, &measure), found = choose(context, small_line, &cached);
    EXPECT_COUNTS(context, 2, 4, 4, 0);
    assert_string_equal(again.text, tuned.text);
    assert_string_equal(found.text, tuned.text);
    assert_true(again.forward_ms == found.forward_ms && again.backward_ms == found.backward_ms);
    assert_string_equal(choose(context, small_line, &off).text, model.text); /* looks at no record */
    EXPECT_COUNTS(context, 2, 4, 4, 0);
    conv_fft_context_destroy(context);

    context = context_in(*state); /* another process would find the same */
    const choice later = choose(context, small_line, NULL);
    EXPECT_COUNTS(context, 2, 2, 0, 0);
    assert_string_equal(later.text, tuned.text);
    assert_true(later.forward_ms > 0.99 * tuned.forward_ms && later.forward_ms < 1.01 * tuned.forward_ms);
    /* Another batch is another problem. */
    choose(context, "in=3x4x20x21 out=6 kernel=3x4 pad=1", &cached);
    EXPECT_COUNTS(context, 2, 2, 2, 0);
    conv_fft_context_destroy(context);
}

/* Tuned plans compute what they should, whatever won. */
static void tuned_layers_are_right(void **state) {
    static const char *const lines[] = {
        "in=2x4x20x21 out=6 kernel=3x4 pad=1 groups=2",
        "in=1x2x300 out=3 kernel=7 dilation=3 dtype=fp64",
        "in=2x2x6x7x5 out=2 kernel=3x3x2 mode=circular pad=1",
        "in=2x3x31x30 out=4 kernel=4x3 pad=2 stride=2 mode=reflect dtype=fp16 gw=fp32 layout=last",
        "in=2x6x40x40 out=6 kernel=5x5 pad=same groups=6",
    };
    conv_fft_context *context = context_in(*state);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i) {
        const conv_fft_problem p = test_problem(lines[i]);
        for (int mode = CONV_FFT_TUNE_MEASURE; mode <= (i < 2 ? CONV_FFT_TUNE_EXHAUSTIVE : CONV_FFT_TUNE_MEASURE);
             ++mode) {
            const conv_fft_plan_options options = options_of((conv_fft_tuning)mode);
            generator g = test_generator(i);
            layer l = layer_create(&p, &g);
            conv_fft_plan *plan = test_plan(context, &p, &options);
            assert_non_null(plan);
            layer_check_all(&l, plan);
            conv_fft_plan_destroy(plan);
            layer_destroy(&l);
        }
    }
    EXPECT_COUNTS(context, 10, 4, 10, 0); /* exhaustive finds the records of measure, and makes better ones */
    assert_int_equal(case_failures(), 0);
    conv_fft_context_destroy(context);
}

static int note_mode(const conv_fft_tune_record *record, void *user) {
    *(conv_fft_tuning *)user = record->tuning;
    return 0;
}

static void better_modes_measure_again(void **state) {
    conv_fft_context *context = context_in(*state);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_MEASURE);
    options.passes = CONV_FFT_FORWARD;
    const conv_fft_problem p = problem_of(small_line);
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

static void put(conv_fft_context *context, const char *line, int passes, int keep, uint64_t limit, uint64_t workspace,
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

#define STAGED(basis, tiles)                                                                        \
    "staged basis=" basis " tiles=" tiles " dilation=step overlap=save product=loop spectrum=fp32 " \
    "chunk=1 groups=1 keep=none"

static void records_that_do_not_suit(void **state) {
    conv_fft_context *context = context_in(*state);
    const conv_fft_plan_options off = options_of(CONV_FFT_TUNE_OFF);
    const choice model = choose(context, small_line, &off);
    static const char *const bad[] = {
        "",
        "nonsense",
        "staged",
        "unheard-of basis=24x24",
        STAGED("8x8", "1x1"),
        STAGED("22x24", "1x1"),
        STAGED("24", "1"),
        STAGED("24x24x24", "1x1x1"),
        STAGED("4194304x4194304", "1x1"),
        "direct algorithm=old:FFT:fma",
        "reference basis=24x24 chunk=1",
    };
    const int count = (int)(sizeof bad / sizeof bad[0]);
    for (int i = 0; i < count; ++i) {
        const char *const strategy[] = {bad[i], NULL, NULL};
        put(context, small_line, CONV_FFT_FORWARD, 0, 0, 100, strategy);
        assert_string_equal(choose(context, small_line, NULL).text, model.text);
    }
    EXPECT_COUNTS(context, 1, 0, 2 * count, count);
    const char *const good[] = {STAGED("24x24", "1x1"), NULL, NULL};
    put(context, small_line, CONV_FFT_FORWARD, 0, 0, 100, good);
    assert_non_null(strstr(choose(context, small_line, NULL).text, "basis=24x24 tiles=1x1"));
    EXPECT_COUNTS(context, 1, 1, 2 * count + 1, count);
    conv_fft_context_destroy(context);
}

static void records_and_limits(void **state) {
    conv_fft_context *context = context_in(*state);
    const char *const whole[] = {STAGED("24x24", "1x1"), NULL, NULL}, *const tiled[] = {STAGED("16x16", "2x2"), NULL,
                                                                                        NULL};
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_CACHED);
    put(context, small_line, CONV_FFT_FORWARD, 0, 0, 1 << 20, whole);
    put(context, small_line, CONV_FFT_FORWARD, 0, 300000, 200000, tiled); /* class 262144 */
    static const struct {
        uint64_t limit;
        const char *found; /* NULL: none */
    } cases[] = {{0, "24x24"},      {1 << 20, "24x24"}, {1 << 21, "24x24"}, {300000, "16x16"},
                 {262144, "16x16"}, {524287, "16x16"},  {600000, NULL},     {199999, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        const int64_t hits = statistics_of(context).hits;
        options.workspace_limit = cases[i].limit;
        const choice c = choose(context, small_line, &options);
        assert_int_equal(statistics_of(context).hits - hits, cases[i].found != NULL);
        if (cases[i].found)
            assert_non_null(strstr(c.text, cases[i].found));
    }
    conv_fft_context_destroy(context);
}

/* One gradient alone, as of a network's first layer, does what the record of both says of it, unless it is to be measured itself. */
static void halves_of_records(void **state) {
    conv_fft_context *context = context_in(*state);
    const char *const both[] = {NULL, STAGED("24x24", "1x1"), STAGED("25x25", "1x1")};
    const char *const own[] = {NULL, NULL, STAGED("27x27", "1x1")};
    const conv_fft_problem p = problem_of(small_line);
    put(context, small_line, CONV_FFT_BACKWARD, 0, 0, 100, both);
    for (int turn = 0; turn < 3; ++turn) {
        const int passes = turn == 0 ? CONV_FFT_BACKWARD_DATA : CONV_FFT_BACKWARD_WEIGHTS;
        conv_fft_plan_options options = options_of(CONV_FFT_TUNE_CACHED);
        options.passes = passes;
        conv_fft_plan *plan = NULL;
        conv_fft_description d;
        if (turn == 2)
            put(context, small_line, CONV_FFT_BACKWARD_WEIGHTS, 0, 0, 100, own);
        assert_int_equal(conv_fft_plan_create(context, &p, &options, &plan), CONV_FFT_SUCCESS);
        assert_int_equal(conv_fft_plan_describe(plan, (conv_fft_pass)passes, &d), CONV_FFT_SUCCESS);
        assert_non_null(strstr(d.strategy, turn == 0 ? "basis=24x24" : turn == 1 ? "basis=25x25" : "basis=27x27"));
        conv_fft_plan_destroy(plan);
    }
    EXPECT_COUNTS(context, 2, 3, 0, 0);
    conv_fft_plan_options measure = options_of(CONV_FFT_TUNE_MEASURE);
    measure.passes = CONV_FFT_BACKWARD_DATA;
    conv_fft_plan *plan = NULL;
    assert_int_equal(conv_fft_plan_create(context, &p, &measure, &plan), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    EXPECT_COUNTS(context, 3, 3, 1, 0);
    conv_fft_context_destroy(context);
}

/* Spectra that are kept tie all passes together; a record that breaks the tie is no use. */
static void kept_spectra(void **state) {
    conv_fft_context *context = context_in(*state);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_MEASURE);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    const conv_fft_problem p = test_problem(small_line);
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
    const char *const torn[] = {STAGED("24x24", "1x1"), STAGED("25x25", "1x1"), STAGED("27x27", "1x1")};
    put(context, small_line, CONV_FFT_ALL_PASSES, options.keep, 0, 100, torn);
    conv_fft_plan *plan = test_plan(context, &p, &options);
    size_t bytes;
    assert_int_equal(conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_X, &bytes), CONV_FFT_SUCCESS);
    layer_check_kept(&l, plan);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    assert_int_equal(case_failures(), 0);
    conv_fft_context_destroy(context);
}

/* ---- searches */

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
    conv_fft_context *context = context_in(*state);
    const conv_fft_problem p = problem_of(small_line);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_OFF);
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

/* Of a dilated layer both ways are timed, though by the model five of one are the best, and the other may be hopeless. */
static void both_ways_of_dilation(void **state) {
    static const char *const lines[] = {"in=2x4x64x64 out=4 kernel=3x3 dilation=16 pad=16",
                                        "in=2x4x64x64 out=4 kernel=5x5 dilation=2",
                                        "in=1x64x128 out=64 kernel=2 dilation=64"};
    conv_fft_context *context = context_in(*state);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_MEASURE);
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

/* A strategy that is the fastest because it computes something else never wins. */
static void wrong_candidates_are_refused(void **state) {
    conv_fft_context *context = context_in(*state);
    const conv_fft_problem p = problem_of(small_line);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_EXHAUSTIVE);
    options.passes = CONV_FFT_FORWARD;
    /* That of the best prediction, which every search tries. */
    seen s = {0};
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    assert_int_equal(conv_fft_plan_create(context, &p, NULL, &plan), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    snprintf(spoiled_text, sizeof spoiled_text, "x%d ", (int)d.basis[1]);
    spoiled_basis = d.basis[1];
    spoiled_runs = 0;
    const conv_fft_status status = conv_fft_tune_candidates(context, &p, &options, see, &s);
    const int wrong_runs = spoiled_runs;
    spoiled_basis = 0;
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

/* Two candidates, each of which wastes nearly all its time in one of the gradients, make a third that does not. */
static void combine(const char *directory, bool refuse) {
    conv_fft_context *context = context_in(directory);
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
    cf_race race = {.job = &job, .list = &list}, *const races[] = {&race};
    const double end = cf_clock_seconds() + 60.0;
    assert_int_equal(cf_races_plan(races, 1, CONV_FFT_TUNE_EXHAUSTIVE, end), CONV_FFT_SUCCESS);
    assert_int_equal(cf_race_open(&race, end), CONV_FFT_SUCCESS);
    assert_int_equal(race.count, 2);
    for (size_t i = 0; i < 2; ++i)
        assert_int_equal(cf_rig_run(&race.rig, list.items[i].plan), CONV_FFT_SUCCESS);
    for (int again = 0; again < 2; ++again) { /* the second time it is there already */
        assert_int_equal(cf_race_combine(&race), CONV_FFT_SUCCESS);
        assert_int_equal(race.count, 3);
        assert_int_equal(list.count, 3);
        assert_int_equal(list.items[2].strategy[CF_PASS_DATA].basis[2], 14);
        assert_int_equal(list.items[2].strategy[CF_PASS_WEIGHTS].basis[2], 14);
    }
    if (refuse) {
        list.items[2].measured = 1.0;
        cf_race_drop(&race, 2, "refused");
        assert_int_equal(cf_race_combine(&race), CONV_FFT_SUCCESS);
        assert_int_equal(race.count, 2);
        assert_int_equal(list.count, 3);
    } else {
        assert_int_equal(cf_race_run(&race), CONV_FFT_SUCCESS);
        const cf_candidate *fastest = &list.items[0];
        for (size_t i = 1; i < list.count; ++i)
            fastest = list.items[i].measured < fastest->measured ? &list.items[i] : fastest;
        assert_int_equal(fastest->strategy[CF_PASS_DATA].basis[2], 14);
        assert_int_equal(fastest->strategy[CF_PASS_WEIGHTS].basis[2], 14);
    }
    cf_race_close(&race);
    cf_candidates_clear(&list);
    conv_fft_context_destroy(context);
}

static void best_passes_are_combined(void **state) { combine(*state, false); }

/* What was timed and refused does not come back, or the race would never end. */
static void refused_mixtures_stay_out(void **state) { combine(*state, true); }

/* Tensors that are longer than what the host makes of random numbers have them again, up to their last element. */
static void long_tensors_are_filled(void **state) {
    conv_fft_context *context = context_in(*state);
    const conv_fft_problem p = problem_of("in=1x1x3000x3500 kernel=3x3");
    const cf_rig_sizes sizes = {0};
    cf_layer checked;
    cf_rig rig;
    assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
    assert_int_equal(cf_rig_create(context->device, NULL, &checked, CONV_FFT_FORWARD, &sizes, &rig), CONV_FFT_SUCCESS);
    const float *x = rig.x.data;
    const size_t count = 3000 * 3500, again = (1 << 24) / sizeof *x;
    assert_int_equal(rig.x.bytes, count * sizeof *x);
    for (size_t i = 0; i < count; ++i)
        assert_true(i < again ? fabsf(x[i]) >= 0.5F && fabsf(x[i]) <= 1.0F : x[i] == x[i - again]);
    cf_rig_destroy(&rig);
    conv_fft_context_destroy(context);
}

static void too_little_time(void **state) {
    conv_fft_context *context = context_in(*state);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_MEASURE), off = options_of(CONV_FFT_TUNE_OFF);
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

/* A search of a hundred candidates, all of them slow, ends with the time it has, and the time of one pass is not that of the other. */
static void time_runs_out(void **state) {
    conv_fft_context *context = context_in(*state);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_EXHAUSTIVE);
    options.tune_milliseconds = 1200;
    steady = true;
    runs = 0;
    const choice c = choose(context, small_line, &options);
    steady = false;
    assert_true(c.forward_ms > 0.0);
    assert_true(runs > 8 && runs < 120); /* a run each would be more than 300 */
    conv_fft_context_destroy(context);
}

/* Of a search whose candidates all take 20 ms: workspaces of the winner and of those as fast. */
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

/* Among times that are the same within 2 %, the smallest workspace wins. */
static void ties(void **state) {
    conv_fft_context *context = context_in(*state);
    const conv_fft_problem p = problem_of(small_line);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_MEASURE);
    options.passes = CONV_FFT_FORWARD;
    int larger = 0; /* that lost by their workspace */
    tied t = {.count = 0};
    steady = true;
    const conv_fft_status status = conv_fft_tune_candidates(context, &p, &options, note_tie, &t);
    steady = false;
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(t.chosen_count, 1);
    for (int i = 0; i < t.count; ++i) {
        assert_true(t.others[i] >= t.chosen);
        larger += t.others[i] > t.chosen;
    }
    assert_true(larger > 0);
    conv_fft_context_destroy(context);
}

/* Candidates that the limit keeps out leave their places to others. */
static void limited_searches(void **state) {
    conv_fft_context *context = context_in(*state);
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_MEASURE);
    options.workspace_limit = 300000;
    const choice c = choose(context, "in=4x8x24x24 out=8 kernel=5x5 pad=2", &options);
    assert_true(c.forward_ms > 0.0 && c.backward_ms > 0.0);
    EXPECT_COUNTS(context, 2, 0, 2, 0);
    conv_fft_context_destroy(context);
}

/* ---- lists of problems, files of records */

typedef struct progress {
    int64_t last, cancel_at;
} progress;

static int follow(int64_t done, int64_t total, void *user) {
    progress *p = user;
    assert_int_equal(total, 3);
    assert_in_range(done - p->last, 0, 1); /* again and again while one is tuned, and each number once at least */
    p->last = done;
    return done == p->cancel_at;
}

static void lists_are_cancelled_and_continued(void **state) {
    conv_fft_context *context = context_in(*state);
    conv_fft_problem list[3] = {problem_of("in=1x2x9x9 kernel=3x3"), problem_of("in=1x2x10x10 kernel=3x3"),
                                problem_of("in=1x2x11x11 kernel=3x3")};
    conv_fft_plan_options options = options_of(CONV_FFT_TUNE_CACHED); /* means measure */
    progress p = {.cancel_at = 2};
    assert_int_equal(conv_fft_tune_problems(context, list, 3, &options, follow, &p), CONV_FFT_CANCELLED);
    assert_int_equal(p.last, 2);
    EXPECT_COUNTS(context, 4, 0, 4, 0);
    p = (progress){.cancel_at = -1};
    assert_int_equal(conv_fft_tune_problems(context, list, 3, &options, follow, &p), CONV_FFT_SUCCESS);
    assert_int_equal(p.last, 3);
    EXPECT_COUNTS(context, 6, 4, 6, 0);
    /* One that cannot be made does not stop the others. */
    options.workspace_limit = 1;
    list[1] = problem_of("in=0x2x11x11 kernel=3x3");
    assert_int_equal(conv_fft_tune_problems(context, list, 3, &options, NULL, NULL), CONV_FFT_INVALID_ARGUMENT);
    assert_non_null(strstr(conv_fft_last_error(), "problems[0]: options.workspace_limit is 1"));
    conv_fft_context_destroy(context);
}

static int count_record(const conv_fft_tune_record *record, void *user) {
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_parse(record->problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_true(record->ms > 0.0 && record->candidates >= 2);
    return ++*(int *)user == 100;
}

static void files(void **state) {
    const char *here = scratch_path(*state, "here"), *there = scratch_path(*state, "there");
    const char *all = scratch_path(*state, "all.jsonl"), *some = scratch_path(*state, "some.jsonl");
    conv_fft_problem list[2] = {problem_of("in=1x2x9x9 kernel=3x3"), problem_of("in=1x2x10x10 kernel=3x3")};
    conv_fft_context *a = context_in(here), *b = context_in(there);
    assert_int_equal(conv_fft_tune_problems(a, list, 2, NULL, NULL, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_save(a, all), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_export(a, some, list, 1), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_load(b, some), CONV_FFT_SUCCESS);
    EXPECT_COUNTS(b, 2, 0, 0, 0);
    int count = 0;
    assert_int_equal(conv_fft_tune_foreach(b, count_record, &count), CONV_FFT_SUCCESS);
    assert_int_equal(count, 2);
    count = 99;
    assert_int_equal(conv_fft_tune_foreach(b, count_record, &count), CONV_FFT_CANCELLED);
    conv_fft_context_destroy(b);
    b = context_in(there);
    EXPECT_COUNTS(b, 0, 0, 0, 0); /* load keeps nothing on disk, merge does */
    assert_int_equal(conv_fft_tune_merge(b, all, CONV_FFT_KEEP_MINE), CONV_FFT_SUCCESS);
    EXPECT_COUNTS(b, 4, 0, 0, 0);
    conv_fft_context_destroy(b);
    b = context_in(there);
    EXPECT_COUNTS(b, 4, 0, 0, 0);
    for (int i = 0; i < 2; ++i) {
        const char *line = i ? "in=1x2x10x10 kernel=3x3" : "in=1x2x9x9 kernel=3x3";
        assert_string_equal(choose(a, line, NULL).text, choose(b, line, NULL).text);
    }
    assert_int_equal(conv_fft_tune_load(a, scratch_path(*state, "none.jsonl")), CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "none.jsonl"));
    scratch_write(some, "garbage\n", 8);
    assert_int_equal(conv_fft_tune_load(a, some), CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "no tuning record of this device"));
    assert_int_equal(statistics_of(a).corrupt, 1);
    conv_fft_context_destroy(a);
    conv_fft_context_destroy(b);
}

/* A merge decides what the next process finds, whatever is older or newer in the directory. */
static void merges_last(void **state) {
    const char *here = scratch_path(*state, "here"), *file = scratch_path(*state, "file.jsonl");
    const char *const fast[] = {STAGED("24x24", "1x1"), NULL, NULL}, *const slow[] = {STAGED("25x25", "1x1"), NULL,
                                                                                      NULL};
    conv_fft_context *other = context_in(scratch_path(*state, "other"));
    put(other, small_line, CONV_FFT_FORWARD, 0, 0, 100, fast); /* older */
    assert_int_equal(conv_fft_tune_save(other, file), CONV_FFT_SUCCESS);
    conv_fft_context_destroy(other);
    static const struct {
        conv_fft_tune_policy policy;
        const char *kept;
    } cases[] = {{CONV_FFT_KEEP_MINE, "25x25"}, {CONV_FFT_KEEP_NEWEST, "25x25"}, {CONV_FFT_KEEP_THEIRS, "24x24"}};
    for (size_t i = 0; i < 3; ++i) {
        conv_fft_context *context = context_in(here);
        put(context, small_line, CONV_FFT_FORWARD, 0, 0, 100, slow);
        assert_int_equal(conv_fft_tune_merge(context, file, cases[i].policy), CONV_FFT_SUCCESS);
        assert_non_null(strstr(choose(context, small_line, NULL).text, cases[i].kept));
        conv_fft_context_destroy(context);
        context = context_in(here);
        assert_non_null(strstr(choose(context, small_line, NULL).text, cases[i].kept));
        conv_fft_context_destroy(context);
    }
}

static void missed_problems(void **state) {
    const char *log = scratch_path(*state, "missed.txt");
    setenv("CONV_FFT_RECORD", log, 1);
    conv_fft_context *context = context_in(*state);
    const conv_fft_plan_options off = options_of(CONV_FFT_TUNE_OFF);
    choose(context, small_line, NULL);
    choose(context, small_line, NULL);
    choose(context, "in=1x2x9x9 kernel=3x3", NULL);
    choose(context, "in=1x2x10x10 kernel=3x3", &off);
    conv_fft_problem strided = problem_of("in=1x1x8 kernel=3");
    const int64_t strides[] = {100, 100, 2};
    memcpy(strided.x_stride, strides, sizeof strides);
    conv_fft_plan *plan = NULL;
    assert_int_equal(conv_fft_plan_create(context, &strided, NULL, &plan), CONV_FFT_SUCCESS);
    conv_fft_plan_destroy(plan);
    conv_fft_context_destroy(context);
    setenv("CONV_FFT_RECORD", "/no/such/folder/file", 1);
    context = context_in(*state);
    capture_begin();
    choose(context, small_line, NULL);
    choose(context, "in=1x2x9x9 kernel=3x3", NULL);
    const char *said = capture_end();
    unsetenv("CONV_FFT_RECORD");
    assert_int_equal(occurrences(said, "CONV_FFT_RECORD names /no/such/folder/file"), 1);
    conv_fft_context_destroy(context);
    size_t bytes;
    char *text = scratch_read(log, &bytes);
    assert_int_equal(occurrences(text, "\n"), 3);
    int problems = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        conv_fft_problem p;
        assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
        problems += p.rank > 0;
    }
    assert_int_equal(problems, 2);
    free(text);
}

/* One rank tunes and exports; the others, processes of their own, load the file and choose the same without measuring. */
static int be_a_rank(const char *file, const char *directory) {
    conv_fft_context *context = context_in(directory);
    if (conv_fft_tune_load(context, file) != CONV_FFT_SUCCESS)
        return 2;
    const choice c = choose(context, small_line, NULL);
    const conv_fft_tune_statistics s = statistics_of(context);
    conv_fft_context_destroy(context);
    printf("%s\n", c.text);
    return s.hits == 2 && s.misses == 0 && c.forward_ms > 0.0 ? 0 : 3;
}

static void several_ranks(void **state) {
    const char *file = scratch_path(*state, "tuned.jsonl");
    conv_fft_context *context = context_in(scratch_path(*state, "rank0"));
    const conv_fft_problem p = problem_of(small_line);
    assert_int_equal(conv_fft_tune_problems(context, &p, 1, NULL, NULL, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_tune_export(context, file, &p, 1), CONV_FFT_SUCCESS);
    const choice mine = choose(context, small_line, NULL);
    conv_fft_context_destroy(context);
    enum {
        RANKS = 4
    };
    FILE *ranks[RANKS];
    for (int i = 0; i < RANKS; ++i) {
        char command[4096], self[1024] = "";
        assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
        snprintf(command, sizeof command, "exec '%s' --rank '%s' '%s/rank%d'", self, file, (const char *)*state, i + 1);
        ranks[i] = popen(command, "r");
        assert_non_null(ranks[i]);
    }
    for (int i = 0; i < RANKS; ++i) {
        char said[1024] = "";
        said[fread(said, 1, sizeof said - 1, ranks[i])] = '\0';
        const int how = pclose(ranks[i]);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
        assert_int_equal(strncmp(said, mine.text, strlen(mine.text)), 0);
    }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "--rank") == 0)
        return be_a_rank(argv[2], argv[3]);
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(measured_once),
        IN_SCRATCH(tuned_layers_are_right),
        IN_SCRATCH(better_modes_measure_again),
        IN_SCRATCH(records_that_do_not_suit),
        IN_SCRATCH(records_and_limits),
        IN_SCRATCH(halves_of_records),
        IN_SCRATCH(kept_spectra),
        IN_SCRATCH(candidates_are_shown),
        IN_SCRATCH(both_ways_of_dilation),
        IN_SCRATCH(wrong_candidates_are_refused),
        IN_SCRATCH(best_passes_are_combined),
        IN_SCRATCH(refused_mixtures_stay_out),
        IN_SCRATCH(long_tensors_are_filled),
        IN_SCRATCH(too_little_time),
        IN_SCRATCH(time_runs_out),
        IN_SCRATCH(ties),
        IN_SCRATCH(limited_searches),
        IN_SCRATCH(lists_are_cancelled_and_continued),
        IN_SCRATCH(files),
        IN_SCRATCH(merges_last),
        IN_SCRATCH(missed_problems),
        IN_SCRATCH(several_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
