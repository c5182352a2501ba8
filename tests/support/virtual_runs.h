/* SPDX-License-Identifier: Apache-2.0 */
/* Passes on the CPU that take the time of virtual_clock.h. In a program that repeats these declarations, these
 * functions replace those of the library. */
#ifndef TEST_VIRTUAL_RUNS_H
#define TEST_VIRTUAL_RUNS_H

#include "support/virtual_clock.h"

typedef struct virtual_run_state {
    int64_t spoiled_basis; /* strategies whose last basis is this one are at once done and wrong; 0: none */
    int spoiled;           /* runs of these */
    bool steady;           /* every run of a staged pass takes 20 ms */
    int count;             /* runs of passes */
    int lost_until;        /* of the runs before this one, other work takes processors from each `lost_every`-th, for */
    int lost_every;        /* 30 ms and more */
} virtual_run_state;
extern virtual_run_state virtual_runs;

/* Making a plan takes virtual time. */
conv_fft_status __wrap_cf_plan_create(const cf_layer *l, cf_device *device, int passes,
                                      const cf_strategy strategy[CF_PASS_COUNT], bool any_alignment,
                                      uint64_t workspace_limit, uint64_t *smallest, conv_fft_plan **plan);
/* A run takes the time of clock_seconds_of(). */
conv_fft_status __wrap_cf_staged_run(const conv_fft_plan *plan, int set, const cf_call *call);
/* A run takes 20 ms. */
conv_fft_status __wrap_cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
