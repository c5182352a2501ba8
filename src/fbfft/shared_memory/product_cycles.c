/* SPDX-License-Identifier: Apache-2.0 */
/* A count of instructions and of accesses to shared memory. The figures are from profiles on an H200. */
#include "fbfft/shared_memory/product_cycles.h"

#include "core/arith.h"
#include "fbfft/shared_memory/layout.h"
#include "fbfft/shared_memory/occupancy.h"
#include "fbfft/shared_memory/radices.h"
#include "fbfft/shared_memory/registers.h"

#include <math.h>

enum {
    TASK_CYCLES = 10 /* about forty instructions that find the points of a task */
};
static const double SPILLS = 1.8, /* columns of more than 48 points: each task transforms twice as many */
    QUADS = 0.85;                 /* staged rows, which are read four numbers at a time */

/* Cycles that a warp spends on a task of this many points. A multiprocessor issues four instructions a cycle. Each
 * point goes through shared memory twice, at sixteen points a cycle. */
static double step_cycles(int radix) { return radix * (0.9 * log2(radix) + 3.5) + TASK_CYCLES; }

/* Cycles of all warps of a block for all steps of one signal. */
static double block_cycles(const cf_shared_fft_config *c) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    int64_t rows = cf_shared_fft_extent(c, 1);
    if (c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX)
        rows = (rows + 1) / 2;
    const int64_t lines[3] = {cf_shared_fft_columns(c) * basis[1],
                              cf_shared_fft_columns(c) * cf_shared_fft_extent(c, 0), cf_shared_fft_extent(c, 0) * rows};
    double cycles = 3.0 * (double)cf_ceil_div(c->planes * lines[2] * cf_shared_fft_extent(c, 2), c->threads);
    for (int x = 0; x < 3; ++x)
        for (int step = 0; step < 3 && (step == 0 || c->radix[x][step] > 1) && basis[x] > 1; ++step) {
            const int64_t tasks = c->planes * lines[x] * (cf_shared_fft_points(c->radix[x]) / c->radix[x][step]);
            const bool two = step == 0 && cf_shared_fft_two_along(c, x) == CF_FIRST_TWO && c->radix[x][1] > 1 &&
                             c->radix[x][1] * c->radix[x][2] % 2 == 0;
            const double task = step_cycles(c->radix[x][step]) * (x < 2 && c->radix[x][step] > 48 ? SPILLS : 1.0) *
                                (x == 2 && c->staged ? QUADS : 1.0);
            cycles += two ? (double)cf_ceil_div(tasks / 2, c->threads) * (2.0 * task - TASK_CYCLES)
                          : (double)cf_ceil_div(tasks, c->threads) * task;
        }
    return cycles * c->threads / 32.0;
}

/* Cycles of products if one factor or the sums are in shared memory. */
static double sum_cycles(const cf_shared_fft_config *c, double accesses) {
    const int64_t *basis = c->problem.fft.transform.spectrum.basis;
    return 2.0 * accesses * (double)(c->planes * cf_shared_fft_columns(c) * basis[0] * basis[1]) / 32.0;
}

/* The warps of a multiprocessor hide each other's latency. */
double cf_shared_fft_product_cycles(const cf_shared_fft_config *configs, int count, int64_t shared,
                                    const cf_gpu_properties *properties) {
    const cf_shared_fft_config *c = &configs[0];
    const int64_t blocks = cf_shared_fft_blocks_that_fit(c, shared, properties);
    /* A warp with a long radix has independent instructions to issue. At a barrier, other blocks must have work. */
    const double warps = (double)(blocks * c->threads) / 32.0,
                 alone = (c->sums ? cf_shared_fft_last_points(c) : cf_shared_fft_max_points(c)) >= 24 ? 10.0 : 14.0;
    const double barriers = blocks > 1 ? (double)blocks / ((double)blocks + 0.06) : 0.7;
    const double hidden = warps / (warps + alone) * barriers;
    double cycles = 0.0;
    for (int i = 0; i < count; ++i)
        cycles += block_cycles(&configs[i]);
    if (c->sums)
        cycles += cf_shared_fft_last_points(c) > 16 ? sum_cycles(c, 2.0) : 0.0;
    if (cf_shared_fft_last_points(c) > 12 && cf_shared_fft_register_sums(c) > cf_shared_fft_last_points(c))
        cycles *= 1.3; /* compilers spill the sums of several tasks with many points */
    if (!c->sums && !configs[count - 1].problem.fft.transform.inverse)
        cycles += sum_cycles(c, 4.0);
    /* The warps of a block share the weights that they read. */
    return blocks > 0 ? cycles / c->planes / hidden * (c->threads == 32 ? 1.06 : 1.0) : HUGE_VAL;
}
