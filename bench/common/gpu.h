/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - the GPU under measurement: a stream, events, memory. For those parts of bench_conv that call the device. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "bench.h"
#include "cuda/driver/memory.h"

struct bench_cudnn;

typedef struct bench_gpu {
    cf_gpu *gpu;
    cf_cu_stream stream;
    cf_cu_event start, end;
    void *flush; /* written before every run, so that nothing older stays in L2 */
    size_t flush_bytes;
    void *scratch; /* workspace that baselines share, one at a time */
    size_t scratch_bytes;
    struct bench_cudnn *cudnn; /* NULL: there is none */
    char cublas[32];           /* version */
    double search_seconds;     /* for each pass, to find the best way of a baseline */
    bool deterministic;        /* baselines: only ways whose results are the same each time */
    bool verbose;
} bench_gpu;

/* False: a message has been written. Either way bench_gpu_close() ends it. */
bool bench_gpu_open(bench_gpu *g, int ordinal);
void bench_gpu_close(bench_gpu *g);

/* At least so many bytes of scratch; 0: none. Old scratch is gone. */
conv_fft_status bench_gpu_scratch(bench_gpu *g, size_t bytes);

/* Milliseconds that one run takes on the device, with a cold L2. run: enqueues the work. False: it, or the device,
   failed; a message has been written if it was the device. */
bool bench_gpu_time(const bench_gpu *g, bool (*run)(void *state), void *state, double *ms);

/* Writes the last error of the library unless status is SUCCESS. */
bool bench_good(conv_fft_status status, const char *what);

/* ------------------------------------------------------------------------------------------------------- cudnn.c */

/* NULL: a message has been written. */
struct bench_cudnn *bench_cudnn_create(const bench_gpu *g);
void bench_cudnn_destroy(bench_gpu *g);
/* What was found for the passes of a case is kept until here. */
void bench_cudnn_forget(bench_gpu *g);
const char *bench_cudnn_version(const bench_gpu *g); /* "9.19.0", "none" */

#endif /* BENCH_GPU_H */
