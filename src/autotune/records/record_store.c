/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/record_store.h"

#include "autotune/records/cache_repair.h"
#include "autotune/records/library_versions.h"
#include "autotune/records/record_cache.h"
#include "autotune/records/untuned_log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct cf_tuner {
    const conv_fft_context *context; /* the owner */
    conv_fft_log_level log_level;
    pthread_mutex_t mutex; /* for all members below */
    cf_record_cache cache;
    cf_records records;
    cf_records hints;      /* of the same CPU with other numbers of threads */
    bool read, hints_read; /* the files have been read */
    conv_fft_tune_statistics statistics;
    cf_untuned untuned;
    bool full_said;
};

conv_fft_status cf_tuner_create(conv_fft_context *context, const char *directory) {
    cf_tuner *tuner = calloc(1, sizeof *tuner);
    if (!tuner)
        return cf_fail_memory(sizeof *tuner, "a tuner");
    const cf_fingerprint fingerprint = cf_fingerprint_of(context);
    const conv_fft_status status = cf_record_cache_init(&tuner->cache, directory, &fingerprint, context->log_level);
    if (status != CONV_FFT_SUCCESS) {
        free(tuner);
        return status;
    }
    tuner->context = context;
    tuner->log_level = context->log_level;
    pthread_mutex_init(&tuner->mutex, NULL);
    context->tuner = tuner;
    return CONV_FFT_SUCCESS;
}

void cf_tuner_destroy(cf_tuner *tuner) {
    if (!tuner)
        return;
    cf_records_clear(&tuner->records);
    cf_records_clear(&tuner->hints);
    cf_record_cache_clear(&tuner->cache);
    pthread_mutex_destroy(&tuner->mutex);
    cf_untuned_clear(&tuner->untuned);
    free(tuner);
}

static conv_fft_status unlocked(cf_tuner *tuner, conv_fft_status status) {
    pthread_mutex_unlock(&tuner->mutex);
    return status;
}

/* Lock the tuner, and read the files if they are not read yet. On failure the lock is not held. */
static conv_fft_status lock_ready(cf_tuner *tuner) {
    pthread_mutex_lock(&tuner->mutex);
    if (tuner->read)
        return CONV_FFT_SUCCESS;
    int64_t corrupt = 0;
    const conv_fft_status status = cf_record_cache_read(&tuner->cache, &tuner->records, &corrupt);
    if (status != CONV_FFT_SUCCESS)
        return unlocked(tuner, status);
    tuner->statistics.corrupt += corrupt;
    tuner->read = true;
    if (corrupt)
        cf_log(tuner->log_level, CONV_FFT_LOG_INFO, "%lld lines of tuning records cannot be verified; they are skipped",
               (long long)corrupt);
    return CONV_FFT_SUCCESS;
}

/* The records of a key differ in the libraries they need. Returns one whose libraries are installed, else any. */
static const cf_record *best_of(const cf_tuner *tuner, const cf_record_key *key) {
    size_t count;
    cf_record *const *of_key = cf_records_of(&tuner->records, key, &count);
    if (count < 2)
        return count ? of_key[0] : NULL;
    const cf_record *best = NULL;
    bool best_here = false;
    for (size_t i = 0; i < count; ++i) {
        const bool here = cf_libraries_are_here(tuner->context, of_key[i]->library);
        if (best && (here != best_here ? best_here : !cf_record_replaces(of_key[i], best, CF_KEEP_LATEST)))
            continue;
        best = of_key[i];
        best_here = here;
    }
    return best;
}

conv_fft_status cf_tuner_find(cf_tuner *tuner, const cf_record_key *key, cf_record *record, bool *found) {
    CF_FORWARD(lock_ready(tuner));
    const cf_record *mine = best_of(tuner, key);
    *found = mine != NULL;
    if (mine)
        *record = *mine;
    return unlocked(tuner, CONV_FFT_SUCCESS);
}

conv_fft_status cf_tuner_find_hint(cf_tuner *tuner, const cf_record_key *key, cf_record *record, bool *found) {
    *found = false;
    if (tuner->context->gpu)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(lock_ready(tuner));
    const conv_fft_status status =
        tuner->hints_read ? CONV_FFT_SUCCESS : cf_record_cache_read_hints(&tuner->cache, &tuner->hints);
    tuner->hints_read = status == CONV_FFT_SUCCESS;
    const cf_record *hint = cf_records_find(&tuner->hints, key, "");
    *found = hint != NULL;
    if (hint)
        *record = *hint;
    return unlocked(tuner, status);
}

conv_fft_status cf_tuner_refresh(cf_tuner *tuner) {
    pthread_mutex_lock(&tuner->mutex);
    const bool before = tuner->read;
    pthread_mutex_unlock(&tuner->mutex);
    CF_FORWARD(lock_ready(tuner));
    return unlocked(tuner, before ? cf_record_cache_read_again(&tuner->cache, &tuner->records) : CONV_FFT_SUCCESS);
}

static int64_t microseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Add a record that was decided now, in memory. It replaces older records of its key. */
static conv_fft_status decide(cf_tuner *tuner, cf_record *record, int64_t now) {
    size_t count;
    cf_record *const *of_key = cf_records_of(&tuner->records, &record->key, &count);
    record->rank = CF_RANK_PROCESS;
    record->decided = now;
    for (size_t i = 0; i < count; ++i) {
        if (of_key[i]->decided >= record->decided && of_key[i]->decided < INT64_MAX)
            record->decided = of_key[i]->decided + 1;
    }
    return cf_records_add(&tuner->records, record, CONV_FFT_KEEP_THEIRS, NULL);
}

static conv_fft_status put(cf_tuner *tuner, const cf_record *record) {
    cf_record measured = *record;
    measured.written = microseconds_now();
    const conv_fft_status status = decide(tuner, &measured, measured.written);
    if (status == CONV_FFT_SUCCESS)
        cf_record_cache_append(&tuner->cache, &measured);
    if (status != CONV_FFT_NOT_SUPPORTED)
        return status;
    /* The memory for records is full. A plan does not fail because of that. */
    if (!tuner->full_said)
        cf_log(tuner->log_level, CONV_FFT_LOG_WARNING, "%s; new records are not kept", conv_fft_last_error());
    tuner->full_said = true;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_tuner_put(cf_tuner *tuner, const cf_record *record) {
    CF_FORWARD(lock_ready(tuner));
    return unlocked(tuner, put(tuner, record));
}

/* ---- look-ups */

void cf_tuner_count(cf_tuner *tuner, const cf_record_key *key, cf_tuner_event event) {
    pthread_mutex_lock(&tuner->mutex);
    tuner->statistics.hits += (event == CF_TUNER_HIT) - (event == CF_TUNER_WITHDRAWN);
    tuner->statistics.misses += event != CF_TUNER_HIT;
    tuner->statistics.unusable += event == CF_TUNER_UNUSABLE || event == CF_TUNER_WITHDRAWN;
    if (event != CF_TUNER_HIT)
        cf_untuned_note(&tuner->untuned, tuner->log_level, key->problem);
    pthread_mutex_unlock(&tuner->mutex);
}

/* ---- public calls */

typedef struct incoming {
    cf_tuner *tuner;
    bool load; /* into memory only, in place of older records */
    conv_fft_tune_policy policy;
    int64_t taken, others; /* records of this device, and other lines */
    int64_t not_kept;      /* merged into memory only: the cache directory cannot be written */
} incoming;

/* The record that an incoming one is compared with. A usable record is not compared with one whose libraries are not
 * installed. */
static const cf_record *rival_of(const cf_tuner *tuner, const cf_record *theirs) {
    size_t count;
    cf_records_of(&tuner->records, &theirs->key, &count);
    if (count == 0)
        return NULL;
    const cf_record *mine = best_of(tuner, &theirs->key);
    const bool both_here =
        cf_libraries_are_here(tuner->context, theirs->library) && cf_libraries_are_here(tuner->context, mine->library);
    return both_here ? mine : cf_records_find(&tuner->records, &theirs->key, theirs->library);
}

static conv_fft_status take_line(const cf_file_line *line, void *user) {
    incoming *in = user;
    cf_tuner *tuner = in->tuner;
    tuner->statistics.corrupt += line->kind == CF_LINE_DAMAGED || line->kind == CF_LINE_UNKNOWN;
    in->others += !line->ours && line->kind != CF_LINE_BLANK && line->kind != CF_LINE_HEADER;
    if (!line->ours)
        return CONV_FFT_SUCCESS;
    ++in->taken;
    cf_record theirs = *line->record;
    if (in->load)
        return decide(tuner, &theirs, microseconds_now());
    const cf_record *mine = rival_of(tuner, &theirs);
    theirs.rank = mine ? mine->rank : CF_RANK_PROCESS;
    if (mine && !cf_record_replaces(&theirs, mine, in->policy))
        return CONV_FFT_SUCCESS;
    CF_FORWARD(decide(tuner, &theirs, microseconds_now()));
    in->not_kept += !cf_record_cache_append(&tuner->cache, &theirs);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status take_file(cf_tuner *tuner, const char *path, bool load, conv_fft_tune_policy policy) {
    incoming in = {.tuner = tuner, .load = load, .policy = policy};
    CF_FORWARD(lock_ready(tuner));
    const conv_fft_status status = cf_record_file_scan(AT_FDCWD, path, &tuner->cache.fingerprint, take_line, &in);
    if (status == CONV_FFT_SUCCESS && in.taken == 0)
        return unlocked(
            tuner, cf_fail(CONV_FFT_IO_ERROR, "%s holds no tuning record of this device (%s; %s), and %lld other lines",
                           path, tuner->cache.fingerprint.device, tuner->cache.fingerprint.kind, (long long)in.others));
    if (status == CONV_FFT_SUCCESS && in.not_kept > 0) {
        char why[900];
        snprintf(why, sizeof why, "%s", conv_fft_last_error());
        return unlocked(tuner, cf_fail(CONV_FFT_IO_ERROR,
                                       "the cache directory cannot be written, so records of %.500s are kept in memory "
                                       "only (%lld of them): %s",
                                       path, (long long)in.not_kept, why));
    }
    return unlocked(tuner, status);
}

conv_fft_status cf_tuner_load(cf_tuner *tuner, const char *path) {
    return take_file(tuner, path, true, CONV_FFT_KEEP_THEIRS);
}

conv_fft_status cf_tuner_merge(cf_tuner *tuner, const char *path, conv_fft_tune_policy policy) {
    return take_file(tuner, path, false, policy);
}

conv_fft_status cf_tuner_save(cf_tuner *tuner, const char *path) {
    CF_FORWARD(lock_ready(tuner));
    return unlocked(tuner,
                    cf_record_file_write(path, &tuner->cache.fingerprint, tuner->records.items, tuner->records.count));
}

static bool is_of(const cf_record *record, const cf_record_key *keys, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (strcmp(record->key.problem, keys[i].problem) == 0)
            return true;
    }
    return false;
}

/* Warn about problems without a record, before the file is given to others. */
static void say_missing(const cf_tuner *tuner, const char *path, const cf_record_key *keys, int64_t count) {
    int64_t missing = 0;
    for (int64_t i = 0; i < count; ++i) {
        bool there = false;
        for (size_t k = 0; k < tuner->records.count && !there; ++k)
            there = is_of(tuner->records.items[k], &keys[i], 1);
        missing += !there;
    }
    if (missing)
        cf_log(tuner->log_level, CONV_FFT_LOG_WARNING, "%lld of %lld problems have no tuning record to write to %.700s",
               (long long)missing, (long long)count, path);
}

conv_fft_status cf_tuner_export(cf_tuner *tuner, const char *path, const cf_layer *layers, int64_t count) {
    cf_record_key *keys = calloc((size_t)count + 1, sizeof *keys);
    if (!keys)
        return cf_fail_memory((size_t)(count + 1) * sizeof *keys, "the problems to export");
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int64_t i = 0; i < count && status == CONV_FFT_SUCCESS; ++i)
        status = cf_record_key_make(&layers[i], CONV_FFT_FORWARD, 0, 0, &keys[i]);
    if (status == CONV_FFT_SUCCESS)
        status = lock_ready(tuner);
    if (status != CONV_FFT_SUCCESS) {
        free(keys);
        return status;
    }
    const cf_records *all = &tuner->records;
    cf_record **chosen = calloc(all->count + 1, sizeof *chosen);
    for (size_t i = 0; chosen && i < all->count; ++i)
        chosen[i] = is_of(all->items[i], keys, count) ? all->items[i] : NULL;
    status = chosen ? cf_record_file_write(path, &tuner->cache.fingerprint, chosen, all->count)
                    : cf_fail_memory(all->count * sizeof *chosen, "the records to export");
    if (status == CONV_FFT_SUCCESS)
        say_missing(tuner, path, keys, count);
    free(chosen);
    free(keys);
    return unlocked(tuner, status);
}

static int show(const cf_record *r, conv_fft_tune_visit visit, void *user) {
    char strategy[CF_PASS_COUNT * (CF_RECORD_STRATEGY_BYTES + 2)] = "";
    size_t used = 0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (r->key.passes & 1 << pass)
            used +=
                (size_t)snprintf(strategy + used, sizeof strategy - used, "%s%s", used ? "; " : "", r->strategy[pass]);
    }
    const conv_fft_tune_record shown = {.problem = r->key.problem,
                                        .strategy = strategy,
                                        .pass = (conv_fft_pass)r->key.passes,
                                        .ms = r->ms,
                                        .predicted_ms = r->predicted_ms,
                                        .direct_ms = r->direct_ms,
                                        .workspace_bytes = r->workspace_bytes,
                                        .workspace_class = r->key.workspace_class,
                                        .keep = r->key.keep,
                                        .candidates = r->candidates,
                                        .tuning = r->mode,
                                        .model_ms = r->model_ms > 0.0 ? r->model_ms : -1.0,
                                        .fastest_ms = r->fastest_ms > 0.0 ? r->fastest_ms : -1.0,
                                        .processors = r->processors};
    return visit(&shown, user);
}

/* Visit the records that plans find. The callback may call the library, so the records are copied first. */
conv_fft_status cf_tuner_foreach(cf_tuner *tuner, conv_fft_tune_visit visit, void *user) {
    CF_FORWARD(lock_ready(tuner));
    const cf_records *all = &tuner->records;
    cf_record *copy = malloc((all->count + 1) * sizeof *copy);
    size_t count = 0;
    for (size_t i = 0; copy && i < all->count; ++i) {
        if (best_of(tuner, &all->items[i]->key) == all->items[i])
            copy[count++] = *all->items[i];
    }
    const size_t bytes = (all->count + 1) * sizeof *copy;
    unlocked(tuner, CONV_FFT_SUCCESS);
    if (!copy)
        return cf_fail_memory(bytes, "a copy of the tuning records");
    bool stopped = false;
    for (size_t i = 0; i < count && !stopped; ++i)
        stopped = show(&copy[i], visit, user) != 0;
    free(copy);
    return stopped ? cf_fail(CONV_FFT_CANCELLED, "visit ended the walk over the tuning records") : CONV_FFT_SUCCESS;
}

conv_fft_status cf_tuner_repair(cf_tuner *tuner, int64_t *removed) {
    pthread_mutex_lock(&tuner->mutex);
    return unlocked(tuner, cf_cache_repair(tuner->cache.directory, &tuner->cache.fingerprint, removed));
}

conv_fft_status cf_tuner_statistics(cf_tuner *tuner, conv_fft_tune_statistics *statistics) {
    CF_FORWARD(lock_ready(tuner));
    tuner->statistics.records = (int64_t)tuner->records.count;
    *statistics = tuner->statistics;
    return unlocked(tuner, CONV_FFT_SUCCESS);
}
