/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fft_check.h"

#include "core/text.h"
#include "cuda/driver/memory.h"
#include "reference/dtype.h"
#include "support/gpu.h"
#include "support/random_problems.h"
#include "support/tensor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ memory of either device */

#define GUARD 256

typedef struct guarded_memory {
    unsigned char *base;
    size_t before, bytes, after;
} guarded_memory;

static size_t total_of(const guarded_memory *m) { return m->before + m->bytes + m->after; }

static void *start_of(const guarded_memory *m) { return m->base ? m->base + m->before : NULL; }

/* In host memory, nothing follows an input, so sanitizers see reads beyond it. */
static conv_fft_status allocate(const fft_run *r, int64_t bytes, int shift, bool read, guarded_memory *m) {
    m->before = (size_t)(GUARD + shift);
    m->bytes = (size_t)bytes;
    m->after = read && !r->gpu ? 0 : GUARD;
    void *memory = NULL;
    if (r->gpu)
        CF_FORWARD(cf_gpu_allocate(r->gpu, total_of(m), &memory));
    else if (posix_memalign(&memory, GUARD, total_of(m)) != 0)
        return CONV_FFT_OUT_OF_MEMORY;
    m->base = memory;
    if (r->gpu)
        return cf_gpu_fill(r->gpu, m->base, FFT_POISON, total_of(m), r->stream);
    memset(m->base, FFT_POISON, total_of(m));
    return CONV_FFT_SUCCESS;
}

static void release(const fft_run *r, guarded_memory *m) {
    if (r->gpu)
        cf_gpu_free(r->gpu, m->base);
    else
        free(m->base);
}

static conv_fft_status upload(const fft_run *r, void *to, const void *from, size_t bytes) {
    if (r->gpu)
        return cf_gpu_upload(r->gpu, to, from, bytes, r->stream);
    memcpy(to, from, bytes);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status download(const fft_run *r, void *to, const void *from, size_t bytes) {
    if (!r->gpu) {
        memcpy(to, from, bytes);
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_gpu_download(r->gpu, to, from, bytes, r->stream));
    return cf_gpu_synchronize(r->gpu, r->stream);
}

static bool poisoned(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (bytes[i] != FFT_POISON)
            return false;
    return true;
}

/* A copy of the whole memory as it is on the device now; the caller frees it. NULL: the last error says why. */
static unsigned char *fetch(const fft_run *r, const guarded_memory *m) {
    unsigned char *const host = test_alloc(total_of(m));
    if (download(r, host, m->base, total_of(m)) == CONV_FFT_SUCCESS)
        return host;
    free(host);
    return NULL;
}

static bool intact(const unsigned char *host, const guarded_memory *m) {
    return poisoned(host, m->before) && poisoned(host + m->before + m->bytes, m->after);
}

/* ---------------------------------------------------------------------------------------------------------- one run */

enum {
    IN,
    OUT,
    WORKSPACE,
    MEMORIES
};

static conv_fft_status execute(const fft_run *r, guarded_memory memory[MEMORIES]) {
    size_t bytes = 0;
    CF_FORWARD(fbfft_plan_workspace(r->plan, r->batch, &bytes));
    CF_FORWARD(allocate(r, r->in_bytes, r->in_shift, true, &memory[IN]));
    CF_FORWARD(allocate(r, r->out_bytes, r->out_shift, false, &memory[OUT]));
    if (bytes > 0) /* any alignment will do on the CPU */
        CF_FORWARD(allocate(r, (int64_t)bytes, r->gpu ? 0 : 1, false, &memory[WORKSPACE]));
    CF_FORWARD(upload(r, start_of(&memory[IN]), r->in, (size_t)r->in_bytes));
    CF_FORWARD(fbfft_execute(r->plan, start_of(&memory[IN]), start_of(&memory[OUT]), r->batch,
                             start_of(&memory[WORKSPACE]), bytes, r->stream));
    return r->gpu ? cf_gpu_synchronize(r->gpu, r->stream) : CONV_FFT_SUCCESS;
}

static const char *look_at(const fft_run *r, const guarded_memory memory[MEMORIES], unsigned char *now[MEMORIES]) {
    static const char *const written[] = {"the input has been written to",
                                          "bytes before or after the output have been written to",
                                          "bytes before or after the workspace have been written to"};
    for (int i = 0; i < MEMORIES; ++i) {
        if (!memory[i].base)
            continue;
        now[i] = fetch(r, &memory[i]);
        if (!now[i])
            return conv_fft_last_error();
        if (!intact(now[i], &memory[i]))
            return written[i];
    }
    if (memcmp(now[IN] + memory[IN].before, r->in, memory[IN].bytes) != 0)
        return written[IN];
    memcpy(r->out, now[OUT] + memory[OUT].before, memory[OUT].bytes);
    return NULL;
}

bool fft_run_planes(const fft_run *r, char text[FFT_TEXT_BYTES]) {
    guarded_memory memory[MEMORIES] = {{0}};
    unsigned char *now[MEMORIES] = {NULL};
    const char *const wrong = execute(r, memory) == CONV_FFT_SUCCESS ? look_at(r, memory, now) : conv_fft_last_error();
    if (wrong)
        snprintf(text, FFT_TEXT_BYTES, "%s", wrong);
    for (int i = 0; i < MEMORIES; ++i) {
        free(now[i]);
        release(r, &memory[i]);
    }
    return !wrong;
}

/* ------------------------------------------------------------------------------------------------------ whole cases */

/* The first, the last and random planes, as many as half a second allows. */
static double sample(const fft_shape *s, const fft_run *r, uint64_t seed) {
    const int64_t all = r->batch * s->channels, points = fft_basis_points(s);
    const int64_t cost = points * (s->basis[0] + s->basis[1] + s->basis[2]), most = ((int64_t)1 << 20) / cost;
    const int64_t count = most < 2 ? 2 : most > 16 ? 16 : most;
    generator g = generator_create(seed);
    fft_errors errors = {0};
    for (int64_t i = 0; i < count && i < all; ++i) {
        const int64_t p = all <= count ? i : i == 0 ? 0 : i == 1 ? all - 1 : random_int(&g, 0, all - 1);
        fft_compare_plane(s, r->batch, p, r->in, r->out, &errors);
    }
    return fft_relative_error(&errors);
}

static void judge(const fft_shape *s, const fft_run *r, uint64_t seed, fft_outcome *outcome,
                  char text[FFT_TEXT_BYTES]) {
    outcome->error = sample(s, r, seed);
    outcome->tolerance = fft_tolerance(s);
    const bool finite = fft_take_outputs(s, r->batch, r->out);
    const bool apart = poisoned(r->out, (size_t)r->out_bytes);
    outcome->ok = outcome->error <= outcome->tolerance && finite && apart;
    snprintf(text, FFT_TEXT_BYTES, "relative error %.2e%s%s", outcome->error,
             finite ? "" : ", outputs that are not finite", apart ? "" : ", memory written that is no output");
}

static void run_case(const cf_gpu *gpu, const fbfft_plan *plan, const fft_case *c, fft_outcome *outcome,
                     char text[FFT_TEXT_BYTES]) {
    const fft_shape s = fft_shape_of(&c->desc);
    const uint64_t seed = c->seed * 0x9E3779B97F4A7C15u + (uint64_t)(s.basis[0] * 1000003 + s.basis[1] * 10007 +
                                                                     s.basis[2] * 101 + s.points[2] * 31 + c->batch);
    const bool complex_signal = c->desc.kind == FBFFT_C2C_FORWARD || c->desc.kind == FBFFT_C2C_INVERSE;
    const int in_numbers = complex_signal || c->desc.kind == FBFFT_C2R ? 2 : 1,
              out_numbers = complex_signal || c->desc.kind == FBFFT_R2C ? 2 : 1;
    fft_run run = {.gpu = gpu,
                   .plan = plan,
                   .in_bytes = fft_in_bytes(&s, c->batch),
                   .out_bytes = fft_out_bytes(&s, c->batch),
                   .batch = c->batch,
                   .in_shift = c->in_shift * in_numbers * (int)ref_dtype_size(fft_in_type(&s)),
                   .out_shift = c->out_shift * out_numbers * (int)ref_dtype_size(fft_out_type(&s))};
    void *const in = test_alloc((size_t)run.in_bytes);
    run.in = in;
    run.out = test_alloc((size_t)run.out_bytes);
    fft_random_input(&s, seed, c->batch, in);
    if (fft_run_planes(&run, text))
        judge(&s, &run, seed, outcome, text);
    free(in);
    free(run.out);
}

void fft_check_case(const cf_gpu *gpu, conv_fft_context *context, const fft_case *c, fft_outcome *outcome) {
    char name[FFT_TEXT_BYTES], text[FFT_TEXT_BYTES] = "";
    fbfft_plan *plan = NULL;
    *outcome = (fft_outcome){0};
    const conv_fft_status status = fbfft_plan_create(context, &c->desc, &plan);
    outcome->supported = status != CONV_FFT_NOT_SUPPORTED;
    if (status == CONV_FFT_SUCCESS) {
        run_case(gpu, plan, c, outcome, text);
    } else {
        outcome->ok = !outcome->supported && !c->must;
        snprintf(text, sizeof text, "%s", conv_fft_last_error());
    }
    fft_describe(&c->desc, name, sizeof name);
    snprintf(outcome->text, sizeof outcome->text, "%s batch %lld shifts %d, %d: %s", name, (long long)c->batch,
             c->in_shift, c->out_shift, text);
    snprintf(outcome->variables, sizeof outcome->variables, "CONV_FFT_TEST_SEED=%llu%s", (unsigned long long)c->seed,
             c->random ? " CONV_FFT_TEST_COUNT=1" : "");
    fbfft_plan_destroy(plan);
}

/* ------------------------------------------------------------------------------------------ descriptions, contexts */

fbfft_desc fft_desc(int rank, fbfft_kind kind, int64_t basis, int64_t extent) {
    fbfft_desc d;
    fbfft_desc_init(&d, rank, kind);
    for (int a = 0; a < rank; ++a) {
        d.basis[a] = basis;
        d.extent[a] = extent;
    }
    return d;
}

/* " name 1x2x3", or nothing if all numbers are the default. */
static void add_numbers(cf_text *t, const char *name, const int64_t *numbers, int count, int64_t usual) {
    bool all_usual = true;
    for (int i = 0; i < count; ++i)
        all_usual = all_usual && numbers[i] == usual;
    for (int i = 0; i < count && !all_usual; ++i)
        cf_text_add(t, "%s%s%s%lld", i ? "" : " ", i ? "x" : name, i ? "" : " ", (long long)numbers[i]);
}

void fft_describe(const fbfft_desc *d, char *text, size_t bytes) {
    static const char *const kinds[] = {"r2c", "c2r", "c2c", "c2c inverse"};
    static const char *const orders[] = {"", " transposed", " frequency-major"};
    static const char *const paddings[] = {"", " circular", " reflect", " replicate"};
    static const char *const arithmetics[] = {"", " by fp32", " by split", " by fp16"};
    cf_text t = {text, bytes, 0};
    cf_text_add(&t, "%s %s%s%s", kinds[d->kind], ref_dtype_name(d->dtype),
                d->spectrum == CONV_FFT_FP16 ? " spectrum fp16" : "", arithmetics[d->arithmetic]);
    add_numbers(&t, "basis", d->basis, d->rank, 0);
    add_numbers(&t, "from", d->extent, d->rank, 0);
    add_numbers(&t, "channels", &d->channels, 1, 1);
    cf_text_add(&t, "%s%s%s", d->layout == CONV_FFT_CHANNELS_LAST ? " channels-last" : "", orders[d->order],
                paddings[d->padding]);
    add_numbers(&t, "size", d->size, d->rank, 0);
    add_numbers(&t, "offset", d->offset, d->rank, 0);
    add_numbers(&t, "step", d->step, d->rank, 1);
    add_numbers(&t, "stride", d->stride, 2 + d->rank, 0);
    if (d->scale != 1)
        cf_text_add(&t, " scale %g", d->scale);
}

conv_fft_context *fft_gpu_context(void) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = gpu_cache_directory();
    conv_fft_context_create(&options, &context);
    return context;
}
