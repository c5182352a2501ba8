/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether other work on the host has disturbed runs on a CPU. A run is disturbed
 *
 *     if the process had less than 85 % of one processor during the run: its caller always computes;
 *     or if the run was 15 % slower than the fastest one, and the process had less than 75 % of the processors that it
 *     had in another run of the same plan.
 *
 * Runs together are disturbed if half of them are, or if their median is more than twice the fastest one. Differences
 * below 20 microseconds do not count.
 */
#ifndef CF_AUTOTUNE_NOISE_H
#define CF_AUTOTUNE_NOISE_H

#include "autotune/search/bench_buffers.h"

/* The process had less than one processor. This needs no other run. */
bool cf_run_was_interrupted(const cf_run_time *run);

/* Of count >= 1 runs of one plan. On a GPU they are never disturbed. */
bool cf_runs_are_disturbed(const cf_run_time *runs, int count);
double cf_runs_median(const cf_run_time *runs, int count);
double cf_runs_fastest(const cf_run_time *runs, int count);
/* The median. Of disturbed runs: the time that the plan may take without the interruptions. */
double cf_runs_seconds(const cf_run_time *runs, int count);

/* The processors that the process had on average; 0: not known, as on a GPU and where the runs together are shorter
 * than the clock of the process can tell. */
double cf_runs_processors(const cf_run_time *runs, int count);

/* Replace the slowest run if this one is faster. */
void cf_runs_improve(cf_run_time *runs, int count, const cf_run_time *run);

#endif
