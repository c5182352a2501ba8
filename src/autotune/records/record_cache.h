/* SPDX-License-Identifier: Apache-2.0 */
/* The files of tuning records in the cache directory and in the folders of CONV_FFT_TUNE_PATH. See autotune/records/record_store.h. */
#ifndef CF_AUTOTUNE_RECORD_CACHE_H
#define CF_AUTOTUNE_RECORD_CACHE_H

#include "autotune/records/fingerprint.h"
#include "autotune/records/record_file.h"
#include "cuda/jit/cache_dir.h"

/* Ranks of records: those of folders of the path follow below CF_RANK_PATH. */
enum {
    CF_RANK_PROCESS = 2,
    CF_RANK_CACHE = 1,
    CF_RANK_PATH = 0
};

typedef struct cf_record_cache {
    char *directory; /* as it was given; NULL: found by cf_cache_folder_open() */
    cf_cache_folder folder;
    bool opened, warned;
    conv_fft_log_level log_level;
    cf_fingerprint fingerprint;
    char stem[CF_STEM_BYTES];
    char shard[2 * CF_STEM_BYTES + 96]; /* of the process shard_owner */
    int64_t shard_owner;
} cf_record_cache;

/* Opens nothing yet. OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_init(cf_record_cache *cache, const char *directory, const cf_fingerprint *fingerprint,
                                     conv_fft_log_level log_level);
void cf_record_cache_clear(cf_record_cache *cache);

/* Add what the files hold; *corrupt grows by what could not be verified. A file that cannot be read is a warning. OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_read(cf_record_cache *cache, cf_records *records, int64_t *corrupt);

/* Add what others have appended to the cache directory since. What cannot be verified has been counted before. OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_read_again(cf_record_cache *cache, cf_records *records);

/* Append a record. That it cannot be done is one warning; false then, and conv_fft_last_error() says why. */
bool cf_record_cache_append(cf_record_cache *cache, const cf_record *record);

/* Whether a name is that of a file of records, of any device. */
bool cf_record_cache_is_name(const char *name);

/* The lock of a cache directory's records: what cf_record_cache_unlock() takes, or -1 if it was not to be had within two seconds. */
int cf_record_cache_lock(const cf_cache_folder *folder);
void cf_record_cache_unlock(int lock);

#endif
