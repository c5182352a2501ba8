/* SPDX-License-Identifier: Apache-2.0 */
/* The library is called through its public functions. */
#include "fft/ours.h"

#include <stdio.h>
#include <stdlib.h>

fbfft_desc fft_desc_of(const fft_case *c, bool inverse) {
    fbfft_desc d;
    const fbfft_kind kind = c->complex_signal ? FBFFT_C2C_FORWARD : inverse ? FBFFT_C2R : FBFFT_R2C;
    fbfft_desc_init(&d, c->rank, kind);
    for (int a = 0; a < c->rank; a++) {
        d.basis[a] = c->basis[3 - c->rank + a];
        d.extent[a] = c->data[3 - c->rank + a];
    }
    d.channels = c->channels;
    d.dtype = c->doubles ? CONV_FFT_FP64 : c->halves ? CONV_FFT_FP16 : CONV_FFT_FP32;
    d.spectrum = c->halves ? CONV_FFT_FP16 : CONV_FFT_FP32;
    d.order = c->frequency_major ? FBFFT_FREQUENCY_MAJOR : FBFFT_NATURAL;
    return d;
}

typedef struct our_plan {
    fbfft_plan *plan;
    void *workspace;
    size_t bytes;
} our_plan;

static conv_fft_status run(fft_impl *impl) {
    const fft_job *const job = impl->job;
    const our_plan *const p = impl->state;
    return fbfft_execute(p->plan, job->in, job->out, job->c->batch, p->workspace, p->bytes, job->stream);
}

static void close_plan(fft_impl *impl) {
    our_plan *const p = impl->state;
    cf_gpu_free(impl->job->gpu, p->workspace);
    fbfft_plan_destroy(p->plan);
    free(p);
}

static conv_fft_status make_plan(const fft_job *job, fbfft_arithmetic arithmetic, our_plan *p) {
    fbfft_desc d = fft_desc_of(job->c, job->inverse);
    d.arithmetic = arithmetic;
    CF_FORWARD(fbfft_plan_create(job->context, &d, &p->plan));
    CF_FORWARD(fbfft_plan_workspace(p->plan, job->c->batch, &p->bytes));
    return p->bytes ? cf_gpu_allocate(job->gpu, p->bytes, &p->workspace) : CONV_FFT_SUCCESS;
}

static conv_fft_status open_plan(fft_impl *impl, const char *name, fbfft_arithmetic arithmetic) {
    our_plan *const p = calloc(1, sizeof *p);
    if (!p)
        return cf_fail_memory(sizeof *p, "a plan");
    impl->state = p;
    const conv_fft_status status = make_plan(impl->job, arithmetic, p);
    if (status != CONV_FFT_SUCCESS) {
        close_plan(impl);
        return status;
    }
    snprintf(impl->name, sizeof impl->name, "%s", name);
    snprintf(impl->strategy, sizeof impl->strategy, "%s", fbfft_plan_description(p->plan));
    for (char *c = impl->strategy; *c; c++) /* commas separate columns of the results, newlines rows */
        *c = *c == ',' ? ';' : *c == '\n' ? '|' : *c;
    impl->workspace_bytes = p->bytes;
    impl->transforms = true;
    impl->run = run;
    impl->close = close_plan;
    return CONV_FFT_SUCCESS;
}

conv_fft_status fft_ours_open(fft_impl *impl) { return open_plan(impl, "ours", FBFFT_ARITHMETIC_DEFAULT); }

conv_fft_status fft_ours_split_open(fft_impl *impl) { return open_plan(impl, "ours-split", FBFFT_ARITHMETIC_SPLIT); }
