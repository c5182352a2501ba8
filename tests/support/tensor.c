/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tensor.h"

#include "reference/dtype.h"
#include "support/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 256

void *test_alloc(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "the test is out of memory (%zu bytes)\n", bytes);
        exit(2);
    }
    return memory;
}

guarded guarded_create(size_t bytes, size_t alignment) {
    guarded g = {.bytes = bytes, .total = bytes + 2 * GUARD_BYTES};
    g.base = device_memory(g.total);
    g.snapshot = test_alloc(g.total);
    const uintptr_t middle = (uintptr_t)g.base + GUARD_BYTES / 2;
    uintptr_t aligned = middle + alignment - middle % alignment;
    if (aligned % (2 * alignment) == 0)
        aligned += alignment;
    g.data = g.base + (aligned - (uintptr_t)g.base);
    for (size_t i = 0; i < g.total; i++)
        g.base[i] = (unsigned char)(0xA5 ^ i * 29);
    guarded_remember(&g);
    return g;
}

void guarded_destroy(guarded *g) {
    device_memory_free(g->base, g->total);
    free(g->snapshot);
    memset(g, 0, sizeof *g);
}

void guarded_remember(guarded *g) { memcpy(g->snapshot, g->base, g->total); }

bool guarded_untouched(const guarded *g) { return memcmp(g->base, g->snapshot, g->total) == 0; }

bool guarded_canaries_intact(const guarded *g) {
    const size_t before = (size_t)(g->data - g->base), end = before + g->bytes;
    return memcmp(g->base, g->snapshot, before) == 0 && memcmp(g->base + end, g->snapshot + end, g->total - end) == 0;
}

static _Thread_local size_t wanted_alignment;

void tensor_align(size_t bytes) { wanted_alignment = bytes; }

size_t tensor_alignment(size_t element) { return wanted_alignment > element ? wanted_alignment : element; }

tensor tensor_create(conv_fft_dtype dtype, int dims, const int64_t *extent, const int64_t *stride) {
    tensor t = {.dtype = dtype, .dims = dims, .count = 1};
    bool dense = true;
    for (int d = 0; d < dims; d++)
        dense = dense && (!stride || stride[d] == 0);
    for (int d = dims - 1; d >= 0; d--) {
        t.extent[d] = extent[d];
        t.stride[d] = dense ? t.count : stride[d];
        t.count *= extent[d];
    }
    t.dense = true;
    int64_t step = 1;
    for (int d = dims - 1; d >= 0; step *= extent[d--])
        t.dense = t.dense && t.stride[d] == step;
    int64_t span = t.count > 0;
    for (int d = 0; d < dims && t.count > 0; d++)
        span += (extent[d] - 1) * t.stride[d];
    t.memory = guarded_create((size_t)span * ref_dtype_size(dtype), tensor_alignment(ref_dtype_size(dtype)));
    return t;
}

tensor tensor_copy(const tensor *t) {
    tensor copy = tensor_create(t->dtype, t->dims, t->extent, NULL);
    for (int64_t i = 0; i < t->count; i++)
        memcpy(tensor_at(&copy, i), tensor_at(t, i), ref_dtype_size(t->dtype));
    guarded_remember(&copy.memory);
    return copy;
}

void tensor_destroy(tensor *t) { guarded_destroy(&t->memory); }

void *tensor_at(const tensor *t, int64_t index) {
    int64_t offset = t->dense ? index : 0;
    for (int d = t->dims - 1; d >= 0 && !t->dense; d--) {
        offset += index % t->extent[d] * t->stride[d];
        index /= t->extent[d];
    }
    return t->memory.data + (size_t)offset * ref_dtype_size(t->dtype);
}

double tensor_load(const tensor *t, int64_t index) { return ref_load(t->dtype, tensor_at(t, index)); }

void tensor_set(tensor *t, const double *dense) {
    for (int64_t i = 0; i < t->count; i++)
        ref_store(t->dtype, tensor_at(t, i), dense[i]);
    guarded_remember(&t->memory);
}

void tensor_poison(tensor *t) {
    unsigned char nan[sizeof(double)];
    const size_t bytes = ref_dtype_size(t->dtype);
    ref_store(t->dtype, nan, NAN);
    for (int64_t i = 0; i < t->count; i++)
        memcpy(tensor_at(t, i), nan, bytes);
    guarded_remember(&t->memory);
}

void tensor_get(const tensor *t, double *dense) {
    for (int64_t i = 0; i < t->count; i++)
        dense[i] = tensor_load(t, i);
}

bool tensor_untouched(const tensor *t) { return guarded_untouched(&t->memory); }

bool tensor_gaps_intact(const tensor *t) {
    const guarded *g = &t->memory;
    if (t->dense)
        return guarded_canaries_intact(g);
    unsigned char *now = test_alloc(g->total);
    memcpy(now, g->base, g->total);
    for (int64_t i = 0; i < t->count; i++) {
        const size_t at = (size_t)((unsigned char *)tensor_at(t, i) - g->base);
        memcpy(now + at, g->snapshot + at, ref_dtype_size(t->dtype));
    }
    const bool intact = memcmp(now, g->snapshot, g->total) == 0;
    free(now);
    return intact;
}

bool tensor_same_bits(const tensor *a, const tensor *b, int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; i++)
        if (memcmp(tensor_at(a, i), tensor_at(b, i), ref_dtype_size(a->dtype)) != 0)
            return false;
    return true;
}
