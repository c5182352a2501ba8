/* SPDX-License-Identifier: Apache-2.0 */
/* The comment lines at the head of the results. */
#ifndef BENCH_CONDITIONS_H
#define BENCH_CONDITIONS_H

#include "common/csv.h"
#include "common/timer.h"
#include "conv/run.h"

/* Write the conditions of the run to the header of the part. */
void bench_conditions(bench_part *part, const char *suite, const bench_options *o, double seconds,
                      const conv_fft_context *context, const struct bench_gpu *gpu, const bench_timer *timer);

#endif
