/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for tests of the cache: its first letter determines the 256 bytes that are the machine code of a text. */
#ifndef TEST_CACHE_H
#define TEST_CACHE_H

#include "cuda/jit/cubin_cache.h"

/* A cache that warns on the standard error stream. */
cf_cubin_cache *cache_in(const char *directory, int64_t limit);
/* For sm_90a, without options. */
cf_cubin_key cache_key(const char *text);
void cache_store(cf_cubin_cache *cache, const char *text);
/* Found, and with the right machine code: anything else ends the program. */
bool cache_has(cf_cubin_cache *cache, const char *text);
/* The same, of a new cache in this directory. */
bool directory_has(const char *directory, const char *text);

#endif
