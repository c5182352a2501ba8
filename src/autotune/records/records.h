/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuning records in memory. A record holds the fastest strategies for one problem and a set of passes. Passes that may
 * share transforms are tuned together. A record is a hint: its user checks that the strategies exist, run here and fit
 * the workspace.
 *
 * The key of a record has: the problem line with every field, followed by element strides if they are not those of a
 * layout; the set of passes; the spectra that the caller keeps; and the class of the workspace limit:
 *
 *     class of a limit   0 if there is no limit, else the largest power of two that is not above the limit
 *
 * So a record tuned with a limit of 100 MB (class 64 MiB) is found for every limit from 64 MiB to below 128 MiB, and
 * used if its workspace fits. If no record has the class, the record of class 0 is used if it fits: nothing is faster.
 */
#ifndef CF_AUTOTUNE_RECORDS_H
#define CF_AUTOTUNE_RECORDS_H

#include "conv/plan/plan.h"
#include "conv/problem/layer.h"

enum {
    CF_RECORD_PROBLEM_BYTES = 896,
    CF_RECORD_STRATEGY_BYTES = 256,
    CF_RECORD_LIBRARY_BYTES = 64,
    CF_RECORDS_MAX = 65536 /* in one set; further records of files are counted and skipped */
};

typedef struct cf_record_key {
    char problem[CF_RECORD_PROBLEM_BYTES];
    int passes, keep;
    uint64_t workspace_class;
} cf_record_key;

typedef struct cf_record {
    cf_record_key key;
    char strategy[CF_PASS_COUNT][CF_RECORD_STRATEGY_BYTES]; /* "" for a pass that is not in the set */
    char library[CF_RECORD_LIBRARY_BYTES]; /* "cudnn 9.19.0": a strategy needs this version; "": none needs a library */
    double ms, predicted_ms;               /* of the strategies together */
    double direct_ms;                      /* the best time of another library's algorithms; negative: none was timed */
    double model_ms;                       /* measured, of the cost model's choice; 0: it was not timed */
    double fastest_ms, processors;         /* of the runs whose median is `ms`; 0: not known */
    uint64_t workspace_bytes;
    int64_t candidates; /* the number of timed candidates */
    conv_fft_tuning mode;
    int64_t written; /* when it was measured, in microseconds since 1970 */
    /* When the record was measured or merged here. Of records of one place, the last decided counts. */
    int64_t decided;
    int rank; /* of the place of the record, not in files; the higher rank counts, whatever the times */
} cf_record;

/* Sorted by key and library, each pair once. So a record for another version of a library does not hide a usable
 * one. Zero is an empty set. */
typedef struct cf_records {
    cf_record **items;
    size_t count, capacity;
} cf_records;

uint64_t cf_workspace_class(uint64_t limit);

/* The key of passes of a layer. */
conv_fft_status cf_record_key_make(const cf_layer *layer, int passes, int keep, uint64_t workspace_limit,
                                   cf_record_key *key);
int cf_record_key_compare(const cf_record_key *a, const cf_record_key *b);

void cf_records_clear(cf_records *records);
/* The *count records of a key; and the record of a key and a library ("": it needs no library). */
cf_record **cf_records_of(const cf_records *records, const cf_record_key *key, size_t *count);
cf_record *cf_records_find(const cf_records *records, const cf_record_key *key, const char *library);

/* A policy for records of one place, beside the public policies: the last decided counts. */
#define CF_KEEP_LATEST ((conv_fft_tune_policy)(CONV_FFT_KEEP_THEIRS + 1))

/* Whether `theirs` replaces `mine`. If the policy sees no difference, the faster record counts, then the order of the
 * strategy lines. So the result does not depend on which record came first. */
bool cf_record_replaces(const cf_record *theirs, const cf_record *mine, conv_fft_tune_policy policy);

/* Add a copy, or keep the record that is there, as the policy says. *changed (may be NULL) says whether the set
 * changed. OUT_OF_MEMORY. NOT_SUPPORTED: the set is full. */
conv_fft_status cf_records_add(cf_records *records, const cf_record *record, conv_fft_tune_policy policy,
                               bool *changed);

#endif
