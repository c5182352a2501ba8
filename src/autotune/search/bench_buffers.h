/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers on which the plans of one layer are timed and compared: random tensors and a workspace in the device's
 * memory, a timer, and memory that is written between runs to flush the caches.
 */
#ifndef CF_AUTOTUNE_BENCH_BUFFERS_H
#define CF_AUTOTUNE_BENCH_BUFFERS_H

#include "conv/plan/context.h"
#include "conv/plan/run.h"

/* A part of the memory of benchmark buffers. */
typedef struct cf_part {
    void *data;
    size_t bytes;
} cf_part;

typedef struct cf_bench_buffers {
    cf_device *device;
    const cf_gpu *gpu; /* NULL on the CPU */
    int passes;
    void *memory;
    cf_part x, w, bias, y, gy, gx, gw, gbias, x_spectrum, w_spectrum, workspace, flush;
    cf_timer *timer;
} cf_bench_buffers;

/* Sizes in bytes of the buffers beside the tensors. */
typedef struct cf_bench_buffers_sizes {
    size_t workspace, x_spectrum, w_spectrum; /* 0: spectra are not kept */
    size_t flush;
} cf_bench_buffers_sizes;

/* Make the buffers for passes of a layer. gpu: NULL on the CPU; only cf_bench_buffers_read() needs it.
 * OUT_OF_MEMORY. */
conv_fft_status cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                        const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);
void cf_bench_buffers_destroy(cf_bench_buffers *buffers); /* buffers of zeros are allowed */

/* The arguments of one call of a set of passes, without bias and gbias: networks with batch normalisation have none. */
cf_call cf_bench_buffers_call(const cf_bench_buffers *buffers, int set);

/* Run all passes of the benchmark buffers: one call for forward, then one for the gradients. */
conv_fft_status cf_bench_buffers_run(const cf_bench_buffers *buffers, const conv_fft_plan *plan);
/* The time of a run. */
typedef struct cf_run_time {
    double seconds;
    double share; /* of a run on a CPU: the processors that the process had on average; HUGE_VAL on a GPU */
} cf_run_time;

enum {
    CF_RUNS_MAX = 16 /* of one plan, whose times are kept */
};

/* Run all passes from cold caches, and set *time. */
conv_fft_status cf_bench_buffers_time(const cf_bench_buffers *buffers, const conv_fft_plan *plan, cf_run_time *time);

/* The median of count >= 1 values. Sorts them. */
double cf_median(double *values, int count);

/* List the results of the benchmark buffers' passes. Returns their number. */
int cf_bench_buffers_results(const cf_bench_buffers *buffers, cf_part results[CF_PASS_COUNT],
                             conv_fft_dtype dtypes[CF_PASS_COUNT], const cf_layer *layer);
conv_fft_status cf_bench_buffers_clear_results(const cf_bench_buffers *buffers);
/* Copy to the host. */
conv_fft_status cf_bench_buffers_read(const cf_bench_buffers *buffers, const void *memory, size_t bytes, void *host);

#endif
