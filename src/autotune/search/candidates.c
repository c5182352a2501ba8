/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/candidates.h"

#include "autotune/model/choose.h"
#include "autotune/model/cost_model.h"
#include "autotune/search/search_space.h"
#include "conv/plan/family.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cf_candidates_clear(cf_candidates *list) {
    for (size_t i = 0; i < list->count; ++i)
        cf_plan_destroy(list->items[i].plan);
    free(list->items);
    *list = (cf_candidates){0};
}

static int first_pass(int passes) {
    int pass = 0;
    while (!(passes & 1 << pass))
        ++pass;
    return pass;
}

cf_family_id cf_candidate_family(const cf_tuning_job *job, const cf_candidate *c) {
    return c->strategy[first_pass(job->passes)].family;
}

/* Of two variants of the same bases. */
static bool strategies_equal(const cf_strategy *a, const cf_strategy *b) {
    return a->product == b->product && a->spectrum == b->spectrum && a->overlap_add == b->overlap_add &&
           a->chunk == b->chunk && a->groups == b->groups && memcmp(a->tiles, b->tiles, sizeof a->tiles) == 0;
}

static conv_fft_status add(const cf_candidate *c, cf_candidates *list) {
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        cf_candidate *grown = realloc(list->items, room * sizeof *grown);
        if (!grown)
            return cf_fail_memory(room * sizeof *grown, "candidates of a search");
        list->items = grown;
        list->room = room;
    }
    list->items[list->count++] = *c;
    return CONV_FFT_SUCCESS;
}

/* ---- staged */

enum {
    PRODUCT_OF_MODEL = CF_PRODUCT_VARIANTS,
    PRODUCTS
};

/* How a staged candidate differs from the plain one of its bases. */
typedef struct variant {
    int product; /* a cf_product_variant, or the one that the model prefers for each pass */
    bool overlap_add;
    int chunk; /* 0: the model's; 1: all rows; 2: a quarter of the model's */
    bool half; /* spectra in the type of the tensors */
} variant;

static bool several_tiles(const cf_strategy *s) { return s->tiles[0] * s->tiles[1] * s->tiles[2] > 1; }

static bool suits(const cf_tuning_job *job, int pass, const cf_strategy *s) {
    const char *why;
    const cf_family *family = cf_families[s->family];
    if (!family->feasible(job->layer, pass, s, &why) ||
        !family->runs_on(job->context->device, job->layer, pass, s, &why))
        return false;
    return s->family != CF_FAMILY_STAGED || job->workspace_limit == 0 ||
           cf_space_smallest_bytes(job->layer, pass, s) <= (double)job->workspace_limit;
}

/* Both gradients read the same spectrum of gy. */
static bool shares_gy(const cf_candidate *c) {
    const cf_strategy *data = &c->strategy[CF_PASS_DATA], *weights = &c->strategy[CF_PASS_WEIGHTS];
    return data->family == CF_FAMILY_STAGED && weights->family == CF_FAMILY_STAGED &&
           memcmp(data->basis, weights->basis, sizeof data->basis) == 0 &&
           memcmp(data->tiles, weights->tiles, sizeof data->tiles) == 0 &&
           data->shift_dilation == weights->shift_dilation && (data->overlap_add || !several_tiles(data));
}

double cf_candidates_predict(const cf_tuning_job *job, const cf_candidate *c) {
    double seconds = 0.0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!(job->passes & 1 << pass))
            continue;
        cf_stage_cost cost[CF_STAGE_COUNT];
        cf_model_pass(job->layer, job->context->device, pass, &c->strategy[pass], cost);
        if (pass == CF_PASS_WEIGHTS && (job->passes & CONV_FFT_BACKWARD_DATA) && shares_gy(c))
            cost[CF_STAGE_LOAD_GY].seconds = 0.0;
        if (pass == CF_PASS_WEIGHTS && (job->passes & CONV_FFT_FORWARD) && (job->keep & CONV_FFT_OPERAND_X))
            cost[CF_STAGE_LOAD_X].seconds = 0.0;
        if (pass == CF_PASS_DATA && (job->passes & CONV_FFT_FORWARD) && (job->keep & CONV_FFT_OPERAND_W))
            cost[CF_STAGE_LOAD_W].seconds = 0.0;
        seconds += cf_model_seconds(cost);
    }
    if ((job->passes & CONV_FFT_BACKWARD) == CONV_FFT_BACKWARD)
        seconds -= cf_model_shared_turn(job->layer, job->context->device, &c->strategy[CF_PASS_DATA],
                                        &c->strategy[CF_PASS_WEIGHTS]);
    return seconds;
}

/* Set a pass of a candidate; false if it does not suit, or is the same as another variant's. */
static bool set_pass(const cf_tuning_job *job, int pass, const variant *v, cf_strategy *s) {
    if (pass == CF_PASS_DATA) {
        s->overlap_add = v->overlap_add;
        if (!v->overlap_add)
            cf_space_set_tiles(job->layer, true, s);
    }
    const bool best = v->product == PRODUCT_OF_MODEL;
    if (v->half)
        cf_layer_16bit_spectrum(job->layer, &s->spectrum);
    s->product = best ? CF_PRODUCT_LOOP : (cf_product_variant)v->product;
    if (!suits(job, pass, s))
        return false;
    if (best)
        s->product = cf_model_product(job->layer, job->context->device, pass, s);
    cf_space_choose_chunks(job->layer, job->context->device, pass, s);
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(job->layer, pass, s, spectrum);
    const int64_t rows = spectrum[CF_X].rows;
    if (v->chunk == 1)
        s->chunk = rows, s->groups = job->layer->groups;
    else if (v->chunk == 2)
        s->chunk = cf_max(1, s->chunk / 4);
    return true;
}

static bool is_new(const cf_tuning_job *job, const cf_candidates *list, size_t from, const cf_candidate *c) {
    for (size_t i = from; i < list->count; ++i) {
        bool same = true;
        for (int pass = 0; pass < CF_PASS_COUNT && same; ++pass)
            same = !(job->passes & 1 << pass) || strategies_equal(&list->items[i].strategy[pass], &c->strategy[pass]);
        if (same)
            return false;
    }
    return true;
}

static conv_fft_status add_variants(const cf_tuning_job *job, const cf_strategy *plain, cf_candidates *list) {
    const cf_device *device = job->context->device;
    const bool overlaps = (job->passes & CONV_FFT_BACKWARD_DATA) && several_tiles(plain);
    const size_t from = list->count;
    conv_fft_dtype in_short;
    const bool halves = cf_layer_16bit_spectrum(job->layer, &in_short);
    for (int i = 0; i < PRODUCTS * 2 * 3 * (halves ? 2 : 1); ++i) {
        const variant v = {i % PRODUCTS, i / PRODUCTS % 2 != 0, i / PRODUCTS / 2 % 3, i / PRODUCTS / 6 != 0};
        if (v.half && v.product != CF_PRODUCT_TENSOR)
            continue;
        if ((v.product == CF_PRODUCT_BLAS && !device->has_blas) || (v.overlap_add && !overlaps))
            continue;
        if (v.product == PRODUCT_OF_MODEL && !device->has_blas && device->tensor_flops <= 0.0)
            continue;
        cf_candidate c;
        memset(&c, 0, sizeof c);
        c.measured = -1.0;
        bool good = true;
        for (int pass = 0; pass < CF_PASS_COUNT && good; ++pass) {
            if (!(job->passes & 1 << pass))
                continue;
            c.strategy[pass] = *plain;
            good = set_pass(job, pass, &v, &c.strategy[pass]);
        }
        if (!good || !is_new(job, list, from, &c))
            continue;
        c.predicted = cf_candidates_predict(job, &c);
        CF_FORWARD(add(&c, list));
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status add_staged(const cf_tuning_job *job, bool shift, cf_candidates *list) {
    cf_space_bases bases[3];
    cf_space_bases_of(job->layer, job->context->device, shift, bases);
    for (int i = 0; i < bases[0].count; ++i)
        for (int j = 0; j < bases[1].count; ++j)
            for (int k = 0; k < bases[2].count; ++k) {
                const int64_t basis[3] = {bases[0].basis[i], bases[1].basis[j], bases[2].basis[k]};
                const cf_strategy plain = cf_space_strategy(job->layer, basis, shift, job->keep);
                CF_FORWARD(add_variants(job, &plain, list));
            }
    return CONV_FFT_SUCCESS;
}

/* ---- order */

/* Equal predictions stand in the order in which they were made. */
typedef struct ranked {
    cf_candidate candidate;
    size_t place;
} ranked;

static int by_prediction(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->candidate.predicted != y->candidate.predicted)
        return x->candidate.predicted < y->candidate.predicted ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static conv_fft_status sort(cf_candidates *list) {
    ranked *all = malloc((list->count + 1) * sizeof *all);
    if (!all)
        return cf_fail_memory(list->count * sizeof *all, "candidates of a search");
    for (size_t i = 0; i < list->count; ++i)
        all[i] = (ranked){list->items[i], i};
    qsort(all, list->count, sizeof *all, by_prediction);
    for (size_t i = 0; i < list->count; ++i)
        list->items[i] = all[i].candidate;
    free(all);
    return CONV_FFT_SUCCESS;
}

/* ---- fused: the same bases and tiles; of many, those that the model finds within reach of the best. */

static void plain_fused(const cf_tuning_job *job, const cf_strategy *plain, cf_candidate *c) {
    memset(c, 0, sizeof *c);
    c->measured = -1.0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        cf_strategy *s = &c->strategy[pass];
        *s = *plain;
        s->family = CF_FAMILY_FUSED;
        s->keep = 0;
        if (pass == CF_PASS_DATA)
            cf_space_set_tiles(job->layer, true, s);
    }
}

static bool is_feasible(const cf_tuning_job *job, const cf_candidate *c) {
    const char *why;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if ((job->passes & 1 << pass) &&
            !cf_families[CF_FAMILY_FUSED]->feasible(job->layer, pass, &c->strategy[pass], &why))
            return false;
    return true;
}

static bool all_suit(const cf_tuning_job *job, const cf_candidate *c) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if ((job->passes & 1 << pass) && !suits(job, pass, &c->strategy[pass]))
            return false;
    return true;
}

/* All that are feasible, with predictions. */
static conv_fft_status find_fused(const cf_tuning_job *job, bool shift, cf_candidates *found) {
    cf_space_bases bases[3];
    cf_space_bases_of(job->layer, job->context->device, shift, bases);
    for (int i = 0; i < bases[0].count; ++i)
        for (int j = 0; j < bases[1].count; ++j)
            for (int k = 0; k < bases[2].count; ++k) {
                const int64_t basis[3] = {bases[0].basis[i], bases[1].basis[j], bases[2].basis[k]};
                const cf_strategy plain = cf_space_strategy(job->layer, basis, shift, 0);
                cf_candidate c;
                plain_fused(job, &plain, &c);
                if (!is_feasible(job, &c))
                    continue;
                c.predicted = cf_candidates_predict(job, &c);
                CF_FORWARD(add(&c, found));
            }
    return CONV_FFT_SUCCESS;
}

/* Whether there is a kernel for one is asked last, and of the best: looking for it takes longer than all else here. */
static conv_fft_status add_fused(const cf_tuning_job *job, bool shift, cf_candidates *list) {
    enum {
        MOST_FUSED = 32
    };
    const double reach = 3.0;
    cf_candidates found = {0};
    double best = HUGE_VAL;
    conv_fft_status status = find_fused(job, shift, &found);
    if (status == CONV_FFT_SUCCESS)
        status = sort(&found);
    int added = 0;
    for (size_t i = 0; i < found.count && added < MOST_FUSED && status == CONV_FFT_SUCCESS; ++i) {
        const cf_candidate *c = &found.items[i];
        if (c->predicted > reach * best)
            break;
        if (!all_suit(job, c))
            continue;
        best = fmin(best, c->predicted);
        status = add(c, list);
        ++added;
    }
    cf_candidates_clear(&found);
    return status;
}

/* Of both gradients, one staged and one fused: the best of each. */
static conv_fft_status add_mixed(const cf_tuning_job *job, cf_candidates *list) {
    const cf_candidate *best[2] = {NULL, NULL};
    if ((job->passes & CONV_FFT_BACKWARD) != CONV_FFT_BACKWARD)
        return CONV_FFT_SUCCESS;
    for (size_t i = 0; i < list->count; ++i) {
        const cf_candidate *c = &list->items[i];
        const cf_family_id family = cf_candidate_family(job, c);
        const int kind = family == CF_FAMILY_STAGED ? 0 : family == CF_FAMILY_FUSED ? 1 : -1;
        if (kind >= 0 && (!best[kind] || c->predicted < best[kind]->predicted))
            best[kind] = c;
    }
    if (!best[0] || !best[1])
        return CONV_FFT_SUCCESS;
    cf_candidate mixed[2] = {*best[0], *best[1]};
    mixed[0].strategy[CF_PASS_WEIGHTS] = best[1]->strategy[CF_PASS_WEIGHTS];
    mixed[1].strategy[CF_PASS_WEIGHTS] = best[0]->strategy[CF_PASS_WEIGHTS];
    for (int i = 0; i < 2; ++i) {
        mixed[i].predicted = cf_candidates_predict(job, &mixed[i]);
        CF_FORWARD(add(&mixed[i], list));
    }
    return CONV_FFT_SUCCESS;
}

/* ---- the choice of the model */

static bool same_strategies(const cf_tuning_job *job, const cf_candidate *a, const cf_candidate *b) {
    bool same = true;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const cf_strategy *x = &a->strategy[pass], *y = &b->strategy[pass];
        same = same && (!(job->passes & 1 << pass) ||
                        (x->family == y->family && memcmp(x->basis, y->basis, sizeof x->basis) == 0 &&
                         x->shift_dilation == y->shift_dilation && strategies_equal(x, y)));
    }
    return same;
}

/* It is made pass by pass, so the lists above may have nothing alike. */
static conv_fft_status add_choice(const cf_tuning_job *job, cf_candidates *list) {
    cf_candidate c;
    memset(&c, 0, sizeof c);
    c.measured = -1.0;
    if (job->workspace_limit != 0 ||
        cf_choose_strategies(job->context->device, job->layer, job->keep, c.strategy) != CONV_FFT_SUCCESS)
        return CONV_FFT_SUCCESS;
    for (size_t i = 0; i < list->count; ++i)
        if (same_strategies(job, &list->items[i], &c))
            return CONV_FFT_SUCCESS;
    c.predicted = cf_candidates_predict(job, &c);
    return add(&c, list);
}

/* ---- other families */

enum {
    MOST_OF_FAMILY = 64
};

typedef struct gathering {
    const cf_tuning_job *job;
    int pass, count;
    cf_strategy strategy[MOST_OF_FAMILY];
} gathering;

static bool gather(const cf_strategy *strategy, void *user) {
    gathering *g = user;
    if (suits(g->job, g->pass, strategy))
        g->strategy[g->count++] = *strategy;
    return g->count < MOST_OF_FAMILY;
}

/* Passes of such a family share nothing: the n-th candidate of the set is the n-th, or the last, of each pass. */
static conv_fft_status add_family(const cf_tuning_job *job, cf_family_id family, cf_candidates *list) {
    gathering *g = calloc(CF_PASS_COUNT, sizeof *g);
    if (!g)
        return cf_fail_memory(CF_PASS_COUNT * sizeof *g, "candidates of a family");
    conv_fft_status status = CONV_FFT_SUCCESS;
    int most = 0;
    bool complete = true;
    for (int pass = 0; pass < CF_PASS_COUNT && status == CONV_FFT_SUCCESS; ++pass) {
        if (!(job->passes & 1 << pass))
            continue;
        g[pass].job = job;
        g[pass].pass = pass;
        status = cf_families[family]->candidates(job->layer, job->context->device, pass, gather, &g[pass]);
        /* These families are other libraries, and one that does not work here, whatever it says, has none and fails no
         * search. Candidates of our own are made without the device. */
        if (status != CONV_FFT_OUT_OF_MEMORY)
            status = CONV_FFT_SUCCESS;
        complete = complete && g[pass].count > 0;
        most = (int)cf_max(most, g[pass].count);
    }
    for (int i = 0; i < most && complete && status == CONV_FFT_SUCCESS; ++i) {
        cf_candidate c;
        memset(&c, 0, sizeof c);
        c.measured = -1.0;
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            if (job->passes & 1 << pass)
                c.strategy[pass] = g[pass].strategy[cf_min(i, g[pass].count - 1)];
        }
        c.predicted = cf_candidates_predict(job, &c);
        status = add(&c, list);
    }
    free(g);
    return status;
}

/* ---- all */

conv_fft_status cf_candidates_make(const cf_tuning_job *job, cf_candidates *list) {
    *list = (cf_candidates){0};
    conv_fft_status status = add_staged(job, false, list);
    if (status == CONV_FFT_SUCCESS && cf_space_has_dilation(job->layer))
        status = add_staged(job, true, list);
    if (job->context->device->fused_flops > 0.0 && job->keep == 0) {
        if (status == CONV_FFT_SUCCESS)
            status = add_fused(job, false, list);
        if (status == CONV_FFT_SUCCESS && cf_space_has_dilation(job->layer))
            status = add_fused(job, true, list);
        if (status == CONV_FFT_SUCCESS)
            status = add_mixed(job, list);
    }
    if (status == CONV_FFT_SUCCESS)
        status = add_choice(job, list);
    /* Spectra that the caller keeps are those of staged strategies. */
    for (int family = 0; family < CF_FAMILY_COUNT && status == CONV_FFT_SUCCESS && job->keep == 0; ++family) {
        if (cf_families[family]->candidates && !(job->own_kernels && family == CF_FAMILY_DIRECT))
            status = add_family(job, (cf_family_id)family, list);
    }
    if (status == CONV_FFT_SUCCESS)
        status = sort(list);
    if (status != CONV_FFT_SUCCESS)
        cf_candidates_clear(list);
    return status;
}

/* ---- the best few */

enum {
    MOST_UNKNOWN = 16 /* of families without predictions: their own order says little of their times */
};

static void move_to(cf_candidates *list, size_t from, size_t to) {
    const cf_candidate moved = list->items[from];
    memmove(&list->items[to + 1], &list->items[to], (from - to) * sizeof moved);
    list->items[to] = moved;
}

conv_fft_status cf_candidates_insert(cf_candidates *list, size_t at, const cf_candidate *candidate) {
    CF_FORWARD(add(candidate, list));
    move_to(list, list->count - 1, at);
    return CONV_FFT_SUCCESS;
}

static bool same_bases(const cf_tuning_job *job, const cf_candidate *a, const cf_candidate *b) {
    const int pass = first_pass(job->passes);
    const cf_strategy *x = &a->strategy[pass], *y = &b->strategy[pass];
    return x->family == y->family && x->shift_dilation == y->shift_dilation &&
           memcmp(x->basis, y->basis, sizeof x->basis) == 0;
}

size_t cf_candidates_select(const cf_tuning_job *job, cf_candidates *list, size_t most) {
    size_t chosen = 0, unknown = 0;
    bool seen[CF_FAMILY_COUNT][2] = {{false}}; /* with dilation as step, as shifts */
    for (size_t i = 0; i < list->count; ++i) {
        const bool shift = list->items[i].strategy[first_pass(job->passes)].shift_dilation;
        bool *const known = &seen[cf_candidate_family(job, &list->items[i])][shift];
        if (*known || list->items[i].predicted == HUGE_VAL)
            continue;
        *known = true;
        move_to(list, i, chosen++);
    }
    for (size_t i = chosen; i < list->count && chosen < most; ++i) {
        int alike = 0;
        for (size_t k = 0; k < chosen; ++k)
            alike += same_bases(job, &list->items[k], &list->items[i]);
        if (alike < 2 && list->items[i].predicted < HUGE_VAL)
            move_to(list, i, chosen++);
    }
    for (size_t i = chosen; i < list->count && unknown < MOST_UNKNOWN; ++i) {
        if (list->items[i].predicted < HUGE_VAL)
            continue;
        move_to(list, i, chosen++);
        ++unknown;
    }
    return chosen;
}
