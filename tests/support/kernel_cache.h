/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for tests of the cache. The machine code of a text has 256 bytes, which its first letter determines. */
#ifndef TEST_CACHE_H
#define TEST_CACHE_H

#include "cuda/jit/cubin_cache.h"

/* A cache that warns on the standard error stream. */
cf_cubin_cache *cache_in(const char *directory, int64_t limit);
/* The key for sm_90a, without options. */
cf_cubin_key cache_key(const char *text);
void cache_store(cf_cubin_cache *cache, const char *text);
/* Whether the kernel is found. Wrong machine code ends the program. */
bool cache_has(cf_cubin_cache *cache, const char *text);
/* The same for a new cache in this directory. */
bool directory_has(const char *directory, const char *text);

#endif
