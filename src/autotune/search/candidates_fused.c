/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fused strategies have the same bases and tiles as staged ones. Only those that the model predicts near the best
 * become candidates.
 */
#include "autotune/search/candidate_sources.h"

#include "autotune/search/search_space.h"
#include "conv/plan/family.h"

#include <math.h>

static void plain_fused(const cf_tuning_job *job, const cf_family *family, const cf_strategy *plain, cf_candidate *c) {
    *c = cf_candidate_new();
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        cf_strategy *s = &c->strategy[pass];
        *s = *plain;
        s->family = family;
        s->keep = 0;
        if (pass == CF_PASS_DATA)
            cf_space_set_tiles(job->layer, true, s);
        cf_strategy_resolve(job->layer, pass, s);
    }
}

static bool is_feasible(const cf_tuning_job *job, const cf_candidate *c) {
    const char *why;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if ((job->passes & 1 << pass) &&
            !c->strategy[pass].family->feasible(job->layer, pass, &c->strategy[pass], &why))
            return false;
    return true;
}

static bool all_suit(const cf_tuning_job *job, const cf_candidate *c) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if ((job->passes & 1 << pass) && !cf_candidate_suits(job, pass, &c->strategy[pass]))
            return false;
    return true;
}

/* Find all feasible fused strategies and predict their times. */
static conv_fft_status find_fused(const cf_tuning_job *job, bool shift, cf_candidates *found) {
    cf_space_bases bases[3];
    const cf_family *family = cf_space_family(CF_SEARCH_KERNELS);
    if (!family)
        return CONV_FFT_SUCCESS;
    cf_space_bases_of(job->layer, job->context->device, shift, bases);
    for (int i = 0; i < bases[0].count; ++i)
        for (int j = 0; j < bases[1].count; ++j)
            for (int k = 0; k < bases[2].count; ++k) {
                const int64_t basis[3] = {bases[0].basis[i], bases[1].basis[j], bases[2].basis[k]};
                const cf_strategy plain = cf_space_strategy(job->layer, basis, shift, 0);
                cf_candidate c;
                plain_fused(job, family, &plain, &c);
                if (!is_feasible(job, &c))
                    continue;
                c.predicted = cf_candidates_predict(job, &c);
                CF_FORWARD(cf_candidates_add(&c, found));
            }
    return CONV_FFT_SUCCESS;
}

/* Looking for a kernel takes the longest. So only strategies with the best predictions are asked for one. */
conv_fft_status cf_candidates_add_fused(const cf_tuning_job *job, bool shift, cf_candidates *list) {
    enum {
        MAX_FUSED = 32
    };
    const double reach = 3.0;
    cf_candidates found = {0};
    double best = HUGE_VAL;
    conv_fft_status status = find_fused(job, shift, &found);
    if (status == CONV_FFT_SUCCESS)
        status = cf_candidates_sort(&found);
    int added = 0;
    for (size_t i = 0; i < found.count && added < MAX_FUSED && status == CONV_FFT_SUCCESS; ++i) {
        const cf_candidate *c = &found.items[i];
        if (c->predicted > reach * best)
            break;
        if (!all_suit(job, c))
            continue;
        best = fmin(best, c->predicted);
        status = cf_candidates_add(c, list);
        ++added;
    }
    cf_candidates_clear(&found);
    return status;
}

conv_fft_status cf_candidates_add_mixed(const cf_tuning_job *job, cf_candidates *list) {
    const cf_candidate *best[2] = {NULL, NULL};
    if ((job->passes & CONV_FFT_BACKWARD) != CONV_FFT_BACKWARD)
        return CONV_FFT_SUCCESS;
    for (size_t i = 0; i < list->count; ++i) {
        const cf_candidate *c = &list->items[i];
        const cf_search_space space = cf_candidate_family(job, c)->search_space;
        const int kind = space == CF_SEARCH_SPECTRA ? 0 : space == CF_SEARCH_KERNELS ? 1 : -1;
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
        CF_FORWARD(cf_candidates_add(&mixed[i], list));
    }
    return CONV_FFT_SUCCESS;
}
