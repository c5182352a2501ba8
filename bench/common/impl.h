/* SPDX-License-Identifier: Apache-2.0 */
/* An implementation of a pass, and what it is given. */
#ifndef BENCH_IMPL_H
#define BENCH_IMPL_H

#include "common/check.h"
#include "common/precision.h"
#include "common/tensors.h"

typedef struct bench_job {
    const bench_case *layer;
    conv_fft_pass pass;
    bool kept; /* spectra of the tensors that do not change exist already */
    const bench_class *class;
    const bench_data *data;
    const bench_tensors *tensors;
    conv_fft_context *context;
    struct bench_gpu *gpu; /* NULL: the CPU */
    const bench_check *check;
} bench_job;

/* An open function fills this in. It returns false if the implementation does not have the job. Then a message has
 * been written, and nothing is to be closed. */
typedef struct bench_impl {
    char name[32];
    char strategy[512];
    uint64_t workspace_bytes;
    const bench_job *job;
    void *state;
    bool (*run)(struct bench_impl *self);
    bool (*finish)(struct bench_impl *self); /* convert the output to the plain layout, not timed; may be NULL */
    void (*close)(struct bench_impl *self);
} bench_impl;

#endif
