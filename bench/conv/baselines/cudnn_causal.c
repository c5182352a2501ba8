/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation that has the layout of the layer runs a few times. The fastest one that computes in the class is then
 * measured like other implementations. One call computes both gradients, also where a pass needs only one of them.
 *
 * The operations have other orders and types of w and gw than the layer. w is rearranged before the clock starts, and
 * gw after it stops. Operations that add to gw begin with a fill of zeros, which is timed.
 */
#include "conv/baselines/cudnn_causal.h"

#include "common/message.h"
#include "common/timer.h"
#include "conv/cudnn/cudnn.h"
#include "cuda/libs/cudnn_causal.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FLOAT_BYTES = 4,
    TRIAL_RUNS = 5
};

typedef enum causal_method {
    DEFINITION,
    DEFINITION_LAST,
    FFT,
    METHODS
} causal_method;

static const struct {
    const char *forward, *backward;
    bool channels_last;
    bool newest_first; /* tap 0 reads the newest sample */
    bool sums;         /* adds FP32 numbers to gw, in an order that changes from run to run */
} methods[METHODS] = {
    {"cudnnCausalConv1dForward", "cudnnCausalConv1dBackward", false, false, true},
    {"cudnnCausalConv1dNwhForward", "cudnnCausalConv1dNwhBackward", true, false, true},
    {"cudnnFFTCausalConv1dForward", "cudnnFFTCausalConv1dBackward", false, true, false},
};

/* One operation and its own tensors. */
typedef struct causal {
    const bench_job *job;
    causal_method method;
    int samples, channels, length, taps;
    size_t element, gw_element; /* bytes */
    void *w, *gw, *bias, *gbias;
} causal;

/* ---- memory */

static size_t w_count(const causal *c) { return (size_t)c->channels * (size_t)c->taps; }

/* The place of a tap of the layer in w and gw of the operation. */
static size_t place(const causal *c, size_t channel, size_t tap) {
    const size_t taps = (size_t)c->taps, own = methods[c->method].newest_first ? taps - 1 - tap : tap;
    return c->method == DEFINITION_LAST ? own * (size_t)c->channels + channel : channel * taps + own;
}

static bool put_w(const causal *c) {
    const bench_gpu *const g = c->job->gpu;
    const size_t bytes = w_count(c) * c->element, taps = (size_t)c->taps;
    char *const given = malloc(bytes), *const own = malloc(bytes);
    bool good = given && own;
    good = good && bench_good(cf_gpu_download(g->gpu, given, c->job->tensors->w.memory, bytes, g->stream), "w") &&
           bench_good(cf_gpu_synchronize(g->gpu, g->stream), "w");
    for (size_t i = 0; good && i < w_count(c); i++)
        memcpy(own + place(c, i / taps, i % taps) * c->element, given + i * c->element, c->element);
    good = good && bench_good(cf_gpu_upload(g->gpu, c->w, own, bytes, g->stream), "w") &&
           bench_good(cf_gpu_synchronize(g->gpu, g->stream), "w");
    free(given);
    free(own);
    return good;
}

/* Write the gradient in the order and the type of the layer. */
static bool finish(bench_impl *impl) {
    const causal *const c = impl->state;
    const bench_gpu *const g = c->job->gpu;
    const size_t taps = (size_t)c->taps, bytes = w_count(c) * c->gw_element;
    if (!(c->job->pass & CONV_FFT_BACKWARD_WEIGHTS))
        return true;
    char *const own = malloc(bytes);
    float *const values = malloc(w_count(c) * sizeof *values);
    bool good = own && values;
    good = good && bench_good(cf_gpu_download(g->gpu, own, c->gw, bytes, g->stream), "gw") &&
           bench_good(cf_gpu_synchronize(g->gpu, g->stream), "gw");
    for (size_t i = 0; good && i < w_count(c); i++)
        values[i] = bench_value(c->gw_element == FLOAT_BYTES ? CONV_FFT_FP32 : c->job->class->dtype,
                                own + place(c, i / taps, i % taps) * c->gw_element);
    good = good && bench_tensor_set(g, &c->job->tensors->gw, values);
    free(own);
    free(values);
    return good;
}

static void release(causal *c) {
    const bench_gpu *const g = c->job->gpu;
    void *const all[] = {c->w, c->gw, c->bias, c->gbias};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bench_free(g, all[i]);
    free(c);
}

static bool prepare(causal *c) {
    const bench_gpu *const g = c->job->gpu;
    const size_t channels = (size_t)c->channels;
    c->w = bench_allocate(g, w_count(c) * c->element, "w for cuDNN");
    c->gw = bench_allocate(g, w_count(c) * c->gw_element, "gw for cuDNN");
    c->bias = bench_allocate(g, channels * FLOAT_BYTES, "a bias for cuDNN");
    c->gbias = bench_allocate(g, channels * FLOAT_BYTES, "a bias for cuDNN");
    return c->w && c->gw && c->bias && c->gbias &&
           bench_good(cf_gpu_fill(g->gpu, c->bias, 0, channels * FLOAT_BYTES, g->stream), "a bias for cuDNN") &&
           bench_good(cf_gpu_fill(g->gpu, c->gw, 0xFF, w_count(c) * c->gw_element, g->stream), "gw for cuDNN") &&
           put_w(c);
}

/* NULL: a message has been written. */
static causal *create(const bench_job *job, causal_method method) {
    const bench_shape *const s = &job->layer->shape;
    causal *const c = calloc(1, sizeof *c);
    if (!c) {
        bench_message("out of memory");
        return NULL;
    }
    *c = (causal){.job = job,
                  .method = method,
                  .samples = (int)s->batch,
                  .channels = (int)s->groups,
                  .length = (int)s->d[2],
                  .taps = (int)s->k[2],
                  .element = job->class->dtype == CONV_FFT_FP32 ? FLOAT_BYTES : 2};
    c->gw_element = methods[method].sums ? FLOAT_BYTES : c->element;
    if (prepare(c))
        return c;
    release(c);
    return NULL;
}

/* ---- running */

static conv_fft_status begin_sums(const causal *c) {
    const bench_gpu *const g = c->job->gpu;
    CF_FORWARD(cf_gpu_fill(g->gpu, c->gw, 0, w_count(c) * c->gw_element, g->stream));
    return cf_gpu_fill(g->gpu, c->gbias, 0, (size_t)c->channels * FLOAT_BYTES, g->stream);
}

static cf_cudnn_status call_forward(const causal *c) {
    const cf_cudnn_causal_functions *const f = cf_cudnn_causal_calls(c->job->gpu->gpu->cudnn);
    const bench_tensors *const t = c->job->tensors;
    const cf_cu_stream stream = c->job->gpu->stream;
    const cf_cudnn_type type = cf_cudnn_type_of(c->job->class->dtype);
    if (c->method == FFT)
        return f->cudnnFFTCausalConv1dForward(stream, t->x.memory, c->w, t->y.memory, c->samples, c->channels,
                                              c->length, c->taps, type);
    return (c->method == DEFINITION_LAST ? f->cudnnCausalConv1dNwhForward : f->cudnnCausalConv1dForward)(
        stream, t->x.memory, c->w, c->bias, t->y.memory, c->samples, c->channels, c->length, c->taps, type, 0);
}

static cf_cudnn_status call_backward(const causal *c) {
    const cf_cudnn_causal_functions *const f = cf_cudnn_causal_calls(c->job->gpu->gpu->cudnn);
    const bench_tensors *const t = c->job->tensors;
    const cf_cu_stream stream = c->job->gpu->stream;
    const cf_cudnn_type type = cf_cudnn_type_of(c->job->class->dtype);
    if (c->method == FFT)
        return f->cudnnFFTCausalConv1dBackward(stream, t->x.memory, c->w, t->gy.memory, t->gx.memory, c->gw, c->samples,
                                               c->channels, c->length, c->taps, type);
    return (c->method == DEFINITION_LAST ? f->cudnnCausalConv1dNwhBackward : f->cudnnCausalConv1dBackward)(
        stream, t->x.memory, c->w, c->bias, t->gy.memory, t->gx.memory, c->gw, c->gbias, c->samples, c->channels,
        c->length, c->taps, type, CF_CUDNN_DATA_FLOAT, 0);
}

/* cuDNN takes the context that is current. */
static bool run_causal(void *state) {
    const causal *const c = state;
    cf_gpu *const gpu = c->job->gpu->gpu;
    const bool forward = c->job->pass == CONV_FFT_FORWARD;
    if (!forward && methods[c->method].sums && !bench_good(begin_sums(c), "gw"))
        return false;
    if (!bench_good(cf_gpu_enter(gpu), "cudnn"))
        return false;
    const cf_cudnn_status status = forward ? call_forward(c) : call_backward(c);
    cf_gpu_leave(gpu);
    return status == 0;
}

static bool run(bench_impl *impl) { return run_causal(impl->state); }

static void close_causal(bench_impl *impl) { release(impl->state); }

/* ---- the choice */

bool bench_cudnn_is_causal(const bench_shape *s) {
    const bool line = s->d[0] == 1 && s->d[1] == 1 && s->k[0] == 1 && s->k[1] == 1 && s->pad[0] == 0 && s->pad[1] == 0;
    return line && s->in == 1 && s->out == 1 && s->k[2] > 1 && s->pad[2] == s->k[2] - 1 && s->m[2] == s->d[2] &&
           s->stride[2] == 1 && s->dilation[2] == 1 && s->batch <= INT_MAX && s->groups <= INT_MAX &&
           s->d[2] <= INT_MAX;
}

const char *bench_cudnn_causal_note(const bench_gpu *g) {
    const cf_library *const causals = cf_cudnn_causal_library(g->gpu->cudnn);
    if (!causals->usable)
        return "";
    const char *const cudnn = g->cudnn ? cf_cudnn_library(g->gpu->cudnn)->file : "";
    const char *const name = strrchr(causals->file, '/');
    const size_t folder = name ? (size_t)(name - causals->file) + 1 : 0;
    return strncmp(cudnn, causals->file, folder) == 0 && !strchr(cudnn + folder, '/')
               ? ""
               : ", causal operations from another folder";
}

/* The median of some runs, and the error of the last one. False: the operation does not have this layer. */
static bool try_method(bench_impl *impl, double *ms, double *error) {
    const bench_job *const job = impl->job;
    double times[TRIAL_RUNS];
    if (!bench_poison(job->tensors, job->gpu, job->pass) || !run(impl))
        return false;
    for (int i = 0; i < TRIAL_RUNS; i++)
        if (!bench_gpu_time(job->gpu, run_causal, impl->state, &times[i]))
            return false;
    *ms = bench_median(times, TRIAL_RUNS);
    return finish(impl) && bench_check_error(job->check, job->gpu, job->pass, error);
}

static bool has_layout(const bench_job *job, causal_method method) {
    return methods[method].channels_last == job->tensors->x.last;
}

/* For comparison with tuned plans, gw must be the same in each run. */
static bool is_allowed(const bench_job *job, causal_method method) {
    return !job->gpu->deterministic || !methods[method].sums || !(job->pass & CONV_FFT_BACKWARD_WEIGHTS);
}

/* Replace *best by this method if it is faster. */
static void consider(bench_impl *best, double *best_ms, const bench_job *job, causal_method method) {
    double ms = 0, error = 0;
    bench_impl impl = {
        .name = "cudnn", .job = job, .run = run, .finish = finish, .close = close_causal, .state = create(job, method)};
    const char *const name = job->pass == CONV_FFT_FORWARD ? methods[method].forward : methods[method].backward;
    bench_copy(impl.strategy, sizeof impl.strategy, name);
    if (!impl.state)
        return;
    const bool runs = try_method(&impl, &ms, &error), good = runs && error <= job->class->baseline_error;
    if (runs && !good)
        bench_message("cudnn %s: passed over: %s: %.4f ms, relative error %.2e", job->layer->name, name, ms, error);
    else if (job->gpu->verbose)
        bench_message("cudnn %s: %s %s %.4f ms", job->layer->name, name, runs ? "takes" : "does not run", ms);
    if (!good || (best->state && ms >= *best_ms)) {
        impl.close(&impl);
        return;
    }
    if (best->state)
        best->close(best);
    *best = impl;
    *best_ms = ms;
}

bool bench_cudnn_causal_open(bench_impl *impl, const bench_job *job) {
    const cf_library *const library = cf_cudnn_causal_library(job->gpu->gpu->cudnn);
    double ms = 0;
    *impl = (bench_impl){.state = NULL};
    if (!library->usable) {
        bench_message("cudnn %s: %s", job->layer->name, library->problem);
        return false;
    }
    for (int method = 0; method < METHODS; method++)
        if (has_layout(job, (causal_method)method) && is_allowed(job, (causal_method)method))
            consider(impl, &ms, job, (causal_method)method);
    if (!impl->state)
        bench_message("cudnn %s: no causal operation computes this layer", job->layer->name);
    return impl->state != NULL;
}
