/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of bench_conv. */
#ifndef BENCH_TIMER_H
#define BENCH_TIMER_H

#include "common/impl.h"

typedef struct bench_timer bench_timer;

/* The timer owns the buffer that flushes the CPU's caches. gpu: NULL on the CPU. NULL: out of memory. */
bench_timer *bench_timer_create(struct bench_gpu *gpu);
void bench_timer_destroy(bench_timer *timer);

/* Bytes that are written between two runs. */
size_t bench_timer_flush_bytes(const bench_timer *timer);

/* The smallest number of timed runs. */
int bench_timer_least_runs(const bench_timer *timer);

double bench_now_ms(void);
double bench_median(double *values, int count); /* sorts the values */

/* Median milliseconds of each implementation. They take turns until each has used `seconds`, flushes included, and
 * has run often enough. False: a run failed. */
bool bench_measure(bench_timer *timer, bench_impl *impls, size_t count, double seconds, double *ms);

#endif
