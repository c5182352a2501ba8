/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/baselines/cudnn_search.h"

#include "common/csv.h"
#include "common/message.h"
#include "common/timer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_RUNS 2
#define GIVE_UP_MS 50.0 /* a run that is longer than this and GIVE_UP_RATIO times the best is not repeated */
#define GIVE_UP_RATIO 5
#define FINAL_RATIO 1.25 /* algorithms within this ratio of the best run again */
#define FINAL_RUNS 7

conv_fft_status cudnn_way_run(const cudnn_unit *u, const cudnn_way *way) {
    cf_cudnn *const cudnn = u->gpu->gpu->cudnn;
    void *const workspace = u->gpu->scratch;
    cf_cudnn_guard guard;
    CF_FORWARD(cf_cudnn_guard_acquire(cudnn, u->gpu->stream, &guard));
    const conv_fft_status status = way->graph
                                       ? cf_cudnn_graph_run(way->graph, &guard, u->memory, workspace, false)
                                       : cf_cudnn_legacy_run(way->old, &guard, &u->direct, u->memory, workspace, false);
    cf_cudnn_guard_release(cudnn, &guard);
    return status;
}

void cudnn_way_close(const cudnn_unit *u, cudnn_way *way) {
    if (cf_gpu_enter(u->gpu->gpu) != CONV_FFT_SUCCESS)
        return;
    cf_cudnn_graph_destroy(way->graph);
    cf_cudnn_legacy_destroy(way->old);
    cf_gpu_leave(u->gpu->gpu);
    way->graph = NULL;
    way->old = NULL;
}

typedef struct trial {
    const cudnn_unit *u;
    const cudnn_way *way;
} trial;

/* No message: algorithms that are not supported are left out. */
static bool run_trial(void *state) {
    const trial *t = state;
    return cudnn_way_run(t->u, t->way) == CONV_FFT_SUCCESS;
}

static bool time_way(const cudnn_unit *u, const cudnn_way *way, double *ms) {
    trial t = {u, way};
    return bench_gpu_time(u->gpu, run_trial, &t, ms);
}

static bool ready(const cudnn_unit *u, const cudnn_way *way) {
    return bench_gpu_scratch(u->gpu, way->workspace_bytes > 0 ? way->workspace_bytes : 1) == CONV_FFT_SUCCESS;
}

static double best_ms(const cudnn_unit *u) {
    double best = -1;
    for (int i = 0; i < u->count; i++)
        best = best < 0 || u->ways[i].ms < best ? u->ways[i].ms : best;
    return best;
}

/* The shorter of two runs. The first run may load kernels. */
static bool time_shortly(const cudnn_unit *u, cudnn_way *way) {
    const double best = best_ms(u);
    if (!ready(u, way))
        return false;
    for (int i = 0; i < SHORT_RUNS; i++) {
        double ms;
        if (!time_way(u, way, &ms))
            return false;
        way->ms = i == 0 || ms < way->ms ? ms : way->ms;
        if (ms > GIVE_UP_MS && best >= 0 && ms > GIVE_UP_RATIO * best)
            break;
    }
    return true;
}

/* Whether this algorithm was tried before. */
static bool seen(cudnn_unit *u, const char *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (int i = 0; i < u->seen_count; i++)
        if (u->seen[i] == hash)
            return true;
    if (u->seen_count < CUDNN_MAX_SEEN)
        u->seen[u->seen_count++] = hash;
    return false;
}

/* Time an algorithm, and keep it if it runs. False: there is no time or place for more. */
static bool consider(cudnn_unit *u, cudnn_way *way) {
    if (!time_shortly(u, way)) {
        if (u->gpu->verbose)
            bench_message("cudnn %s: %s does not run (workspace %zu bytes)", u->layer->name, way->text,
                          way->workspace_bytes);
        cudnn_way_close(u, way);
        return bench_now_ms() < u->deadline_ms;
    }
    if (u->gpu->verbose)
        bench_message("cudnn %s: %.4f ms %s (workspace %zu bytes)", u->layer->name, way->ms, way->text,
                      way->workspace_bytes);
    u->ways[u->count++] = *way;
    return u->count < CUDNN_MAX_WAYS && bench_now_ms() < u->deadline_ms;
}

/* A search, and the handle that it uses. */
typedef struct search {
    cudnn_unit *u;
    const cf_cudnn_guard *guard;
} search;

/* No message: algorithms that are not supported are left out. */
static bool visit(const char *text, void *user) {
    const search *s = user;
    cudnn_way way = {.ms = 0};
    if (seen(s->u, text))
        return true;
    bench_copy(way.text, sizeof way.text, text);
    if (strncmp(text, "old:", 4) == 0 &&
        cf_cudnn_legacy_create(s->guard, &s->u->direct, text, &way.old) == CONV_FFT_SUCCESS)
        way.workspace_bytes = way.old->workspace;
    else if (strncmp(text, "graph:", 6) == 0 &&
             cf_cudnn_graph_create(s->guard, &s->u->direct, text, false, &way.graph) == CONV_FFT_SUCCESS)
        way.workspace_bytes = way.graph->workspace;
    else
        return bench_now_ms() < s->u->deadline_ms;
    return consider(s->u, &way);
}

static const char *pass_name(conv_fft_pass pass) {
    int i = 0;
    while (bench_passes[i].pass != pass)
        i++;
    return bench_passes[i].name;
}

/* Try the algorithms that earlier searches found best for this pass of the case. */
static void visit_known(search *s) {
    const cudnn_unit *const u = s->u;
    bench_row row = {.impl = "cudnn", .channels_last = u->layer->problem.tensor_layout == CONV_FFT_CHANNELS_LAST};
    char text[sizeof row.strategy];
    FILE *file = u->gpu->known ? fopen(u->gpu->known, "r") : NULL;
    bench_copy(row.suite, sizeof row.suite, u->layer->suite);
    bench_copy(row.layer, sizeof row.layer, u->layer->name);
    bench_copy(row.pass, sizeof row.pass, pass_name(u->pass));
    bench_copy(row.precision, sizeof row.precision, u->class->name);
    while (file && bench_csv_next(file, &row, text, sizeof text)) {
        text[strcspn(text, " ")] = '\0'; /* without the note on the search */
        visit(text, s);
    }
    if (file)
        fclose(file);
}

static int compare_ways(const void *a, const void *b) {
    const double x = ((const cudnn_way *)a)->ms, y = ((const cudnn_way *)b)->ms;
    return (x > y) - (x < y);
}

static void sort_ways(cudnn_unit *u) { qsort(u->ways, (size_t)u->count, sizeof u->ways[0], compare_ways); }

/* Run algorithms again whose first two runs were equally fast. */
static void run_final(cudnn_unit *u) {
    const double limit = u->count > 0 ? FINAL_RATIO * u->ways[0].ms : 0;
    for (int i = 0; i < u->count && u->ways[i].ms <= limit; i++) {
        double ms[FINAL_RUNS];
        bool good = ready(u, &u->ways[i]);
        for (int r = 0; r < FINAL_RUNS && good; r++)
            good = time_way(u, &u->ways[i], &ms[r]);
        if (good)
            u->ways[i].ms = bench_median(ms, FINAL_RUNS);
    }
    sort_ways(u);
}

static void drop_first(cudnn_unit *u) {
    cudnn_way_close(u, &u->ways[0]);
    u->count--;
    memmove(u->ways, u->ways + 1, (size_t)u->count * sizeof u->ways[0]);
}

/* Remove the fastest until its result has the precision of the class. */
static void verify(cudnn_unit *u, const bench_job *job) {
    while (u->count > 0) {
        double error = 0;
        const cudnn_way *way = &u->ways[0];
        if (ready(u, way) && bench_poison(job->tensors, u->gpu, u->pass) &&
            bench_good(cudnn_way_run(u, way), way->text) && bench_check_error(job->check, u->gpu, u->pass, &error) &&
            error <= u->class->baseline_error)
            return;
        bench_message("cudnn %s: passed over: %s: %.4f ms, relative error %.2e", u->layer->name, way->text, way->ms,
                      error);
        drop_first(u);
    }
}

void cudnn_search(cudnn_unit *u, const bench_job *job) {
    const double start = bench_now_ms();
    u->deadline_ms = start + 1e3 * u->gpu->search_seconds;
    cf_cudnn *const cudnn = u->gpu->gpu->cudnn;
    cf_cudnn_guard guard;
    search s = {u, &guard};
    int algorithms = 0;
    if (bench_good(cf_cudnn_guard_acquire(cudnn, u->gpu->stream, &guard), "cudnn")) {
        visit_known(&s);
        if (u->count == 0 || bench_now_ms() < u->deadline_ms)
            cf_cudnn_legacy_each(&guard, &u->direct, visit, &s);
        for (int all = 0; all < 2 && u->count < CUDNN_MAX_WAYS && bench_now_ms() < u->deadline_ms; all++)
            cf_cudnn_graph_each(&guard, &u->direct, all, visit, &s);
        cf_cudnn_guard_release(cudnn, &guard);
    }
    const int count = u->count;
    for (int i = 0; i < count; i++)
        algorithms += u->ways[i].old != NULL;
    u->cut_short = count == CUDNN_MAX_WAYS || bench_now_ms() >= u->deadline_ms;
    sort_ways(u);
    run_final(u);
    verify(u, job);
    fprintf(stderr, "cudnn %s %s: %d algorithms, %d engines in %.1f s%s", u->layer->name, pass_name(u->pass),
            algorithms, count - algorithms, 1e-3 * (bench_now_ms() - start),
            count == CUDNN_MAX_WAYS ? " (as many as there is place for)"
            : u->cut_short          ? " (all the time there was)"
                                    : "");
    if (u->count > 0)
        fprintf(stderr, ": %.4f ms %s", u->ways[0].ms, u->ways[0].text);
    fputc('\n', stderr);
}
