/* SPDX-License-Identifier: Apache-2.0 */
/* Which strategy: choosing one for each pass of a layer, and saying what it is expected to cost. */
#ifndef CF_AUTOTUNE_AUTOTUNE_H
#define CF_AUTOTUNE_AUTOTUNE_H

#include "autotune/search/candidates.h"

/* Make the plan. A strategy for every pass that options->strategy does not name comes from a record, a measured search or the cost model,
 * as options->tuning says. interruption may be NULL. CANCELLED: it was wanted during a search; records that earlier ones
 * have made stay. */
conv_fft_status cf_autotune_plan(conv_fft_context *context, const conv_fft_problem *problem,
                                 const conv_fft_plan_options *options, const cf_interruption *interruption,
                                 conv_fft_plan **plan);

/* The sets of passes that are tuned together. Returns how many. */
int cf_tuned_together(int passes, int keep, int sets[2]);

/* Non-zero: no more. */
typedef int (*cf_candidate_visit)(const cf_tuning_job *job, const cf_candidate *candidate, const char *verdict,
                                  void *user);

/* Show the candidates of the options' passes, set by set, best first; timed, if options->tuning measures. Keeps no record. CANCELLED. */
conv_fft_status cf_autotune_candidates(conv_fft_context *context, const conv_fft_problem *problem,
                                       const conv_fft_plan_options *options, cf_candidate_visit visit, void *user);

/* Describe a set of passes (one, or both backward ones). `seconds` per stage, or NULL. */
void cf_describe(const conv_fft_plan *plan, int set, const double *seconds, conv_fft_description *description);

/* Run a set `repeats` times on random data and describe it with the median time of each stage. */
conv_fft_status cf_profile(const conv_fft_plan *plan, int set, int repeats, conv_fft_description *description);

#endif
