/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The measured search. Candidates are compiled, run once, and timed in turns, from cold caches, on random data; those that are clearly
 * slower drop out; of the rest the median counts, and of those within 2 % of each other the smaller workspace. The winner's results must
 * agree with those of a candidate that computes every pass in another family, or where there is none with other bases or another product;
 * if they do not, the next one is the winner.
 */
#ifndef CF_AUTOTUNE_SEARCH_H
#define CF_AUTOTUNE_SEARCH_H

#include "autotune/candidates.h"
#include "autotune/records.h"

typedef struct cf_search_limits {
    conv_fft_tuning mode;
    double seconds; /* for all of it; HUGE_VAL: no bound */
} cf_search_limits;

/* Time candidates and decide. The winner stands first in the list, behind it the others that were timed, then the rest; every verdict is
 * set. *decided is false if too few could be timed to decide, or none could be verified: the sentence of *why (256 bytes) says so.
 * OUT_OF_MEMORY, CANCELLED by the job's interruption, or an error of the device. */
conv_fft_status cf_search_run(const cf_tuning_job *job, const cf_search_limits *limits, cf_candidates *candidates,
                              bool *decided, char why[256]);

/* The record of a search that has decided. */
conv_fft_status cf_search_record(const cf_tuning_job *job, conv_fft_tuning mode, const cf_candidates *candidates,
                                 cf_record *record);

#endif
