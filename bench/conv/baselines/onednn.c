/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneDNN has two forms here. `onednn` gets tensors in the plain layout, as every implementation does; the reorders
 * that the algorithm needs are timed. `onednn-blocked` gets tensors in the layout of the algorithm, and times the
 * algorithm only. Each form tries the algorithms below and keeps the fastest.
 */
#include "conv/baselines/onednn.h"

#include "common/message.h"
#include "common/timer.h"
#include "conv/baselines/onednn_primitive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The algorithms that are tried. */
static const onednn_choice choices[] = {
    {ONEDNN_DIRECT, true, "direct any"},
    {ONEDNN_DIRECT, false, "direct plain"},
    {ONEDNN_WINOGRAD, true, "winograd any"},
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
        bool useless = best_ms >= 0 && (!strncmp(u.text, "ref", 3) || strstr(u.text, "+ref:"));
        double ms = useless ? -1 : try_unit(&o->device, &u, o->blocked);
        if (ms >= 0 && (best_ms < 0 || ms < best_ms)) {
            if (best_ms >= 0)
                onednn_unit_close(best, &o->device);
            *best = u;
            best_ms = ms;
        } else {
            onednn_unit_close(&u, &o->device);
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
    return o->device.call->stream_wait(o->device.stream) == 0 && good;
}

static void close_onednn(bench_impl *impl) {
    onednn *o = impl->state;
    for (int i = 0; i < o->count; i++)
        onednn_unit_close(&o->units[i], &o->device);
    o->device.call->stream_destroy(o->device.stream);
    o->device.call->engine_destroy(o->device.engine);
    free(o);
}

/* The backward pass of both gradients reorders gy once if both primitives use the same layout. */
static void share_gy(onednn *o) {
    const onednn_functions *call = o->device.call;
    onednn_operand *first = &o->units[0].operands[1], *second = &o->units[1].operands[1];
    const onednn_layout *a, *b;
    onednn_memory *shared;
    void *data;
    if (o->count < 2 || !first->reorder || !second->reorder || call->memory_get_memory_desc(first->own, &a) != 0 ||
        call->memory_get_memory_desc(second->own, &b) != 0 || !call->memory_desc_equal(a, b) ||
        call->memory_get_data_handle(first->own, &data) != 0 ||
        call->memory_create(&shared, a, o->device.engine, data) != 0)
        return;
    o->units[1].bytes -= call->memory_desc_get_size(b);
    call->primitive_destroy(second->reorder);
    call->memory_destroy(second->own);
    second->reorder = NULL;
    second->own = shared;
}

/* Whether there is a oneDNN. The first call says why not. */
static bool is_there(void) {
    static bool said;
    const cf_library *library = onednn_library();
    if (!library->usable && !said)
        bench_message("no oneDNN to compare with: %s", library->problem);
    said = true;
    return library->usable;
}

static bool open_form(bench_impl *impl, const bench_job *job, const char *name, bool blocked) {
    static const conv_fft_pass passes[] = {CONV_FFT_FORWARD, CONV_FFT_BACKWARD_DATA, CONV_FFT_BACKWARD_WEIGHTS};
    if (!is_there())
        return false;
    onednn *o = calloc(1, sizeof *o);
    *impl = (bench_impl){.job = job, .state = o, .run = run, .finish = blocked ? finish : NULL, .close = close_onednn};
    snprintf(impl->name, sizeof impl->name, "%s", name);
    if (!o)
        return false;
    o->blocked = blocked;
    const onednn_functions *call = o->device.call = onednn_calls();
    bool good = call->engine_create(&o->device.engine, ONEDNN_CPU, 0) == 0 &&
                call->stream_create(&o->device.stream, o->device.engine, ONEDNN_DEFAULT_STREAM) == 0;
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
    static char text[64];
    const cf_library *library = onednn_library();
    if (!library->usable)
        return "no oneDNN";
    snprintf(text, sizeof text, "oneDNN %s", library->version);
    return text;
}
