/* SPDX-License-Identifier: Apache-2.0 */
/* How the transform of each axis is divided into steps: one radix for each step, at most three steps. */
#ifndef CF_FBFFT_SHARED_MEMORY_RADICES_H
#define CF_FBFFT_SHARED_MEMORY_RADICES_H

#include "fbfft/shared_memory/config.h"

/* The step of several in which a thread does two tasks at a time. */
typedef enum cf_two_tasks {
    CF_NEVER_TWO,
    CF_FIRST_TWO, /* columns that also split pairs of rows: ColumnTask::TWO of steps.cuh */
    CF_LAST_TWO   /* MirrorTask of fused/shared_memory.cuh */
} cf_two_tasks;

/* For the steps along axis x. It needs the kind, mirrors and sums of the config. */
cf_two_tasks cf_shared_fft_two_along(const cf_shared_fft_config *config, int x);

/* Choose the radices of n points. A single step may have at most so many points. */
void cf_shared_fft_choose_radices(int n, int max_points, cf_two_tasks two, int radix[3]);

/* Points of the axis that has these radices. */
static inline int cf_shared_fft_points(const int r[3]) { return r[0] * r[1] * r[2]; }

/* The largest number of points that a thread holds in any step. */
int cf_shared_fft_max_points(const cf_shared_fft_config *config);

#endif
