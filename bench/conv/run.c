/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the cases of each suite, and the session in which they run. */
#include "conv/run.h"

#include "common/build_info.h"
#include "common/message.h"
#include "common/suite.h"
#include "conv/baselines/cudnn.h"
#include "conv/baselines/ours.h"
#include "conv/case.h"
#include "conv/conditions.h"
#include "conv/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define CPU_SECONDS 0.5
#define GPU_SECONDS 0.2
#define PREPARED 16 /* cases whose kernels are compiled together; not all, so that an aborted run has rows */

/* Give the case the class and the layout of the options. */
static bool set_case(bench_case *layer, const bench_options *o) {
    conv_fft_problem *p = &layer->problem;
    p->dtype = o->class->dtype;
    p->math = o->class->math;
    p->tensor_layout = p->weight_layout = o->channels_last ? CONV_FFT_CHANNELS_LAST : CONV_FFT_CHANNELS_FIRST;
    return bench_case_fit(layer, o->max_gflop);
}

/* Whether the results already have every pass of the case. */
static bool is_done(const bench_session *run, const bench_case *layer) {
    bench_row row = {.channels_last = run->o->channels_last};
    bench_copy(row.suite, sizeof row.suite, layer->suite);
    bench_copy(row.layer, sizeof row.layer, layer->name);
    bench_copy(row.precision, sizeof row.precision, run->o->class->name);
    for (int i = 0; i < BENCH_PASSES; i++) {
        bench_copy(row.pass, sizeof row.pass, bench_passes[i].name);
        if (run->o->pass_set & 1u << i && !bench_csv_has(run->o->out, run->commit, &row))
            return false;
    }
    return true;
}

/* Leave only the chosen cases in the suite, and reduce them to the limit. False: there is no such case, or a case
 * cannot be reduced. */
static bool choose_cases(const bench_session *run, const char *argument, bench_suite *suite) {
    const bench_options *o = run->o;
    const size_t total = suite->count;
    size_t found = 0;
    suite->count = 0;
    for (size_t i = (size_t)o->skip; i < total && (o->count == 0 || (long)i < o->skip + o->count); i++) {
        bench_case layer = suite->cases[i];
        if ((o->only && strcmp(layer.name, o->only) != 0) || (o->shards && (long)i % o->shards != o->shard))
            continue;
        if (!set_case(&layer, o))
            return false;
        found++;
        if (!o->resume || !is_done(run, &layer))
            suite->cases[suite->count++] = layer;
    }
    if (found == 0)
        bench_message("%s: no case %s", argument, o->only ? o->only : "in it");
    return found > 0;
}

static void prepare(bench_session *run, const bench_case *cases, size_t count) {
    double now = bench_now_ms();
    const double start = now;
    if (!run->gpu && !run->o->prepare_only)
        return;
    bench_prepare(run->context, cases, count, run->o->pass_set, run->o->threads);
    bench_spend(&run->plans_ms, &now);
    fprintf(stderr, "%s: kernels of %zu cases made in %.1f s\n", cases[0].suite, count, 1e-3 * (now - start));
}

static bool out_of_time(const bench_session *run) {
    return run->o->minutes > 0 && bench_now_ms() - run->start_ms >= 6e4 * run->o->minutes;
}

static bool run_cases(bench_session *run, const bench_suite *suite) {
    const bench_options *o = run->o;
    bool good = true;
    for (size_t i = 0; i < suite->count && good; i++) {
        if (out_of_time(run)) {
            bench_message("%s: the time is up: %zu of %zu cases left; --resume goes on", suite->cases[i].suite,
                          suite->count - i, suite->count);
            break;
        }
        if (i % PREPARED == 0)
            prepare(run, &suite->cases[i], suite->count - i < PREPARED ? suite->count - i : PREPARED);
        good = o->prepare_only || bench_run_case(run, &suite->cases[i]);
    }
    return good;
}

static void print_account(const bench_session *run) {
    fprintf(stderr,
            "%.1f s: plans and kernels %.1f, baselines and their search %.1f, data %.1f, checks %.1f, measuring %.1f\n",
            1e-3 * (bench_now_ms() - run->start_ms), 1e-3 * run->plans_ms, 1e-3 * run->baselines_ms,
            1e-3 * run->data_ms, 1e-3 * run->checks_ms, 1e-3 * run->runs_ms);
}

static void print_cases(const bench_suite *suite) {
    for (size_t i = 0; i < suite->count; i++)
        printf("%-12s %-28s %10.3f GFLOP\n", suite->cases[i].suite, suite->cases[i].name,
               bench_direct_gflop(&suite->cases[i].shape));
}

/* One file of cases. */
static bool run_suite(bench_session *run, const char *argument) {
    const bench_options *o = run->o;
    bench_suite suite;
    if (!bench_suite_read(argument, &suite))
        return false;
    bool good = choose_cases(run, argument, &suite);
    if (good && o->list) {
        print_cases(&suite);
    } else if (good && suite.count > 0) {
        bench_conditions(&run->part, suite.cases[0].suite, o, run->seconds, run->context, run->gpu, run->timer);
        good = run_cases(run, &suite);
        if (good && !o->out && !o->prepare_only)
            good = bench_csv_write(NULL, &run->part);
    }
    free(run->part.rows);
    run->part = (bench_part){0};
    bench_suite_free(&suite);
    return good;
}

static bool open_context(bench_session *run) {
    conv_fft_context_options context;
    if (!bench_good(conv_fft_context_options_init(&context), "options"))
        return false;
    context.device = run->o->device;
    context.threads = (int)run->o->threads;
    if (conv_fft_context_create(&context, &run->context) == CONV_FFT_SUCCESS)
        return true;
    bench_message("%s", conv_fft_last_error());
    return false;
}

static bool open_session(bench_session *run, const bench_options *o) {
    *run = (bench_session){.o = o, .start_ms = bench_now_ms()};
    bench_commit(o->commit, run->commit, sizeof run->commit);
    if (o->list)
        return true;
    if (!open_context(run))
        return false;
    const bool on_gpu = conv_fft_context_device(run->context) != CONV_FFT_DEVICE_CPU;
    run->seconds = o->seconds > 0 ? o->seconds : on_gpu ? GPU_SECONDS : CPU_SECONDS;
    /* Find out before the first measurement if the results cannot be written. */
    if (o->out && !bench_csv_write(o->out, &run->part))
        return false;
    if (on_gpu) {
        if (!bench_gpu_open(&run->gpu_in_use, o->device))
            return false;
        run->gpu = &run->gpu_in_use;
        run->gpu->cudnn = bench_cudnn_create(run->gpu);
        run->gpu->search_seconds = o->search;
        run->gpu->known = o->known;
        run->gpu->deterministic = o->tune; /* tuned plans are deterministic */
        run->gpu->verbose = o->verbose;
    }
    run->timer = bench_timer_create(run->gpu);
    if (!run->timer)
        bench_message("out of memory");
    return run->timer != NULL;
}

bool bench_run(const bench_options *o) {
    bench_session run;
#ifdef _OPENMP
    if (o->threads > 0)
        omp_set_num_threads((int)o->threads);
#endif
    bool good = open_session(&run, o);
    for (int i = 0; i < o->suite_count && good; i++)
        good = run_suite(&run, o->suites[i]);
    if (good && !o->list)
        print_account(&run);
    bench_timer_destroy(run.timer);
    if (run.gpu)
        bench_cudnn_destroy(run.gpu);
    bench_gpu_close(&run.gpu_in_use);
    conv_fft_context_destroy(run.context);
    return good && !run.wrong;
}
