/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tuning records of a context. They come, the first that has a key before the others, from
 *
 *     this process               what it tuned, loaded or merged
 *     the cache directory        tuning-DEVICE-HASH.jsonl, and shards tuning-DEVICE-HASH.HOST-PID-TIME.jsonl
 *     CONV_FFT_TUNE_PATH         folders joined by colons, the first before the others: every *.jsonl in them, read only
 *
 * and are read when the first plan asks. What is tuned goes to the cache directory: one append under a lock; on a network file
 * system, or where no lock is to be had, to a shard that this process alone writes. Among the lines of the cache directory the last
 * decided counts. A directory that cannot be written is one warning, and the records stay in memory.
 *
 * Any number of threads may use a tuner at once.
 */
#ifndef CF_AUTOTUNE_TUNER_H
#define CF_AUTOTUNE_TUNER_H

#include "autotune/records/records.h"
#include "conv/plan/context.h"

/* The tuner of a context, which owns it. directory as in cf_cache_folder_open(). Reads nothing yet. OUT_OF_MEMORY. */
conv_fft_status cf_tuner_create(conv_fft_context *context, const char *directory);
void cf_tuner_destroy(cf_tuner *tuner); /* NULL is allowed */

/* A copy of the record of the key; if there are several, of one whose libraries are here. OUT_OF_MEMORY, while the records are being
 * read. */
conv_fft_status cf_tuner_find(cf_tuner *tuner, const cf_record_key *key, cf_record *record, bool *found);
/* Keep a new decision, in memory and in the cache directory. That there is no room for it is one warning. OUT_OF_MEMORY. */
conv_fft_status cf_tuner_put(cf_tuner *tuner, const cf_record *record);
/* Take in what other processes have added to the cache directory since it was read: worth it before a search. OUT_OF_MEMORY. */
conv_fft_status cf_tuner_refresh(cf_tuner *tuner);

/* For the statistics: what became of a look-up. A miss is also noted in the file CONV_FFT_RECORD, once for each problem. */
typedef enum cf_tuner_event {
    CF_TUNER_HIT,
    CF_TUNER_MISS,
    CF_TUNER_UNUSABLE, /* there is a record, but it does not suit; a miss as well */
    CF_TUNER_WITHDRAWN /* what was counted as a hit cannot be used after all */
} cf_tuner_event;
void cf_tuner_count(cf_tuner *tuner, const cf_record_key *key, cf_tuner_event event);

/* conv_fft_tune_*; see conv_fft.h. */
conv_fft_status cf_tuner_load(cf_tuner *tuner, const char *path);
conv_fft_status cf_tuner_merge(cf_tuner *tuner, const char *path, conv_fft_tune_policy policy);
conv_fft_status cf_tuner_save(cf_tuner *tuner, const char *path);
conv_fft_status cf_tuner_export(cf_tuner *tuner, const char *path, const cf_layer *layers, int64_t count);
conv_fft_status cf_tuner_foreach(cf_tuner *tuner, conv_fft_tune_visit visit, void *user);
conv_fft_status cf_tuner_statistics(cf_tuner *tuner, conv_fft_tune_statistics *statistics);

#endif
