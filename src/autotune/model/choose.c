/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice by the cost model. It considers a few bases per axis with the tiles they need, all combinations of the
 * axes, and dilation as step or as shifts. All passes of a plan get the same basis, so that they can share spectra and
 * compiled kernels. Where there are neither, the forward pass gets its own.
 */
#include "autotune/model/choose.h"

#include "autotune/model/baseline.h"
#include "autotune/model/cost_model.h"
#include "autotune/search/search_space.h"
#include "conv/plan/family.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A feasible fused strategy of a pass, with its place in the order of the search. */
typedef struct fused_choice {
    double seconds;
    size_t place;
    int64_t basis[3];
    bool shift;
} fused_choice;

typedef struct fused_choices {
    fused_choice *items;
    size_t count, capacity;
} fused_choices;

/* The goal of the search: passes, and the bytes that the spectra may have. */
typedef struct search {
    const cf_layer *layer;
    const cf_device *device;
    int passes, keep;
    cf_device *asked; /* for algorithms of other libraries; NULL: only strategies of this library are considered */
    uint64_t limit;
    conv_fft_status asking; /* OUT_OF_MEMORY: another library had too little memory to list its algorithms */
    bool smallest;          /* look for the smallest workspace instead of the least time */
    double best;
    cf_strategy strategy[CF_PASS_COUNT];
    /* The feasible fused strategies of each pass, if fused kernels may be chosen. Then the best one that runs, or the
     * only strategy of a family that is faster. */
    bool fuses;
    fused_choices choices[CF_PASS_COUNT];
    double fused_seconds[CF_PASS_COUNT];
    cf_strategy fused[CF_PASS_COUNT];
    const char *why; /* why the last staged strategy does not run; NULL: it runs */
} search;

/* Cost of one pass with the best product; HUGE_VAL if infeasible. */
static double pass_cost(search *q, int pass, cf_strategy *s, cf_stage_cost cost[CF_STAGE_COUNT]) {
    const cf_family *family = s->family;
    const char *why;
    if (!family->feasible(q->layer, pass, s, &why) || !family->runs_on(q->device, q->layer, pass, s, &why)) {
        /* An input or an axis that is too large is so for all bases; spectra mostly are. */
        if (!cf_is_too_large(q->why) || (q->why == cf_large_spectra && cf_is_too_large(why)))
            q->why = why;
        return HUGE_VAL;
    }
    q->why = NULL;
    const double bytes = cf_space_smallest_bytes(q->layer, pass, s);
    if (!q->smallest && bytes > (double)q->limit)
        return HUGE_VAL;
    s->product = cf_model_product(q->layer, q->device, pass, s, cost);
    return q->smallest ? bytes : cf_model_seconds(cost);
}

/* The cost of backward data, by overlap-save or overlap-add. Overlap-add shares the transform of gy with backward
 * weights. */
static double data_cost(search *q, cf_strategy *s) {
    cf_stage_cost cost[CF_STAGE_COUNT] = {{0}};
    cf_strategy add = *s, save = *s;
    bool several = false;
    for (int a = 0; a < 3; ++a)
        several = several || s->tiles[a] > 1;
    cf_space_set_tiles(q->layer, true, &save);
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
static void consider(search *q, const cf_strategy *base) {
    cf_strategy s[CF_PASS_COUNT];
    cf_stage_cost cost[CF_STAGE_COUNT];
    double total = 0.0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!(q->passes & 1 << pass))
            continue;
        s[pass] = *base;
        const double seconds = pass == CF_PASS_DATA ? data_cost(q, &s[pass]) : pass_cost(q, pass, &s[pass], cost);
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

/* The strategy of a pass that takes the fused family, or one in its place. */
static cf_strategy fused_strategy(const search *q, const cf_family *family, const cf_strategy *base, int pass) {
    cf_strategy s = *base;
    s.family = family;
    if (pass == CF_PASS_DATA)
        cf_space_set_tiles(q->layer, true, &s);
    cf_strategy_resolve(q->layer, pass, &s);
    return s;
}

static conv_fft_status add_choice(fused_choices *list, fused_choice choice) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 256;
        fused_choice *grown = realloc(list->items, capacity * sizeof *grown);
        if (!grown)
            return cf_fail_memory(capacity * sizeof *grown, "fused strategies of a search");
        list->items = grown;
        list->capacity = capacity;
    }
    choice.place = list->count;
    list->items[list->count++] = choice;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status consider_fused(search *q, const cf_strategy *base, const cf_family *family) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        cf_stage_cost cost[CF_STAGE_COUNT];
        const char *why;
        if (!(q->passes & 1 << pass))
            continue;
        const cf_strategy s = fused_strategy(q, family, base, pass);
        if (!s.family->feasible(q->layer, pass, &s, &why))
            continue;
        cf_model_pass(q->layer, q->device, pass, &s, cost);
        CF_FORWARD(
            add_choice(&q->choices[pass], (fused_choice){.seconds = cf_model_seconds(cost),
                                                         .basis = {base->basis[0], base->basis[1], base->basis[2]},
                                                         .shift = base->shift_dilation}));
    }
    return CONV_FFT_SUCCESS;
}

static int by_seconds(const void *a, const void *b) {
    const fused_choice *x = a, *y = b;
    return x->seconds != y->seconds ? (x->seconds > y->seconds) - (x->seconds < y->seconds)
                                    : (x->place > y->place) - (x->place < y->place);
}

/* runs_on() takes the longest. So it is called for the best predictions, until one runs or takes as long as
 * `useless`. */
static void choose_fused(search *q, int pass, double useless) {
    fused_choices *list = &q->choices[pass];
    if (list->count > 0)
        qsort(list->items, list->count, sizeof *list->items, by_seconds);
    for (size_t i = 0; i < list->count && list->items[i].seconds < useless; ++i) {
        const fused_choice *c = &list->items[i];
        const char *why;
        const cf_strategy base = cf_space_strategy(q->layer, c->basis, c->shift, q->keep),
                          s = fused_strategy(q, cf_space_family(CF_SEARCH_KERNELS), &base, pass);
        if (!s.family->runs_on(q->device, q->layer, pass, &s, &why))
            continue;
        q->fused_seconds[pass] = c->seconds;
        q->fused[pass] = s;
        return;
    }
}

/* Take the only strategy of a family if it takes less time than the best fused one. For the gradient of the weights,
 * count what it saves beside the strategy of the gradient of x. */
static void choose_single(search *q, int pass) {
    double best = q->fused_seconds[pass];
    for (int i = 0; cf_families[i]; ++i) {
        cf_stage_cost cost[CF_STAGE_COUNT];
        const char *why;
        const cf_strategy s = cf_family_strategy(cf_families[i]);
        if (!(q->passes & 1 << pass) || s.family->search_space != CF_SEARCH_SINGLE ||
            !s.family->feasible(q->layer, pass, &s, &why) || !s.family->runs_on(q->device, q->layer, pass, &s, &why))
            continue;
        cf_model_pass(q->layer, q->device, pass, &s, cost);
        const double seconds = cf_model_seconds(cost),
                     saved = pass == CF_PASS_WEIGHTS && (q->passes & CONV_FFT_BACKWARD_DATA)
                                 ? cf_model_shared_transpose(q->layer, q->device, &q->fused[CF_PASS_DATA], &s)
                                 : 0.0;
        if (seconds - saved < best) {
            best = seconds - saved;
            q->fused_seconds[pass] = seconds;
            q->fused[pass] = s;
        }
    }
}

/* Seconds of a pass with the chosen strategy. *gy: the part for the transform of gy. */
static double staged_seconds(const search *q, int pass, double *gy) {
    cf_stage_cost cost[CF_STAGE_COUNT];
    if (!(q->passes & 1 << pass))
        return 0.0;
    cf_model_pass(q->layer, q->device, pass, &q->strategy[pass], cost);
    *gy = cost[CF_STAGE_LOAD_GY].seconds;
    return cf_model_seconds(cost);
}

/* Take fused strategies, or those in their place, for passes where they cost less, or that have no staged strategy.
 * False: some pass has neither. Both gradients are considered together: staged strategies share the transform of gy,
 * and fused ones may share its planes. */
static bool take_fused(search *q) {
    double staged[CF_PASS_COUNT], gy = 0.0;
    const bool have_staged = q->best < HUGE_VAL;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        staged[pass] = have_staged ? staged_seconds(q, pass, &gy) : q->passes & 1 << pass ? HUGE_VAL : 0.0;
    /* A fused gradient is of no use if it takes as long as both staged ones: what it saves for the other gradient is
     * less than the time of that one. */
    const double gradients = staged[CF_PASS_DATA] + staged[CF_PASS_WEIGHTS];
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        choose_fused(q, pass, pass == CF_PASS_FORWARD ? staged[pass] : gradients);
        choose_single(q, pass);
        if (q->asked && (q->passes & 1 << pass) && q->asking == CONV_FFT_SUCCESS)
            q->asking =
                cf_choose_baseline(q->layer, q->asked, pass, staged[pass], &q->fused[pass], &q->fused_seconds[pass]);
    }
    const double transpose =
        cf_model_shared_transpose(q->layer, q->device, &q->fused[CF_PASS_DATA], &q->fused[CF_PASS_WEIGHTS]);
    int best = 0;
    double min_seconds = HUGE_VAL;
    for (int set = 0; set < 1 << CF_PASS_COUNT; ++set) { /* passes that are fused */
        double seconds = 0.0;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
            seconds += set & 1 << pass ? q->fused_seconds[pass] : staged[pass];
        if ((q->passes & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD && !(set & CONV_FFT_BACKWARD))
            seconds -= gy;
        if ((set & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD)
            seconds -= transpose;
        if ((set & q->passes) == set && seconds < min_seconds) {
            min_seconds = seconds;
            best = set;
        }
    }
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if (best & 1 << pass)
            q->strategy[pass] = q->fused[pass];
    return min_seconds < HUGE_VAL;
}

/* Consider spectra in the type of the layer's arithmetic, and 16-bit spectra if tensor cores can multiply them. */
static void consider_spectra(search *q, const cf_strategy *base) {
    cf_strategy s = *base;
    consider(q, &s);
    if (q->device->tensor_flops <= 0.0 || !cf_layer_16bit_spectrum(q->layer, &s.spectrum))
        return;
    s.product = CF_CGEMM_TENSOR;
    consider(q, &s);
}

static conv_fft_status search_dilation(search *q, bool shift) {
    const cf_family *kernels = cf_space_family(CF_SEARCH_KERNELS);
    cf_space_bases list[3];
    cf_space_bases_of(q->layer, q->device, shift, list);
    for (int i = 0; i < list[0].count; ++i)
        for (int j = 0; j < list[1].count; ++j)
            for (int k = 0; k < list[2].count; ++k) {
                const int64_t basis[3] = {list[0].basis[i], list[1].basis[j], list[2].basis[k]};
                const cf_strategy s = cf_space_strategy(q->layer, basis, shift, q->keep);
                consider_spectra(q, &s);
                if (q->fuses && kernels && q->device->fused_flops > 0.0)
                    CF_FORWARD(consider_fused(q, &s, kernels));
            }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status no_strategy(const search *q) {
    if (q->limit != UINT64_MAX)
        return cf_fail(CONV_FFT_INVALID_ARGUMENT,
                       "no strategy for this problem has spectra within options.workspace_limit, %llu bytes",
                       (unsigned long long)q->limit);
    if (!q->why)
        return cf_fail(CONV_FFT_INVALID_ARGUMENT, "no strategy for this problem has spectra within 64 TiB");
    if (cf_is_too_large(q->why))
        return cf_fail(CONV_FFT_INVALID_ARGUMENT, "no strategy runs this problem here: %s", q->why);
    int64_t spans[3];
    for (int a = 0; a < 3; ++a)
        spans[a] = (q->layer->axis[a].kernel - 1) * q->layer->axis[a].dilation + 1;
    return cf_fail(CONV_FFT_INVALID_ARGUMENT,
                   "no strategy runs this problem here: its kernel spans %lldx%lldx%lld points, and %s",
                   (long long)spans[0], (long long)spans[1], (long long)spans[2], q->why);
}

static conv_fft_status search_all(search *q) {
    CF_FORWARD(search_dilation(q, false));
    return cf_space_has_dilation(q->layer) ? search_dilation(q, true) : CONV_FFT_SUCCESS;
}

static conv_fft_status choose(search *q) {
    q->best = HUGE_VAL;
    q->fuses = q->keep == 0 && q->limit == UINT64_MAX;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        q->fused_seconds[pass] = HUGE_VAL;
    const conv_fft_status status = search_all(q);
    const bool found = status == CONV_FFT_SUCCESS && (q->fuses ? take_fused(q) : q->best < HUGE_VAL);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        free(q->choices[pass].items);
        q->choices[pass] = (fused_choices){0};
    }
    CF_FORWARD(status);
    if (!found)
        return no_strategy(q);
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if ((q->passes & 1 << pass) && q->strategy[pass].family->search_space == CF_SEARCH_SPECTRA)
            cf_space_choose_chunks(q->layer, q->device, pass, &q->strategy[pass]);
    }
    return CONV_FFT_SUCCESS;
}

/* Choose the forward pass and the gradients apart, if they share nothing. */
static conv_fft_status choose_all(search *q) {
    const int passes = q->passes;
    const bool apart = q->keep == 0 && q->limit == UINT64_MAX && !q->device->ops->build_begin;
    if (!apart || !(passes & CONV_FFT_FORWARD) || !(passes & CONV_FFT_BACKWARD))
        return choose(q);
    q->passes = passes & CONV_FFT_BACKWARD;
    conv_fft_status status = choose(q);
    if (status == CONV_FFT_SUCCESS) {
        q->passes = CONV_FFT_FORWARD;
        status = choose(q);
    }
    q->passes = passes;
    return status;
}

/* Choose for the passes of the search, and make the plan. *smallest is set if only the workspace limit was exceeded. */
static conv_fft_status try_plan(conv_fft_context *context, search *q, const conv_fft_plan_options *options,
                                uint64_t *smallest, conv_fft_plan **plan) {
    *smallest = 0;
    if (q->passes)
        CF_FORWARD(choose_all(q));
    if (q->asking != CONV_FFT_SUCCESS)
        return q->asking;
    return cf_plan_create(q->layer, context->device, options->passes, q->strategy, options->any_alignment == 1,
                          options->workspace_limit, smallest, plan);
}

/* Families without spectra may need less workspace than the smallest spectra. Passes that have none keep their
 * strategies. */
static conv_fft_status try_single(conv_fft_context *context, search *q, const conv_fft_plan_options *options,
                                  uint64_t *smallest, conv_fft_plan **plan) {
    *smallest = 0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        q->fused_seconds[pass] = HUGE_VAL;
        choose_single(q, pass);
        if (q->fused_seconds[pass] < HUGE_VAL)
            q->strategy[pass] = q->fused[pass];
        if ((options->passes & 1 << pass) && !q->strategy[pass].family)
            return CONV_FFT_INVALID_ARGUMENT;
    }
    return cf_plan_create(q->layer, context->device, options->passes, q->strategy, options->any_alignment == 1,
                          options->workspace_limit, smallest, plan);
}

/* The smaller number of bytes; 0: not known. */
static uint64_t smaller_known(uint64_t a, uint64_t b) { return a == 0 || (b != 0 && b < a) ? b : a; }

/* Whether an algorithm of another library was chosen. */
static bool takes_baseline(const search *q) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if ((q->passes & 1 << pass) && q->strategy[pass].family && q->strategy[pass].family->first_seconds)
            return true;
    return false;
}

conv_fft_status cf_choose_plan(conv_fft_context *context, const cf_layer *layer, const conv_fft_plan_options *options,
                               int chosen, const cf_strategy strategy[CF_PASS_COUNT], conv_fft_plan **plan) {
    search q;
    memset(&q, 0, sizeof q);
    q.layer = layer;
    q.device = context->device;
    q.keep = options->keep;
    q.passes = options->passes & ~chosen;
    memcpy(q.strategy, strategy, sizeof q.strategy);

    /* Try the fastest strategy, in chunks that fit; then faster ones with less workspace; then the smallest
     * workspace of spectra; then none. */
    uint64_t fastest, over, smallest;
    q.limit = UINT64_MAX;
    q.asked = options->own_kernels || options->workspace_limit || options->any_alignment ? NULL : context->device;
    conv_fft_status status = try_plan(context, &q, options, &fastest, plan);
    if (status != CONV_FFT_SUCCESS && status != CONV_FFT_OUT_OF_MEMORY && takes_baseline(&q)) {
        /* the other library may have failed */
        q.asked = NULL;
        status = try_plan(context, &q, options, &fastest, plan);
    }
    if (fastest == 0 || q.passes == 0)
        return status;
    /* The memory of a plan besides its spectra is known only when the plan is made. If it is too much, try with a lower
     * limit for spectra. */
    for (q.limit = options->workspace_limit;; q.limit -= q.limit / 4) {
        status = try_plan(context, &q, options, &over, plan);
        if (status != CONV_FFT_INVALID_ARGUMENT)
            return status;
        if (over == 0 || q.limit < 4)
            break;
    }
    q.smallest = true;
    status = try_plan(context, &q, options, &smallest, plan);
    if (smallest == 0 && status != CONV_FFT_INVALID_ARGUMENT)
        return status;
    over = 0;
    if (q.keep == 0 && (status = try_single(context, &q, options, &over, plan)) != CONV_FFT_INVALID_ARGUMENT)
        return status;
    return cf_fail_workspace_limit(options->workspace_limit, smaller_known(smaller_known(fastest, smallest), over));
}

conv_fft_status cf_choose_strategies(cf_device *device, const cf_layer *layer, int keep, bool own_kernels,
                                     cf_strategy strategy[CF_PASS_COUNT]) {
    search q;
    memset(&q, 0, sizeof q);
    q.layer = layer;
    q.device = device;
    q.asked = own_kernels ? NULL : device;
    q.keep = keep;
    q.passes = CONV_FFT_ALL_PASSES;
    q.limit = UINT64_MAX;
    CF_FORWARD(choose_all(&q));
    memcpy(strategy, q.strategy, sizeof q.strategy);
    return CONV_FFT_SUCCESS;
}
