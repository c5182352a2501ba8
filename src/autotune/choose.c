/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice by the cost model: per axis a few bases with the tiles they need, all combinations of the axes, dilation as step or
 * as shifts; all passes of a plan get the same basis, so that they can share spectra.
 */
#include "autotune/autotune.h"
#include "autotune/model.h"
#include "conv/family.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>
#include <string.h>

enum {
    MOST_CANDIDATES = 16
};

typedef struct candidates {
    int count;
    int64_t basis[MOST_CANDIDATES];
} candidates;

/* The goal of the search: passes, and the bytes that the spectra may have. */
typedef struct search {
    const cf_layer *layer;
    const cf_device *device;
    int passes, keep;
    uint64_t limit;
    bool smallest; /* look for the smallest workspace instead of the least time */
    double best;
    cf_strategy strategy[CF_PASS_COUNT];
} search;

/* Tiles that outputs, or with `own` positions of x, need with a basis. */
static int64_t tiles_for(const cf_axis *axis, const cf_unit *unit, int64_t basis, bool own) {
    const cf_axis_grid one = {.basis = basis, .tiles = 1, .shift_dilation = unit->spread == 1 && unit->shifts > 1};
    if (cf_grid_fits(axis, &one, CF_ROLE_Y))
        return 1;
    const int64_t length = basis - unit->extent + 1;
    if (length < 1)
        return 0;
    /* One tile does not fit, so there are at least two, even if gx alone is short. */
    const int64_t tiles = cf_max(2, cf_ceil_div(own ? unit->high - unit->low : unit->outputs, length));
    return tiles <= unit->inputs ? tiles : 0;
}

static bool contains(const candidates *list, int64_t basis) {
    for (int i = 0; i < list->count; ++i)
        if (list->basis[i] == basis)
            return true;
    return false;
}

/* Bases in ascending order, each with less total length (tiles x basis) than every smaller one, up to one tile; behind them, largest
 * first, the next multiples of row_unit, whose transforms may be cheaper. */
static void collect(const cf_axis *axis, bool shift, int64_t row_unit, int most, candidates *list) {
    const cf_unit unit = cf_unit_make(axis, shift);
    const int64_t whole = cf_next_basis(cf_basis_one_tile(axis, &unit));
    double least = HUGE_VAL;
    list->count = 0;
    for (int64_t n = cf_next_basis(unit.extent); n && n <= whole; n = cf_next_basis(n + 1)) {
        const int64_t tiles = tiles_for(axis, &unit, n, false);
        if (tiles == 0 || (double)tiles * (double)n >= least)
            continue;
        least = (double)tiles * (double)n;
        if (list->count == most) { /* keep the smallest and the largest ones */
            memmove(&list->basis[most / 2], &list->basis[most / 2 + 1],
                    (size_t)(most - most / 2 - 1) * sizeof list->basis[0]);
            --list->count;
        }
        list->basis[list->count++] = n;
    }
    for (int i = list->count - 1; i >= 0 && list->count < MOST_CANDIDATES; --i) {
        int64_t n = list->basis[i];
        while (n % row_unit)
            n = cf_next_basis(n + 1);
        if (!contains(list, n))
            list->basis[list->count++] = n;
    }
}

static double seconds_of(const cf_stage_cost cost[CF_STAGE_COUNT]) {
    double sum = 0.0;
    for (int i = 0; i < CF_STAGE_COUNT; ++i)
        sum += cost[i].seconds;
    return sum;
}

/* Bytes of the smallest chunk of the pass's spectra: w of one group, one row of x and y. */
static double smallest_bytes(const cf_layer *layer, int pass, const cf_strategy *s) {
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    if (!cf_staged_spectra(layer, pass, s, spectrum))
        return HUGE_VAL;
    double bytes = 0.0;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i) {
        const cf_spectrum *p = &spectrum[i];
        bytes += (double)(p->bins * (i == CF_W ? p->rows : 1) * p->columns * 2) * (double)cf_dtype_bytes(p->dtype);
    }
    if (pass == CF_PASS_DATA && cf_staged_gx_store(layer, s) == CF_GX_FOLDED) {
        double padded = (double)layer->in_channels * (double)cf_dtype_bytes(layer->compute);
        for (int a = 0; a < 3; ++a)
            padded *= (double)(layer->axis[a].pad_before + layer->axis[a].input + layer->axis[a].pad_after);
        bytes += padded;
    }
    return bytes;
}

/* Cost of one pass with the better product; HUGE_VAL if infeasible. */
static double pass_cost(const search *q, int pass, cf_strategy *s, cf_stage_cost cost[CF_STAGE_COUNT]) {
    const char *why;
    const cf_family *family = &cf_families[s->family];
    if (!family->feasible(q->layer, pass, s, &why) || !family->runs_on(q->device, q->layer, pass, s, &why))
        return HUGE_VAL;
    const double bytes = smallest_bytes(q->layer, pass, s);
    if (q->smallest)
        return bytes;
    if (bytes > (double)q->limit)
        return HUGE_VAL;
    s->product = CF_PRODUCT_LOOP;
    cf_model_pass(q->layer, q->device, pass, s, cost);
    const double loop = seconds_of(cost);
    if (!q->device->has_blas)
        return loop;
    cf_strategy blas = *s;
    cf_stage_cost blas_cost[CF_STAGE_COUNT];
    blas.product = CF_PRODUCT_BLAS;
    cf_model_pass(q->layer, q->device, pass, &blas, blas_cost);
    if (seconds_of(blas_cost) >= loop)
        return loop;
    *s = blas;
    memcpy(cost, blas_cost, sizeof blas_cost);
    return seconds_of(cost);
}

/* Both ways of backward data; overlap-add shares the transform of gy with backward weights. */
static double data_cost(const search *q, cf_strategy *s, const cf_unit unit[3]) {
    cf_stage_cost cost[CF_STAGE_COUNT];
    cf_strategy add = *s, save = *s;
    bool several = false;
    for (int a = 0; a < 3; ++a) {
        several = several || s->tiles[a] > 1;
        save.tiles[a] = tiles_for(&q->layer->axis[a], &unit[a], s->basis[a], true);
    }
    const double save_seconds = pass_cost(q, CF_PASS_DATA, &save, cost);
    const double shared = q->passes & CONV_FFT_BACKWARD_WEIGHTS ? cost[CF_STAGE_LOAD_GY].seconds : 0.0;
    if (!several) {
        *s = save;
        return q->smallest ? save_seconds : save_seconds - shared;
    }
    add.overlap_add = true;
    double add_seconds = pass_cost(q, CF_PASS_DATA, &add, cost);
    if (!q->smallest && add_seconds < HUGE_VAL && (q->passes & CONV_FFT_BACKWARD_WEIGHTS))
        add_seconds -= cost[CF_STAGE_LOAD_GY].seconds;
    *s = add_seconds < save_seconds ? add : save;
    return add_seconds < save_seconds ? add_seconds : save_seconds;
}

/* Keep the combination if it is the best so far. */
static void consider(search *q, const cf_strategy *base, const cf_unit unit[3]) {
    cf_strategy s[CF_PASS_COUNT];
    cf_stage_cost cost[CF_STAGE_COUNT];
    double total = 0.0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!(q->passes & 1 << pass))
            continue;
        s[pass] = *base;
        const double seconds = pass == CF_PASS_DATA ? data_cost(q, &s[pass], unit) : pass_cost(q, pass, &s[pass], cost);
        total = q->smallest ? (seconds > total ? seconds : total) : total + seconds;
        if (!(total < q->best))
            return;
    }
    q->best = total;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (q->passes & 1 << pass)
            q->strategy[pass] = s[pass];
    }
}

static void search_dilation(search *q, bool shift) {
    const cf_layer *layer = q->layer;
    static const int most_by_rank[] = {0, 15, 11, 7};
    candidates list[3];
    cf_unit unit[3];
    for (int a = 0; a < 3; ++a) {
        unit[a] = cf_unit_make(&layer->axis[a], shift);
        collect(&layer->axis[a], shift, a == 2 ? q->device->row_unit : 1, most_by_rank[layer->problem.rank], &list[a]);
    }
    cf_strategy s;
    memset(&s, 0, sizeof s);
    s.family = CF_FAMILY_STAGED;
    s.shift_dilation = shift;
    s.spectrum = layer->compute;
    s.keep = q->keep;
    for (int i = 0; i < list[0].count; ++i)
        for (int j = 0; j < list[1].count; ++j)
            for (int k = 0; k < list[2].count; ++k) {
                const int64_t basis[3] = {list[0].basis[i], list[1].basis[j], list[2].basis[k]};
                for (int a = 0; a < 3; ++a) {
                    s.basis[a] = basis[a];
                    s.tiles[a] = tiles_for(&layer->axis[a], &unit[a], basis[a], false);
                }
                consider(q, &s, unit);
            }
}

/* Rows and groups at a time: as much as stays near the caches, but enough for every thread and for efficient products. */
static void choose_chunks(const search *q, int pass, cf_strategy *s) {
    const double cache = q->device->chunk_bytes, group_cache = q->device->group_bytes;
    cf_spectrum p[CF_OPERAND_COUNT];
    cf_staged_spectra(q->layer, pass, s, p);
    const double unit = 2.0 * (double)cf_dtype_bytes(p[CF_X].dtype) * (double)p[CF_X].bins;
    const double row = unit * (double)(p[CF_X].columns + p[CF_Y].columns);
    const double w = unit * (double)(p[CF_W].rows * p[CF_W].columns);
    const double group = w + row * (double)p[CF_X].rows;
    s->groups = (int64_t)fmin((double)q->layer->groups, fmax(4.0 * q->device->threads, group_cache / group));
    const double rows = fmax(cache, 2.0 * w * (double)s->groups) / (row * (double)s->groups);
    s->chunk = (int64_t)fmin((double)p[CF_X].rows, fmax(32.0, rows));
}

static bool has_dilation(const cf_layer *layer) {
    for (int a = 0; a < 3; ++a) {
        const cf_axis *axis = &layer->axis[a];
        if (axis->kernel > 1 && axis->dilation / cf_gcd(axis->dilation, axis->stride) > 1)
            return true;
    }
    return false;
}

static conv_fft_status choose(search *q) {
    q->best = HUGE_VAL;
    search_dilation(q, false);
    if (has_dilation(q->layer))
        search_dilation(q, true);
    if (q->best == HUGE_VAL)
        return cf_fail(CONV_FFT_INVALID_ARGUMENT,
                       "no strategy for this problem has spectra within options.workspace_limit, or within 64 TiB");
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (q->passes & 1 << pass)
            choose_chunks(q, pass, &q->strategy[pass]);
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status read_forced(const cf_layer *layer, const conv_fft_plan_options *options,
                                   cf_strategy strategy[CF_PASS_COUNT], int *forced) {
    *forced = 0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!options->strategy[pass] || !(options->passes & 1 << pass))
            continue;
        CF_FORWARD(cf_strategy_parse(options->strategy[pass], layer->problem.rank, &strategy[pass]));
        *forced |= 1 << pass;
    }
    return CONV_FFT_SUCCESS;
}

/* Choose for the passes of the search, and make the plan. *smallest is set if only the limit was in the way. */
static conv_fft_status try_plan(conv_fft_context *context, search *q, const conv_fft_plan_options *options,
                                uint64_t *smallest, conv_fft_plan **plan) {
    *smallest = 0;
    if (q->passes)
        CF_FORWARD(choose(q));
    return cf_plan_create(q->layer, context->device, options->passes, q->strategy, options->workspace_limit, smallest,
                          plan);
}

conv_fft_status cf_autotune_plan(conv_fft_context *context, const conv_fft_problem *problem,
                                 const conv_fft_plan_options *options, conv_fft_plan **plan) {
    cf_layer layer;
    CF_FORWARD(cf_layer_make(problem, &layer));
    CF_FORWARD(context->device->ops->prepare(context->device));
    search q;
    memset(&q, 0, sizeof q);
    q.layer = &layer;
    q.device = context->device;
    q.keep = options->keep;
    int forced;
    CF_FORWARD(read_forced(&layer, options, q.strategy, &forced));
    q.passes = options->passes & ~forced;

    /* The fastest, in chunks that fit; else the fastest of those with less to hold; else the one with least. */
    uint64_t fastest, ignored, least;
    q.limit = UINT64_MAX;
    conv_fft_status status = try_plan(context, &q, options, &fastest, plan);
    if (fastest == 0 || q.passes == 0)
        return status;
    q.limit = options->workspace_limit;
    status = try_plan(context, &q, options, &ignored, plan);
    if (status != CONV_FFT_INVALID_ARGUMENT)
        return status;
    q.smallest = true;
    status = try_plan(context, &q, options, &least, plan);
    if (least == 0)
        return status;
    return cf_fail_workspace_limit(options->workspace_limit, fastest < least ? fastest : least);
}
