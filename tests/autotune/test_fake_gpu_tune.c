/* SPDX-License-Identifier: Apache-2.0 */
/* Tuning records of a GPU, on the substitute one of tests/fakes, which computes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "autotune/records/library_versions.h"
#include "autotune/records/record_file.h"
#include "autotune/records/record_store.h"
#include "autotune/search/bench_buffers.h"
#include "autotune/tune.h"
#include "conv/gpu/backend.h"
#include "conv/plan/family.h"
#include "conv/plan/run.h"
#include "support/fake_gpu.h"
#include "support/layer.h"
#include "support/temp_dirs.h"
#include "support/virtual_clock.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What cuDNN does in some tests: it fails while it runs, or takes its time to say which algorithms it has. */
static bool fails_running;
static double answers_late; /* seconds */

double __wrap_cf_clock_seconds(void); /* virtual_clock.c, and the next one */
conv_fft_status __wrap_cf_rig_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                     const cf_rig_sizes *sizes, cf_rig *rig);

conv_fft_status __real_cf_direct_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_direct_run(const conv_fft_plan *plan, int set, const cf_call *call);
conv_fft_status __wrap_cf_direct_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    if (fails_running)
        return cf_fail(CONV_FFT_DEVICE_ERROR, "cuDNN failed while it ran");
    return __real_cf_direct_run(plan, set, call);
}

typedef bool strategy_visit(const cf_strategy *strategy, void *user);
conv_fft_status __real_cf_direct_candidates(const cf_layer *l, cf_device *d, int pass, strategy_visit *visit,
                                            void *user);
conv_fft_status __wrap_cf_direct_candidates(const cf_layer *l, cf_device *d, int pass, strategy_visit *visit,
                                            void *user);
conv_fft_status __wrap_cf_direct_candidates(const cf_layer *l, cf_device *d, int pass, strategy_visit *visit,
                                            void *user) {
    clock_advance(answers_late);
    return __real_cf_direct_candidates(l, d, pass, visit, user);
}

/* Invented times: a candidate of cuDNN is fast for one gradient or for the other, and a staged one for that of x. */
static bool times_are_invented;

static const char *const fast_direct[CF_PASS_COUNT] = {"", "graph:0", "old:ALGO_1:fma"};

static double invented_ms(const cf_strategy *s, int pass) {
    if (s->family == CF_FAMILY_DIRECT)
        return strcmp(s->algorithm, fast_direct[pass]) == 0 ? 1.0 : 1.5;
    return s->family == CF_FAMILY_STAGED && pass == CF_PASS_DATA ? 0.5 : 1.6;
}

/* Plans of each set of passes that were made before anything was timed. */
static atomic_int made_first[CONV_FFT_FORWARD | CONV_FFT_BACKWARD];
static bool timed_already;

conv_fft_status __real_cf_plan_create_trial(const cf_layer *l, cf_device *device, int passes,
                                            const cf_strategy strategy[CF_PASS_COUNT], uint64_t workspace_limit,
                                            uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create_trial(const cf_layer *l, cf_device *device, int passes,
                                            const cf_strategy strategy[CF_PASS_COUNT], uint64_t workspace_limit,
                                            uint64_t *smallest, conv_fft_plan **plan);
conv_fft_status __wrap_cf_plan_create_trial(const cf_layer *l, cf_device *device, int passes,
                                            const cf_strategy strategy[CF_PASS_COUNT], uint64_t workspace_limit,
                                            uint64_t *smallest, conv_fft_plan **plan) {
    const conv_fft_status status =
        __real_cf_plan_create_trial(l, device, passes, strategy, workspace_limit, smallest, plan);
    if (status == CONV_FFT_SUCCESS && !timed_already)
        atomic_fetch_add(&made_first[passes - 1], 1);
    return status;
}

conv_fft_status __real_cf_rig_time(const cf_rig *rig, const conv_fft_plan *plan, double *seconds);
conv_fft_status __wrap_cf_rig_time(const cf_rig *rig, const conv_fft_plan *plan, double *seconds);
conv_fft_status __wrap_cf_rig_time(const cf_rig *rig, const conv_fft_plan *plan, double *seconds) {
    const conv_fft_status status = __real_cf_rig_time(rig, plan, seconds);
    timed_already = true;
    if (!times_are_invented)
        return status;
    *seconds = 0.0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        *seconds += rig->passes & 1 << pass ? 1e-3 * invented_ms(&plan->pass[pass].strategy, pass) : 0.0;
    return status;
}

static const char line[] = "in=2x2x12x13 out=3 kernel=5x5 pad=2";

/* CONV_FFT_SUCCESS if all of it opens. */
static conv_fft_status open_context(const char *libraries, const char *directory, conv_fft_context *context) {
    memset(context, 0, sizeof *context);
    context->log_level = CONV_FFT_LOG_WARNING;
    conv_fft_status status = open_gpu(libraries, directory, 0, &context->gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_layers_create(context->gpu, &context->device);
    return status == CONV_FFT_SUCCESS ? cf_tuner_create(context, directory) : status;
}

static void close_context(conv_fft_context *context) {
    cf_tuner_destroy(context->tuner);
    if (context->device)
        cf_gpu_layers_destroy(context->device);
    cf_gpu_close(context->gpu);
}

/* Plan a layer; strategies of all passes. */
static conv_fft_status plan_problem(conv_fft_context *context, const char *problem, conv_fft_tuning tuning,
                                    char strategy[3][256]) {
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan *plan = NULL;
    conv_fft_plan_options_init(&options);
    options.tuning = tuning;
    options.tune_milliseconds = 600000; /* however slowly this machine compiles */
    conv_fft_status status = conv_fft_problem_parse(problem, &p, NULL, 0);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_create(context, &p, &options, &plan);
    for (int pass = 0; pass < 3 && status == CONV_FFT_SUCCESS; ++pass) {
        conv_fft_description d;
        status = conv_fft_plan_describe(plan, (conv_fft_pass)(1 << pass), &d);
        if (status == CONV_FFT_SUCCESS)
            memcpy(strategy[pass], d.strategy, 256);
    }
    conv_fft_plan_destroy(plan);
    return status;
}

static conv_fft_status plan_layer(conv_fft_context *context, conv_fft_tuning tuning, char strategy[3][256]) {
    return plan_problem(context, line, tuning, strategy);
}

/* A record of each set of passes that are tuned together. */
static conv_fft_status keep_records(conv_fft_context *context, char strategy[3][256]) {
    conv_fft_problem p;
    cf_layer checked;
    conv_fft_status status = conv_fft_problem_parse(line, &p, NULL, 0);
    if (status == CONV_FFT_SUCCESS)
        status = cf_layer_make(&p, &checked);
    const int sets[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD};
    for (int i = 0; i < 2 && status == CONV_FFT_SUCCESS; ++i) {
        cf_record record;
        memset(&record, 0, sizeof record);
        status = cf_record_key_make(&checked, sets[i], 0, 0, &record.key);
        for (int pass = 0; pass < 3; ++pass) {
            if (sets[i] & 1 << pass)
                memcpy(record.strategy[pass], strategy[pass], sizeof record.strategy[pass]);
        }
        cf_strategy parsed[CF_PASS_COUNT];
        memset(parsed, 0, sizeof parsed);
        for (int pass = 0; pass < 3 && status == CONV_FFT_SUCCESS; ++pass)
            status = cf_strategy_parse(strategy[pass], checked.problem.rank, &parsed[pass]);
        cf_libraries_of(context, sets[i], parsed, record.library);
        record.ms = 1.0;
        record.direct_ms = -1.0;
        record.mode = CONV_FFT_TUNE_MEASURE;
        if (status == CONV_FFT_SUCCESS)
            status = cf_tuner_put(context->tuner, &record);
    }
    return status;
}

/* A warmed directory that cannot be written serves a process without NVRTC: records and kernels, without a word. */
static void read_only_without_compiler(void **state) {
    char chosen[3][256], found[3][256];
    conv_fft_context context, later;
    conv_fft_tune_statistics s = {0};
    unprivileged_begin(*state);
    conv_fft_status first = open_context(FAKES "/good", *state, &context);
    if (first == CONV_FFT_SUCCESS)
        first = plan_layer(&context, CONV_FFT_TUNE_OFF, chosen);
    if (first == CONV_FFT_SUCCESS)
        first = keep_records(&context, chosen);
    close_context(&context);
    chmod(*state, 0500);
    capture_begin();
    conv_fft_status second = open_context(FAKES "/driver_only", *state, &later);
    const bool compiles = later.gpu && later.gpu->jit.library.usable;
    if (second == CONV_FFT_SUCCESS)
        second = plan_layer(&later, CONV_FFT_TUNE_CACHED, found);
    if (second == CONV_FFT_SUCCESS)
        second = conv_fft_tune_stats(&later, &s);
    close_context(&later);
    const char *said = capture_end();
    chmod(*state, 0700);
    unprivileged_end();
    assert_int_equal(first, CONV_FFT_SUCCESS);
    assert_int_equal(second, CONV_FFT_SUCCESS);
    assert_false(compiles);
    assert_null(strstr(said, "tuning"));
    assert_null(strstr(said, "kernel"));
    assert_int_equal(s.records, 2);
    assert_int_equal(s.hits, 2);
    assert_int_equal(s.misses + s.unusable + s.corrupt, 0);
    for (int pass = 0; pass < 3; ++pass)
        assert_string_equal(chosen[pass], found[pass]);
}

/* Its records are those of its name, compute capability and multiprocessors. */
static void of_this_gpu(void **state) {
    char strategy[3][256], name[1024];
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, strategy), CONV_FFT_SUCCESS);
    assert_int_equal(keep_records(&context, strategy), CONV_FFT_SUCCESS);
    assert_int_equal(scratch_count(*state, ".jsonl", name), 1);
    size_t bytes;
    char *text = scratch_read(name, &bytes), expected[256];
    const cf_gpu_facts *facts = &context.gpu->facts;
    snprintf(expected, sizeof expected, "\"device\":\"%s\",\"kind\":\"gpu, compute %lld.%lld, multiprocessors %lld\"",
             facts->name, (long long)facts->compute_major, (long long)facts->compute_minor,
             (long long)facts->multiprocessors);
    assert_non_null(strstr(text, expected));
    free(text);
    close_context(&context);
}

/* A GPU whose kernels compute nothing: every result is zero, and nothing of it is believed. */
static void nothing_is_no_result(void **state) {
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

/* Where the math mode allows them, large layers get spectra in 16 bits, of bases that are transformed by matrix products, but not those
 * whose tiles were measured to be slow; both gradients then read one spectrum of gy. Dilated signals stay whole where their
 * numbers share sectors, and small dilated planes do not. */
static void choices(void **state) {
    static const struct {
        const char *line, *spectrum, *part;
    } cases[] = {{"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16 math=half", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=bf16 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x64x64x64 out=64 kernel=9x9 math=tf32", "spectrum=fp16", "basis=64x64"},
                 {"in=128x64x60x60 out=64 kernel=5x5 dtype=bf16 math=half", "spectrum=bf16", "basis=64x64"},
                 {"in=128x128x32x32 out=128 kernel=9x9 dtype=fp16 math=half", "spectrum=fp16", "basis=32x32"},
                 {"in=128x128x32x32 out=128 kernel=9x9 dtype=bf16 math=half", "spectrum=bf16", "basis=32x32"},
                 {"in=8x32x64x64x64 out=32 kernel=3x3x3 pad=same dtype=fp16 math=half", "spectrum=fp16", "basis="},
                 {"in=8x32x64x64x64 out=32 kernel=5x5x5 pad=same dtype=fp16 math=half", "spectrum=fp16", "basis="},
                 {"in=8x32x64x64x64 out=32 kernel=5x5x5 pad=same math=tf32", "spectrum=fp16", "basis="},
                 {"in=16x64x16384 out=64 kernel=127 pad=same dtype=fp16 math=half", "spectrum=fp16", "basis=1024"},
                 {"in=16x64x16384 out=64 kernel=1023 pad=same dtype=bf16 math=half", "spectrum=bf16", "basis=2048"},
                 {"in=8x64x16384 out=128 kernel=2 dilation=16 pad=16:0", "spectrum=fp32", "dilation=step"},
                 {"in=8x64x16384 out=128 kernel=2 dilation=16 pad=16:0 layout=last", "spectrum=fp32", "dilation=shift"},
                 {"in=8x64x64x64 out=64 kernel=1x9 dilation=4 pad=0x16", "spectrum=fp32", "dilation=step"},
                 {"in=8x64x64x64 out=64 kernel=3x3 dilation=16 pad=16", "spectrum=fp32", "dilation=shift"},
                 {"in=128x64x64x64 out=64 kernel=9x9 dtype=fp16", "spectrum=fp32", "basis="},
                 {"in=128x64x64x64 out=64 kernel=9x9", "spectrum=fp32", "basis="},
                 {"in=2x2x12x13 out=3 kernel=5x5 pad=2 dtype=fp16 math=half", "spectrum=fp32", "basis="}};
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        char strategy[3][256];
        assert_int_equal(plan_problem(&context, cases[i].line, CONV_FFT_TUNE_OFF, strategy), CONV_FFT_SUCCESS);
        for (int pass = 0; pass < 3; ++pass)
            if (!strstr(strategy[pass], cases[i].spectrum) || !strstr(strategy[pass], cases[i].part))
                fail_msg("%s: %s", cases[i].line, strategy[pass]);
        if (strstr(strategy[1], "staged") && !strstr(cases[i].line, "dilation"))
            assert_string_equal(strategy[1], strategy[2]);
    }
    close_context(&context);
}

/* What the kernels of a GPU cannot count is refused with the reason, nothing being forced. */
static void too_long_signals(void **state) {
    conv_fft_context context;
    char strategy[3][256];
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(plan_problem(&context, "in=16x11x8287491910 out=8 kernel=31 layout=last math=tf32",
                                  CONV_FFT_TUNE_OFF, strategy),
                     CONV_FFT_INVALID_ARGUMENT);
    if (!strstr(conv_fft_last_error(), "too large") || !strstr(conv_fft_last_error(), "2^30"))
        fail_msg("%s", conv_fft_last_error());
    close_context(&context);
}

/* ---- records that are shipped */

typedef struct shipped {
    conv_fft_context *context;
    const char *file;
    int records;
} shipped;

static conv_fft_status check_shipped(const cf_file_line *l, void *user) {
    shipped *s = user;
    conv_fft_problem p;
    cf_layer layer_of_record;
    if (l->kind == CF_LINE_HEADER || l->kind == CF_LINE_BLANK)
        return CONV_FFT_SUCCESS;
    if (l->kind != CF_LINE_RECORD)
        fail_msg("%s:%d is no record", s->file, (int)l->number);
    const cf_record *r = l->record;
    assert_int_equal(conv_fft_problem_parse(r->key.problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &layer_of_record), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const char *why = "it cannot be read";
        cf_strategy strategy;
        if (!(r->key.passes & 1 << pass))
            continue;
        const bool parsed = cf_strategy_parse(r->strategy[pass], p.rank, &strategy) == CONV_FFT_SUCCESS;
        const cf_family *family = parsed ? cf_families[strategy.family] : NULL;
        const bool own = parsed && (strategy.family == CF_FAMILY_STAGED || strategy.family == CF_FAMILY_FUSED);
        if (!parsed || !family->feasible(&layer_of_record, pass, &strategy, &why) ||
            (own && !family->runs_on(s->context->device, &layer_of_record, pass, &strategy, &why)))
            fail_msg("%s:%d: %s of %s: %s", s->file, (int)l->number, r->strategy[pass], r->key.problem, why);
    }
    ++s->records;
    return CONV_FFT_SUCCESS;
}

/* Those of an H200, which the substitute GPU has the facts of: each names strategies that there are and that suit. */
static void shipped_records_suit(void **state) {
    static const char folder[] = "../tuning/nvidia-h200";
    conv_fft_context context;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    DIR *files = opendir(folder);
    assert_non_null(files);
    int records = 0;
    for (const struct dirent *item; (item = readdir(files)) != NULL;) {
        shipped s = {.context = &context, .file = item->d_name};
        if (!strstr(item->d_name, ".jsonl"))
            continue;
        assert_int_equal(cf_record_file_scan(dirfd(files), item->d_name, NULL, check_shipped, &s), CONV_FFT_SUCCESS);
        assert_true(s.records > 0);
        records += s.records;
    }
    closedir(files);
    assert_true(records > 100);
    close_context(&context);
}

/* ---- libraries in trouble */

/* Records of cuDNN's algorithms are as little a reason for a plan to fail as any others, where that library is there and does not start:
 * the plan is made without them, which is said and counted. */
static void records_of_a_library_that_does_not_start(void **state) {
    static const char *const folders[] = {FAKES "/good:" FAKES "/with_cudnn", FAKES "/good:" FAKES "/failing_cudnn"};
    char model[3][256], chosen[3][256], found[3][256];
    conv_fft_tune_statistics s;
    for (int i = 0; i < 2; ++i) {
        conv_fft_context context;
        assert_int_equal(open_context(folders[i], *state, &context), CONV_FFT_SUCCESS);
        if (i == 0) {
            assert_int_equal(plan_layer(&context, CONV_FFT_TUNE_OFF, model), CONV_FFT_SUCCESS);
            memcpy(chosen, model, sizeof chosen);
            strcpy(chosen[0], "direct algorithm=old:FFT_TILING:fma");
            assert_int_equal(keep_records(&context, chosen), CONV_FFT_SUCCESS);
        }
        capture_begin();
        const conv_fft_status status = plan_layer(&context, CONV_FFT_TUNE_CACHED, found);
        const char *said = capture_end();
        if (status != CONV_FFT_SUCCESS)
            fail_msg("%s", conv_fft_last_error());
        if (occurrences(said, "what was measured cannot be used here") != i)
            fail_msg("%s", said);
        for (int pass = 0; pass < 3; ++pass)
            assert_string_equal(found[pass], i == 0 ? chosen[pass] : model[pass]);
        assert_int_equal(conv_fft_tune_stats(&context, &s), CONV_FFT_SUCCESS);
        assert_int_equal(s.hits, i == 0 ? 2 : 0);
        assert_int_equal(s.misses, i == 0 ? 0 : 2);
        assert_int_equal(s.unusable, i == 0 ? 0 : 2);
        close_context(&context);
    }
}

typedef struct verdicts {
    int timed, failed; /* candidates of cuDNN that were timed; all that did not run */
} verdicts;

static int note_verdict(const conv_fft_tune_candidate *c, void *user) {
    verdicts *v = user;
    v->timed += strncmp(c->strategy, "direct ", 7) == 0 && c->measured_ms >= 0.0;
    v->failed += strcmp(c->verdict, "it does not run") == 0;
    return 0;
}

/* A candidate of another library that fails while it runs ends no search. */
static void candidates_that_fail(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.passes = CONV_FFT_FORWARD;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
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
    snprintf(pair, sizeof pair, "direct algorithm=%s; direct algorithm=%s", fast_direct[1], fast_direct[2]);
    m->list_direct += strcmp(c->strategy, pair) == 0;
    if (c->measured_ms < 0.0)
        return 0;
    m->best = c->measured_ms < m->best ? c->measured_ms : m->best;
    if (strncmp(c->strategy, "direct ", 7) == 0 && strstr(c->strategy, "; direct "))
        m->direct = c->measured_ms < m->direct ? c->measured_ms : m->direct;
    return 0;
}

/* cuDNN names algorithms for each gradient, and the n-th of both make a candidate. Its best algorithms of both race as well, also where
 * the fastest of all is another mixture: what is said of cuDNN's time is true then. */
static void best_of_another_library(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.passes = CONV_FFT_BACKWARD;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
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

/* The time that another library takes to name its algorithms is a part of what is allowed. */
static void asking_takes_time(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.tuning = CONV_FFT_TUNE_MEASURE;
    options.tune_milliseconds = 2000;
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
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

/* No set of passes waits for its kernels while another one races. */
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

/* While all processors compile, only the caller's thread is asked whether to go on, and its answer ends the others. */
static void cancelled_while_compiling(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    conv_fft_tune_statistics s;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
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

/* Plans of searches have kernels for tensors at multiples of 16 bytes alone, those that are used for others, too. */
static void searches_take_aligned_tensors(void **state) {
    static const char strategy[] = "staged basis=16x16 tiles=1x1 dilation=step overlap=save product=loop spectrum=fp32 "
                                   "chunk=2 groups=1 keep=none";
    static _Alignas(64) char memory[4][65536];
    conv_fft_context context;
    conv_fft_problem p;
    cf_layer of_problem;
    cf_strategy s[CF_PASS_COUNT];
    conv_fft_plan *trial = NULL, *plan = NULL;
    uint64_t smallest;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_problem_parse("in=2x4x16x16 out=4 kernel=5x5", &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, &of_problem), CONV_FFT_SUCCESS);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        assert_int_equal(cf_strategy_parse(strategy, 2, &s[pass]), CONV_FFT_SUCCESS);
    assert_int_equal(context.device->ops->prepare(context.device), CONV_FFT_SUCCESS);
    const int before = fake_compilations();
    assert_int_equal(
        cf_plan_create_trial(&of_problem, context.device, CONV_FFT_FORWARD, s, sizeof memory[3], &smallest, &trial),
        CONV_FFT_SUCCESS);
    const int tried = fake_compilations() - before;
    assert_int_equal(
        cf_plan_create(&of_problem, context.device, CONV_FFT_FORWARD, s, sizeof memory[3], &smallest, &plan),
        CONV_FFT_SUCCESS);
    assert_in_range(fake_compilations() - before, tried + 1, 2 * tried);
    for (size_t moved = 0; moved <= 4; moved += 4) {
        const conv_fft_status status =
            conv_fft_forward(trial, memory[0] + moved, memory[1], NULL, memory[2], memory[3], sizeof memory[3], NULL);
        assert_int_equal(status, moved ? CONV_FFT_NOT_SUPPORTED : CONV_FFT_SUCCESS);
        assert_int_equal(
            conv_fft_forward(plan, memory[0] + moved, memory[1], NULL, memory[2], memory[3], sizeof memory[3], NULL),
            CONV_FFT_SUCCESS);
    }
    conv_fft_plan_destroy(trial);
    conv_fft_plan_destroy(plan);
    close_context(&context);
}

/* Lines of a power of two have spectra in 16 bits up to 4,096 points. */
static void lines_of_16_bits(void **state) {
    conv_fft_context context;
    conv_fft_problem p;
    assert_int_equal(open_context(FAKES "/good", *state, &context), CONV_FFT_SUCCESS);
    for (int basis = 256; basis <= 8192; basis *= 2) {
        char text[256];
        conv_fft_plan *plan = NULL;
        conv_fft_plan_options options;
        conv_fft_plan_options_init(&options);
        snprintf(text, sizeof text, "in=2x8x%d out=8 kernel=30 dtype=fp16 math=half", basis);
        assert_int_equal(conv_fft_problem_parse(text, &p, NULL, 0), CONV_FFT_SUCCESS);
        snprintf(text, sizeof text,
                 "staged basis=%d tiles=1 dilation=step overlap=save product=tensor spectrum=fp16 chunk=2 groups=1 "
                 "keep=none",
                 basis);
        for (int pass = 0; pass < 3; ++pass)
            options.strategy[pass] = text;
        assert_int_equal(conv_fft_plan_create(&context, &p, &options, &plan) == CONV_FFT_SUCCESS, basis <= 4096);
        conv_fft_plan_destroy(plan);
    }
    close_context(&context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(read_only_without_compiler),
        IN_SCRATCH(of_this_gpu),
        IN_SCRATCH(nothing_is_no_result),
        IN_SCRATCH(sets_are_compiled_together),
        IN_SCRATCH(cancelled_while_compiling),
        IN_SCRATCH(choices),
        IN_SCRATCH(too_long_signals),
        IN_SCRATCH(shipped_records_suit),
        IN_SCRATCH(records_of_a_library_that_does_not_start),
        IN_SCRATCH(candidates_that_fail),
        IN_SCRATCH(asking_takes_time),
        IN_SCRATCH(best_of_another_library),
        IN_SCRATCH(searches_take_aligned_tensors),
        IN_SCRATCH(lines_of_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
