/* SPDX-License-Identifier: Apache-2.0 */
/* Which strategy: choosing one for each pass of a layer, and saying what it is expected to cost. */
#ifndef CF_AUTOTUNE_AUTOTUNE_H
#define CF_AUTOTUNE_AUTOTUNE_H

#include "conv/context.h"
#include "conv/plan.h"

/* Make the plan: choose a strategy for every pass that options->strategy does not name, by the cost model. */
conv_fft_status cf_autotune_plan(conv_fft_context *context, const conv_fft_problem *problem,
                                 const conv_fft_plan_options *options, conv_fft_plan **plan);

/* Describe a set of passes (one, or both backward ones). `seconds` per stage, or NULL. */
void cf_describe(const conv_fft_plan *plan, int set, const double *seconds, conv_fft_description *description);

/* Run a set `repeats` times on random data and describe it with the median time of each stage. */
conv_fft_status cf_profile(const conv_fft_plan *plan, int set, int repeats, conv_fft_description *description);

#endif
