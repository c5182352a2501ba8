/* SPDX-License-Identifier: Apache-2.0 */
#include "support/kernel_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CODE_BYTES = 256
};

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, conv_fft_last_error());
    abort();
}

cf_cubin_cache *cache_in(const char *directory, int64_t limit) {
    cf_cubin_cache *cache;
    need(cf_cubin_cache_create(directory, limit, CONV_FFT_LOG_WARNING, &cache) == CONV_FFT_SUCCESS, "no cache");
    return cache;
}

cf_cubin_key cache_key(const char *text) {
    const cf_source source = {.name = "kernel", .text = text};
    return cf_cubin_key_of("sm_90a", &source);
}

/* Machine code that does not compress. */
static void write_code(const char *text, char code[CODE_BYTES]) {
    uint32_t number = (uint32_t)text[0];
    for (int i = 0; i < CODE_BYTES; ++i) {
        number = number * 1664525u + 1013904223u;
        code[i] = (char)(number >> 24);
    }
}

void cache_store(cf_cubin_cache *cache, const char *text) {
    const cf_cubin_key key = cache_key(text);
    char code[CODE_BYTES];
    write_code(text, code);
    const cf_cubin cubin = {.data = code, .bytes = sizeof code};
    cf_cubin_cache_store(cache, &key, &cubin, "13.0");
}

bool cache_has(cf_cubin_cache *cache, const char *text) {
    const cf_cubin_key key = cache_key(text);
    cf_cubin cubin = {0};
    char code[CODE_BYTES];
    write_code(text, code);
    const bool found = cf_cubin_cache_find(cache, &key, &cubin);
    need(!found || cubin.bytes == CODE_BYTES, "the cubin has another size");
    need(!found || memcmp(cubin.data, code, sizeof code) == 0, "the cubin is another");
    cf_cubin_clear(&cubin);
    return found;
}

bool directory_has(const char *directory, const char *text) {
    cf_cubin_cache *const cache = cache_in(directory, CF_CUBIN_CACHE_LIMIT);
    const bool found = cache_has(cache, text);
    cf_cubin_cache_destroy(cache);
    return found;
}
