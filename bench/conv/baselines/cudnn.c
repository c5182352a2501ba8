/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For each pass, every algorithm of the legacy API and every engine of the graph API runs a few times with all the
 * workspace that it asks for. The fastest one that computes in the class is then measured like other implementations.
 * The backward pass of both gradients takes the best of each, one after the other. Causal layers have operations of
 * their own (cudnn_causal.c).
 */
#include "conv/baselines/cudnn.h"

#include "common/message.h"
#include "common/timer.h"
#include "conv/baselines/cudnn_causal.h"
#include "conv/baselines/cudnn_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel cannot be interrupted. These are the rates of the slowest algorithms of cuDNN, in GFLOP per ms, and the
 * time that one may take. */
#define SLOW_DENSE 0.8
#define SLOW_DEPTHWISE 0.15
#define LONGEST_MS 10000.0

struct bench_cudnn {
    cudnn_unit *units[3]; /* one for each pass of the current case; NULL: not searched yet */
};

struct bench_cudnn *bench_cudnn_create(const bench_gpu *g) {
    const cf_library *library = cf_cudnn_library(g->gpu->cudnn);
    if (!library->usable) {
        bench_message("no cuDNN to compare with: %s", library->problem);
        return NULL;
    }
    struct bench_cudnn *c = calloc(1, sizeof *c);
    if (!c)
        bench_message("out of memory");
    return c;
}

const char *bench_cudnn_version(const bench_gpu *g) {
    return g->cudnn ? cf_cudnn_library(g->gpu->cudnn)->version : "none";
}

/* ---- one pass: its data */

static cudnn_unit *create_unit(const bench_job *job, conv_fft_pass pass) {
    const bench_tensors *t = job->tensors;
    const int index = pass == CONV_FFT_FORWARD         ? CF_PASS_FORWARD
                      : pass == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA
                                                       : CF_PASS_WEIGHTS;
    cf_layer layer;
    const char *why = "";
    cudnn_unit *u = calloc(1, sizeof *u);
    if (!u) {
        bench_message("out of memory");
        return NULL;
    }
    u->gpu = job->gpu;
    u->layer = job->layer;
    u->class = job->class;
    u->pass = pass;
    u->memory[CF_X] = pass == CONV_FFT_BACKWARD_DATA ? t->gx.memory : t->x.memory;
    u->memory[CF_W] = pass == CONV_FFT_BACKWARD_WEIGHTS ? t->gw.memory : t->w.memory;
    u->memory[CF_Y] = pass == CONV_FFT_FORWARD ? t->y.memory : t->gy.memory;
    if (bench_good(cf_layer_make(&job->layer->problem, &layer), "cudnn")) {
        if (cf_cudnn_pass_make(&layer, index, &u->direct, &why) && cf_cudnn_is_trusted(&u->direct, &why)) {
            u->direct.any_order = !job->gpu->deterministic;
            return u;
        }
        bench_message("cudnn %s: %s", job->layer->name, why);
    }
    free(u);
    return NULL;
}

static void destroy_unit(cudnn_unit *u) {
    if (!u)
        return;
    for (int i = 0; i < u->count; i++)
        cudnn_way_close(u, &u->ways[i]);
    free(u);
}

void bench_cudnn_forget(bench_gpu *g) {
    for (int i = 0; g->cudnn && i < 3; i++) {
        destroy_unit(g->cudnn->units[i]);
        g->cudnn->units[i] = NULL;
    }
}

void bench_cudnn_destroy(bench_gpu *g) {
    if (!g->cudnn)
        return;
    bench_cudnn_forget(g);
    free(g->cudnn);
    g->cudnn = NULL;
}

/* The unit of a pass. It is searched once for each case. NULL: cuDNN has no algorithm. */
static cudnn_unit *unit_of(struct bench_cudnn *c, const bench_job *job, conv_fft_pass pass) {
    cudnn_unit **const slot = &c->units[pass == CONV_FFT_FORWARD ? 0 : pass == CONV_FFT_BACKWARD_DATA ? 1 : 2];
    if (!*slot) {
        *slot = create_unit(job, pass);
        if (!*slot)
            return NULL;
        cudnn_search(*slot, job);
    }
    return (*slot)->count > 0 ? *slot : NULL;
}

/* ---- the implementation */

typedef struct pair {
    cudnn_unit *units[2];
    int count;
} pair;

static bool run(bench_impl *impl) {
    const pair *p = impl->state;
    for (int i = 0; i < p->count; i++)
        if (!bench_good(cudnn_way_run(p->units[i], &p->units[i]->ways[0]), p->units[i]->ways[0].text))
            return false;
    return true;
}

static void close_cudnn(bench_impl *impl) {
    bench_gpu_scratch(impl->job->gpu, 0);
    free(impl->state);
}

static bool open_units(pair *p, const bench_job *job) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};
    for (int i = 0; i < 3; i++) {
        if (!(job->pass & passes[i]))
            continue;
        p->units[p->count] = unit_of(job->gpu->cudnn, job, passes[i]);
        if (!p->units[p->count])
            return false;
        p->count++;
    }
    return true;
}

/* Allocate scratch for the larger one, and write the names of all. */
static bool ready_all(bench_impl *impl, const pair *p) {
    bench_gpu *const g = impl->job->gpu;
    size_t bytes = 1;
    for (int i = 0; i < p->count; i++) {
        const cudnn_way *way = &p->units[i]->ways[0];
        bytes = way->workspace_bytes > bytes ? way->workspace_bytes : bytes;
    }
    for (int i = 0; i < p->count; i++) {
        const cudnn_way *const way = &p->units[i]->ways[0];
        const size_t used = strlen(impl->strategy);
        snprintf(impl->strategy + used, sizeof impl->strategy - used, "%s%s%s", i ? "; " : "", way->text,
                 p->units[i]->cut_short ? " (search cut short)" : "");
        impl->workspace_bytes =
            way->workspace_bytes > impl->workspace_bytes ? way->workspace_bytes : impl->workspace_bytes;
    }
    return bench_good(bench_gpu_scratch(g, bytes), "cudnn");
}

static bool too_large(const bench_job *job) {
    const bench_shape *s = &job->layer->shape;
    const double gflop = bench_direct_gflop(s), rate = s->in == 1 && s->out == 1 ? SLOW_DEPTHWISE : SLOW_DENSE;
    if (gflop / rate <= LONGEST_MS)
        return false;
    bench_message("cudnn %s: left out: %.3g GFLOP could take minutes", job->layer->name, gflop);
    return true;
}

bool bench_cudnn_open(bench_impl *impl, const bench_job *job) {
    pair *p;
    if (bench_cudnn_is_causal(&job->layer->shape))
        return bench_cudnn_causal_open(impl, job);
    if (!job->gpu->cudnn || too_large(job))
        return false;
    *impl = (bench_impl){.name = "cudnn", .job = job, .run = run, .close = close_cudnn};
    impl->state = p = calloc(1, sizeof *p);
    if (!p) {
        bench_message("out of memory");
        return false;
    }
    if (open_units(p, job) && ready_all(impl, p))
        return true;
    bench_message("cudnn %s: no algorithm computes this layer", job->layer->name);
    close_cudnn(impl);
    return false;
}
