/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN at its best: for each pass every algorithm of the old calls and every engine of the graphs is run a few times, with all the workspace that it asks for; the fastest that computes in the class asked for is
 * then measured like any implementation. The joint backward pass is the best of each half, one after the other.
 */
#include "cudnn_unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel cannot be interrupted. Rates of the slowest ways that cuDNN has offered, in GFLOP per ms, and how long one may
   take. */
#define SLOW_DENSE 0.8
#define SLOW_DEPTHWISE 0.15
#define LONGEST_MS 10000.0

struct bench_cudnn {
    cf_library library;
    cudnn_functions call;
    cudnn_handle handle;
    cudnn_unit *units[3]; /* of the passes of the case at hand, once they have been asked for */
};

/* --------------------------------------------------------------------------------------------------- the library */

static bool accept(const void *table, int driver_version, cf_library *library) {
    const cudnn_functions *const f = table;
    int version[3] = {0, 0, 0};
    for (unsigned i = 0; i < 3 && f->cudnnGetProperty; i++)
        f->cudnnGetProperty(i, &version[i]);
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version[0], version[1], version[2]);
    const size_t cuda = f->cudnnGetCudartVersion ? f->cudnnGetCudartVersion() : 0;
    return cf_library_fits(library, "cuDNN", (int)(cuda / 1000), driver_version);
}

static const char *const sonames[] = {"libcudnn.so.9", "libcudnn.so.8", NULL};

#define SYMBOL(member, parameters) {#member, offsetof(cudnn_functions, member)},
static const cf_symbol symbols[] = {
    CUDNN_FUNCTIONS(SYMBOL){"cudnnGetCudartVersion", offsetof(cudnn_functions, cudnnGetCudartVersion)},
    {"cudnnGetErrorString", offsetof(cudnn_functions, cudnnGetErrorString)}};
#undef SYMBOL

static const cf_library_spec spec = {
    .name = "cuDNN",
    .sonames = sonames,
    .how_to_get = "install it, or name the folder of the library in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

static bool make_handle(const bench_gpu *g, struct bench_cudnn *c) {
    if (!bench_good(cf_gpu_enter(g->gpu), "cudnn"))
        return false;
    cudnn_status status = c->call.cudnnCreate(&c->handle);
    if (status == 0)
        status = c->call.cudnnSetStream(c->handle, g->stream);
    if (status != 0)
        bench_message("no cuDNN to compare with: %s", c->call.cudnnGetErrorString(status));
    cf_gpu_leave(g->gpu);
    return status == 0;
}

struct bench_cudnn *bench_cudnn_create(const bench_gpu *g) {
    struct bench_cudnn *c = calloc(1, sizeof *c);
    if (!c) {
        bench_message("out of memory");
        return NULL;
    }
    if (cf_library_open(&c->library, &spec, &g->gpu->search, g->gpu->driver.version, &c->call) != CONV_FFT_SUCCESS)
        bench_message("no cuDNN to compare with: %s", c->library.problem);
    else if (make_handle(g, c))
        return c;
    free(c);
    return NULL;
}

const char *bench_cudnn_version(const bench_gpu *g) { return g->cudnn ? g->cudnn->library.version : "none"; }

/* ----------------------------------------------------------------------------------------------- one pass: its data */

cudnn_type cudnn_type_of(const cudnn_unit *u) {
    const conv_fft_dtype type = u->class->dtype;
    return type == CONV_FFT_FP16 ? DNN_DATA_HALF : type == CONV_FFT_BF16 ? DNN_DATA_BFLOAT16 : DNN_DATA_FLOAT;
}

bool cudnn_good(const cudnn_unit *u, cudnn_status status, const char *what) {
    if (status != 0)
        bench_message("cudnn %s: %s: %s", u->layer->name, what, u->call->cudnnGetErrorString(status));
    return status == 0;
}

static cudnn_operand operand(const cudnn_unit *u, const bench_tensor *t, const int64_t space[3]) {
    const int axes = u->axes - 2;
    cudnn_operand o = {.extents = {t->outer, t->channels}, .memory = t->memory};
    int64_t stride = t->last ? t->channels : 1;
    for (int a = axes - 1; a >= 0; a--) {
        o.extents[2 + a] = space[3 - axes + a];
        o.strides[2 + a] = stride;
        stride *= o.extents[2 + a];
    }
    o.strides[1] = t->last ? 1 : stride;
    o.strides[0] = t->channels * t->space;
    return o;
}

static cudnn_unit *create_unit(const struct bench_cudnn *c, const bench_job *job, conv_fft_pass pass) {
    const bench_shape *s = &job->layer->shape;
    const bench_tensors *t = job->tensors;
    cudnn_unit *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->gpu = job->gpu;
    u->call = &c->call;
    u->handle = c->handle;
    u->layer = job->layer;
    u->class = job->class;
    u->pass = pass;
    u->last = t->x.last;
    u->axes = job->layer->problem.rank == 3 ? 5 : 4;
    u->image = operand(u, pass == CONV_FFT_BACKWARD_DATA ? &t->gx : &t->x, s->d);
    u->filter = operand(u, pass == CONV_FFT_BACKWARD_WEIGHTS ? &t->gw : &t->w, s->k);
    u->result = operand(u, pass == CONV_FFT_FORWARD ? &t->y : &t->gy, s->m);
    return u;
}

static void destroy_unit(cudnn_unit *u) {
    if (!u)
        return;
    const bool entered = cf_gpu_enter(u->gpu->gpu) == CONV_FFT_SUCCESS;
    for (int i = 0; i < u->count; i++)
        cudnn_way_close(u, &u->ways[i]);
    cudnn_graph_close(u);
    cudnn_algorithms_close(u);
    if (entered)
        cf_gpu_leave(u->gpu->gpu);
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
    if (cf_gpu_enter(g->gpu) == CONV_FFT_SUCCESS) {
        g->cudnn->call.cudnnDestroy(g->cudnn->handle);
        cf_gpu_leave(g->gpu);
    }
    free(g->cudnn);
    g->cudnn = NULL;
}

/* The unit of a pass, searched for once a case. NULL: cuDNN has no way. */
static cudnn_unit *unit_of(struct bench_cudnn *c, const bench_job *job, conv_fft_pass pass) {
    cudnn_unit **const slot = &c->units[pass == CONV_FFT_FORWARD ? 0 : pass == CONV_FFT_BACKWARD_DATA ? 1 : 2];
    if (!*slot) {
        *slot = create_unit(c, job, pass);
        if (!*slot) {
            bench_message("out of memory");
            return NULL;
        }
        if (bench_good(cf_gpu_enter(job->gpu->gpu), "cudnn")) {
            cudnn_search(*slot, job);
            cf_gpu_leave(job->gpu->gpu);
        }
    }
    return (*slot)->count > 0 ? *slot : NULL;
}

/* ------------------------------------------------------------------------------------------------ the implementation */

typedef struct pair {
    cudnn_unit *units[2];
    int count;
} pair;

static bool run(bench_impl *impl) {
    const pair *p = impl->state;
    for (int i = 0; i < p->count; i++)
        if (!cudnn_good(p->units[i], cudnn_way_run(p->units[i], &p->units[i]->ways[0]), p->units[i]->ways[0].text))
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

/* Scratch for the larger one, then the memory of each. */
static bool ready_all(bench_impl *impl, const pair *p) {
    bench_gpu *const g = impl->job->gpu;
    size_t bytes = 1;
    for (int i = 0; i < p->count; i++) {
        const cudnn_way *way = &p->units[i]->ways[0];
        bytes = way->workspace_bytes > bytes ? way->workspace_bytes : bytes;
    }
    if (!bench_good(bench_gpu_scratch(g, bytes), "cudnn") || !bench_good(cf_gpu_enter(g->gpu), "cudnn"))
        return false;
    bool good = true;
    for (int i = 0; i < p->count && good; i++) {
        cudnn_way *const way = &p->units[i]->ways[0];
        const size_t used = strlen(impl->strategy);
        snprintf(impl->strategy + used, sizeof impl->strategy - used, "%s%s", i ? "; " : "", way->text);
        impl->workspace_bytes =
            way->workspace_bytes > impl->workspace_bytes ? way->workspace_bytes : impl->workspace_bytes;
        if (way->plan && !cudnn_graph_bind(p->units[i], way))
            good = false;
    }
    cf_gpu_leave(g->gpu);
    return good;
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
    bench_message("cudnn %s: no way to compute this layer", job->layer->name);
    close_cudnn(impl);
    return false;
}
