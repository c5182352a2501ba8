/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/jit/cubin_cache.h"

#include "core/environment.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A kernel in memory. The list begins with the kernel used last. */
typedef struct entry entry;
struct entry {
    entry *next;
    cf_cubin_key key;
    cf_cubin cubin;
};

/* A kernel that a thread is compiling. Kernels of equal hashes count as one: a thread may wait in vain, and then
 * compile its own. */
typedef struct claim claim;
struct claim {
    claim *next;
    uint64_t hash;
};

enum {
    MAX_FURTHER = 8
};

struct cf_cubin_cache {
    cf_cache_folder folder;
    cf_cache_folder further[MAX_FURTHER]; /* folders of CONV_FFT_TUNE_PATH; they are only read */
    int further_count;
    int64_t limit;
    conv_fft_log_level log_level;
    pthread_mutex_t mutex; /* guards what follows */
    entry *entries;
    claim *claims;
    pthread_cond_t released; /* a claim was released */
    unsigned serial;
    bool warned;
};

/* Folders that cannot be opened have a warning where records are read. */
static void open_further(cf_cubin_cache *cache) {
    const char *list = cf_environment("CONV_FFT_TUNE_PATH");
    char name[1024];
    while (cache->further_count < MAX_FURTHER && cf_next_folder(&list, name, sizeof name)) {
        cf_cache_folder *const folder = &cache->further[cache->further_count];
        cf_cache_folder_open(folder, name, false);
        if (folder->descriptor >= 0)
            ++cache->further_count;
        else
            cf_log(cache->log_level, CONV_FFT_LOG_INFO, "CONV_FFT_TUNE_PATH has no kernels: %s", folder->problem);
    }
}

conv_fft_status cf_cubin_cache_create(const char *directory, int64_t limit, conv_fft_log_level log_level,
                                      cf_cubin_cache **result) {
    cf_cubin_cache *const cache = calloc(1, sizeof *cache);
    if (!cache)
        return cf_fail_memory(sizeof *cache, "the kernel cache");
    cache->limit = limit;
    cache->log_level = log_level;
    pthread_mutex_init(&cache->mutex, NULL);
    pthread_cond_init(&cache->released, NULL);
    cf_cache_folder_open(&cache->folder, directory, true);
    if (cache->folder.descriptor < 0) {
        cf_log(log_level, CONV_FFT_LOG_WARNING, "%s; compiled kernels are kept in memory only", cache->folder.problem);
        cache->warned = true;
    }
    open_further(cache);
    *result = cache;
    return CONV_FFT_SUCCESS;
}

static void free_entries(entry *e) {
    while (e) {
        entry *const next = e->next;
        cf_cubin_clear(&e->cubin);
        free(e);
        e = next;
    }
}

void cf_cubin_cache_destroy(cf_cubin_cache *cache) {
    if (!cache)
        return;
    free_entries(cache->entries);
    cf_cache_folder_close(&cache->folder);
    for (int i = 0; i < cache->further_count; ++i)
        cf_cache_folder_close(&cache->further[i]);
    pthread_cond_destroy(&cache->released);
    pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

const cf_cache_folder *cf_cubin_cache_folder(const cf_cubin_cache *cache) { return &cache->folder; }

static void warn_once(cf_cubin_cache *cache, const cf_cache_folder *folder, const char *name, const char *why,
                      const char *consequence) {
    pthread_mutex_lock(&cache->mutex);
    const bool first = !cache->warned;
    cache->warned = true;
    pthread_mutex_unlock(&cache->mutex);
    if (first)
        cf_log(cache->log_level, CONV_FFT_LOG_WARNING, "kernel cache %s%s%s: %s; %s", folder->path, *name ? "/" : "",
               name, why, consequence);
}

/* ---- memory */

static bool copy(const void *data, size_t bytes, void *result) {
    void *const made = malloc(bytes);
    if (!made)
        return false;
    memcpy(made, data, bytes);
    memcpy(result, &made, sizeof made);
    return true;
}

/* Remove the entry of the key from the list. The mutex is held. */
static entry *take(cf_cubin_cache *cache, const cf_cubin_key *key) {
    for (entry **at = &cache->entries; *at; at = &(*at)->next) {
        entry *const e = *at;
        if (!cf_cubin_key_equal(&e->key, key))
            continue;
        *at = e->next;
        e->next = NULL;
        return e;
    }
    return NULL;
}

static bool recall(cf_cubin_cache *cache, const cf_cubin_key *key, cf_cubin *cubin) {
    pthread_mutex_lock(&cache->mutex);
    entry *const e = take(cache, key);
    bool found = false;
    if (e) {
        e->next = cache->entries;
        cache->entries = e;
        cubin->bytes = e->cubin.bytes;
        found = copy(e->cubin.data, e->cubin.bytes, &cubin->data);
    }
    pthread_mutex_unlock(&cache->mutex);
    return found;
}

/* If there is too little memory to remember a kernel, it is compiled again. This is not a failure. */
static void remember(cf_cubin_cache *cache, const cf_cubin_key *key, const cf_cubin *cubin) {
    entry *const e = calloc(1, sizeof *e);
    if (!e)
        return;
    e->key = *key;
    e->cubin.bytes = cubin->bytes;
    if (!copy(cubin->data, cubin->bytes, &e->cubin.data)) {
        free_entries(e);
        return;
    }
    pthread_mutex_lock(&cache->mutex);
    free_entries(take(cache, key));
    e->next = cache->entries;
    cache->entries = e;
    int64_t bytes = 0;
    entry **at = &cache->entries;
    for (; *at; at = &(*at)->next) {
        bytes += (int64_t)(sizeof **at + (*at)->cubin.bytes);
        if (bytes > cache->limit)
            break;
    }
    free_entries(*at);
    *at = NULL;
    pthread_mutex_unlock(&cache->mutex);
}

/* ---- disk, then memory */

static bool find_in(cf_cubin_cache *cache, const cf_cache_folder *folder, const cf_cubin_key *key, cf_cubin *cubin) {
    const char *why = NULL;
    char name[CF_CUBIN_NAME_BYTES];
    if (folder->descriptor < 0)
        return false;
    const cf_cubin_found found = cf_cubin_file_read(folder->descriptor, key, cubin, &why);
    cf_cubin_name(key, name);
    if (found == CF_CUBIN_REFUSED)
        warn_once(cache, folder, name, why, "kernels in such a file are not used");
    if (found == CF_CUBIN_DAMAGED)
        cf_log(cache->log_level, CONV_FFT_LOG_INFO,
               "kernel cache %s/%s is damaged or of another kernel; it is not used", folder->path, name);
    return found == CF_CUBIN_FOUND;
}

bool cf_cubin_cache_find(cf_cubin_cache *cache, const cf_cubin_key *key, cf_cubin *cubin) {
    bool found = find_in(cache, &cache->folder, key, cubin);
    for (int i = 0; !found && i < cache->further_count; ++i)
        found = find_in(cache, &cache->further[i], key, cubin);
    return found || recall(cache, key, cubin);
}

void cf_cubin_cache_store(cf_cubin_cache *cache, const cf_cubin_key *key, const cf_cubin *cubin,
                          const char *nvrtc_version) {
    if (cache->folder.descriptor >= 0) {
        pthread_mutex_lock(&cache->mutex);
        const unsigned serial = cache->serial++;
        pthread_mutex_unlock(&cache->mutex);
        if (cf_cubin_file_write(cache->folder.descriptor, key, cubin, nvrtc_version, serial)) {
            cf_cache_folder_trim(&cache->folder, cache->limit);
            return;
        }
        warn_once(cache, &cache->folder, "", strerror(errno),
                  "compiled kernels that cannot be written are kept in memory only");
    }
    remember(cache, key, cubin);
}

/* ---- claims */

/* The link to the claim, or to the end of the list. The mutex is held. */
static claim **claim_of(cf_cubin_cache *cache, const cf_cubin_key *key) {
    claim **at = &cache->claims;
    while (*at && (*at)->hash != key->hash)
        at = &(*at)->next;
    return at;
}

/* If there is too little memory for a claim, another thread may compile the same kernel. This is not a failure. */
bool cf_cubin_cache_claim(cf_cubin_cache *cache, const cf_cubin_key *key) {
    pthread_mutex_lock(&cache->mutex);
    claim **const at = claim_of(cache, key);
    const bool mine = !*at;
    if (mine && (*at = calloc(1, sizeof **at)) != NULL)
        (*at)->hash = key->hash;
    pthread_mutex_unlock(&cache->mutex);
    return mine;
}

void cf_cubin_cache_release(cf_cubin_cache *cache, const cf_cubin_key *key) {
    pthread_mutex_lock(&cache->mutex);
    claim **const at = claim_of(cache, key), *const ended = *at;
    if (ended) {
        *at = ended->next;
        free(ended);
    }
    pthread_cond_broadcast(&cache->released);
    pthread_mutex_unlock(&cache->mutex);
}

void cf_cubin_cache_wait(cf_cubin_cache *cache, const cf_cubin_key *key) {
    pthread_mutex_lock(&cache->mutex);
    while (*claim_of(cache, key))
        pthread_cond_wait(&cache->released, &cache->mutex);
    pthread_mutex_unlock(&cache->mutex);
}
