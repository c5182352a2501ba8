/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The candidates of a search: for passes that are tuned together, the strategies of each pass. The list is sorted by
 * predicted time.
 *
 * staged    Every combination of: the bases of the axes, dilation as step or as shifts, each product, both overlaps
 *           of gx, and three chunks (that of the model, all rows, a quarter of that of the model).
 * fused     The same bases.
 * others    Families name their own strategies.
 *
 * The choice of mode off is always one of the candidates.
 */
#ifndef CF_AUTOTUNE_CANDIDATES_H
#define CF_AUTOTUNE_CANDIDATES_H

#include "autotune/search/bench_buffers.h"
#include "conv/plan/context.h"
#include "conv/plan/plan.h"

/* How a caller ends a search early. The thread that searches asks between candidates and between rounds. */
typedef struct cf_interruption {
    bool (*wanted)(void *user);
    void *user;
} cf_interruption;

/* The passes of a layer that are tuned together. */
typedef struct cf_tuning_job {
    const conv_fft_context *context;
    const cf_layer *layer;
    int passes, keep;
    uint64_t workspace_limit;            /* 0: none */
    bool own_kernels;                    /* without algorithms of cuDNN */
    const cf_interruption *interruption; /* may be NULL */
    const volatile int *cancel;          /* conv_fft_plan_options.cancel */
} cf_tuning_job;

typedef struct cf_candidate {
    cf_strategy strategy[CF_PASS_COUNT]; /* for the passes of the job */
    double predicted;                    /* seconds, by the cost model; HUGE_VAL: no prediction */
    double measured;                     /* seconds, median; negative: not timed */
    uint64_t workspace;                  /* bytes; 0: no plan was made */
    conv_fft_plan *plan;                 /* while it is measured */
    cf_run_time times[CF_RUNS_MAX];
    int runs;
    bool is_models_choice; /* mode off takes these strategies; known only without a workspace limit */
    const char *verdict;   /* why it was chosen or not: a constant clause */
} cf_candidate;

typedef struct cf_candidates {
    cf_candidate *items;
    size_t count, capacity;
} cf_candidates;

/* Make all candidates, best prediction first. OUT_OF_MEMORY. */
conv_fft_status cf_candidates_make(const cf_tuning_job *job, cf_candidates *candidates);
void cf_candidates_clear(cf_candidates *candidates);

/* Move the candidates to the front that a search of at most `max_count` times: first the best of each family, with
 * dilation as step and as shifts. Then the best others, at most two with the same bases. Behind these stand some
 * candidates of families without predictions. Returns the number of candidates that were moved. */
size_t cf_candidates_select(const cf_tuning_job *job, cf_candidates *candidates, size_t max_count);

/* Insert a candidate at a place. OUT_OF_MEMORY: the list is as it was. */
conv_fft_status cf_candidates_insert(cf_candidates *candidates, size_t at, const cf_candidate *candidate);

/* The predicted seconds of all passes of the candidate. */
double cf_candidates_predict(const cf_tuning_job *job, const cf_candidate *candidate);

/* The first of these passes, a set of CONV_FFT_FORWARD etc. */
int cf_candidate_first_pass(int passes);

/* The family of a candidate's first pass. */
const cf_family *cf_candidate_family(const cf_tuning_job *job, const cf_candidate *candidate);

#endif
