/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config of kernels that multiply between two transforms. Their instructions limit their speed, not memory. So
 * radices, planes and threads are those with the fewest expected cycles (product_cycles.c). The distances of lines
 * and planes are those with the fewest bank conflicts (bank_conflicts.c).
 */
#include "fbfft/shared_memory/config.h"

#include "core/arith.h"
#include "fbfft/shared_memory/layout.h"
#include "fbfft/shared_memory/lines.h"
#include "fbfft/shared_memory/occupancy.h"
#include "fbfft/shared_memory/product_cycles.h"
#include "fbfft/shared_memory/registers.h"

#include <math.h>
#include <string.h>

/* The caller's arguments. */
typedef struct request {
    const cf_shared_fft_problem *problems;
    int count, buffers;
    bool sums;
    const cf_gpu_properties *properties;
} request;

/* One candidate: the configs of all signals, and the expected cycles. */
typedef struct way {
    cf_shared_fft_config tile[2];
    double cycles;
} way;

/* The best candidates, fewest cycles first. */
enum {
    WAYS = 5 /* so many are tried with different distances */
};
typedef struct way_list {
    way items[WAYS];
    int count;
    int64_t least_shared; /* bytes that the smallest block of any candidate needs */
} way_list;

/* The share of the cycles that goes to shared memory. */
static const double shared_part = 0.4;

int64_t cf_shared_fft_product_shared(const cf_shared_fft_config *c, int count, int buffers) {
    return c->planes * (32 * count + c->plane * buffers * 2 * cf_shared_fft_number_bytes(c));
}

/* Give all signals the radices of axis 2 and the distances of one config. */
static void set_distances(way *w, int count, const cf_shared_fft_config *from) {
    for (int side = 0; side < count; ++side) {
        memcpy(w->tile[side].radix[2], from->radix[2], sizeof from->radix[2]);
        w->tile[side].pitch = from->pitch;
        w->tile[side].plane = from->plane;
        w->tile[side].shared = cf_shared_fft_shared_bytes(&w->tile[side]);
    }
}

/* Choose the distances with the fewest bank conflicts, unless they take too much shared memory. Lines of two steps
 * also try both orders of their radices. */
static void spread_banks(way *w, int count, int buffers, const cf_gpu_properties *properties) {
    const cf_shared_fft_config before = w->tile[0];
    const bool two_steps = before.radix[2][1] > 1 && before.radix[2][2] == 1;
    cf_shared_fft_config best = before, aligned_only = before;
    cf_shared_fft_accesses accesses;
    double least = HUGE_VAL;
    for (int swapped = 0; swapped < (two_steps ? 2 : 1); ++swapped) {
        aligned_only.radix[2][0] = before.radix[2][swapped];
        aligned_only.radix[2][1] = before.radix[2][two_steps ? 1 - swapped : 1];
        const int64_t pitch = cf_shared_fft_least_pitch(&aligned_only);
        cf_shared_fft_find_accesses(&aligned_only, &accesses);
        for (aligned_only.pitch = pitch; aligned_only.pitch < pitch + 8; ++aligned_only.pitch)
            for (int longer = 0; longer < (before.planes > 1 ? 16 : 1); longer += 4) {
                aligned_only.plane = cf_shared_fft_least_plane(&aligned_only) + longer;
                if (aligned_only.staged && (aligned_only.pitch % 4 != 2 || aligned_only.plane % 2))
                    continue;
                set_distances(w, count, &aligned_only);
                const int64_t shared = cf_shared_fft_product_shared(&w->tile[0], count, buffers);
                if (shared > properties->shared_per_block)
                    continue;
                double cycles = cf_shared_fft_product_cycles(w->tile, count, shared, properties);
                if (cycles >= least * 0.995) /* too many even without bank conflicts */
                    continue;
                cycles *= 1.0 - shared_part +
                          shared_part * cf_shared_fft_wavefronts(&accesses, aligned_only.pitch, aligned_only.plane);
                if (cycles >= least * 0.995)
                    continue;
                least = cycles;
                best = aligned_only;
            }
    }
    set_distances(w, count, &best);
    if (least < HUGE_VAL)
        w->cycles = least;
}

/* The number of threads with the fewest cycles, for so many planes in a block. */
static void choose_product_threads(way *w, int count, int planes, int buffers, const cf_gpu_properties *properties) {
    enum {
        MAX_THREADS = 512,
        MAX_REGISTERS = 200 /* more leave a thread none for anything else */
    };
    int best = 32;
    w->cycles = HUGE_VAL;
    for (int side = 0; side < count; ++side) {
        w->tile[side].planes = planes;
        w->tile[side].shared = cf_shared_fft_shared_bytes(&w->tile[side]);
    }
    const int64_t shared = cf_shared_fft_product_shared(&w->tile[0], count, buffers);
    for (int threads = 32; threads <= MAX_THREADS && shared <= properties->shared_per_block; threads += 32) {
        for (int side = 0; side < count; ++side)
            w->tile[side].threads = threads;
        if (cf_shared_fft_registers(&w->tile[0]) > MAX_REGISTERS)
            continue;
        const double expected = cf_shared_fft_product_cycles(w->tile, count, shared, properties);
        if (expected >= w->cycles)
            continue;
        w->cycles = expected;
        best = threads;
    }
    for (int side = 0; side < count; ++side)
        w->tile[side].threads = best;
}

static bool same_way(const way *a, const way *b) {
    const cf_shared_fft_config *x = &a->tile[0], *y = &b->tile[0];
    return x->planes == y->planes && x->threads == y->threads && memcmp(x->radix, y->radix, sizeof x->radix) == 0;
}

static void keep_best(way_list *list, const way *w) {
    int at = list->count < WAYS ? list->count++ : WAYS;
    for (; at > 0 && list->items[at - 1].cycles > w->cycles; --at)
        if (at < WAYS)
            list->items[at] = list->items[at - 1];
    if (at < WAYS)
        list->items[at] = *w;
}

/* Add the candidates whose steps have at most so many points, for all numbers of planes. */
static conv_fft_status add_ways(const request *q, int points, int of_columns, way_list *list) {
    enum {
        MAX_PLANES = 32
    };
    way next;
    int unit = 1;
    for (int side = 0; side < q->count; ++side) {
        unit = (int)cf_max(unit, q->problems[side].interleaved);
        next.tile[side] =
            (cf_shared_fft_config){.order = CF_SHARED_FFT_BY_COLUMN, .mirrors = q->buffers == 1, .sums = q->sums};
        CF_FORWARD(cf_shared_fft_choose_lines(&q->problems[side], points, of_columns, &next.tile[side]));
    }
    cf_shared_fft_config common = next.tile[0];
    common.planes = unit;
    common.pitch = cf_shared_fft_least_pitch(&common);
    common.plane = cf_shared_fft_least_plane(&common);
    const int64_t least = cf_shared_fft_product_shared(&common, q->count, q->buffers);
    list->least_shared = cf_min(list->least_shared, least);
    if (least > q->properties->shared_per_block)
        return CONV_FFT_SUCCESS;
    common.planes = (int)cf_max(1, 128 / cf_shared_fft_most_lines(&common));
    cf_shared_fft_choose_distances(&common, 2); /* neighbouring lanes are in one plane */
    for (int side = 0; side < q->count; ++side) {
        next.tile[side].pitch = common.pitch;
        next.tile[side].plane = common.plane;
    }
    for (int planes = unit; planes <= MAX_PLANES; planes += unit) {
        choose_product_threads(&next, q->count, planes, q->buffers, q->properties);
        if (next.cycles < HUGE_VAL)
            keep_best(list, &next);
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_shared_fft_configure_product(const cf_shared_fft_problem *problems, int count, int buffers,
                                                bool sums, const cf_gpu_properties *properties,
                                                cf_shared_fft_config *configs, double *cycles) {
    const request q = {problems, count, buffers, sums, properties};
    const int longest[][2] = {
        {64, 64}, {64, 10}, {10, 64}, {10, 10}}; /* points of a step along axis 2, and of columns */
    way_list list = {.least_shared = INT64_MAX};
    for (int i = 0; i < 4; ++i)
        CF_FORWARD(add_ways(&q, longest[i][0], longest[i][1], &list));
    if (list.count == 0)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "%d buffers of this basis need %lld bytes of shared memory; %s has %lld for a block", buffers,
                       (long long)list.least_shared, properties->name, (long long)properties->shared_per_block);
    const way *best = NULL;
    for (int i = list.count - 1; i >= 0; --i) {
        if (i > 0 && same_way(&list.items[i], &list.items[i - 1])) /* other limits gave the same radices */
            continue;
        spread_banks(&list.items[i], count, buffers, properties);
        if (!best || list.items[i].cycles <= best->cycles)
            best = &list.items[i];
    }
    *cycles = best->cycles;
    memcpy(configs, best->tile, (size_t)count * sizeof *configs);
    const int64_t shared = cf_shared_fft_product_shared(&configs[0], count, buffers);
    for (int side = 0; side < count; ++side)
        configs[side].blocks = (int)cf_shared_fft_blocks_that_fit(&configs[side], shared, properties);
    return CONV_FFT_SUCCESS;
}
