/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured search. Candidates are compiled, run once, and timed in rounds, from cold caches, on random data.
 * Candidates that are clearly slower drop out. The fastest median wins; if medians are within 2 %, the smaller
 * workspace wins. The winner's results are compared with those of a candidate that computes every pass in another
 * family. If no such candidate exists, one with other bases or another product is taken. If the results differ, the
 * next candidate wins.
 */
#ifndef CF_AUTOTUNE_SEARCH_H
#define CF_AUTOTUNE_SEARCH_H

#include "autotune/records/records.h"
#include "autotune/search/candidates.h"
#include "autotune/search/elimination.h"

/* One set of passes that are tuned together. The struct must not move between begin and end. */
typedef struct cf_tuning_search {
    cf_tuning_job job;
    cf_candidates list;
    cf_elimination elimination;
    bool decided;
    char why[256]; /* why the search has not decided */
} cf_tuning_search;

/* Make the candidates of a job, best prediction first. Call cf_search_end() also after a failure. OUT_OF_MEMORY. */
conv_fft_status cf_search_begin(const cf_tuning_job *job, cf_tuning_search *search);
void cf_search_end(cf_tuning_search *search);

/* Make the plans of the candidates that the mode times, of all searches together. They may take half of the time until
 * `end`, a time of cf_clock_seconds(). OUT_OF_MEMORY, CANCELLED by the jobs' interruption. */
conv_fft_status cf_searches_plan(cf_tuning_search *searches, int count, conv_fft_tuning mode, double end);

/* Time the candidates within `seconds` (HUGE_VAL: no bound), and decide. Afterwards the list holds the winner, then
 * the other timed candidates, then the rest, and every verdict is set. `decided` is false if too few candidates could
 * be timed, if other work on the host disturbed the times, or if none could be verified. OUT_OF_MEMORY, CANCELLED by
 * the job's interruption, or an error of the device. */
conv_fft_status cf_search_run(cf_tuning_search *search, double seconds);

/* The record of a search that has decided. */
conv_fft_status cf_search_record(const cf_tuning_search *search, conv_fft_tuning mode, cf_record *record);

#endif
