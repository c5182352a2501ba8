/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a strategy for each pass of a layer, and the description of its costs. */
#ifndef CF_AUTOTUNE_AUTOTUNE_H
#define CF_AUTOTUNE_AUTOTUNE_H

#include "autotune/search/candidates.h"

/* Make the plan. For passes without options->strategy, a record, a measured search or the cost model chooses the
 * strategy, as options->tuning says. interruption may be NULL. CANCELLED: the interruption was wanted during a
 * search; records of finished searches stay. */
conv_fft_status cf_autotune_plan(conv_fft_context *context, const conv_fft_problem *problem,
                                 const conv_fft_plan_options *options, const cf_interruption *interruption,
                                 conv_fft_plan **plan);

/* List the sets of passes that are tuned together. Returns their number. */
int cf_tuned_together(int passes, int keep, int sets[2]);

/* Returns non-zero to end the walk. */
typedef int (*cf_candidate_visit)(const cf_tuning_job *job, const cf_candidate *candidate, const char *verdict,
                                  void *user);

/* Show the candidates of the options' passes, set by set, best first. They are timed if options->tuning measures.
 * Writes no record. CANCELLED: `visit` ended the walk. */
conv_fft_status cf_autotune_candidates(conv_fft_context *context, const conv_fft_problem *problem,
                                       const conv_fft_plan_options *options, cf_candidate_visit visit, void *user);

/* Describe a set of passes: one pass, or both gradients. seconds: measured, per stage, or NULL. */
void cf_describe(const conv_fft_plan *plan, int set, const double *seconds, conv_fft_description *description);

/* Run a set `repeats` times on random data and describe it with the median time of each stage. */
conv_fft_status cf_profile(const conv_fft_plan *plan, int set, int repeats, conv_fft_description *description);

#endif
