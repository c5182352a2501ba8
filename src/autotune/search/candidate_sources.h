/* SPDX-License-Identifier: Apache-2.0 */
/* The files that add candidates to a list, and what they share. */
#ifndef CF_AUTOTUNE_CANDIDATE_SOURCES_H
#define CF_AUTOTUNE_CANDIDATE_SOURCES_H

#include "autotune/search/candidates.h"

/* A candidate without strategies that was not timed. */
cf_candidate cf_candidate_new(void);

/* Append a candidate. OUT_OF_MEMORY: the list is as it was. */
conv_fft_status cf_candidates_add(const cf_candidate *candidate, cf_candidates *list);

/* Sort by predicted time. Candidates with equal predictions keep their order. OUT_OF_MEMORY. */
conv_fft_status cf_candidates_sort(cf_candidates *list);

/* Whether a strategy runs on the device for this pass, within the job's workspace. */
bool cf_candidate_suits(const cf_tuning_job *job, int pass, const cf_strategy *strategy);

/* Whether two strategies with the same bases are equal. */
bool cf_candidate_variants_equal(const cf_strategy *a, const cf_strategy *b);

/* Whether some axis has several tiles. */
static inline bool cf_strategy_has_tiles(const cf_strategy *s) { return s->tiles[0] * s->tiles[1] * s->tiles[2] > 1; }

/* candidates_staged.c: staged strategies for all bases. shift: dilation as shifts. OUT_OF_MEMORY. */
conv_fft_status cf_candidates_add_staged(const cf_tuning_job *job, bool shift, cf_candidates *list);

/* candidates_fused.c: fused strategies, as above; and for both gradients together, the best staged and the best
 * fused strategy. */
conv_fft_status cf_candidates_add_fused(const cf_tuning_job *job, bool shift, cf_candidates *list);
conv_fft_status cf_candidates_add_mixed(const cf_tuning_job *job, cf_candidates *list);

/* candidates_family.c: the strategies that a family names itself. OUT_OF_MEMORY. */
conv_fft_status cf_candidates_add_family(const cf_tuning_job *job, const cf_family *family, cf_candidates *list);

#endif
