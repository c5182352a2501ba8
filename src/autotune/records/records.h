/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuning records in memory. A record says which strategies won for one problem, for passes that were tuned together: they may share
 * transforms, so they are one decision. It is a hint: whoever uses it checks that its strategies exist, suit the problem and fit.
 *
 * The key is what a decision depends on: the problem line (every field, the math mode included; element strides that are not those of a
 * layout stand behind it), the set of passes, the spectra that the caller keeps, and the class of the workspace limit:
 *
 *     class of a limit   0 if there is none, else the largest power of two that is not above it
 *
 * so a record tuned with a limit of 100 MB (class 64 MiB) is looked at for every limit from 64 MiB to below 128 MiB, and used where its
 * workspace fits. Where no record has the class, that of class 0 is used if it fits: nothing can be faster.
 */
#ifndef CF_AUTOTUNE_RECORDS_H
#define CF_AUTOTUNE_RECORDS_H

#include "conv/plan/plan.h"
#include "conv/problem/layer.h"

enum {
    CF_RECORD_PROBLEM_BYTES = 896,
    CF_RECORD_STRATEGY_BYTES = 256,
    CF_RECORD_LIBRARY_BYTES = 64,
    CF_RECORDS_MAX = 65536 /* in one set; what files hold beyond is counted, and left */
};

typedef struct cf_record_key {
    char problem[CF_RECORD_PROBLEM_BYTES];
    int passes, keep;
    uint64_t workspace_class;
} cf_record_key;

typedef struct cf_record {
    cf_record_key key;
    char strategy[CF_PASS_COUNT][CF_RECORD_STRATEGY_BYTES]; /* "" for a pass that is not in the set */
    char library[CF_RECORD_LIBRARY_BYTES]; /* "cudnn 9.19.0": needed by a strategy, in this version; "" */
    double ms, predicted_ms;               /* of the strategies together */
    double direct_ms;                      /* of the best ones of family direct; negative: none */
    uint64_t workspace_bytes;
    int64_t candidates; /* that were timed */
    conv_fft_tuning mode;
    int64_t written; /* when it was measured, in microseconds since 1970 */
    int64_t
        decided; /* when it was chosen here, by measuring or by merging: among records of one place, the last wins */
    int rank;    /* of the place it comes from, in memory only: the higher rank wins, whatever the time */
} cf_record;

/* Sorted by key and library, each pair once: what another version of a library needs does not hide what is usable here. Zero is an
 * empty set. */
typedef struct cf_records {
    cf_record **items;
    size_t count, room;
} cf_records;

uint64_t cf_workspace_class(uint64_t limit);

/* The key of passes of a layer. */
conv_fft_status cf_record_key_make(const cf_layer *layer, int passes, int keep, uint64_t workspace_limit,
                                   cf_record_key *key);
int cf_record_key_compare(const cf_record_key *a, const cf_record_key *b);

void cf_records_clear(cf_records *records);
/* The records of a key, *count of them, and the one of a library ("": that needs none). */
cf_record **cf_records_of(const cf_records *records, const cf_record_key *key, size_t *count);
cf_record *cf_records_find(const cf_records *records, const cf_record_key *key, const char *library);

/* A policy beside the public ones, for records of one place: the last decided. */
#define CF_KEEP_LATEST ((conv_fft_tune_policy)(CONV_FFT_KEEP_THEIRS + 1))

/* Whether `theirs` takes the place of `mine`. The policy decides nothing about records that are alike but for their times: then the
 * order of the texts does, so that the result does not depend on who came first. */
bool cf_record_replaces(const cf_record *theirs, const cf_record *mine, conv_fft_tune_policy policy);

/* Add a copy, or leave what is there, as the policy says; *changed (may be NULL) tells. OUT_OF_MEMORY. NOT_SUPPORTED: the set is full. */
conv_fft_status cf_records_add(cf_records *records, const cf_record *record, conv_fft_tune_policy policy,
                               bool *changed);

#endif
