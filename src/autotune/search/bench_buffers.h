/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plans of one layer are measured and compared with: random tensors and a workspace in the device's memory, a timer, and memory
 * that is written between runs so that nothing is found in a cache.
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

/* Bytes beside the tensors. */
typedef struct cf_bench_buffers_sizes {
    size_t workspace, x_spectrum, w_spectrum; /* 0: spectra are not kept */
    size_t flush;
} cf_bench_buffers_sizes;

/* For passes of a layer. gpu: NULL on the CPU; only cf_bench_buffers_read() needs it. OUT_OF_MEMORY. */
conv_fft_status cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                        const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);
void cf_bench_buffers_destroy(cf_bench_buffers *buffers); /* one of zeros is allowed */

/* The call of a set of passes that may run in one call, without bias and gbias, which networks that normalise do without. */
cf_call cf_bench_buffers_call(const cf_bench_buffers *buffers, int set);

/* Run all passes of the benchmark buffers by a plan for them: forward, then the gradients, in a call each. */
conv_fft_status cf_bench_buffers_run(const cf_bench_buffers *buffers, const conv_fft_plan *plan);
/* The same from cold caches; *seconds is the time it took. */
conv_fft_status cf_bench_buffers_time(const cf_bench_buffers *buffers, const conv_fft_plan *plan, double *seconds);

/* Of at least one value; it sorts them. */
double cf_median(double *values, int count);

/* The results of the benchmark buffers' passes. Returns how many. */
int cf_bench_buffers_results(const cf_bench_buffers *buffers, cf_part results[CF_PASS_COUNT],
                             conv_fft_dtype dtypes[CF_PASS_COUNT], const cf_layer *layer);
conv_fft_status cf_bench_buffers_clear_results(const cf_bench_buffers *buffers);
/* Copy to the host. */
conv_fft_status cf_bench_buffers_read(const cf_bench_buffers *buffers, const void *memory, size_t bytes, void *host);

#endif
