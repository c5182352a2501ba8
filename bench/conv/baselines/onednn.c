/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneDNN has two forms here. `onednn` gets tensors in the plain layout, as every implementation does; the reorders
 * that the algorithm needs are timed. `onednn-blocked` gets tensors in the layout of the algorithm, and times the
 * algorithm only. Each form tries the algorithms below and keeps the fastest.
 */
#include "conv/baselines/onednn.h"

#include "common/message.h"

#ifndef CONV_FFT_BENCH_DNNL

const char *bench_onednn_version(void) { return "no oneDNN"; }

bool bench_onednn_open(bench_impl *impl, const bench_job *job) {
    (void)impl, (void)job;
    return false;
}

bool bench_onednn_blocked_open(bench_impl *impl, const bench_job *job) {
    (void)impl, (void)job;
    return false;
}

#else

#include "conv/baselines/onednn_primitive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The algorithms that are tried. */
static const onednn_choice choices[] = {
    {dnnl_convolution_direct, true, "direct any"},
    {dnnl_convolution_direct, false, "direct plain"},
    {dnnl_convolution_winograd, true, "winograd any"},
};
enum {
    CHOICES = sizeof choices / sizeof choices[0]
};

typedef struct onednn {
    onednn_device device;
    bool blocked;
    int count;
    onednn_unit units[2];
} onednn;

/* The shortest of a few runs. Negative: a run failed. */
static double try_unit(const onednn_device *device, const onednn_unit *u, bool blocked) {
    double shortest = -1;
    if (!onednn_unit_run(device, u, false))
        return -1;
    for (int i = 0; i < 3; i++) {
        double start = bench_now_ms();
        if (!onednn_unit_run(device, u, blocked))
            return -1;
        double ms = bench_now_ms() - start;
        shortest = i == 0 || ms < shortest ? ms : shortest;
    }
    return shortest;
}

/* Open the fastest of the choices. */
static bool open_fastest(onednn_unit *best, const onednn *o, const bench_job *job, conv_fft_pass pass) {
    double best_ms = -1;
    for (int i = 0; i < CHOICES; i++) {
        onednn_unit u;
        if (!onednn_unit_open(&u, &o->device, job, pass, &choices[i]))
            continue;
        /* The unoptimised reference implementation of oneDNN counts only if there is no other. */
        bool useless = best_ms >= 0 && !strncmp(u.text, "ref", 3);
        double ms = useless ? -1 : try_unit(&o->device, &u, o->blocked);
        if (ms >= 0 && (best_ms < 0 || ms < best_ms)) {
            if (best_ms >= 0)
                onednn_unit_close(best);
            *best = u;
            best_ms = ms;
        } else {
            onednn_unit_close(&u);
        }
    }
    return best_ms >= 0;
}

static bool run(bench_impl *impl) {
    const onednn *o = impl->state;
    for (int i = 0; i < o->count; i++)
        if (!onednn_unit_run(&o->device, &o->units[i], o->blocked)) {
            bench_message("%s: a primitive failed", impl->name);
            return false;
        }
    return true;
}

static bool finish(bench_impl *impl) {
    const onednn *o = impl->state;
    bool good = true;
    for (int i = 0; i < o->count; i++)
        good = onednn_reorder(&o->device, &o->units[i].operands[2]) && good;
    return dnnl_stream_wait(o->device.stream) == dnnl_success && good;
}

static void close_onednn(bench_impl *impl) {
    onednn *o = impl->state;
    for (int i = 0; i < o->count; i++)
        onednn_unit_close(&o->units[i]);
    dnnl_stream_destroy(o->device.stream);
    dnnl_engine_destroy(o->device.engine);
    free(o);
}

/* The backward pass of both gradients reorders gy once if both primitives use the same layout. */
static void share_gy(onednn *o) {
    onednn_operand *first = &o->units[0].operands[1], *second = &o->units[1].operands[1];
    const dnnl_memory_desc_t *a, *b;
    void *handle;
    if (o->count < 2 || !first->reorder || !second->reorder ||
        dnnl_memory_get_memory_desc(first->own, &a) != dnnl_success ||
        dnnl_memory_get_memory_desc(second->own, &b) != dnnl_success || !dnnl_memory_desc_equal(a, b) ||
        dnnl_memory_get_data_handle(first->own, &handle) != dnnl_success)
        return;
    dnnl_memory_t shared;
    if (dnnl_memory_create(&shared, a, o->device.engine, handle) != dnnl_success)
        return;
    o->units[1].bytes -= dnnl_memory_desc_get_size(b);
    dnnl_primitive_destroy(second->reorder);
    dnnl_memory_destroy(second->own);
    second->reorder = NULL;
    second->own = shared;
}

static bool open_form(bench_impl *impl, const bench_job *job, const char *name, bool blocked) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};
    onednn *o = calloc(1, sizeof *o);
    *impl = (bench_impl){.job = job, .state = o, .run = run, .finish = blocked ? finish : NULL, .close = close_onednn};
    snprintf(impl->name, sizeof impl->name, "%s", name);
    if (!o)
        return false;
    o->blocked = blocked;
    bool good = dnnl_engine_create(&o->device.engine, dnnl_cpu, 0) == dnnl_success &&
                dnnl_stream_create(&o->device.stream, o->device.engine, dnnl_stream_default_flags) == dnnl_success;
    for (int i = 0; i < 3 && good; i++)
        if (job->pass & passes[i])
            good = open_fastest(&o->units[o->count], o, job, passes[i]) && ++o->count;
    if (!good) {
        bench_message("%s: no primitive for this layer", name);
        close_onednn(impl);
        return false;
    }
    share_gy(o);
    for (int i = 0; i < o->count; i++) {
        size_t used = strlen(impl->strategy);
        impl->workspace_bytes += o->units[i].bytes;
        snprintf(impl->strategy + used, sizeof impl->strategy - used, "%s%s", i ? "; " : "", o->units[i].text);
    }
    return true;
}

bool bench_onednn_open(bench_impl *impl, const bench_job *job) { return open_form(impl, job, "onednn", false); }

bool bench_onednn_blocked_open(bench_impl *impl, const bench_job *job) {
    return open_form(impl, job, "onednn-blocked", true);
}

const char *bench_onednn_version(void) {
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

#endif
