/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config of kernels that multiply between two transforms. Instructions limit their speed, not memory. So radices,
 * planes and threads are those with the fewest expected cycles (product_cycles.c). Distances of lines and planes are
 * those with the fewest bank conflicts (bank_conflicts.c).
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
typedef struct candidate {
    cf_shared_fft_config tile[2];
    double cycles;
} candidate;

/* The best candidates, fewest cycles first. */
enum {
    CANDIDATES = 5 /* this many are tried with different distances */
};
typedef struct candidate_list {
    candidate items[CANDIDATES];
    int count;
    int64_t min_shared; /* bytes that the smallest block of any candidate needs */
} candidate_list;

/* The share of the cycles that goes to shared memory. */
static const double shared_share = 0.4;

int64_t cf_shared_fft_product_shared(const cf_shared_fft_config *c, int count, int buffers) {
    return c->planes * (32 * count + c->plane * buffers * 2 * cf_shared_fft_number_bytes(c));
}

/* Give all signals the radices of axis 2 and the distances of one config. */
static void set_distances(candidate *w, int count, const cf_shared_fft_config *from) {
    for (int side = 0; side < count; ++side) {
        memcpy(w->tile[side].radix[2], from->radix[2], sizeof from->radix[2]);
        w->tile[side].pitch = from->pitch;
        w->tile[side].plane = from->plane;
        w->tile[side].shared = cf_shared_fft_shared_bytes(&w->tile[side]);
    }
}

/* Choose the distances with the fewest bank conflicts, unless they need too much shared memory. Lines of two steps
 * also try both orders of their radices. */
static void spread_banks(candidate *w, int count, int buffers, const cf_gpu_properties *properties) {
    const cf_shared_fft_config before = w->tile[0];
    const bool two_steps = before.radix[2][1] > 1 && before.radix[2][2] == 1;
    cf_shared_fft_config best = before, next = before;
    cf_shared_fft_accesses accesses;
    double min_cycles = HUGE_VAL;
    for (int swapped = 0; swapped < (two_steps ? 2 : 1); ++swapped) {
        next.radix[2][0] = before.radix[2][swapped];
        next.radix[2][1] = before.radix[2][two_steps ? 1 - swapped : 1];
        const int64_t pitch = cf_shared_fft_min_pitch(&next);
        cf_shared_fft_find_accesses(&next, &accesses);
        for (next.pitch = pitch; next.pitch < pitch + 8; ++next.pitch)
            for (int longer = 0; longer < (before.planes > 1 ? 16 : 1); longer += 4) {
                next.plane = cf_shared_fft_min_plane(&next) + longer;
                if (next.staged && (next.pitch % 4 != 2 || next.plane % 2))
                    continue;
                set_distances(w, count, &next);
                const int64_t shared = cf_shared_fft_product_shared(&w->tile[0], count, buffers);
                if (shared > properties->shared_per_block)
                    continue;
                double cycles = cf_shared_fft_product_cycles(w->tile, count, shared, properties);
                if (cycles >= min_cycles * 0.995) /* too many, even without bank conflicts */
                    continue;
                cycles *=
                    1.0 - shared_share + shared_share * cf_shared_fft_wavefronts(&accesses, next.pitch, next.plane);
                if (cycles >= min_cycles * 0.995)
                    continue;
                min_cycles = cycles;
                best = next;
            }
    }
    set_distances(w, count, &best);
    if (min_cycles < HUGE_VAL)
        w->cycles = min_cycles;
}

/* The number of threads with the fewest cycles, for a given number of planes in a block. */
static void choose_product_threads(candidate *w, int count, int planes, int buffers,
                                   const cf_gpu_properties *properties) {
    enum {
        MAX_THREADS = 512,
        MAX_REGISTERS = 200 /* with more, a thread has none left for anything else */
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

static bool same_candidate(const candidate *a, const candidate *b) {
    const cf_shared_fft_config *x = &a->tile[0], *y = &b->tile[0];
    return x->planes == y->planes && x->threads == y->threads && memcmp(x->radix, y->radix, sizeof x->radix) == 0;
}

static void keep_best(candidate_list *list, const candidate *w) {
    int at = list->count < CANDIDATES ? list->count++ : CANDIDATES;
    for (; at > 0 && list->items[at - 1].cycles > w->cycles; --at)
        if (at < CANDIDATES)
            list->items[at] = list->items[at - 1];
    if (at < CANDIDATES)
        list->items[at] = *w;
}

/* Add the candidates whose steps have at most this many points, for all numbers of planes. */
static conv_fft_status add_candidates(const request *q, int points, int of_columns, candidate_list *list) {
    enum {
        MAX_PLANES = 32
    };
    candidate next;
    int unit = 1;
    for (int side = 0; side < q->count; ++side) {
        unit = (int)cf_max(unit, q->problems[side].interleaved);
        next.tile[side] =
            (cf_shared_fft_config){.order = CF_SHARED_FFT_BY_COLUMN, .mirrors = q->buffers == 1, .sums = q->sums};
        CF_FORWARD(cf_shared_fft_choose_lines(&q->problems[side], points, of_columns, &next.tile[side]));
    }
    cf_shared_fft_config common = next.tile[0];
    common.planes = unit;
    common.pitch = cf_shared_fft_min_pitch(&common);
    common.plane = cf_shared_fft_min_plane(&common);
    const int64_t bytes = cf_shared_fft_product_shared(&common, q->count, q->buffers);
    list->min_shared = cf_min(list->min_shared, bytes);
    if (bytes > q->properties->shared_per_block)
        return CONV_FFT_SUCCESS;
    common.planes = (int)cf_max(1, 128 / cf_shared_fft_max_lines(&common));
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
    candidate_list list = {.min_shared = INT64_MAX};
    for (int i = 0; i < 4; ++i)
        CF_FORWARD(add_candidates(&q, longest[i][0], longest[i][1], &list));
    if (list.count == 0)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "%d buffers of this basis need %lld bytes of shared memory; %s has %lld for a block", buffers,
                       (long long)list.min_shared, properties->name, (long long)properties->shared_per_block);
    const candidate *best = NULL;
    for (int i = list.count - 1; i >= 0; --i) {
        if (i > 0 && same_candidate(&list.items[i], &list.items[i - 1])) /* other limits gave the same radices */
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
