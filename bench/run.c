/* SPDX-License-Identifier: Apache-2.0 */
/* Suites, cases and passes one after the other; what the rows of the results say about their conditions. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define MAX_ERROR 1e-3 /* an FP32 result beyond this is wrong, not inexact */

const bench_pass bench_passes[BENCH_PASSES] = {
    {"fprop", CONV_FFT_FORWARD},
    {"bprop", CONV_FFT_BACKWARD_DATA},
    {"accgrad", CONV_FFT_BACKWARD_WEIGHTS},
    {"backward", CONV_FFT_BACKWARD},
};

/* The first is the library; a case too large for direct computation is run by it alone. */
static bool (*const openers[])(bench_impl *, const bench_job *) = {
    bench_ours_open,
    bench_direct_open,
#ifdef CONV_FFT_BENCH_DNNL
    bench_onednn_open,
    bench_onednn_blocked_open,
#endif
};
enum {
    OPENERS = sizeof openers / sizeof openers[0]
};

/* ------------------------------------------------------------------------------------------------------- header */

/* First line of a command's output, or of the value of a key in a file of "key : value" lines; `otherwise` if
   there is none. */
static void first_line(FILE *stream, const char *key, const char *otherwise, char *text, size_t bytes) {
    char line[512];
    bench_copy(text, bytes, otherwise);
    while (stream && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, key, strlen(key)))
            continue;
        const char *colon = strchr(line, ':');
        const char *value = key[0] && colon ? colon + 1 + strspn(colon + 1, " ") : line;
        if (value[0])
            bench_copy(text, bytes, value);
        return;
    }
}

/* The conditions of the run, as comment lines. */
static void write_header(bench_part *part, const char *suite, const bench_options *o, const conv_fft_context *context,
                         const bench_timer *timer) {
    char model[128], commit[64], date[32], limit[64] = "none";
    long threads = 1;
    FILE *cpu = fopen("/proc/cpuinfo", "r");
    first_line(cpu, "model name", "unknown CPU", model, sizeof model);
    if (cpu)
        fclose(cpu);
    FILE *git = popen("git describe --always --dirty 2>/dev/null", "r");
    first_line(git, "", "unknown", commit, sizeof commit);
    if (git)
        pclose(git);
    time_t now = time(NULL);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
#ifdef _OPENMP
    threads = omp_get_max_threads();
#endif
    if (o->max_gflop > 0)
        snprintf(limit, sizeof limit, "%g GFLOP direct per pass", o->max_gflop);
    snprintf(part->header, sizeof part->header,
             "# suite %s, commit %s, %s\n"
             "# device: %s, %ld threads\n"
             "# libraries: conv_fft %s (%s), %s\n"
             "# median of at least 3 runs and %g s, caches flushed by %zu MiB, size limit: %s\n",
             suite, commit, date, model, threads, conv_fft_version_string(), conv_fft_context_description(context),
             bench_onednn_version(), o->seconds, bench_timer_flush_bytes(timer) >> 20, limit);
}

/* ------------------------------------------------------------------------------------------------------ the run */

typedef struct session {
    const bench_options *o;
    conv_fft_context *context;
    bench_timer *timer;
    bench_part part;
    bool wrong; /* something that was to be measured was not, or gave a wrong result */
} session;

/* Uniform in [-1, 1), seeded. */
static float *random_tensor(int64_t count, uint64_t seed) {
    float *values = malloc((size_t)count * sizeof *values);
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; values && i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
    return values;
}

static void free_data(bench_data *d) {
    float *all[] = {d->x, d->w, d->gy, d->y, d->gx, d->gw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

static bool make_data(const bench_shape *s, bench_data *d) {
    int64_t x = bench_x_count(s), w = bench_w_count(s), y = bench_y_count(s);
    *d = (bench_data){random_tensor(x, 1), random_tensor(w, 2), random_tensor(y, 3),
                      random_tensor(y, 4), random_tensor(x, 5), random_tensor(w, 6)};
    if (d->x && d->w && d->gy && d->y && d->gx && d->gw)
        return true;
    free_data(d);
    bench_message("out of memory: tensors of %.3g GB", 8e-9 * (double)(x + w + y));
    return false;
}

/* Runs each implementation once over NaN, which warms it up, and takes the error of its result. */
static bool warm_up(const bench_job *job, bench_impl *impls, size_t count, double *errors, bool *wrong) {
    bench_check *check = bench_check_create(job);
    if (!check) {
        bench_message("out of memory");
        return false;
    }
    bool good = true;
    for (size_t i = 0; i < count && good; i++) {
        bench_poison(job);
        good = impls[i].run(&impls[i]) && (!impls[i].finish || impls[i].finish(&impls[i]));
        errors[i] = bench_check_error(check);
        if (good && !(errors[i] <= MAX_ERROR)) {
            bench_message("%s %s: wrong result, relative error %.2e", job->layer->name, impls[i].name, errors[i]);
            *wrong = true;
        }
    }
    bench_check_destroy(check);
    return good;
}

static bool add_rows(session *run, const bench_job *job, const char *pass, const bench_impl *impls, size_t count,
                     const double *ms, const double *errors) {
    for (size_t i = 0; i < count; i++) {
        bench_row row = {.ms = ms[i], .rel_l2 = errors[i], .workspace_bytes = impls[i].workspace_bytes};
        bench_copy(row.suite, sizeof row.suite, job->layer->suite);
        bench_copy(row.layer, sizeof row.layer, job->layer->name);
        bench_copy(row.pass, sizeof row.pass, pass);
        bench_copy(row.impl, sizeof row.impl, impls[i].name);
        bench_copy(row.strategy, sizeof row.strategy, impls[i].strategy);
        if (!bench_part_add(&run->part, &row))
            return false;
    }
    return true;
}

/* One pass of one case, all implementations. */
static void run_pass(session *run, const bench_job *job, const char *pass) {
    bench_impl impls[OPENERS];
    double ms[OPENERS], errors[OPENERS];
    size_t count = 0, wanted = OPENERS;
    if (run->o->max_gflop > 0 && bench_direct_gflop(&job->layer->shape) > run->o->max_gflop) {
        bench_message("%s: no baselines, they would need %.3g GFLOP", job->layer->name,
                      bench_direct_gflop(&job->layer->shape));
        wanted = 1;
    }
    for (size_t i = 0; i < wanted; i++) {
        if (openers[i](&impls[count], job))
            count++;
        else
            run->wrong = run->wrong || i == 0;
    }
    if (warm_up(job, impls, count, errors, &run->wrong) &&
        bench_measure(run->timer, impls, count, run->o->seconds, ms) &&
        add_rows(run, job, pass, impls, count, ms, errors)) {
        fprintf(stderr, "%-10s %-28s %-9s", job->layer->suite, job->layer->name, pass);
        for (size_t i = 0; i < count; i++)
            fprintf(stderr, " %s %.3f", impls[i].name, ms[i]);
        fputc('\n', stderr);
    } else {
        run->wrong = true;
    }
    for (size_t i = 0; i < count; i++)
        impls[i].close(&impls[i]);
}

/* All passes of one case, then the results file anew. */
static bool run_case(session *run, const bench_case *layer) {
    bench_data data;
    if (!make_data(&layer->shape, &data))
        return false;
    for (int i = 0; i < BENCH_PASSES; i++) {
        bench_job job = {.layer = layer, .pass = bench_passes[i].pass, .data = &data, .context = run->context};
        if (run->o->pass_set & 1u << i)
            run_pass(run, &job, bench_passes[i].name);
    }
    free_data(&data);
    return run->o->out ? bench_csv_write(run->o->out, &run->part) : true;
}

/* One file of cases. */
static bool run_suite(session *run, const char *argument) {
    const bench_options *o = run->o;
    bench_suite suite;
    size_t done = 0;
    if (!bench_suite_read(argument, &suite))
        return false;
    bool good = true;
    for (size_t i = 0; i < suite.count && good && (o->count == 0 || (long)i < o->count); i++) {
        bench_case *layer = &suite.cases[i];
        if (o->only && strcmp(layer->name, o->only) != 0)
            continue;
        good = bench_case_fit(layer, o->max_gflop);
        if (good && o->list)
            printf("%-12s %-28s %10.3f GFLOP\n", layer->suite, layer->name, bench_direct_gflop(&layer->shape));
        if (good && !o->list && done == 0)
            write_header(&run->part, layer->suite, o, run->context, run->timer);
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

static bool open_session(session *run, const bench_options *o) {
    conv_fft_context_options context;
    *run = (session){.o = o};
    if (o->list)
        return true;
    if (conv_fft_context_options_init(&context) != CONV_FFT_SUCCESS)
        return false;
    context.device = o->device;
    context.threads = (int)o->threads;
    if (conv_fft_context_create(&context, &run->context) != CONV_FFT_SUCCESS) {
        bench_message("%s", conv_fft_last_error());
        return false;
    }
    if (conv_fft_context_device(run->context) != CONV_FFT_DEVICE_CPU) {
        bench_message("--device=%d: this program measures the CPU only", o->device);
        return false;
    }
    /* A results file that cannot be written is better known now. */
    if (o->out && !bench_csv_write(o->out, &run->part))
        return false;
    run->timer = bench_timer_create();
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
    conv_fft_context_destroy(run.context);
    return good && !run.wrong;
}
