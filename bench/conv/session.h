/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - one run of the program: what run.c sets up and case.c uses for each case. */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include "common/gpu.h"

typedef struct bench_session {
    const bench_options *o;
    double seconds;
    conv_fft_context *context;
    bench_gpu gpu_in_use, *gpu; /* NULL: the CPU */
    bench_timer *timer;
    bench_part part;
    char commit[64];
    double start_ms;
    double plans_ms, baselines_ms, data_ms, checks_ms, runs_ms; /* what the time went to */
    bool wrong; /* something that was to be measured was not, or gave a wrong result */
} bench_session;

/* All passes of one case, then the results file anew. False: the results cannot be written. */
bool bench_run_case(bench_session *run, const bench_case *layer);

/* Adds the time since *from, which then is now. */
void bench_spend(double *account, double *from);

#endif /* BENCH_SESSION_H */
