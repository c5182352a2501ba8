/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of conv_fft.h about tuning. They check the arguments and call down once. */
#include "api/check.h"
#include "autotune/records/cache_report.h"
#include "autotune/records/record_store.h"
#include "autotune/tune.h"
#include "core/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

conv_fft_status conv_fft_tune_load(conv_fft_context *context, const char *path) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(path);
    return cf_tuner_load(context->tuner, path);
}

conv_fft_status conv_fft_tune_save(conv_fft_context *context, const char *path) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(path);
    return cf_tuner_save(context->tuner, path);
}

conv_fft_status conv_fft_tune_merge(conv_fft_context *context, const char *path, conv_fft_tune_policy policy) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(path);
    CF_REQUIRE(policy >= CONV_FFT_KEEP_FASTEST && policy <= CONV_FFT_KEEP_THEIRS, "policy is %d; it must be 0 to 3",
               (int)policy);
    return cf_tuner_merge(context->tuner, path, policy);
}

/* Put the number of the problem before the sentence of the last failure. */
static conv_fft_status fail_at(int64_t index, conv_fft_status status) {
    char why[900];
    snprintf(why, sizeof why, "%s", conv_fft_last_error());
    return cf_fail(status, "problems[%lld]: %s", (long long)index, why);
}

/* Make layers of the problems. The caller frees them. The sentence of a failure names the problem. */
static conv_fft_status make_layers(const conv_fft_problem *problems, int64_t count, cf_layer **layers) {
    CF_REQUIRE(count >= 0 && count <= 1 << 20, "count is %lld; it must be 0 to %d", (long long)count, 1 << 20);
    CF_REQUIRE(problems != NULL || count == 0, "problems is NULL; it must point to %lld problems", (long long)count);
    cf_layer *made = calloc((size_t)count + 1, sizeof *made);
    if (!made)
        return cf_fail_memory((size_t)(count + 1) * sizeof *made, "a list of layers");
    for (int64_t i = 0; i < count; ++i) {
        const conv_fft_status status = cf_layer_make(&problems[i], &made[i]);
        if (status == CONV_FFT_SUCCESS)
            continue;
        free(made);
        return fail_at(i, status);
    }
    *layers = made;
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_tune_export(conv_fft_context *context, const char *path, const conv_fft_problem *problems,
                                     int64_t count) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(path);
    cf_layer *layers = NULL;
    CF_FORWARD(make_layers(problems, count, &layers));
    const conv_fft_status status = cf_tuner_export(context->tuner, path, layers, count);
    free(layers);
    return status;
}

conv_fft_status conv_fft_tune_foreach(conv_fft_context *context, conv_fft_tune_visit visit, void *user) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(visit);
    return cf_tuner_foreach(context->tuner, visit, user);
}

conv_fft_status conv_fft_tune_stats(const conv_fft_context *context, conv_fft_tune_statistics *statistics) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(statistics);
    return cf_tuner_statistics(context->tuner, statistics);
}

/* The state of a list of problems. The progress function is also called during a search. */
typedef struct tuning {
    conv_fft_tune_progress progress; /* may be NULL */
    void *user;
    const volatile int *cancel; /* may be NULL */
    int64_t done, total;
} tuning;

static bool is_ended(void *user) {
    const tuning *t = user;
    return (t->cancel && *t->cancel) || (t->progress && t->progress(t->done, t->total, t->user) != 0);
}

static conv_fft_status fail_ended(const tuning *t) {
    return cf_fail(CONV_FFT_CANCELLED, "%s ended the tuning after %lld of %lld problems",
                   t->cancel && *t->cancel ? "options.cancel" : "progress", (long long)t->done, (long long)t->total);
}

conv_fft_status conv_fft_tune_problems(conv_fft_context *context, const conv_fft_problem *problems, int64_t count,
                                       const conv_fft_plan_options *options, conv_fft_tune_progress progress,
                                       void *user) {
    REQUIRE_POINTER(context);
    conv_fft_plan_options own;
    conv_fft_plan_options_init(&own);
    if (options) {
        CF_FORWARD(cf_check_plan_options(options));
        own = *options;
    }
    if (own.tuning < CONV_FFT_TUNE_MEASURE)
        own.tuning = CONV_FFT_TUNE_MEASURE;
    cf_layer *layers = NULL; /* checks all problems before the first is tuned */
    CF_FORWARD(make_layers(problems, count, &layers));
    free(layers);
    char first_error[900] = "";
    int64_t failed_at = -1;
    conv_fft_status first = CONV_FFT_SUCCESS;
    tuning t = {.progress = progress, .user = user, .cancel = own.cancel, .total = count};
    const cf_interruption interruption = {is_ended, &t};
    for (; t.done < count; ++t.done) {
        conv_fft_plan *plan = NULL;
        if (is_ended(&t))
            return fail_ended(&t);
        const conv_fft_status status = cf_autotune_plan(context, &problems[t.done], &own, &interruption, &plan);
        cf_plan_destroy(plan);
        if (status == CONV_FFT_CANCELLED)
            return fail_ended(&t);
        if (status == CONV_FFT_SUCCESS || first != CONV_FFT_SUCCESS)
            continue;
        snprintf(first_error, sizeof first_error, "%s", conv_fft_last_error());
        first = status;
        failed_at = t.done;
    }
    if (is_ended(&t))
        return fail_ended(&t);
    if (first == CONV_FFT_SUCCESS)
        return CONV_FFT_SUCCESS;
    return cf_fail(first, "problems[%lld]: %s", (long long)failed_at, first_error);
}

typedef struct candidate_walk {
    conv_fft_candidate_visit visit;
    void *user;
} candidate_walk;

static int show_candidate(const cf_tuning_job *job, const cf_candidate *c, const char *verdict, void *user) {
    const candidate_walk *walk = user;
    char strategy[CF_PASS_COUNT * (CF_RECORD_STRATEGY_BYTES + 2)] = "";
    cf_text t = {strategy, sizeof strategy, 0};
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        char line[CF_RECORD_STRATEGY_BYTES];
        if (!(job->passes & 1 << pass))
            continue;
        cf_strategy_format(&c->strategy[pass], job->layer->problem.rank, line, sizeof line);
        cf_text_add(&t, "%s%s", t.length ? "; " : "", line);
    }
    const conv_fft_tune_candidate shown = {.pass = (conv_fft_pass)job->passes,
                                           .strategy = strategy,
                                           .predicted_ms = c->predicted < HUGE_VAL ? 1e3 * c->predicted : -1.0,
                                           .measured_ms = c->measured >= 0.0 ? 1e3 * c->measured : -1.0,
                                           .workspace_bytes = c->workspace,
                                           .verdict = verdict};
    return walk->visit(&shown, walk->user);
}

conv_fft_status conv_fft_tune_candidates(conv_fft_context *context, const conv_fft_problem *problem,
                                         const conv_fft_plan_options *options, conv_fft_candidate_visit visit,
                                         void *user) {
    REQUIRE_POINTER(context);
    REQUIRE_POINTER(problem);
    REQUIRE_POINTER(visit);
    conv_fft_plan_options defaults;
    conv_fft_plan_options_init(&defaults);
    if (options)
        CF_FORWARD(cf_check_plan_options(options));
    candidate_walk walk = {visit, user};
    return cf_autotune_candidates(context, problem, options ? options : &defaults, show_candidate, &walk);
}

conv_fft_status conv_fft_cache_report(const char *directory, char *text, size_t bytes, size_t *needed,
                                      int64_t *damaged) {
    CF_REQUIRE(text != NULL || bytes == 0, "text is NULL; it must point to %zu bytes", bytes);
    cf_text report = {.text = text, .bytes = bytes};
    int64_t found = 0;
    CF_FORWARD(cf_cache_report(directory, &report, &found));
    if (needed)
        *needed = report.length + 1;
    if (damaged)
        *damaged = found;
    return CONV_FFT_SUCCESS;
}

conv_fft_status conv_fft_cache_repair(conv_fft_context *context, int64_t *removed) {
    REQUIRE_POINTER(context);
    int64_t count = 0;
    const conv_fft_status status = cf_tuner_repair(context->tuner, &count);
    if (removed)
        *removed = count;
    return status;
}

conv_fft_status conv_fft_cache_clear(const char *directory, int64_t *removed) {
    int64_t count = 0;
    const conv_fft_status status = cf_cache_clear(directory, &count);
    if (removed)
        *removed = count;
    return status;
}
