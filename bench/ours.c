/* SPDX-License-Identifier: Apache-2.0 */
/* The library under measurement, through its public interface only. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ours {
    conv_fft_plan *plan;
    void *workspace;
    size_t bytes;
    struct CUstream_st *stream;
    void *x_spectrum, *w_spectrum; /* kept ones: those that the pass reads */
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

/* store: the spectra are made; else they are read. */
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
    const conv_fft_status status = impl->job->kept ? run_kept(o, impl->job, false) : run_pass(o, impl->job);
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

/* The plan for the one pass, as a user would make it who runs nothing else; kept spectra are those of all passes. */
static conv_fft_status make_plan(ours *o, const bench_job *job, conv_fft_description *description) {
    conv_fft_plan_options options;
    conv_fft_status status = conv_fft_plan_options_init(&options);
    options.passes = job->kept ? CONV_FFT_ALL_PASSES : job->pass;
    options.keep = job->kept ? CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W : 0;
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_create(job->context, &job->layer->problem, &options, &o->plan);
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

/* Memory, and the spectra in it. */
static bool prepare(ours *o, const bench_job *job) {
    o->workspace = o->bytes ? bench_allocate(job->gpu, o->bytes, "ours: the workspace") : NULL;
    if (o->bytes && !o->workspace)
        return false;
    if (!job->kept)
        return true;
    if ((job->pass & CONV_FFT_BACKWARD_WEIGHTS && !keep(o, job, CONV_FFT_OPERAND_X, &o->x_spectrum)) ||
        (job->pass & (CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA) && !keep(o, job, CONV_FFT_OPERAND_W, &o->w_spectrum)))
        return false;
    if (run_kept(o, job, true) == CONV_FFT_SUCCESS)
        return true;
    bench_message("ours: %s", conv_fft_last_error());
    return false;
}

bool bench_ours_open(bench_impl *impl, const bench_job *job) {
    conv_fft_description description;
    ours *o = calloc(1, sizeof *o);
    *impl = (bench_impl){.name = "ours", .job = job, .state = o, .run = run, .close = close_ours};
    if (!o) {
        bench_message("out of memory");
        return false;
    }
    o->stream = bench_stream(job->gpu);
    if (make_plan(o, job, &description) != CONV_FFT_SUCCESS) {
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
    snprintf(impl->strategy, sizeof impl->strategy, "%s", description.strategy);
    return true;
}
