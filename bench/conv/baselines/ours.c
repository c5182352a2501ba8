/* SPDX-License-Identifier: Apache-2.0 */
/* The library is called through its public interface only. */
#include "conv/baselines/ours.h"

#include "common/gpu.h"
#include "common/message.h"

#include <pthread.h>
#include <stdatomic.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_THREADS 64
/* The repeats of a profile of a pass. */
#define GPU_REPEATS 31
#define CPU_REPEATS 5

typedef struct ours {
    conv_fft_plan *plan;
    void *workspace;
    size_t bytes;
    struct CUstream_st *stream;
    bool reads;                    /* the pass reads kept spectra */
    void *x_spectrum, *w_spectrum; /* the spectra that the pass reads */
} ours;

static conv_fft_status run_pass(const ours *o, const bench_job *job) {
    const bench_tensors *t = job->tensors;
    switch (job->pass) {
    case CONV_FFT_FORWARD:
        return conv_fft_forward(o->plan, t->x.memory, t->w.memory, NULL, t->y.memory, o->workspace, o->bytes,
                                o->stream);
    case CONV_FFT_BACKWARD_DATA:
        return conv_fft_backward_data(o->plan, t->w.memory, t->gy.memory, t->gx.memory, 0, o->workspace, o->bytes,
                                      o->stream);
    case CONV_FFT_BACKWARD_WEIGHTS:
        return conv_fft_backward_weights(o->plan, t->x.memory, t->gy.memory, t->gw.memory, NULL, 0, o->workspace,
                                         o->bytes, o->stream);
    case CONV_FFT_BACKWARD:
        return conv_fft_backward(o->plan, t->x.memory, t->w.memory, t->gy.memory, t->gx.memory, t->gw.memory, NULL, 0,
                                 o->workspace, o->bytes, o->stream);
    case CONV_FFT_ALL_PASSES:
        break;
    }
    return CONV_FFT_INVALID_ARGUMENT;
}

/* store: make the spectra; else read them. */
static conv_fft_status run_kept(const ours *o, const bench_job *job, bool store) {
    const bench_tensors *t = job->tensors;
    const void *w = o->w_spectrum && !store ? NULL : t->w.memory;
    if (job->pass == CONV_FFT_FORWARD)
        return conv_fft_forward_kept(o->plan, t->x.memory, w, NULL, t->y.memory, NULL, o->w_spectrum, o->workspace,
                                     o->bytes, o->stream);
    const bool data = job->pass & CONV_FFT_BACKWARD_DATA, weights = job->pass & CONV_FFT_BACKWARD_WEIGHTS;
    const void *x = o->x_spectrum && !store ? NULL : t->x.memory;
    return conv_fft_backward_kept(o->plan, weights ? x : NULL, data ? w : NULL, t->gy.memory,
                                  data ? t->gx.memory : NULL, weights ? t->gw.memory : NULL, NULL, 0, o->x_spectrum,
                                  o->w_spectrum, o->workspace, o->bytes, o->stream);
}

static bool run(bench_impl *impl) {
    const ours *o = impl->state;
    const conv_fft_status status = o->reads ? run_kept(o, impl->job, false) : run_pass(o, impl->job);
    if (status != CONV_FFT_SUCCESS)
        bench_message("%s: %s", impl->name, conv_fft_last_error());
    return status == CONV_FFT_SUCCESS;
}

static void close_ours(bench_impl *impl) {
    ours *o = impl->state;
    conv_fft_plan_destroy(o->plan);
    bench_free(impl->job->gpu, o->workspace);
    bench_free(impl->job->gpu, o->x_spectrum);
    bench_free(impl->job->gpu, o->w_spectrum);
    free(o);
}

/* The strategy lines of the passes. An empty line leaves the choice to the library, which may take algorithms of
 * cuDNN if any_library is set. */
typedef struct forced {
    char line[3][256];
    bool any_library;
} forced;

/* Make a plan for the one pass, as a user does who runs no other. Plans with kept spectra are for all passes. */
static conv_fft_status create_plan(conv_fft_context *context, const conv_fft_problem *problem, conv_fft_pass pass,
                                   bool kept, conv_fft_tuning tuning, const forced *force, conv_fft_plan **plan) {
    conv_fft_plan_options options;
    const conv_fft_status status = conv_fft_plan_options_init(&options);
    for (int i = 0; i < 3 && force; i++)
        options.strategy[i] = force->line[i][0] ? force->line[i] : NULL;
    options.passes = kept ? CONV_FFT_ALL_PASSES : pass;
    options.keep = kept ? CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W : 0;
    options.tuning = tuning;
    options.own_kernels = tuning < CONV_FFT_TUNE_MEASURE && !(force && force->any_library);
    return status == CONV_FFT_SUCCESS ? conv_fft_plan_create(context, problem, &options, plan) : status;
}

static conv_fft_status make_plan(ours *o, const bench_job *job, conv_fft_tuning tuning, const forced *force,
                                 conv_fft_description *description) {
    conv_fft_status status =
        create_plan(job->context, &job->layer->problem, job->pass, job->kept, tuning, force, &o->plan);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_describe(o->plan, job->pass, description);
    return status == CONV_FFT_SUCCESS ? conv_fft_plan_workspace(o->plan, job->pass, &o->bytes) : status;
}

static bool keep(const ours *o, const bench_job *job, conv_fft_operand operand, void **spectrum) {
    size_t bytes = 0;
    if (conv_fft_plan_spectrum(o->plan, operand, &bytes) != CONV_FFT_SUCCESS) {
        bench_message("ours: %s", conv_fft_last_error());
        return false;
    }
    *spectrum = bench_allocate(job->gpu, bytes, "a kept spectrum");
    return *spectrum != NULL;
}

/* Allocate the memory of the spectra, and make them. */
static bool prepare(ours *o, const bench_job *job) {
    o->workspace = o->bytes ? bench_allocate(job->gpu, o->bytes, "ours: the workspace") : NULL;
    if (o->bytes && !o->workspace)
        return false;
    if (!o->reads)
        return true;
    if ((job->pass & CONV_FFT_BACKWARD_WEIGHTS && !keep(o, job, CONV_FFT_OPERAND_X, &o->x_spectrum)) ||
        (job->pass & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA) && !keep(o, job, CONV_FFT_OPERAND_W, &o->w_spectrum)))
        return false;
    if (run_kept(o, job, true) == CONV_FFT_SUCCESS)
        return true;
    bench_message("ours: %s", conv_fft_last_error());
    return false;
}

/* name NULL: the name of the family. */
static bool open_ours(bench_impl *impl, const bench_job *job, const char *name, conv_fft_tuning tuning, bool reads,
                      const forced *force) {
    conv_fft_description description;
    ours *o = calloc(1, sizeof *o);
    *impl = (bench_impl){.name = "ours", .job = job, .state = o, .run = run, .close = close_ours};
    if (!o) {
        bench_message("out of memory");
        return false;
    }
    o->stream = bench_stream(job->gpu);
    o->reads = reads;
    if (make_plan(o, job, tuning, force, &description) != CONV_FFT_SUCCESS) {
        bench_message("ours: %s", conv_fft_last_error());
        close_ours(impl);
        return false;
    }
    if (!prepare(o, job)) {
        close_ours(impl);
        return false;
    }
    impl->workspace_bytes = o->bytes;
    /* The strategy line begins with the family. */
    snprintf(impl->name, sizeof impl->name, "ours-%.*s", (int)strcspn(description.strategy, " "), description.strategy);
    if (name)
        bench_copy(impl->name, sizeof impl->name, name);
    snprintf(impl->strategy, sizeof impl->strategy, "%s", description.strategy);
    return true;
}

bool bench_ours_open(bench_impl *impl, const bench_job *job) {
    return open_ours(impl, job, NULL, CONV_FFT_TUNE_OFF, job->kept, NULL);
}

bool bench_tuned_open(bench_impl *impl, const bench_job *job) {
    return open_ours(impl, job, "tuned", CONV_FFT_TUNE_MEASURE, job->kept, NULL);
}

/* Where it is no algorithm of cuDNN, it is measured as bench_ours_open(). */
bool bench_choice_open(bench_impl *impl, const bench_job *job) {
    const forced any = {.any_library = true};
    if (!open_ours(impl, job, "choice", CONV_FFT_TUNE_OFF, job->kept, &any))
        return false;
    if (strncmp(impl->strategy, "cudnn ", 6) == 0)
        return true;
    close_ours(impl);
    return false;
}

bool bench_unkept_open(bench_impl *impl, const bench_job *job) {
    return open_ours(impl, job, "unkept", CONV_FFT_TUNE_OFF, false, NULL);
}

/* ---- one family of kernels */

typedef struct family_search {
    const char *family; /* the beginning of its lines */
    conv_fft_pass pass;
    forced best;
    bool found;
} family_search;

/* The strategy lines of a candidate, one for each pass of its set, joined by "; ". */
static bool split_lines(const family_search *s, const char *text, forced *lines) {
    *lines = (forced){0};
    for (int i = 0; i < 3; i++) {
        if (!(s->pass & 1 << i))
            continue;
        const size_t length = strcspn(text, ";");
        if (strncmp(text, s->family, strlen(s->family)) != 0)
            return false;
        snprintf(lines->line[i], sizeof lines->line[i], "%.*s", (int)length, text);
        text += length;
        text += strspn(text, "; ");
    }
    return true;
}

static int take_first(const conv_fft_tune_candidate *candidate, void *user) {
    family_search *s = user;
    if (!s->found)
        s->found = split_lines(s, candidate->strategy, &s->best);
    return 0;
}

static bool open_family(bench_impl *impl, const bench_job *job, const char *family) {
    family_search s = {.family = family, .pass = job->pass};
    conv_fft_plan_options options;
    if (conv_fft_plan_options_init(&options) != CONV_FFT_SUCCESS)
        return false;
    options.passes = (int)job->pass;
    options.tuning = CONV_FFT_TUNE_OFF;
    if (conv_fft_tune_candidates(job->context, &job->layer->problem, &options, take_first, &s) != CONV_FFT_SUCCESS) {
        bench_message("ours: %s", conv_fft_last_error());
        return false;
    }
    return s.found && open_ours(impl, job, NULL, CONV_FFT_TUNE_OFF, job->kept, &s.best);
}

bool bench_staged_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "staged "); }

bool bench_fused_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "fused "); }

bool bench_long1d_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "long1d "); }

bool bench_toeplitz_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "toeplitz"); }
bool bench_dft_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "dft"); }
bool bench_implicit_gemm_open(bench_impl *impl, const bench_job *job) {
    return open_family(impl, job, "implicit_gemm");
}
bool bench_spatial_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "spatial"); }

bool bench_cufft_family_open(bench_impl *impl, const bench_job *job) { return open_family(impl, job, "cufft "); }

/* ---- a profile */

bool bench_ours_profile(const bench_job *job, conv_fft_description *description) {
    const int repeats = job->gpu ? GPU_REPEATS : CPU_REPEATS;
    conv_fft_plan *plan = NULL;
    conv_fft_status status =
        create_plan(job->context, &job->layer->problem, job->pass, job->kept, CONV_FFT_TUNE_OFF, NULL, &plan);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_profile(plan, job->pass, repeats, description);
    if (status != CONV_FFT_SUCCESS)
        bench_message("ours: %s", conv_fft_last_error());
    conv_fft_plan_destroy(plan);
    return status == CONV_FFT_SUCCESS;
}

bool bench_ours_transforms(const bench_impl *impl, double *ms, char *text, size_t bytes) {
    const ours *o = impl->state;
    const conv_fft_pass pass = impl->job->pass;
    const int repeats = impl->job->gpu ? GPU_REPEATS : CPU_REPEATS;
    const bool reads_w = pass & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA), reads_x = pass & CONV_FFT_BACKWARD_WEIGHTS;
    conv_fft_description d;
    if (conv_fft_profile(o->plan, pass, repeats, &d) != CONV_FFT_SUCCESS) {
        bench_message("%s: %s", impl->name, conv_fft_last_error());
        return false;
    }
    size_t used = 0;
    *ms = 0;
    text[0] = '\0';
    for (int i = 0; i < d.stage_count && used < bytes; i++) {
        const conv_fft_stage *stage = &d.stages[i];
        if (!(reads_w && !strcmp(stage->name, "transform w")) && !(reads_x && !strcmp(stage->name, "transform x")))
            continue;
        *ms += stage->measured_ms;
        used += (size_t)snprintf(text + used, bytes - used, "%s%s %.4f ms", used ? "; " : "", stage->name,
                                 stage->measured_ms);
    }
    return true;
}

/* ---- plans in advance */

typedef struct preparation {
    conv_fft_context *context;
    const bench_case *cases;
    size_t count;
    unsigned pass_set;
    atomic_size_t next; /* all cases of one pass come before the next pass: kernels of several passes are made once */
} preparation;

static void *prepare_plans(void *argument) {
    preparation *const p = argument;
    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < BENCH_PASSES * p->count;) {
        const bench_pass *pass = &bench_passes[i / p->count];
        conv_fft_plan *plan = NULL;
        if (!(p->pass_set & 1u << i / p->count))
            continue;
        if (create_plan(p->context, &p->cases[i % p->count].problem, pass->pass, pass->kept, CONV_FFT_TUNE_OFF, NULL,
                        &plan) == CONV_FFT_SUCCESS)
            conv_fft_plan_destroy(plan);
    }
    return NULL;
}

void bench_prepare(conv_fft_context *context, const bench_case *cases, size_t count, unsigned pass_set, long threads) {
    preparation p = {.context = context, .cases = cases, .count = count, .pass_set = pass_set};
    pthread_t helpers[MAX_THREADS];
    const long wanted = (threads > 0 ? threads : sysconf(_SC_NPROCESSORS_ONLN)) - 1;
    int started = 0;
    while (started < wanted && started < MAX_THREADS && pthread_create(&helpers[started], NULL, prepare_plans, &p) == 0)
        started++;
    prepare_plans(&p);
    while (started > 0)
        pthread_join(helpers[--started], NULL);
}
