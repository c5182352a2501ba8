/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both gradients are tuned together, but each may be fastest in another family: an algorithm of cuDNN for one, a fused
 * kernel for the other. There are too many such combinations to list them all. Here each gradient of every candidate is
 * timed alone. The fastest strategies of both gradients make one more candidate. The fastest ones of other libraries
 * make another one.
 */
#include "autotune/search/elimination.h"

#include "autotune/search/noise.h"
#include "conv/plan/family.h"

#include <math.h>
#include <string.h>

enum {
    RUNS = 3,
    SHORT_RUNS = 9 /* if the first run takes less than CF_ELIMINATION_SHORT */
};

/* Set *seconds to the time of one pass. HUGE_VAL: the benchmark buffers are too small for its workspace. */
static conv_fft_status time_pass(cf_elimination *r, const conv_fft_plan *plan, int pass, double *seconds) {
    cf_bench_buffers alone = r->buffers;
    cf_run_time times[SHORT_RUNS];
    int runs = RUNS;
    *seconds = HUGE_VAL;
    if (plan->workspace[1 << pass].bytes > r->buffers.workspace.bytes)
        return CONV_FFT_SUCCESS;
    alone.passes = 1 << pass;
    for (int i = 0; i < runs; ++i) {
        CF_FORWARD(cf_elimination_time(r, &alone, plan, &times[i]));
        runs = i == 0 && times[0].seconds < CF_ELIMINATION_SHORT ? SHORT_RUNS : runs;
    }
    *seconds = cf_runs_seconds(times, runs);
    return CONV_FFT_SUCCESS;
}

/* Find the fastest strategy of each pass, and the fastest one of other libraries, if there is one. A record compares
 * with the best time of another library. In lists of candidates, the n-th algorithms of two passes are together, and
 * those need not be the fastest ones. */
static conv_fft_status best_of_passes(cf_elimination *r, cf_candidate *mixed, cf_candidate *direct, bool *has_direct) {
    *has_direct = true;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        double fastest = HUGE_VAL, fastest_direct = HUGE_VAL;
        if (!(r->job->passes & 1 << pass))
            continue;
        for (size_t i = 0; i < r->count && !cf_elimination_is_late(r); ++i) {
            const cf_strategy *s = &r->list->items[i].strategy[pass];
            double seconds;
            CF_FORWARD(cf_elimination_go_on(r));
            CF_FORWARD(time_pass(r, r->list->items[i].plan, pass, &seconds));
            if (i == 0 || seconds < fastest)
                fastest = seconds, mixed->strategy[pass] = *s;
            if (s->family->baseline && seconds < fastest_direct)
                fastest_direct = seconds, direct->strategy[pass] = *s;
        }
        *has_direct = *has_direct && fastest_direct < HUGE_VAL;
    }
    return CONV_FFT_SUCCESS;
}

/* Whether the candidate takes part already, or did: a refused candidate would be refused again. */
static bool takes_part(const cf_elimination *r, const cf_candidate *mixed) {
    for (size_t i = 0; i < r->list->count; ++i) {
        bool same = i < r->count || r->list->items[i].measured >= 0.0;
        for (int pass = 0; pass < CF_PASS_COUNT && same; ++pass)
            same = !(r->job->passes & 1 << pass) ||
                   memcmp(&r->list->items[i].strategy[pass], &mixed->strategy[pass], sizeof mixed->strategy[pass]) == 0;
        if (same)
            return true;
    }
    return false;
}

/* Whether the candidate runs with the memory of the benchmark buffers. */
static bool fits(cf_elimination *r, cf_candidate *c) {
    const int set = r->job->passes & CONV_FFT_BACKWARD;
    c->workspace = c->plan->workspace[set].bytes;
    return c->workspace <= r->buffers.workspace.bytes && cf_bench_buffers_run(&r->buffers, c->plan) == CONV_FFT_SUCCESS;
}

/* Let the combination take part, if it can. */
static conv_fft_status enter(cf_elimination *r, cf_candidate *mixed) {
    const cf_tuning_job *job = r->job;
    uint64_t smallest = 0;
    if (takes_part(r, mixed) || cf_elimination_is_late(r))
        return CONV_FFT_SUCCESS;
    const conv_fft_status status = cf_plan_create(job->layer, job->context->device, job->passes, mixed->strategy, false,
                                                  job->workspace_limit, &smallest, &mixed->plan);
    if (status == CONV_FFT_OUT_OF_MEMORY)
        return status;
    if (status != CONV_FFT_SUCCESS)
        return CONV_FFT_SUCCESS;
    mixed->predicted = cf_candidates_predict(job, mixed);
    const conv_fft_status added =
        fits(r, mixed) ? cf_candidates_insert(r->list, r->count, mixed) : CONV_FFT_NOT_SUPPORTED;
    if (added != CONV_FFT_SUCCESS)
        cf_plan_destroy(mixed->plan);
    else
        ++r->count;
    return added == CONV_FFT_OUT_OF_MEMORY ? added : CONV_FFT_SUCCESS;
}

/* Only for both gradients of one call: kept spectra and a forward pass make passes depend on each other, and times of
 * single passes do not show that. */
conv_fft_status cf_elimination_combine(cf_elimination *r) {
    const cf_tuning_job *job = r->job;
    cf_candidate mixed = {.measured = -1.0, .predicted = HUGE_VAL}, direct = mixed;
    bool has_direct;
    if (job->passes != CONV_FFT_BACKWARD || job->keep || r->count < 2 || cf_elimination_is_late(r))
        return CONV_FFT_SUCCESS;
    CF_FORWARD(best_of_passes(r, &mixed, &direct, &has_direct));
    CF_FORWARD(enter(r, &mixed));
    return has_direct ? enter(r, &direct) : CONV_FFT_SUCCESS;
}
