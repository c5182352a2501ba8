/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one kernel of a transform moves and computes, and how long a GPU with given properties takes for that at least.
 *
 *     memory       Every element and every bin once. Numbers between two kernels count twice, written and read, if they
 *                  are more than half of the L2 cache. Copies reach 0.87 of clock times width of the memory (measured
 *                  on an H200).
 *     shared       Every number that a step reads or writes in shared memory, at 128 bytes per cycle and
 *     multiprocessor. arithmetic   Additions, multiplications and multiply-adds of register_dft.cuh, one per lane and
 *     cycle. Operations
 *                  on zeros are counted although they are left out; address arithmetic is not counted.
 *
 * These overlap, so a kernel takes at least the longest of the three times.
 */
#ifndef CF_FBFFT_BUDGET_H
#define CF_FBFFT_BUDGET_H

#include "fbfft/plan/kernel_split.h"

/* Bytes per second of memory and shared memory, operations per second of arithmetic. */
typedef struct cf_fft_rates {
    double memory, shared, arithmetic;
} cf_fft_rates;

cf_fft_rates cf_fft_rates_of(const cf_gpu_properties *properties, conv_fft_dtype compute);

typedef struct cf_fft_budget {
    double read, written; /* bytes of memory */
    double between;       /* bytes between kernels, in both directions */
    double shared, operations;
    double seconds[3];   /* for memory, shared memory, arithmetic */
    double copy_seconds; /* copy of what is read and written, without what is between kernels */
} cf_fft_budget;

/* The budget of kernel i for this many rows of the transform. */
cf_fft_budget cf_fft_budget_of(const cf_fft_passes *passes, int i, const cf_gpu_properties *properties, int64_t rows);

/* Blocks that a multiprocessor holds at the same time, and what limits them. */
typedef struct cf_fft_occupancy {
    int64_t threads, blocks;
    int64_t by_registers, by_shared, by_threads;
    int64_t registers; /* the most that a thread may have so that by_registers blocks fit */
} cf_fft_occupancy;

cf_fft_occupancy cf_fft_occupancy_of(const cf_fft_pass *pass, const cf_gpu_properties *properties);

#endif
