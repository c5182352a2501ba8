/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one kernel of a transform moves and computes, and what a GPU's facts allow for that.
 *
 *     memory       every element and every bin once, and what waits between two kernels, written and read again, where it is more than
 *                  half of the L2 cache; copies reach 0.87 of what clock and width of the memory make (measured, H200)
 *     shared       every number that a step takes from or leaves in shared memory; 128 bytes per cycle and multiprocessor
 *     arithmetic   additions, multiplications and multiply-adds, as register_dft.cuh makes them; each lane one per cycle.
 *                  Zeros and addresses are not looked at, so the first makes it too much, the second too little
 *
 * These overlap: a kernel takes at least the longest of the three times.
 */
#ifndef CF_FBFFT_BUDGET_H
#define CF_FBFFT_BUDGET_H

#include "fbfft/plan/kernel_split.h"

/* Bytes per second of the first two, operations per second of the last. */
typedef struct cf_fft_rates {
    double memory, shared, arithmetic;
} cf_fft_rates;

cf_fft_rates cf_fft_rates_of(const cf_gpu_properties *properties, conv_fft_dtype compute);

typedef struct cf_fft_budget {
    double read, written; /* bytes of memory */
    double waiting;       /* bytes between kernels, each way counted */
    double shared, operations;
    double seconds[3];   /* memory, shared, arithmetic */
    double copy_seconds; /* of what is read and written, without what waits */
} cf_fft_budget;

/* Of pass i over so many rows of the transform. */
cf_fft_budget cf_fft_budget_of(const cf_fft_passes *passes, int i, const cf_gpu_properties *properties, int64_t rows);

/* Blocks that a multiprocessor holds at a time, and what limits them. */
typedef struct cf_fft_occupancy {
    int64_t threads, blocks;
    int64_t by_registers, by_shared, by_threads;
    int64_t registers; /* of a thread, at most: so that by_registers blocks fit */
} cf_fft_occupancy;

cf_fft_occupancy cf_fft_occupancy_of(const cf_fft_pass *pass, const cf_gpu_properties *properties);

#endif
