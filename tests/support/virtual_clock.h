/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that only the test moves, so that measured times and the length of a search do not depend on the machine. In
 * a program that repeats these declarations, these functions replace those of the library. */
#ifndef TEST_VIRTUAL_CLOCK_H
#define TEST_VIRTUAL_CLOCK_H

#include "autotune/search/bench_buffers.h"
#include "conv/plan/run.h"

/* Each call advances the clock by a microsecond. */
double __wrap_cf_clock_seconds(void);
/* The same, but for the seconds of clock_lose(). */
double __wrap_cf_clock_process_seconds(void);
/* A page is written between runs, instead of more data than fit a cache. */
conv_fft_status __wrap_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);

/** May be called by any thread. */
void clock_advance(double seconds);

/** The clock advances while other processes have the processors. */
void clock_lose(double seconds);

/** The time of a run of these passes of a plan: it grows with the basis, and is multiplied by 1 to 8, depending on
 * strategy and seed. So each seed has other winners. */
double clock_seconds_of(const conv_fft_plan *plan, int passes);

#endif
