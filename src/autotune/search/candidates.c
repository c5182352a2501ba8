/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/candidates.h"

#include "autotune/model/choose.h"
#include "autotune/model/cost_model.h"
#include "autotune/search/candidate_sources.h"
#include "autotune/search/search_space.h"
#include "conv/plan/family.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void cf_candidates_clear(cf_candidates *list) {
    for (size_t i = 0; i < list->count; ++i)
        cf_plan_destroy(list->items[i].plan);
    free(list->items);
    *list = (cf_candidates){0};
}

cf_candidate cf_candidate_new(void) {
    cf_candidate c;
    memset(&c, 0, sizeof c);
    c.measured = -1.0;
    return c;
}

int cf_candidate_first_pass(int passes) {
    int pass = 0;
    while (!(passes & 1 << pass))
        ++pass;
    return pass;
}

const cf_family *cf_candidate_family(const cf_tuning_job *job, const cf_candidate *c) {
    return c->strategy[cf_candidate_first_pass(job->passes)].family;
}

bool cf_candidate_variants_equal(const cf_strategy *a, const cf_strategy *b) {
    return a->product == b->product && a->spectrum == b->spectrum && a->overlap_add == b->overlap_add &&
           a->chunk == b->chunk && a->groups == b->groups && memcmp(a->tiles, b->tiles, sizeof a->tiles) == 0;
}

conv_fft_status cf_candidates_add(const cf_candidate *c, cf_candidates *list) {
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 64;
        cf_candidate *grown = realloc(list->items, capacity * sizeof *grown);
        if (!grown)
            return cf_fail_memory(capacity * sizeof *grown, "candidates of a search");
        list->items = grown;
        list->capacity = capacity;
    }
    list->items[list->count++] = *c;
    return CONV_FFT_SUCCESS;
}

bool cf_candidate_suits(const cf_tuning_job *job, int pass, const cf_strategy *s) {
    const char *why;
    const cf_family *family = s->family;
    if (!family->feasible(job->layer, pass, s, &why) ||
        !family->runs_on(job->context->device, job->layer, pass, s, &why))
        return false;
    return family->search_space != CF_SEARCH_SPECTRA || job->workspace_limit == 0 ||
           cf_space_smallest_bytes(job->layer, pass, s) <= (double)job->workspace_limit;
}

/* Whether both gradients read the same spectrum of gy. */
static bool shares_gy(const cf_candidate *c) {
    const cf_strategy *data = &c->strategy[CF_PASS_DATA], *weights = &c->strategy[CF_PASS_WEIGHTS];
    return data->family == weights->family && data->family->search_space == CF_SEARCH_SPECTRA &&
           memcmp(data->basis, weights->basis, sizeof data->basis) == 0 &&
           memcmp(data->tiles, weights->tiles, sizeof data->tiles) == 0 &&
           data->shift_dilation == weights->shift_dilation && (data->overlap_add || !cf_strategy_has_tiles(data));
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
        seconds -= cf_model_shared_transpose(job->layer, job->context->device, &c->strategy[CF_PASS_DATA],
                                             &c->strategy[CF_PASS_WEIGHTS]);
    return seconds;
}

/* A candidate and its place in the list before sorting. */
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

conv_fft_status cf_candidates_sort(cf_candidates *list) {
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

static bool same_strategies(const cf_tuning_job *job, const cf_candidate *a, const cf_candidate *b) {
    bool same = true;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const cf_strategy *x = &a->strategy[pass], *y = &b->strategy[pass];
        same = same && (!(job->passes & 1 << pass) ||
                        (x->family == y->family && memcmp(x->basis, y->basis, sizeof x->basis) == 0 &&
                         x->shift_dilation == y->shift_dilation && cf_candidate_variants_equal(x, y)));
    }
    return same;
}

/* Add the strategies that the model chooses without a search. The model chooses pass by pass, so the list may not
 * have them yet. */
static conv_fft_status add_choice(const cf_tuning_job *job, cf_candidates *list) {
    cf_candidate c = cf_candidate_new();
    if (job->workspace_limit != 0 || cf_choose_strategies(job->context->device, job->layer, job->keep, job->own_kernels,
                                                          c.strategy) != CONV_FFT_SUCCESS)
        return CONV_FFT_SUCCESS;
    for (size_t i = 0; i < list->count; ++i)
        if (same_strategies(job, &list->items[i], &c)) {
            list->items[i].is_models_choice = true;
            return CONV_FFT_SUCCESS;
        }
    c.is_models_choice = true;
    c.predicted = cf_candidates_predict(job, &c);
    return cf_candidates_add(&c, list);
}

conv_fft_status cf_candidates_make(const cf_tuning_job *job, cf_candidates *list) {
    *list = (cf_candidates){0};
    conv_fft_status status = cf_candidates_add_staged(job, false, list);
    if (status == CONV_FFT_SUCCESS && cf_space_has_dilation(job->layer))
        status = cf_candidates_add_staged(job, true, list);
    if (job->context->device->fused_flops > 0.0 && job->keep == 0) {
        if (status == CONV_FFT_SUCCESS)
            status = cf_candidates_add_fused(job, false, list);
        if (status == CONV_FFT_SUCCESS && cf_space_has_dilation(job->layer))
            status = cf_candidates_add_fused(job, true, list);
        if (status == CONV_FFT_SUCCESS)
            status = cf_candidates_add_mixed(job, list);
    }
    /* Families that list their strategies, or have one, have no spectra that a caller can keep. */
    for (int i = 0; cf_families[i] && status == CONV_FFT_SUCCESS && job->keep == 0; ++i) {
        if ((cf_families[i]->candidates || cf_families[i]->search_space == CF_SEARCH_SINGLE) &&
            !(job->own_kernels && cf_families[i]->baseline))
            status = cf_candidates_add_family(job, cf_families[i], list);
    }
    if (status == CONV_FFT_SUCCESS)
        status = add_choice(job, list);
    if (status == CONV_FFT_SUCCESS)
        status = cf_candidates_sort(list);
    if (status != CONV_FFT_SUCCESS)
        cf_candidates_clear(list);
    return status;
}
