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
} ours;

static bool run(bench_impl *impl) {
    const bench_data *d = impl->job->data;
    const ours *o = impl->state;
    conv_fft_status status = CONV_FFT_INVALID_ARGUMENT;
    switch (impl->job->pass) {
    case CONV_FFT_FORWARD:
        status = conv_fft_forward(o->plan, d->x, d->w, NULL, d->y, o->workspace, o->bytes, NULL);
        break;
    case CONV_FFT_BACKWARD_DATA:
        status = conv_fft_backward_data(o->plan, d->w, d->gy, d->gx, 0, o->workspace, o->bytes, NULL);
        break;
    case CONV_FFT_BACKWARD_WEIGHTS:
        status = conv_fft_backward_weights(o->plan, d->x, d->gy, d->gw, NULL, 0, o->workspace, o->bytes, NULL);
        break;
    case CONV_FFT_BACKWARD:
        status = conv_fft_backward(o->plan, d->x, d->w, d->gy, d->gx, d->gw, NULL, 0, o->workspace, o->bytes, NULL);
        break;
    case CONV_FFT_ALL_PASSES:
        break;
    }
    if (status != CONV_FFT_SUCCESS)
        bench_message("%s: %s", impl->name, conv_fft_last_error());
    return status == CONV_FFT_SUCCESS;
}

static void close_ours(bench_impl *impl) {
    ours *o = impl->state;
    conv_fft_plan_destroy(o->plan);
    free(o->workspace);
    free(o);
}

/* The plan for the one pass, as a user would make it who runs nothing else. */
static bool make_plan(ours *o, const bench_job *job, conv_fft_description *description) {
    conv_fft_plan_options options;
    if (conv_fft_plan_options_init(&options) != CONV_FFT_SUCCESS)
        return false;
    options.passes = job->pass;
    return conv_fft_plan_create(job->context, &job->layer->problem, &options, &o->plan) == CONV_FFT_SUCCESS &&
           conv_fft_plan_describe(o->plan, job->pass, description) == CONV_FFT_SUCCESS &&
           conv_fft_plan_workspace(o->plan, job->pass, &o->bytes) == CONV_FFT_SUCCESS;
}

bool bench_ours_open(bench_impl *impl, const bench_job *job) {
    conv_fft_description description;
    ours *o = calloc(1, sizeof *o);
    *impl = (bench_impl){.name = "ours", .job = job, .state = o, .run = run, .close = close_ours};
    if (!o) {
        bench_message("out of memory");
        return false;
    }
    if (!make_plan(o, job, &description)) {
        bench_message("ours: %s", conv_fft_last_error());
        close_ours(impl);
        return false;
    }
    o->workspace = o->bytes ? malloc(o->bytes) : NULL;
    if (o->bytes && !o->workspace) {
        bench_message("ours: out of memory: a workspace of %zu bytes", o->bytes);
        close_ours(impl);
        return false;
    }
    impl->workspace_bytes = o->bytes;
    /* The strategy line begins with the family. */
    snprintf(impl->name, sizeof impl->name, "ours-%.*s", (int)strcspn(description.strategy, " "), description.strategy);
    snprintf(impl->strategy, sizeof impl->strategy, "%s", description.strategy);
    return true;
}
