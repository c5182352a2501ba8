/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/candidate_sources.h"

#include "autotune/model/cost_model.h"
#include "autotune/search/search_space.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"

enum {
    PRODUCT_OF_MODEL = CF_CGEMM_VARIANTS,
    PRODUCTS
};

/* The difference between a staged candidate and the plain strategy of its bases. */
typedef struct variant {
    int product; /* a cf_cgemm_variant, or PRODUCT_OF_MODEL: the product that the model prefers for each pass */
    bool overlap_add;
    int chunk; /* 0: the chunk of the model; 1: all rows; 2: a quarter of the chunk of the model */
    bool half; /* spectra in the type of the tensors */
} variant;

/* Set the strategy of one pass. False: it does not run. */
static bool set_pass(const cf_tuning_job *job, int pass, const variant *v, cf_strategy *s) {
    if (pass == CF_PASS_DATA) {
        s->overlap_add = v->overlap_add;
        if (!v->overlap_add)
            cf_space_set_tiles(job->layer, true, s);
    }
    const bool best = v->product == PRODUCT_OF_MODEL;
    if (v->half)
        cf_layer_16bit_spectrum(job->layer, &s->spectrum);
    s->product = best ? CF_CGEMM_LOOP : (cf_cgemm_variant)v->product;
    if (!cf_candidate_suits(job, pass, s))
        return false;
    cf_stage_cost cost[CF_STAGE_COUNT];
    if (best)
        s->product = cf_model_product(job->layer, job->context->device, pass, s, cost);
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
            same = !(job->passes & 1 << pass) ||
                   cf_candidate_variants_equal(&list->items[i].strategy[pass], &c->strategy[pass]);
        if (same)
            return false;
    }
    return true;
}

static conv_fft_status add_variants(const cf_tuning_job *job, const cf_strategy *plain, cf_candidates *list) {
    const cf_device *device = job->context->device;
    const bool overlaps = (job->passes & CONV_FFT_BACKWARD_DATA) && cf_strategy_has_tiles(plain);
    const size_t from = list->count;
    conv_fft_dtype in_short;
    const bool halves = cf_layer_16bit_spectrum(job->layer, &in_short);
    for (int i = 0; i < PRODUCTS * 2 * 3 * (halves ? 2 : 1); ++i) {
        const variant v = {i % PRODUCTS, i / PRODUCTS % 2 != 0, i / PRODUCTS / 2 % 3, i / PRODUCTS / 6 != 0};
        if (v.half && v.product != CF_CGEMM_TENSOR)
            continue;
        if ((v.product == CF_CGEMM_BLAS && !device->has_blas) || (v.overlap_add && !overlaps))
            continue;
        if (v.product == PRODUCT_OF_MODEL && !device->has_blas && device->tensor_flops <= 0.0)
            continue;
        cf_candidate c = cf_candidate_new();
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
        CF_FORWARD(cf_candidates_add(&c, list));
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_candidates_add_staged(const cf_tuning_job *job, bool shift, cf_candidates *list) {
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
