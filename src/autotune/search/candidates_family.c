/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/candidate_sources.h"

#include "autotune/model/choose.h"
#include "conv/plan/family.h"
#include "core/arith.h"

#include <stdlib.h>

enum {
    MAX_OF_FAMILY = 64
};

typedef struct gathering {
    const cf_tuning_job *job;
    int pass, count;
    cf_strategy strategy[MAX_OF_FAMILY];
} gathering;

static bool gather(const cf_strategy *strategy, void *user) {
    gathering *g = user;
    if (cf_candidate_suits(g->job, g->pass, strategy))
        g->strategy[g->count++] = *strategy;
    return g->count < MAX_OF_FAMILY;
}

static conv_fft_status list_strategies(const cf_family *family, gathering *g) {
    const cf_layer *const layer = g->job->layer;
    if (family->search_space != CF_SEARCH_SINGLE)
        return family->candidates(layer, g->job->context->device, g->pass, gather, g);
    const cf_strategy only = cf_family_strategy(family);
    if (layer->batch > 0)
        gather(&only, g);
    return CONV_FFT_SUCCESS;
}

/* The passes of these families share nothing. Candidate n has strategy n of each pass, or the last one if a pass
 * has fewer. Where a family with kernels of the library cannot compute a pass, the candidate has the model's choice. */
conv_fft_status cf_candidates_add_family(const cf_tuning_job *job, const cf_family *family, cf_candidates *list) {
    gathering *g = calloc(CF_PASS_COUNT, sizeof *g);
    if (!g)
        return cf_fail_memory(CF_PASS_COUNT * sizeof *g, "candidates of a family");
    conv_fft_status status = CONV_FFT_SUCCESS;
    int max_count = 0;
    bool complete = true;
    cf_strategy choice[CF_PASS_COUNT];
    const bool fills = !family->baseline && cf_choose_strategies(job->context->device, job->layer, job->keep, true,
                                                                 choice) == CONV_FFT_SUCCESS;
    for (int pass = 0; pass < CF_PASS_COUNT && status == CONV_FFT_SUCCESS; ++pass) {
        if (!(job->passes & 1 << pass))
            continue;
        g[pass].job = job;
        g[pass].pass = pass;
        status = list_strategies(family, &g[pass]);
        /* A family that does not work here has no candidates, and the search goes on. */
        if (status != CONV_FFT_OUT_OF_MEMORY)
            status = CONV_FFT_SUCCESS;
        complete = complete && (g[pass].count > 0 || fills);
        max_count = (int)cf_max(max_count, g[pass].count);
    }
    for (int i = 0; i < max_count && complete && status == CONV_FFT_SUCCESS; ++i) {
        cf_candidate c = cf_candidate_new();
        for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
            if (job->passes & 1 << pass)
                c.strategy[pass] = g[pass].count > 0 ? g[pass].strategy[cf_min(i, g[pass].count - 1)] : choice[pass];
        }
        c.predicted = cf_candidates_predict(job, &c);
        status = cf_candidates_add(&c, list);
    }
    free(g);
    return status;
}
