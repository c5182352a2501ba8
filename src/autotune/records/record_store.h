/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tuning records of a context. They come from these places. If several have a record of one key, the first one
 * counts.
 *
 *     this process               what it tuned, loaded or merged
 *     the cache directory        tuning-DEVICE-HASH.jsonl, and shards tuning-DEVICE-HASH.HOST-PID-TIME.jsonl
 *     CONV_FFT_TUNE_PATH         every *.jsonl of its folders, read only; the first folder counts most
 *
 * Files are read when the first plan looks for a record. New records are appended to the file of the cache directory,
 * under a lock. On a network file system, or if the lock cannot be taken, they go to a shard that only this process
 * writes. Of the lines of the cache directory, the last decided counts. If the directory cannot be written, one warning
 * is logged, and the records stay in memory.
 *
 * Any number of threads may use a tuner at once.
 */
#ifndef CF_AUTOTUNE_TUNER_H
#define CF_AUTOTUNE_TUNER_H

#include "autotune/records/records.h"
#include "conv/plan/context.h"

/* Create the tuner of a context, which owns it. directory: as in cf_cache_folder_open(). Reads no file.
 * OUT_OF_MEMORY. */
conv_fft_status cf_tuner_create(conv_fft_context *context, const char *directory);
void cf_tuner_destroy(cf_tuner *tuner); /* NULL is allowed */

/* Copy the record of the key. If there are several, one whose libraries are installed is taken. OUT_OF_MEMORY from
 * reading the files. */
conv_fft_status cf_tuner_find(cf_tuner *tuner, const cf_record_key *key, cf_record *record, bool *found);
/* The same among the records of the same CPU with other numbers of threads: that of the nearest number. The time of
 * such a record says nothing about this device. */
conv_fft_status cf_tuner_find_hint(cf_tuner *tuner, const cf_record_key *key, cf_record *record, bool *found);
/* Keep a new record, in memory and in the cache directory. If the memory is full, one warning is logged.
 * OUT_OF_MEMORY. */
conv_fft_status cf_tuner_put(cf_tuner *tuner, const cf_record *record);
/* Read the records that other processes have added to the cache directory. Called before a search. OUT_OF_MEMORY. */
conv_fft_status cf_tuner_refresh(cf_tuner *tuner);

/* The result of a look-up, for the statistics. A miss is also written to the file CONV_FFT_RECORD, once per problem. */
typedef enum cf_tuner_event {
    CF_TUNER_HIT,
    CF_TUNER_MISS,
    CF_TUNER_UNUSABLE, /* there is a record, but it cannot be used; also a miss */
    CF_TUNER_WITHDRAWN /* a record was counted as a hit, but cannot be used */
} cf_tuner_event;
void cf_tuner_count(cf_tuner *tuner, const cf_record_key *key, cf_tuner_event event);

/* conv_fft_tune_*; see conv_fft.h. */
conv_fft_status cf_tuner_load(cf_tuner *tuner, const char *path);
conv_fft_status cf_tuner_merge(cf_tuner *tuner, const char *path, conv_fft_tune_policy policy);
conv_fft_status cf_tuner_save(cf_tuner *tuner, const char *path);
conv_fft_status cf_tuner_export(cf_tuner *tuner, const char *path, const cf_layer *layers, int64_t count);
conv_fft_status cf_tuner_foreach(cf_tuner *tuner, conv_fft_tune_visit visit, void *user);
conv_fft_status cf_tuner_repair(cf_tuner *tuner, int64_t *removed);
conv_fft_status cf_tuner_statistics(cf_tuner *tuner, conv_fft_tune_statistics *statistics);

#endif
