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
    const cf_tile_problem *problems;
    int count, buffers;
    bool sums;
    const cf_gpu_facts *facts;
} request;

/* One candidate: the configs of all signals, and the expected cycles. */
typedef struct way {
    cf_tile_config tile[2];
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

int64_t cf_tile_product_shared(const cf_tile_config *c, int count, int buffers) {
    return c->planes * (32 * count + c->plane * buffers * 2 * cf_tile_number_bytes(c));
}

/* Give all signals the radices of axis 2 and the distances of one config. */
static void set_distances(way *w, int count, const cf_tile_config *from) {
    for (int side = 0; side < count; ++side) {
        memcpy(w->tile[side].radix[2], from->radix[2], sizeof from->radix[2]);
        w->tile[side].pitch = from->pitch;
        w->tile[side].plane = from->plane;
        w->tile[side].shared = cf_tile_shared_bytes(&w->tile[side]);
    }
}

/* Choose the distances with the fewest bank conflicts, unless they take too much shared memory. Lines of two steps
 * also try both orders of their radices. */
static void spread_banks(way *w, int count, int buffers, const cf_gpu_facts *facts) {
    const cf_tile_config before = w->tile[0];
    const bool two_steps = before.radix[2][1] > 1 && before.radix[2][2] == 1;
    cf_tile_config best = before, trial = before;
    cf_tile_accesses accesses;
    double least = HUGE_VAL;
    for (int swapped = 0; swapped < (two_steps ? 2 : 1); ++swapped) {
        trial.radix[2][0] = before.radix[2][swapped];
        trial.radix[2][1] = before.radix[2][two_steps ? 1 - swapped : 1];
        const int64_t pitch = cf_tile_least_pitch(&trial);
        cf_tile_find_accesses(&trial, &accesses);
        for (trial.pitch = pitch; trial.pitch < pitch + 8; ++trial.pitch)
            for (int longer = 0; longer < (before.planes > 1 ? 16 : 1); longer += 4) {
                trial.plane = cf_tile_least_plane(&trial) + longer;
                if (trial.staged && (trial.pitch % 4 != 2 || trial.plane % 2))
                    continue;
                set_distances(w, count, &trial);
                const int64_t shared = cf_tile_product_shared(&w->tile[0], count, buffers);
                if (shared > facts->shared_per_block)
                    continue;
                double cycles = cf_tile_product_cycles(w->tile, count, shared, facts);
                if (cycles >= least * 0.995) /* too many even without bank conflicts */
                    continue;
                cycles *= 1.0 - shared_part + shared_part * cf_tile_wavefronts(&accesses, trial.pitch, trial.plane);
                if (cycles >= least * 0.995)
                    continue;
                least = cycles;
                best = trial;
            }
    }
    set_distances(w, count, &best);
    if (least < HUGE_VAL)
        w->cycles = least;
}

/* The number of threads with the fewest cycles, for so many planes in a block. */
static void choose_product_threads(way *w, int count, int planes, int buffers, const cf_gpu_facts *facts) {
    enum {
        MOST_THREADS = 512,
        MOST_REGISTERS = 200 /* more leave a thread none for anything else */
    };
    int best = 32;
    w->cycles = HUGE_VAL;
    for (int side = 0; side < count; ++side) {
        w->tile[side].planes = planes;
        w->tile[side].shared = cf_tile_shared_bytes(&w->tile[side]);
    }
    const int64_t shared = cf_tile_product_shared(&w->tile[0], count, buffers);
    for (int threads = 32; threads <= MOST_THREADS && shared <= facts->shared_per_block; threads += 32) {
        for (int side = 0; side < count; ++side)
            w->tile[side].threads = threads;
        if (cf_tile_registers(&w->tile[0]) > MOST_REGISTERS)
            continue;
        const double expected = cf_tile_product_cycles(w->tile, count, shared, facts);
        if (expected >= w->cycles)
            continue;
        w->cycles = expected;
        best = threads;
    }
    for (int side = 0; side < count; ++side)
        w->tile[side].threads = best;
}

static bool same_way(const way *a, const way *b) {
    const cf_tile_config *x = &a->tile[0], *y = &b->tile[0];
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
        MOST_PLANES = 32
    };
    way next;
    int unit = 1;
    for (int side = 0; side < q->count; ++side) {
        unit = (int)cf_max(unit, q->problems[side].abreast);
        next.tile[side] = (cf_tile_config){.order = CF_TILE_BY_COLUMN, .mirrors = q->buffers == 1, .sums = q->sums};
        CF_FORWARD(cf_tile_choose_lines(&q->problems[side], points, of_columns, &next.tile[side]));
    }
    cf_tile_config common = next.tile[0];
    common.planes = unit;
    common.pitch = cf_tile_least_pitch(&common);
    common.plane = cf_tile_least_plane(&common);
    const int64_t least = cf_tile_product_shared(&common, q->count, q->buffers);
    list->least_shared = cf_min(list->least_shared, least);
    if (least > q->facts->shared_per_block)
        return CONV_FFT_SUCCESS;
    common.planes = (int)cf_max(1, 128 / cf_tile_most_lines(&common));
    cf_tile_choose_distances(&common, 2); /* neighbouring lanes are in one plane */
    for (int side = 0; side < q->count; ++side) {
        next.tile[side].pitch = common.pitch;
        next.tile[side].plane = common.plane;
    }
    for (int planes = unit; planes <= MOST_PLANES; planes += unit) {
        choose_product_threads(&next, q->count, planes, q->buffers, q->facts);
        if (next.cycles < HUGE_VAL)
            keep_best(list, &next);
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_tile_configure_product(const cf_tile_problem *problems, int count, int buffers, bool sums,
                                          const cf_gpu_facts *facts, cf_tile_config *configs, double *cycles) {
    const request q = {problems, count, buffers, sums, facts};
    const int longest[][2] = {
        {64, 64}, {64, 10}, {10, 64}, {10, 10}}; /* points of a step along axis 2, and of columns */
    way_list list = {.least_shared = INT64_MAX};
    for (int i = 0; i < 4; ++i)
        CF_FORWARD(add_ways(&q, longest[i][0], longest[i][1], &list));
    if (list.count == 0)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "%d buffers of this basis need %lld bytes of shared memory; %s has %lld for a block", buffers,
                       (long long)list.least_shared, facts->name, (long long)facts->shared_per_block);
    const way *best = NULL;
    for (int i = list.count - 1; i >= 0; --i) {
        if (i > 0 && same_way(&list.items[i], &list.items[i - 1])) /* other limits gave the same radices */
            continue;
        spread_banks(&list.items[i], count, buffers, facts);
        if (!best || list.items[i].cycles <= best->cycles)
            best = &list.items[i];
    }
    *cycles = best->cycles;
    memcpy(configs, best->tile, (size_t)count * sizeof *configs);
    const int64_t shared = cf_tile_product_shared(&configs[0], count, buffers);
    for (int side = 0; side < count; ++side)
        configs[side].blocks = (int)cf_tile_blocks_that_fit(&configs[side], shared, facts);
    return CONV_FFT_SUCCESS;
}
