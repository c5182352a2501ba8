/* SPDX-License-Identifier: Apache-2.0 */
/* One run of the program: run.c sets it up, and case.c uses it for each case. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "common/csv.h"
#include "common/gpu.h"
#include "common/timer.h"
#include "conv/run.h"

typedef struct bench_session {
    const bench_options *o;
    double seconds;
    conv_fft_context *context;
    bench_gpu gpu_in_use, *gpu; /* NULL: the CPU */
    bench_timer *timer;
    bench_part part;
    char commit[64];
    double start_ms;
    double plans_ms, baselines_ms, data_ms, checks_ms, runs_ms; /* where the time went */
    bool wrong;                                                 /* a measurement is missing or gave a wrong result */
} bench_session;

#endif
