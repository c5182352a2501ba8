/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU under measurement: a stream, events and memory. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "conv_fft.h"
#include "cuda/driver/memory.h"

struct bench_cudnn;

typedef struct bench_gpu {
    cf_gpu *gpu;
    cf_cu_stream stream;
    cf_cu_event start, end;
    void *flush; /* written before every run, so that L2 holds nothing older */
    size_t flush_bytes;
    void *scratch; /* workspace that the baselines use one at a time */
    size_t scratch_bytes;
    struct bench_cudnn *cudnn; /* NULL: there is none; conv/baselines/cudnn.h */
    char cublas[32];           /* version */
    double search_seconds;     /* time to look for the best algorithm of a baseline, for each pass */
    const char *known;         /* results whose algorithms of a baseline are tried first; NULL: none */
    bool deterministic;        /* use only algorithms of baselines whose results are the same each time */
    bool verbose;
} bench_gpu;

/* False: a message has been written. The caller calls bench_gpu_close() in either case. */
bool bench_gpu_open(bench_gpu *g, int ordinal);
void bench_gpu_close(bench_gpu *g);

/* Make at least so many bytes of scratch; 0: none. The old scratch is freed. */
conv_fft_status bench_gpu_scratch(bench_gpu *g, size_t bytes);

/* Milliseconds that one run takes on the device with a cold L2. run: enqueue the work. False: `run` or the device
 * failed; a message has been written if it was the device. */
bool bench_gpu_time(const bench_gpu *g, bool (*run)(void *state), void *state, double *ms);

/* Write the last error of the library unless status is SUCCESS. Returns whether it is. */
bool bench_good(conv_fft_status status, const char *what);

/* Memory of the device, or of the host if g is NULL. NULL: a message has been written. */
void *bench_allocate(const struct bench_gpu *g, size_t bytes, const char *what);
void bench_free(const struct bench_gpu *g, void *memory);

/* The stream of all measurements; NULL on the CPU. */
struct CUstream_st *bench_stream(const struct bench_gpu *g);

#endif
