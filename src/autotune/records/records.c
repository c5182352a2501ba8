/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/records.h"

#include "conv/problem/parse.h"

#include <stdlib.h>
#include <string.h>

uint64_t cf_workspace_class(uint64_t limit) {
    if (limit > UINT64_C(1) << 62) /* larger than any memory; the text format holds 63 bits */
        return UINT64_C(1) << 62;
    while (limit & (limit - 1))
        limit &= limit - 1;
    return limit;
}

static void add_strides(cf_text *t, const char *key, const int64_t stride[2 + CONV_FFT_MAX_RANK], int rank) {
    bool given = false;
    for (int i = 0; i < 2 + rank; ++i)
        given = given || stride[i] != 0;
    for (int i = 0; given && i < 2 + rank; ++i)
        cf_text_add(t, "%s%lld", i ? "," : key, (long long)stride[i]);
}

conv_fft_status cf_record_key_make(const cf_layer *layer, int passes, int keep, uint64_t workspace_limit,
                                   cf_record_key *key) {
    const conv_fft_problem *p = &layer->problem;
    memset(key, 0, sizeof *key);
    CF_FORWARD(cf_problem_format(layer, key->problem, sizeof key->problem));
    cf_text t = {key->problem, sizeof key->problem, strlen(key->problem)};
    add_strides(&t, " # x_stride=", p->x_stride, p->rank);
    add_strides(&t, " # y_stride=", p->y_stride, p->rank);
    add_strides(&t, " # w_stride=", p->w_stride, p->rank);
    CF_REQUIRE(t.length < sizeof key->problem,
               "the problem line with its strides has %zu bytes; records take up to %zu", t.length,
               sizeof key->problem - 1);
    key->passes = passes;
    key->keep = keep;
    key->workspace_class = cf_workspace_class(workspace_limit);
    return CONV_FFT_SUCCESS;
}

static int compare_numbers(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

int cf_record_key_compare(const cf_record_key *a, const cf_record_key *b) {
    int order = strcmp(a->problem, b->problem);
    order = order ? order : compare_numbers((uint64_t)a->passes, (uint64_t)b->passes);
    order = order ? order : compare_numbers((uint64_t)a->keep, (uint64_t)b->keep);
    return order ? order : compare_numbers(a->workspace_class, b->workspace_class);
}

void cf_records_clear(cf_records *records) {
    for (size_t i = 0; i < records->count; ++i)
        free(records->items[i]);
    free(records->items);
    *records = (cf_records){0};
}

static int compare(const cf_record *record, const cf_record_key *key, const char *library) {
    const int order = cf_record_key_compare(&record->key, key);
    return order ? order : strcmp(record->library, library);
}

/* The index of the first record that is not before the key and the library. */
static size_t place_of(const cf_records *records, const cf_record_key *key, const char *library) {
    size_t low = 0, high = records->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(records->items[middle], key, library) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

cf_record **cf_records_of(const cf_records *records, const cf_record_key *key, size_t *count) {
    const size_t first = place_of(records, key, "");
    size_t end = first;
    while (end < records->count && cf_record_key_compare(&records->items[end]->key, key) == 0)
        ++end;
    *count = end - first;
    return *count ? &records->items[first] : NULL;
}

cf_record *cf_records_find(const cf_records *records, const cf_record_key *key, const char *library) {
    const size_t at = place_of(records, key, library);
    return at < records->count && compare(records->items[at], key, library) == 0 ? records->items[at] : NULL;
}

/* Whether a is faster. At equal times, the order of the strategy lines decides. */
static bool is_faster(const cf_record *a, const cf_record *b) {
    if (a->ms != b->ms)
        return a->ms < b->ms;
    for (int i = 0; i < CF_PASS_COUNT; ++i) {
        const int order = strcmp(a->strategy[i], b->strategy[i]);
        if (order)
            return order < 0;
    }
    return false;
}

bool cf_record_replaces(const cf_record *theirs, const cf_record *mine, conv_fft_tune_policy policy) {
    if (theirs->rank != mine->rank)
        return theirs->rank > mine->rank;
    if (policy == CF_KEEP_LATEST && theirs->decided != mine->decided)
        return theirs->decided > mine->decided;
    switch (policy) {
    case CONV_FFT_KEEP_MINE:
        return false;
    case CONV_FFT_KEEP_THEIRS:
        return true;
    case CONV_FFT_KEEP_NEWEST:
        return theirs->written != mine->written ? theirs->written > mine->written : is_faster(theirs, mine);
    default: /* CONV_FFT_KEEP_FASTEST, and CF_KEEP_LATEST of equal times */
        return is_faster(theirs, mine);
    }
}

static conv_fft_status grow(cf_records *records) {
    if (records->count < records->capacity)
        return CONV_FFT_SUCCESS;
    const size_t capacity = records->capacity ? 2 * records->capacity : 16;
    cf_record **grown = realloc(records->items, capacity * sizeof *grown);
    if (!grown)
        return cf_fail_memory(capacity * sizeof *grown, "tuning records");
    records->items = grown;
    records->capacity = capacity;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_records_add(cf_records *records, const cf_record *record, conv_fft_tune_policy policy,
                               bool *changed) {
    bool ignored;
    changed = changed ? changed : &ignored;
    *changed = false;
    cf_record *mine = cf_records_find(records, &record->key, record->library);
    if (mine) {
        *changed = cf_record_replaces(record, mine, policy);
        if (*changed)
            *mine = *record;
        return CONV_FFT_SUCCESS;
    }
    if (records->count >= CF_RECORDS_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "there are %d tuning records already; no more are kept", CF_RECORDS_MAX);
    CF_FORWARD(grow(records));
    cf_record *added = malloc(sizeof *added);
    if (!added)
        return cf_fail_memory(sizeof *added, "a tuning record");
    *added = *record;
    const size_t at = place_of(records, &record->key, record->library);
    memmove(&records->items[at + 1], &records->items[at], (records->count - at) * sizeof *records->items);
    records->items[at] = added;
    ++records->count;
    *changed = true;
    return CONV_FFT_SUCCESS;
}
