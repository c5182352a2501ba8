/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled kernels, stored in the cache directory for later processes. Kernels are also found in the folders of
 * CONV_FFT_TUNE_PATH, where nothing is written. Kernels that cannot be written there stay in
 * memory, with one warning. Any number of threads and processes may use one directory at the same time.
 */
#ifndef CF_DEVICE_CUBIN_CACHE_H
#define CF_DEVICE_CUBIN_CACHE_H

#include "cuda/jit/cache_dir.h"
#include "cuda/jit/cubin_file.h"

#define CF_CUBIN_CACHE_LIMIT ((int64_t)256 << 20)

typedef struct cf_cubin_cache cf_cubin_cache;

/* directory: see cf_cache_folder_open(). limit: bytes of all kernels on disk, and of all kernels in memory. A
 * directory that cannot be used causes a warning, not a failure. OUT_OF_MEMORY. */
conv_fft_status cf_cubin_cache_create(const char *directory, int64_t limit, conv_fft_log_level log_level,
                                      cf_cubin_cache **cache);
void cf_cubin_cache_destroy(cf_cubin_cache *cache);
const cf_cache_folder *cf_cubin_cache_folder(const cf_cubin_cache *cache);

bool cf_cubin_cache_find(cf_cubin_cache *cache, const cf_cubin_key *key, cf_cubin *cubin);
void cf_cubin_cache_store(cf_cubin_cache *cache, const cf_cubin_key *key, const cf_cubin *cubin,
                          const char *nvrtc_version);

/* For threads that need one kernel at the same time. The first thread claims it, compiles it, stores it and releases
 * it. The others wait until then, and look for it again. A thread that waits holds no claims. */
bool cf_cubin_cache_claim(cf_cubin_cache *cache, const cf_cubin_key *key);
void cf_cubin_cache_release(cf_cubin_cache *cache, const cf_cubin_key *key);
void cf_cubin_cache_wait(cf_cubin_cache *cache, const cf_cubin_key *key);

#endif
