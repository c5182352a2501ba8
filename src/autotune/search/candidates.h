/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The candidates of a search: for passes that are tuned together, the strategies of each, best first by the cost model. Staged ones
 * are every combination of the axes' bases, dilation as step or as shifts, each product, both overlaps of gx, and chunks of
 * the model's size, of all rows, and a quarter; fused ones have the same bases; other families name their own. What mode off would
 * choose is always one of them.
 */
#ifndef CF_AUTOTUNE_CANDIDATES_H
#define CF_AUTOTUNE_CANDIDATES_H

#include "conv/plan/context.h"
#include "conv/plan/plan.h"

/* Who may end a search before it has decided. Asked between candidates and rounds, by the thread that searches alone. */
typedef struct cf_interruption {
    bool (*wanted)(void *user);
    void *user;
} cf_interruption;

/* What is tuned: passes of a layer together. */
typedef struct cf_tuning_job {
    const conv_fft_context *context;
    const cf_layer *layer;
    int passes, keep;
    uint64_t workspace_limit;            /* 0: none */
    bool own_kernels;                    /* no algorithm of cuDNN */
    const cf_interruption *interruption; /* NULL: nobody */
} cf_tuning_job;

typedef struct cf_candidate {
    cf_strategy strategy[CF_PASS_COUNT]; /* of the job's passes */
    double predicted;                    /* seconds, by the cost model; HUGE_VAL: it knows nothing of this family */
    double measured;                     /* seconds, median; negative: not timed */
    uint64_t workspace;                  /* bytes; 0: no plan was made of it */
    conv_fft_plan *plan;                 /* while it is measured */
    double times[16];
    int runs;
    const char *verdict; /* why it was not chosen, or was: a constant clause */
} cf_candidate;

typedef struct cf_candidates {
    cf_candidate *items;
    size_t count, room;
} cf_candidates;

/* All candidates, best first. OUT_OF_MEMORY. */
conv_fft_status cf_candidates_make(const cf_tuning_job *job, cf_candidates *candidates);
void cf_candidates_clear(cf_candidates *candidates);

/* Move to the front those to be timed in a search of the best few: the best of each family, with dilation as step and as shifts, then
 * the best with at most two of the same bases, `most` together; then some of the families that the model does not know. Returns how
 * many there are. */
size_t cf_candidates_select(const cf_tuning_job *job, cf_candidates *candidates, size_t most);

/* Put one in at a place. OUT_OF_MEMORY: the list is as it was. */
conv_fft_status cf_candidates_insert(cf_candidates *candidates, size_t at, const cf_candidate *candidate);

/* Seconds by the cost model, of the passes together. */
double cf_candidates_predict(const cf_tuning_job *job, const cf_candidate *candidate);

/* Family of a candidate: that of its first pass. */
cf_family_id cf_candidate_family(const cf_tuning_job *job, const cf_candidate *candidate);

#endif
