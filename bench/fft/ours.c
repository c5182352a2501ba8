/* SPDX-License-Identifier: Apache-2.0 */
/* The library, through its public functions. */
#include "fft.h"

#include <stdio.h>

fbfft_desc fft_desc_of(const fft_case *c, bool inverse) {
    fbfft_desc d;
    fbfft_desc_init(&d, c->rank, inverse ? FBFFT_C2R : FBFFT_R2C);
    d.basis[c->rank - 1] = c->columns;
    d.extent[c->rank - 1] = c->data_columns;
    if (c->rank == 2) {
        d.basis[0] = c->rows;
        d.extent[0] = c->data_rows;
    }
    return d;
}

static conv_fft_status run(fft_impl *impl) {
    const fft_job *const job = impl->job;
    return fbfft_execute(impl->state, job->in, job->out, job->c->batch, job->stream);
}

static void close_plan(fft_impl *impl) { fbfft_plan_destroy(impl->state); }

conv_fft_status fft_ours_open(fft_impl *impl) {
    const fbfft_desc d = fft_desc_of(impl->job->c, impl->job->inverse);
    fbfft_plan *plan = NULL;
    CF_FORWARD(fbfft_plan_create(impl->job->context, &d, &plan));
    snprintf(impl->name, sizeof impl->name, "ours");
    snprintf(impl->strategy, sizeof impl->strategy, "%s", fbfft_plan_description(plan));
    for (char *p = impl->strategy; *p; p++)
        *p = *p == ',' ? ';' : *p; /* commas part the columns of the results */
    impl->transforms = true;
    impl->state = plan;
    impl->run = run;
    impl->close = close_plan;
    return CONV_FFT_SUCCESS;
}
