/* SPDX-License-Identifier: Apache-2.0 */
/* Searches on the substitute GPU of tests/fakes: candidates that compute nothing or fail, candidates of cuDNN, and
 * which kernels are compiled before timing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/plan/family.h"
#include "conv/plan/run.h"
#include "support/fake_gpu.h"
#include "support/fake_tuning.h"
#include "support/temp_dirs.h"
#include "support/virtual_clock.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The behaviour of cuDNN in some tests: it fails while it runs, or needs time to list its algorithms. */
static bool fails_running;
static double answers_late; /* seconds */

double __wrap_cf_clock_seconds(void); /* virtual_clock.c, and the next one */
conv_fft_status __wrap_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);

conv_fft_status __real_cf_cudnn_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_cudnn_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_cudnn_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    if (fails_running)
        return cf_fail(CONV_FFT_DEVICE_ERROR, "cuDNN failed while it ran");
    return __real_cf_cudnn_run(plan, set, call);
}

typedef bool strategy_visit(const cf_strategy *strategy, void *user);
conv_fft_status __real_cf_cudnn_candidates(const cf_layer *l, cf_device *d, int pass, strategy_visit *visit,
                                           void *user);
conv_fft_status __wrap_cf_cudnn_candidates(const cf_layer *l, cf_device *d, int pass, strategy_visit *visit,
                                           void *user);
conv_fft_status __wrap_cf_cudnn_candidates(const cf_layer *l, cf_device *d, int pass, strategy_visit *visit,
                                           void *user) {
    clock_advance(answers_late);
    return __real_cf_cudnn_candidates(l, d, pass, visit, user);
}

/* Invented times: one cuDNN candidate is fast for one gradient, another for the other gradient, and a staged candidate
 * is fast for the gradient of x. */
static bool times_are_invented;

static const char *const fast_direct[CF_PASS_COUNT] = {"", "graph:0", "old:ALGO_1:fma"};

static double invented_ms(const cf_strategy *s, int pass) {
    if (s->family == cf_family_named("cudnn"))
        return strcmp(s->algorithm, fast_direct[pass]) == 0 ? 1.0 : 1.5;
    return s->family == cf_family_named("staged") && pass == CF_PASS_DATA ? 0.5 : 1.6;
}

/* The number of plans of each set of passes that were made before the first timing. */
static atomic_int made_first[CONV_FFT_FORWARD | CONV_FFT_BACKWARD];
static bool timed_already;

conv_fft_status __real_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan) {
    const conv_fft_status status =
        __real_cf_plan_create(l, device, passes, strategy, any_alignment, workspace_limit, smallest, plan);
    if (status == CONV_FFT_SUCCESS && !timed_already)
        atomic_fetch_add(&made_first[passes - 1], 1);
    return status;
}

conv_fft_status __real_cf_bench_buffers_time(const cf_bench_buffers *buffers, const conv_fft_plan *plan,
                                             cf_run_time *time);
conv_fft_status __wrap_cf_bench_buffers_time(const cf_bench_buffers *buffers, const conv_fft_plan *plan,
                                             cf_run_time *time);
conv_fft_status __wrap_cf_bench_buffers_time(const cf_bench_buffers *buffers, const conv_fft_plan *plan,
                                             cf_run_time *time) {
    const conv_fft_status status = __real_cf_bench_buffers_time(buffers, plan, time);
    timed_already = true;
    if (!times_are_invented)
        return status;
    time->seconds = 0.0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        time->seconds += buffers->passes & 1 << pass ? 1e-3 * invented_ms(&plan->pass[pass].strategy, pass) : 0.0;
    return status;
}

/* The kernels of this GPU compute nothing. Every result is zero, so no candidate is accepted. */
static void zero_results_are_refused(void **state) {
    char measured[3][256], model[3][256];
    conv_fft_context context;
    conv_fft_tune_statistics s;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, model), CONV_FFT_SUCCESS);
    capture_begin();
    const conv_fft_status status = plan_layer(&context, CONV_FFT_TUNE_MEASURE, measured);
    const char *said = capture_end();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    if (occurrences(said, "agreed with those of another") != 2)
        fail_msg("%s", said);
    assert_int_equal(occurrences(said, "no strategy's results agreed with those of another; the cost model decides"),
                     2);
    assert_int_equal(conv_fft_tune_stats(&context, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.records, 0);
    for (int pass = 0; pass < 3; ++pass)
        assert_string_equal(measured[pass], model[pass]);
    close_context(&context);
    assert_true(nothing_open(FAKES "/good/libcuda.so.1"));
}

typedef struct verdicts {
    int timed, failed; /* candidates of cuDNN that were timed; all that did not run */
} verdicts;

static int note_verdict(const conv_fft_tune_candidate *c, void *user) {
    verdicts *v = user;
    v->timed += strncmp(c->strategy, "cudnn ", 6) == 0 && c->measured_ms >= 0.0;
    v->failed += strcmp(c->verdict, "it does not run") == 0;
    return 0;
}

/* If a candidate of another library fails while it runs, the search goes on. */
static void failing_candidates_end_no_search(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.passes = CONV_FFT_FORWARD;
    assert_int_equal(conv_fft_problem_parse(fake_tuned_line, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(open_context(FAKES "/good:" FAKES "/with_cudnn", *state, &context), CONV_FFT_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        verdicts v = {0, 0};
        fails_running = i == 1;
        const conv_fft_status status = conv_fft_tune_candidates(&context, &p, &options, note_verdict, &v);
        fails_running = false;
        if (status != CONV_FFT_SUCCESS)
            fail_msg("%s", conv_fft_last_error());
        assert_int_equal(v.timed > 1, i == 0);
        assert_int_equal(v.failed > 1, i == 1);
        assert_true(v.timed == 0 || v.failed == 0);
    }
    close_context(&context);
}

typedef struct mixtures {
    double best, direct; /* milliseconds: of all, and of cuDNN's alone */
    int list_direct;     /* how often the best of these is there */
} mixtures;

static int note_mixture(const conv_fft_tune_candidate *c, void *user) {
    mixtures *m = user;
    char pair[256];
    snprintf(pair, sizeof pair, "cudnn algorithm=%s; cudnn algorithm=%s", fast_direct[1], fast_direct[2]);
    m->list_direct += strcmp(c->strategy, pair) == 0;
    if (c->measured_ms < 0.0)
        return 0;
    m->best = c->measured_ms < m->best ? c->measured_ms : m->best;
    if (strncmp(c->strategy, "cudnn ", 6) == 0 && strstr(c->strategy, "; cudnn "))
        m->direct = c->measured_ms < m->direct ? c->measured_ms : m->direct;
    return 0;
}

/* cuDNN ranks algorithms for each gradient. The n-th algorithms of both gradients make one candidate. The best
 * algorithm of each gradient is timed too, also if another combination is the fastest, so that the time reported for
 * cuDNN is true. */
static void best_cudnn_algorithms_are_combined(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.passes = CONV_FFT_BACKWARD;
    assert_int_equal(conv_fft_problem_parse(fake_tuned_line, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(open_context(FAKES "/good:" FAKES "/with_cudnn", *state, &context), CONV_FFT_SUCCESS);
    mixtures m = {1e9, 1e9, 0};
    times_are_invented = true;
    const conv_fft_status status = conv_fft_tune_candidates(&context, &p, &options, note_mixture, &m);
    times_are_invented = false;
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_true(fabs(m.best - 1.5) < 1e-9);
    assert_true(fabs(m.direct - 2.0) < 1e-9);
    assert_int_equal(m.list_direct, 1);
    close_context(&context);
}

/* The time that another library needs to list its algorithms counts as time of the search. */
static void listing_algorithms_takes_time(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.tune_milliseconds = 2000;
    assert_int_equal(conv_fft_problem_parse(fake_tuned_line, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    conv_fft_plan *plan = NULL;
    answers_late = 1; /* once for forward, and for each gradient */
    capture_begin();
    const conv_fft_status status = conv_fft_plan_create(&context, &p, &options, &plan);
    const char *said = capture_end();
    answers_late = 0;
    conv_fft_plan_destroy(plan);
    assert_int_equal(status, CONV_FFT_SUCCESS);
    if (occurrences(said, "tuning forward of in=2x2x12x13 ") != 1 ||
        occurrences(said, "tuning both gradients of in=2x2x12x13 ") != 1 ||
        occurrences(said, "the time allowed was too short to time two strategies: 0 s were left for it") != 2)
        fail_msg("%s", said);
    close_context(&context);
}

/* Kernels of all sets of passes are compiled before the first timing. */
static void sets_are_compiled_together(void **state) {
    conv_fft_context context;
    char strategy[3][256];
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    memset(made_first, 0, sizeof made_first);
    timed_already = false;
    assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_MEASURE, strategy), CONV_FFT_SUCCESS);
    assert_true(timed_already);
    assert_in_range(atomic_load(&made_first[CONV_FFT_FORWARD - 1]), 2, 8);
    assert_in_range(atomic_load(&made_first[CONV_FFT_BACKWARD - 1]), 2, 8);
    close_context(&context);
}

typedef struct progress {
    pthread_t thread;
    int calls, cancel_at;
} progress;

static int follow(int64_t done, int64_t total, void *user) {
    progress *p = user;
    assert_true(pthread_equal(pthread_self(), p->thread));
    assert_int_equal(done, 0);
    assert_int_equal(total, 1);
    return ++p->calls == p->cancel_at;
}

/* While all processors compile, only the caller's thread asks `progress` whether to go on. Its answer also stops the
 * other threads. */
static void cancelled_while_compiling(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_tune_statistics s;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_problem_parse(fake_tuned_line, &p, NULL, 0), CONV_FFT_SUCCESS);
    for (int at = 2; at < 5; ++at) { /* the first call is before the search */
        progress follower = {pthread_self(), 0, at};
        assert_int_equal(conv_fft_tune_problems(&context, &p, 1, NULL, follow, &follower), CONV_FFT_CANCELLED);
        assert_int_equal(follower.calls, at);
        assert_non_null(strstr(conv_fft_last_error(), "after 0 of 1 problems"));
    }
    assert_int_equal(conv_fft_tune_stats(&context, &s), CONV_FFT_SUCCESS);
    assert_int_equal(s.records, 0);
    close_context(&context);
    assert_true(nothing_open(FAKES "/good/libcuda.so.1"));
}

/* Plans have kernels for tensors at multiples of 16 bytes. With any_alignment they also have kernels for others. */
static void plans_take_aligned_tensors(void **state) {
    static const char strategy[] = "staged basis=16x16 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 "
                                   "chunk=2 groups=1 keep=none";
    static _Alignas(64) char memory[4][65536];
    conv_fft_context context;
    conv_fft_problem p;
    cf_layer of_problem;
    cf_strategy s[CF_PASS_COUNT];
    conv_fft_plan *aligned_only = NULL, *plan = NULL;
    uint64_t smallest;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_problem_parse("in=2x4x16x16 out=4 kernel=5x5", &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &of_problem), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_int_equal(cf_strategy_parse(strategy, 2, &s[pass]), CONV_FFT_SUCCESS);
    assert_int_equal(context.device->ops->prepare(context.device), CONV_FFT_SUCCESS);
    const int before = fake_compilations();
    assert_int_equal(cf_plan_create(&of_problem, context.device, CONV_FFT_FORWARD, s, false, sizeof memory[3],
                                    &smallest, &aligned_only),
                     CONV_FFT_SUCCESS);
    const int tried = fake_compilations() - before;
    assert_int_equal(
        cf_plan_create(&of_problem, context.device, CONV_FFT_FORWARD, s, true, sizeof memory[3], &smallest, &plan),
        CONV_FFT_SUCCESS);
    assert_in_range(fake_compilations() - before, tried + 1, 2 * tried);
    for (size_t moved = 0; moved <= 4; moved += 4) {
        const conv_fft_status status = conv_fft_forward(aligned_only, memory[0] + moved, memory[1], NULL, memory[2],
                                                        memory[3], sizeof memory[3], NULL);
        assert_int_equal(status, moved ? CONV_FFT_INVALID_ARGUMENT : CONV_FFT_SUCCESS);
        assert_int_equal(
            conv_fft_forward(plan, memory[0] + moved, memory[1], NULL, memory[2], memory[3], sizeof memory[3], NULL),
            CONV_FFT_SUCCESS);
    }
    conv_fft_plan_destroy(aligned_only);
    conv_fft_plan_destroy(plan);
    close_context(&context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(zero_results_are_refused),      IN_SCRATCH(sets_are_compiled_together),
        IN_SCRATCH(cancelled_while_compiling),     IN_SCRATCH(failing_candidates_end_no_search),
        IN_SCRATCH(listing_algorithms_takes_time), IN_SCRATCH(best_cudnn_algorithms_are_combined),
        IN_SCRATCH(plans_take_aligned_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
