/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of bench_fft. */
#ifndef BENCH_FFT_MEASURE_H
#define BENCH_FFT_MEASURE_H

#include "cuda/driver/memory.h"
#include "fft/impl.h"

#define FFT_MAX_IMPLS 5
#define FFT_FLUSH_BYTES ((size_t)256 << 20)

typedef struct fft_timer {
    const cf_gpu *gpu;
    cf_cu_stream stream;
    cf_cu_event start, end;
    void *flush;
    int repeats;
} fft_timer;

conv_fft_status fft_timer_create(fft_timer *timer, const cf_gpu *gpu, cf_cu_stream stream, int repeats);
void fft_timer_destroy(fft_timer *timer);

/* Median milliseconds of each implementation, by device events. They take turns. L2 is flushed before every run. */
conv_fft_status fft_measure(const fft_timer *timer, fft_impl *impls, size_t count, double *ms);

#endif
