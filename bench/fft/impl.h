/* SPDX-License-Identifier: Apache-2.0 */
/* An implementation of a transform. */
#ifndef BENCH_FFT_IMPL_H
#define BENCH_FFT_IMPL_H

#include "fft/data.h"

/* An open function fills in everything but job, which its caller sets. After a failure nothing is to be closed. */
typedef struct fft_impl {
    char name[32], strategy[640];
    uint64_t workspace_bytes;
    const fft_job *job;
    void *state;
    bool transforms;                                   /* the output can be compared */
    bool natural;                                      /* the output is in natural order, whatever the case says */
    conv_fft_status (*restore)(struct fft_impl *self); /* before each run, not timed; may be NULL */
    conv_fft_status (*run)(struct fft_impl *self);
    conv_fft_status (*finish)(struct fft_impl *self); /* move the result to job.out, not timed; may be NULL */
    void (*close)(struct fft_impl *self);
} fft_impl;

#endif
