/* SPDX-License-Identifier: Apache-2.0 */
/* The files of tuning records in the cache directory and in the folders of CONV_FFT_TUNE_PATH (see record_store.h). */
#ifndef CF_AUTOTUNE_RECORD_CACHE_H
#define CF_AUTOTUNE_RECORD_CACHE_H

#include "autotune/records/fingerprint.h"
#include "autotune/records/record_file.h"
#include "cuda/jit/cache_dir.h"

/* Ranks of records. The first folder of CONV_FFT_TUNE_PATH has CF_RANK_PATH, the next one less, and so on. */
enum {
    CF_RANK_PROCESS = 2,
    CF_RANK_CACHE = 1,
    CF_RANK_PATH = 0
};

typedef struct cf_record_cache {
    char *directory; /* as the caller gave it; NULL: cf_cache_folder_open() finds one */
    cf_cache_folder folder;
    bool opened, warned;
    conv_fft_log_level log_level;
    cf_fingerprint fingerprint;
    char stem[CF_STEM_BYTES];
    char shard[2 * CF_STEM_BYTES + 96]; /* of the process shard_owner */
    int64_t shard_owner;
} cf_record_cache;

/* Initialise. Opens no file. OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_init(cf_record_cache *cache, const char *directory, const cf_fingerprint *fingerprint,
                                     conv_fft_log_level log_level);
void cf_record_cache_clear(cf_record_cache *cache);

/* Add the records of all files. *corrupt grows by the number of lines that cannot be verified. Unreadable files are
 * logged as warnings. OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_read(cf_record_cache *cache, cf_records *records, int64_t *corrupt);

/* Add the records that other processes have appended to the cache directory since. Counts no corrupt lines.
 * OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_read_again(cf_record_cache *cache, cf_records *records);

/* Add the records of the same CPU with other numbers of threads, from all files. OUT_OF_MEMORY. */
conv_fft_status cf_record_cache_read_hints(cf_record_cache *cache, cf_records *hints);

/* Append a record. False: it cannot be written; conv_fft_last_error() says why, and the first failure is logged. */
bool cf_record_cache_append(cf_record_cache *cache, const cf_record *record);

/* Whether a file name is that of records, of any device. */
bool cf_record_cache_is_name(const char *name);

/* Lock the records of a cache directory. Returns the argument of cf_record_cache_unlock(), or -1 after two seconds of
 * waiting. */
int cf_record_cache_lock(const cf_cache_folder *folder);
void cf_record_cache_unlock(int lock);

#endif
