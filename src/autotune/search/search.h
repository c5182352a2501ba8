/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured search. Candidates are compiled, run once, and timed in turns, from cold caches, on random data; those that are clearly
 * slower drop out; of the rest the median counts, and of those within 2 % of each other the smaller workspace. The winner's results must
 * agree with those of a candidate that computes every pass in another family, or where there is none with other bases or another product;
 * if they do not, the next one is the winner.
 */
#ifndef CF_AUTOTUNE_SEARCH_H
#define CF_AUTOTUNE_SEARCH_H

#include "autotune/records/records.h"
#include "autotune/search/candidates.h"
#include "autotune/search/elimination.h"

/* One set of passes that are tuned together. It stays where it is from its begin to its end. */
typedef struct cf_tuning_search {
    cf_tuning_job job;
    cf_candidates list;
    cf_elimination elimination;
    bool decided;
    char why[256]; /* it has not decided */
} cf_tuning_search;

/* Its candidates, best first by the cost model. cf_search_end() also after a failure. OUT_OF_MEMORY. */
conv_fft_status cf_search_begin(const cf_tuning_job *job, cf_tuning_search *search);
void cf_search_end(cf_tuning_search *search);

/* Make the plans of those that the mode times, of all searches together: by the clock, half of the time until `end` may go to that.
 * OUT_OF_MEMORY, CANCELLED by the jobs' interruption. */
conv_fft_status cf_searches_plan(cf_tuning_search *searches, int count, conv_fft_tuning mode, double end);

/* Time them within so many seconds (HUGE_VAL: no bound), and decide. The winner stands first in the list, behind it the others that were timed,
 * then the rest; every verdict is set. `decided` is false if too few could be timed to decide, or none could be verified. OUT_OF_MEMORY,
 * CANCELLED by the job's interruption, or an error of the device. */
conv_fft_status cf_search_run(cf_tuning_search *search, double seconds);

/* The record of a search that has decided. */
conv_fft_status cf_search_record(const cf_tuning_search *search, conv_fft_tuning mode, cf_record *record);

#endif
