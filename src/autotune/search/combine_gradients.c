/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of passes that are tuned together, each may be fastest in another way: an algorithm of cuDNN for one gradient, a fused kernel for the
 * other. Lists of candidates hold few such mixtures, for there would be too many. Here each pass of every candidate is timed alone, and the
 * best of each make one candidate more, those of other libraries make another one.
 */
#include "autotune/search/elimination.h"

#include "conv/plan/family.h"

#include <math.h>
#include <string.h>

enum {
    RUNS = 3,
    SHORT_RUNS = 9 /* below CF_ELIMINATION_SHORT */
};

/* Seconds of one pass; HUGE_VAL: its workspace has no room here. */
static conv_fft_status time_pass(cf_elimination *r, const conv_fft_plan *plan, int pass, double *seconds) {
    cf_bench_buffers alone = r->buffers;
    double times[SHORT_RUNS];
    int runs = RUNS;
    *seconds = HUGE_VAL;
    if (plan->workspace[1 << pass].bytes > r->buffers.workspace.bytes)
        return CONV_FFT_SUCCESS;
    alone.passes = 1 << pass;
    for (int i = 0; i < runs; ++i) {
        CF_FORWARD(cf_bench_buffers_time(&alone, plan, &times[i]));
        runs = i == 0 && times[0] < CF_ELIMINATION_SHORT ? SHORT_RUNS : runs;
    }
    *seconds = cf_median(times, runs);
    return CONV_FFT_SUCCESS;
}

/* The fastest strategy of each pass, and of those of other libraries, which may have none: what another library does at best is what a record
 * compares with, and n-th algorithms of two passes need not be the fastest ones together. */
static conv_fft_status best_of_passes(cf_elimination *r, cf_candidate *mixed, cf_candidate *direct, bool *has_direct) {
    *has_direct = true;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        double least = HUGE_VAL, least_direct = HUGE_VAL;
        if (!(r->job->passes & 1 << pass))
            continue;
        for (size_t i = 0; i < r->count && !cf_elimination_is_late(r); ++i) {
            const cf_strategy *s = &r->list->items[i].strategy[pass];
            double seconds;
            CF_FORWARD(cf_elimination_go_on(r));
            CF_FORWARD(time_pass(r, r->list->items[i].plan, pass, &seconds));
            if (i == 0 || seconds < least)
                least = seconds, mixed->strategy[pass] = *s;
            if (s->family->baseline && seconds < least_direct)
                least_direct = seconds, direct->strategy[pass] = *s;
        }
        *has_direct = *has_direct && least_direct < HUGE_VAL;
    }
    return CONV_FFT_SUCCESS;
}

/* Whether it is in the race, or was: one that was refused would only be refused again, and again. */
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

/* Whether it runs with the memory that the benchmark buffers have. */
static bool fits(cf_elimination *r, cf_candidate *c) {
    const int set = r->job->passes & CONV_FFT_BACKWARD;
    c->workspace = c->plan->workspace[set].bytes;
    return c->workspace <= r->buffers.workspace.bytes && cf_bench_buffers_run(&r->buffers, c->plan) == CONV_FFT_SUCCESS;
}

static conv_fft_status enter(cf_elimination *r, cf_candidate *mixed) {
    const cf_tuning_job *job = r->job;
    uint64_t smallest = 0;
    if (takes_part(r, mixed) || cf_elimination_is_late(r))
        return CONV_FFT_SUCCESS;
    const conv_fft_status status = cf_plan_create_aligned_only(
        job->layer, job->context->device, job->passes, mixed->strategy, job->workspace_limit, &smallest, &mixed->plan);
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

/* Both gradients come in one call; spectra that are kept, or a forward pass, tie passes in ways that times of single ones do not show. */
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
