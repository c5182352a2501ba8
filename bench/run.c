/* SPDX-License-Identifier: Apache-2.0 */
/* Suites, cases and passes one after the other. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define CPU_SECONDS 0.5
#define GPU_SECONDS 0.2

/* TF32 inputs have errors near 2.5e-4, which tells them from FP32. */
const bench_class bench_classes[BENCH_CLASSES] = {
    {"fp32", CONV_FFT_FP32, CONV_FFT_MATH_FP32, 1e-3, 1e-4},
    {"tf32", CONV_FFT_FP32, CONV_FFT_MATH_TF32, 2e-3, 2e-3},
    {"fp16", CONV_FFT_FP16, CONV_FFT_MATH_DEFAULT, 1e-2, 1e-2},
    {"bf16", CONV_FFT_BF16, CONV_FFT_MATH_DEFAULT, 2e-2, 2e-2},
};

const bench_pass bench_passes[BENCH_PASSES] = {
    {"fprop", CONV_FFT_FORWARD, false},
    {"bprop", CONV_FFT_BACKWARD_DATA, false},
    {"accgrad", CONV_FFT_BACKWARD_WEIGHTS, false},
    {"backward", CONV_FFT_BACKWARD, false},
    {"fprop-kept", CONV_FFT_FORWARD, true},
    {"bprop-kept", CONV_FFT_BACKWARD_DATA, true},
    {"accgrad-kept", CONV_FFT_BACKWARD_WEIGHTS, true},
    {"backward-kept", CONV_FFT_BACKWARD, true},
};

/* The first is the library; a case too large for the baselines is run by it alone. */
typedef bool opener(bench_impl *impl, const bench_job *job);
static opener *const cpu_openers[] = {
    bench_ours_open,
    bench_direct_open,
#ifdef CONV_FFT_BENCH_DNNL
    bench_onednn_open,
    bench_onednn_blocked_open,
#endif
    NULL,
};
static opener *const gpu_openers[] = {bench_ours_open, bench_cudnn_open, NULL};
enum {
    MAX_IMPLS = sizeof cpu_openers / sizeof cpu_openers[0]
};

/* ------------------------------------------------------------------------------------------------------ the run */

typedef struct session {
    const bench_options *o;
    double seconds;
    conv_fft_context *context;
    bench_gpu gpu_in_use, *gpu; /* NULL: the CPU */
    bench_timer *timer;
    bench_part part;
    bool wrong; /* something that was to be measured was not, or gave a wrong result */
} session;

/* Runs each implementation once over NaN, which warms it up, and takes the error of its result. */
static bool warm_up(const bench_job *job, bench_impl *impls, size_t count, double *errors, bool *wrong) {
    for (size_t i = 0; i < count; i++) {
        if (!bench_poison(job->tensors, job->gpu, job->pass) || !impls[i].run(&impls[i]) ||
            (impls[i].finish && !impls[i].finish(&impls[i])) ||
            !bench_check_error(job->check, job->gpu, job->pass, &errors[i]))
            return false;
        if (!(errors[i] <= job->class->max_error)) {
            bench_message("%s %s: wrong result, relative error %.2e", job->layer->name, impls[i].name, errors[i]);
            *wrong = true;
        }
    }
    return true;
}

static bool add_rows(session *run, const bench_job *job, const char *pass, const bench_impl *impls, size_t count,
                     const double *ms, const double *errors) {
    for (size_t i = 0; i < count; i++) {
        bench_row row = {.ms = ms[i],
                         .rel_l2 = errors[i],
                         .workspace_bytes = impls[i].workspace_bytes,
                         .channels_last = run->o->channels_last};
        bench_copy(row.suite, sizeof row.suite, job->layer->suite);
        bench_copy(row.layer, sizeof row.layer, job->layer->name);
        bench_copy(row.pass, sizeof row.pass, pass);
        bench_copy(row.precision, sizeof row.precision, job->class->name);
        bench_copy(row.impl, sizeof row.impl, impls[i].name);
        bench_copy(row.strategy, sizeof row.strategy, impls[i].strategy);
        if (!bench_part_add(&run->part, &row))
            return false;
    }
    return true;
}

/* How many of the openers are wanted: all, or the library alone. */
static size_t wanted_openers(const session *run, const bench_job *job, opener *const *openers) {
    const double gflop = bench_direct_gflop(&job->layer->shape);
    size_t count = 0;
    while (openers[count])
        count++;
    if (job->kept)
        return 1;
    if (run->o->max_gflop <= 0 || gflop <= run->o->max_gflop)
        return count;
    bench_message("%s: no baselines, they would need %.3g GFLOP", job->layer->name, gflop);
    return 1;
}

static void print_times(const bench_job *job, const char *pass, const bench_impl *impls, size_t count, const double *ms,
                        const double *errors) {
    fprintf(stderr, "%-10s %-28s %-9s", job->layer->suite, job->layer->name, pass);
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s %.4f (%.1e)", impls[i].name, ms[i], errors[i]);
    fputc('\n', stderr);
}

/* One pass of one case, all implementations. The job has its check. */
static bool run_checked(session *run, const bench_job *job, const char *pass) {
    opener *const *openers = job->gpu ? gpu_openers : cpu_openers;
    bench_impl impls[MAX_IMPLS];
    double ms[MAX_IMPLS], errors[MAX_IMPLS];
    size_t count = 0, wanted = wanted_openers(run, job, openers);
    bool good = true;
    for (size_t i = 0; i < wanted; i++) {
        if (openers[i](&impls[count], job))
            count++;
        else
            good = good && i > 0;
    }
    if (warm_up(job, impls, count, errors, &run->wrong) && bench_measure(run->timer, impls, count, run->seconds, ms) &&
        add_rows(run, job, pass, impls, count, ms, errors))
        print_times(job, pass, impls, count, ms, errors);
    else
        good = false;
    for (size_t i = 0; i < count; i++)
        impls[i].close(&impls[i]);
    return good;
}

static void run_pass(session *run, bench_job *job, const char *pass) {
    bench_check *check = bench_check_create(job);
    if (!check)
        bench_message("out of memory");
    job->check = check;
    run->wrong = !check || !run_checked(run, job, pass) || run->wrong;
    bench_check_destroy(check);
}

/* All passes of one case, then the results file anew. */
static bool run_case(session *run, const bench_case *layer) {
    bench_data data;
    bench_tensors tensors;
    if (!bench_data_create(layer, run->gpu, &data))
        return false;
    const bool made = bench_tensors_create(layer, run->gpu, &data, &tensors);
    for (int i = 0; i < BENCH_PASSES && made; i++) {
        bench_job job = {.layer = layer,
                         .pass = bench_passes[i].pass,
                         .kept = bench_passes[i].kept,
                         .class = run->o->class,
                         .data = &data,
                         .tensors = &tensors,
                         .context = run->context,
                         .gpu = run->gpu};
        if (run->o->pass_set & 1u << i)
            run_pass(run, &job, bench_passes[i].name);
    }
    if (run->gpu)
        bench_cudnn_forget(run->gpu);
    if (made)
        bench_tensors_free(run->gpu, &tensors);
    bench_data_free(&data);
    return made && (!run->o->out || bench_csv_write(run->o->out, &run->part));
}

/* The case in the class and the layout that are asked for. */
static bool set_case(bench_case *layer, const bench_options *o) {
    conv_fft_problem *p = &layer->problem;
    p->dtype = o->class->dtype;
    p->math = o->class->math;
    p->tensor_layout = p->weight_layout = o->channels_last ? CONV_FFT_CHANNELS_LAST : CONV_FFT_CHANNELS_FIRST;
    return bench_case_fit(layer, o->max_gflop);
}

/* One file of cases. */
static bool run_suite(session *run, const char *argument) {
    const bench_options *o = run->o;
    bench_suite suite;
    size_t done = 0;
    if (!bench_suite_read(argument, &suite))
        return false;
    bool good = true;
    for (size_t i = (size_t)o->skip; i < suite.count && good && (o->count == 0 || (long)i < o->skip + o->count); i++) {
        bench_case *layer = &suite.cases[i];
        if (o->only && strcmp(layer->name, o->only) != 0)
            continue;
        good = set_case(layer, o);
        if (good && o->list)
            printf("%-12s %-28s %10.3f GFLOP\n", layer->suite, layer->name, bench_direct_gflop(&layer->shape));
        if (good && !o->list && done == 0)
            bench_conditions(&run->part, layer->suite, o, run->seconds, run->context, run->gpu, run->timer);
        if (good && !o->list)
            good = run_case(run, layer);
        done++;
    }
    if (good && done == 0) {
        bench_message("%s: no case %s", argument, o->only ? o->only : "in it");
        good = false;
    }
    if (good && !o->list && !o->out)
        good = bench_csv_write(NULL, &run->part);
    free(run->part.rows);
    run->part = (bench_part){0};
    bench_suite_free(&suite);
    return good;
}

static bool open_context(session *run) {
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

static bool open_session(session *run, const bench_options *o) {
    *run = (session){.o = o};
    if (o->list)
        return true;
    if (!open_context(run))
        return false;
    const bool on_gpu = conv_fft_context_device(run->context) != CONV_FFT_DEVICE_CPU;
    run->seconds = o->seconds > 0 ? o->seconds : on_gpu ? GPU_SECONDS : CPU_SECONDS;
    /* A results file that cannot be written is better known now. */
    if (o->out && !bench_csv_write(o->out, &run->part))
        return false;
    if (on_gpu) {
        if (!bench_gpu_open(&run->gpu_in_use, o->device))
            return false;
        run->gpu = &run->gpu_in_use;
        run->gpu->search_seconds = o->search;
        run->gpu->verbose = o->verbose;
    }
    run->timer = bench_timer_create(run->gpu);
    if (!run->timer)
        bench_message("out of memory");
    return run->timer != NULL;
}

bool bench_run(const bench_options *o) {
    session run;
#ifdef _OPENMP
    if (o->threads > 0)
        omp_set_num_threads((int)o->threads);
#endif
    bool good = open_session(&run, o);
    for (int i = 0; i < o->suite_count && good; i++)
        good = run_suite(&run, o->suites[i]);
    bench_timer_destroy(run.timer);
    bench_gpu_close(&run.gpu_in_use);
    conv_fft_context_destroy(run.context);
    return good && !run.wrong;
}
