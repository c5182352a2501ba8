/* SPDX-License-Identifier: Apache-2.0 */
/* Cases are measured one after the other, in both directions. */
#include "fft/run.h"

#include "common/build_info.h"
#include "common/csv.h"
#include "common/message.h"
#include "fft/baselines.h"
#include "fft/measure.h"
#include "fft/ours.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_ERROR 1e-5 /* an FP32 result with a larger error is wrong */
#define MAX_ERROR_FP64 1e-13
#define MAX_ERROR_FP16 5e-3
#define REPEATS 31
#define QUICK_REPEATS 11

/* The time to make plans, summed over transforms. */
typedef struct first_use {
    int count;
    double cold_ms, worst_cold_ms, cached_ms, worst_cached_ms;
} first_use;

typedef struct session {
    const fft_options *o;
    const fft_case *cases;
    const char *cache; /* the folder of kernels */
    char own[512];     /* a cache of this run only, so that each plan is made once without its kernels */
    cf_gpu *gpu;
    conv_fft_context *context;
    cf_cu_stream stream;
    fft_cufft cufft;
    fft_timer timer;
    first_use first;
    bench_part part;
    char conditions[768]; /* the part of the header that does not change during the run */
    bool wrong;
} session;

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* ---- header */

static void describe_conditions(session *run) {
    char commit[64], date[32], driver[64];
    bench_commit(run->o->commit, commit, sizeof commit);
    bench_date(date, sizeof date);
    bench_driver(driver, sizeof driver);
    const cf_gpu *const gpu = run->gpu;
    snprintf(run->conditions, sizeof run->conditions,
             "# suite fft%s, commit %s, %s\n"
             "# device: %s, driver %s, CUDA %s\n"
             "# libraries: conv_fft %s, NVRTC %s, cuFFT %s\n"
             "# median of %d runs by device events, taking turns, %zu MiB written before each\n",
             run->o->quick ? " (quick)" : "", commit, date, gpu->properties.name, driver, gpu->driver.library.version,
             conv_fft_version_string(), gpu->jit.library.usable ? gpu->jit.library.version : "none",
             run->cufft.library.usable ? run->cufft.library.version : "none", run->timer.repeats,
             FFT_FLUSH_BYTES >> 20);
}

static void write_header(session *run) {
    const first_use *const f = &run->first;
    const int count = f->count ? f->count : 1;
    if (run->o->cache) {
        bench_copy(run->part.header, sizeof run->part.header, run->conditions);
        return;
    }
    snprintf(run->part.header, sizeof run->part.header,
             "%s# making %d plans: %.0f ms each and %.0f ms at most, from the kernel cache %.2f and %.2f ms\n",
             run->conditions, f->count, f->cold_ms / count, f->worst_cold_ms, f->cached_ms / count, f->worst_cached_ms);
}

/* ---- one case */

static bool report(conv_fft_status status, const char *name, const char *what) {
    if (status == CONV_FFT_SUCCESS)
        return true;
    bench_message("%s %s: %s", name, what, conv_fft_last_error());
    return false;
}

/* Make the plan twice, without and with its kernels in the cache. An earlier case may have made them. */
static void measure_first_use(session *run, const fft_job *job) {
    if (run->o->cache || !fft_has_default(job->c))
        return;
    for (const fft_case *c = run->cases; c < job->c; c++)
        if (fft_same_transform(c, job->c))
            return;
    const fbfft_desc d = fft_desc_of(job->c, job->inverse);
    double ms[2];
    for (int i = 0; i < 2; i++) {
        fbfft_plan *plan = NULL;
        const double start = now_ms();
        if (fbfft_plan_create(run->context, &d, &plan) != CONV_FFT_SUCCESS)
            return; /* the message comes when the plan is made for the measurement */
        ms[i] = now_ms() - start;
        fbfft_plan_destroy(plan);
    }
    first_use *const f = &run->first;
    f->count++;
    f->cold_ms += ms[0];
    f->cached_ms += ms[1];
    f->worst_cold_ms = fmax(f->worst_cold_ms, ms[0]);
    f->worst_cached_ms = fmax(f->worst_cached_ms, ms[1]);
    fprintf(stderr, "%-34s %s plan: %.1f ms, from the kernel cache %.2f ms\n", job->c->name,
            fft_pass(job->c, job->inverse), ms[0], ms[1]);
}

/* It is taken after the measurement, so that an input that an implementation destroyed shows as an error. */
static conv_fft_status check(const fft_job *job, fft_impl *impl, double *error) {
    *error = 0;
    if (!impl->transforms)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(fft_poison(job));
    if (impl->restore)
        CF_FORWARD(impl->restore(impl));
    CF_FORWARD(impl->run(impl));
    if (impl->finish)
        CF_FORWARD(impl->finish(impl));
    return fft_error(job, impl->natural, error);
}

static bool add_row(session *run, const fft_job *job, const fft_impl *impl, double ms, double error) {
    bench_row row = {.suite = "fft", .ms = ms, .rel_l2 = error, .workspace_bytes = impl->workspace_bytes};
    bench_copy(row.layer, sizeof row.layer, job->c->name);
    bench_copy(row.pass, sizeof row.pass, fft_pass(job->c, job->inverse));
    bench_copy(row.precision, sizeof row.precision, fft_precision(job->c));
    bench_copy(row.impl, sizeof row.impl, impl->name);
    bench_copy(row.strategy, sizeof row.strategy, impl->strategy);
    if (error <= (job->c->doubles ? MAX_ERROR_FP64 : job->c->halves ? MAX_ERROR_FP16 : MAX_ERROR))
        return bench_part_add(&run->part, &row);
    bench_message("%s %s %s: wrong result, relative error %.2e", row.layer, row.pass, row.impl, error);
    run->wrong = true;
    return bench_part_add(&run->part, &row);
}

static bool measure(session *run, const fft_job *job, fft_impl *impls, size_t count) {
    double ms[FFT_MAX_IMPLS], errors[FFT_MAX_IMPLS];
    if (!report(fft_measure(&run->timer, impls, count, ms), job->c->name, "measurement"))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!report(check(job, &impls[i], &errors[i]), job->c->name, impls[i].name) ||
            !add_row(run, job, &impls[i], ms[i], errors[i]))
            return false;
    fprintf(stderr, "%-34s %s", job->c->name, fft_pass(job->c, job->inverse));
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, " %s %.4f (%.1e)", impls[i].name, ms[i], errors[i]);
    fputc('\n', stderr);
    return true;
}

/* Measure all implementations in one direction. */
static bool run_job(session *run, fft_job *job) {
    static conv_fft_status (*const openers[FFT_MAX_IMPLS])(fft_impl *) = {
        fft_ours_open, fft_ours_split_open, fft_cufft_alone_open, fft_cufft_padded_open, fft_copy_open};
    fft_impl impls[FFT_MAX_IMPLS];
    size_t count = 0;
    bool good = true;
    measure_first_use(run, job);
    for (size_t i = 0; i < FFT_MAX_IMPLS; i++) {
        if ((openers[i] == fft_cufft_padded_open && !fft_padded(job->c)) ||
            (openers[i] == fft_ours_open && !fft_has_default(job->c)) ||
            (openers[i] == fft_ours_split_open && !fft_has_split(job->c)))
            continue;
        impls[count] = (fft_impl){.job = job};
        const conv_fft_status status = openers[i](&impls[count]);
        if (status == CONV_FFT_SUCCESS)
            count++;
        else if (i == 0)
            good = report(status, job->c->name, "ours");
        else if (status != CONV_FFT_LIBRARY_MISSING)
            report(status, job->c->name, "baseline"); /* that cuFFT is missing was said at the start */
    }
    good = measure(run, job, impls, count) && good;
    for (size_t i = 0; i < count; i++)
        impls[i].close(&impls[i]);
    return good;
}

static bool run_case(session *run, const fft_case *c) {
    bool good = true;
    for (int inverse = 0; inverse < (c->complex_signal ? 1 : 2); inverse++) {
        fft_job job = {.c = c,
                       .inverse = inverse == 1,
                       .gpu = run->gpu,
                       .context = run->context,
                       .cufft = &run->cufft,
                       .stream = run->stream};
        const bool made = report(fft_data_create(&job), c->name, "data");
        good = made && run_job(run, &job) && good;
        if (made)
            fft_data_destroy(&job);
    }
    write_header(run);
    return (!run->o->out || bench_csv_write(run->o->out, &run->part)) && good;
}

/* ---- the session */

static bool make_cache(session *run) {
    const char *const folder = getenv("TMPDIR");
    run->cache = run->o->cache;
    if (run->cache)
        return true;
    snprintf(run->own, sizeof run->own, "%s/bench_fft.XXXXXX", folder && *folder ? folder : "/tmp");
    run->cache = mkdtemp(run->own);
    if (run->cache)
        return true;
    bench_message("cannot make the directory %s", run->own);
    return false;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place) {
    (void)status;
    (void)type;
    (void)place;
    return remove(path);
}

static conv_fft_status open_gpu(session *run) {
    const cf_gpu_options gpu = {
        .cache_directory = run->cache, .log_level = CONV_FFT_LOG_WARNING, .search = cf_search_default()};
    conv_fft_context_options context;
    CF_FORWARD(conv_fft_context_options_init(&context));
    context.device = 0;
    context.cache_directory = run->cache;
    CF_FORWARD(conv_fft_context_create(&context, &run->context));
    CF_FORWARD(cf_gpu_open(&gpu, &run->gpu));
    CF_FORWARD(cf_gpu_stream_create(run->gpu, &run->stream));
    if (fft_cufft_open(&run->cufft, run->gpu) != CONV_FFT_SUCCESS)
        bench_message("no cuFFT to compare with: %s", run->cufft.library.problem);
    return fft_timer_create(&run->timer, run->gpu, run->stream, run->o->quick ? QUICK_REPEATS : REPEATS);
}

static void close_session(session *run) {
    fft_timer_destroy(&run->timer);
    if (run->gpu)
        cf_gpu_stream_destroy(run->gpu, run->stream);
    cf_gpu_close(run->gpu);
    conv_fft_context_destroy(run->context);
    free(run->part.rows);
    if (run->cache && run->cache == run->own)
        nftw(run->own, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

bool fft_bench(const fft_options *o, const fft_case *cases, size_t count) {
    session run = {.o = o, .cases = cases};
    /* Find out before the first measurement if the results cannot be written. */
    bool good = (!o->out || bench_csv_write(o->out, &run.part)) && make_cache(&run) &&
                report(open_gpu(&run), "GPU 0", "does not open");
    if (good)
        describe_conditions(&run);
    const bool opened = good;
    for (size_t i = 0; i < count && opened; i++)
        good = run_case(&run, &cases[i]) && good;
    if (opened && !o->out)
        good = bench_csv_write(NULL, &run.part) && good;
    close_session(&run);
    return good && !run.wrong;
}
