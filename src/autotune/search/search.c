/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/search.h"

#include "autotune/records/library_versions.h"
#include "autotune/search/noise.h"
#include "autotune/search/verify.h"
#include "conv/plan/family.h"
#include "core/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OTHER_FAMILY = 100, /* independence of candidates of different families */
    VERIFIERS = 3,      /* candidates with which a winner is compared at most, until one agrees */
    MAX_TRIES = 100     /* the same, with those that do not run here */
};

/* Two times whose ratio is smaller count as equal. */
#define TIE 1.02

/* ---- the decision */

/* The faster candidate. If both are as fast as the best time, the one with the smaller workspace; then the faster one,
 * then the one with the better prediction. */
static const cf_candidate *better(const cf_candidate *a, const cf_candidate *b, double best) {
    const bool a_ties = a->measured <= TIE * best, b_ties = b->measured <= TIE * best;
    if (a_ties != b_ties)
        return a_ties ? a : b;
    if (a_ties && a->workspace != b->workspace)
        return a->workspace < b->workspace ? a : b;
    if (a->measured != b->measured)
        return a->measured < b->measured ? a : b;
    return a->predicted <= b->predicted ? a : b;
}

/* How independent two strategies of one pass are. 0: comparing their results proves nothing. */
static int pass_independence(const cf_strategy *x, const cf_strategy *y) {
    int differences = 0;
    if (x->family != y->family)
        return OTHER_FAMILY;
    for (int axis = 0; axis < 3; ++axis)
        differences += 4 * (x->basis[axis] != y->basis[axis]);
    return differences + 2 * (x->product != y->product) + (x->shift_dilation != y->shift_dilation) +
           (x->overlap_add != y->overlap_add);
}

/* The independence of two candidates: the minimum over the passes. */
static int independence(const cf_elimination *r, const cf_candidate *a, const cf_candidate *b) {
    int minimum = OTHER_FAMILY;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        const int own =
            r->job->passes & 1 << pass ? pass_independence(&a->strategy[pass], &b->strategy[pass]) : OTHER_FAMILY;
        minimum = own < minimum ? own : minimum;
    }
    return minimum;
}

/* The most independent candidate that was not tried. Timed candidates are preferred, because their kernels are
 * compiled. NULL: there is none. */
static cf_candidate *verifier_of(cf_elimination *r, cf_candidate *winner, bool *tried) {
    cf_candidate *found = NULL;
    int highest = 0;
    for (size_t i = 0; i < r->list->count; ++i) {
        cf_candidate *c = &r->list->items[i];
        int own = c == winner || tried[i] ? 0 : independence(r, winner, c);
        if (own > 0 && c->measured >= 0.0)
            own += OTHER_FAMILY / 2;
        if (own > highest)
            highest = own, found = c;
    }
    if (found)
        tried[found - r->list->items] = true;
    return found;
}

/* Run a candidate and compare its results. Its plan may be gone. *ran is false if the benchmark buffers are too
 * small for it, or if it does not run here. */
static conv_fft_status agrees_with(cf_elimination *r, const cf_snapshot *results, cf_candidate *c, bool *ran,
                                   bool *agrees) {
    const cf_tuning_job *job = r->job;
    conv_fft_plan *own = NULL;
    uint64_t smallest = 0;
    *ran = *agrees = false;
    CF_FORWARD(cf_elimination_go_on(r));
    if (!c->plan) {
        const conv_fft_status made = cf_plan_create(job->layer, job->context->device, job->passes, c->strategy, false,
                                                    r->buffers.workspace.bytes, &smallest, &own);
        if (made != CONV_FFT_SUCCESS)
            return made == CONV_FFT_OUT_OF_MEMORY ? made : CONV_FFT_SUCCESS;
    }
    cf_snapshot other = {0};
    size_t x = r->buffers.x_spectrum.bytes, w = r->buffers.w_spectrum.bytes;
    const conv_fft_plan *plan = c->plan ? c->plan : own;
    const bool fits = cf_elimination_held_bytes(r, plan, CONV_FFT_OPERAND_X, &x) &&
                      cf_elimination_held_bytes(r, plan, CONV_FFT_OPERAND_W, &w) && x == r->buffers.x_spectrum.bytes &&
                      w == r->buffers.w_spectrum.bytes;
    conv_fft_status status = fits ? cf_snapshot_take(&r->buffers, plan, &other) : CONV_FFT_NOT_SUPPORTED;
    *ran = status == CONV_FFT_SUCCESS;
    *agrees = *ran && cf_snapshots_agree(&r->buffers, job->layer, results, &other);
    if (cf_elimination_spares(r, c, status))
        status = CONV_FFT_SUCCESS;
    cf_snapshot_clear(&other);
    cf_plan_destroy(own);
    return status;
}

static const char refusal[] = "refused: its results differ from those of other strategies",
                  unverified[] = "refused: there was no other strategy to compare its results with";

/* If another family can run the problem, one of its strategies must agree; else another strategy of the same family.
 * *why: the verdict on a winner that is not verified. */
static conv_fft_status verify(cf_elimination *r, cf_candidate *winner, bool *verified, const char **why) {
    cf_snapshot results = {0};
    bool *tried = calloc(r->list->count, sizeof *tried);
    conv_fft_status status =
        tried ? cf_snapshot_take(&r->buffers, winner->plan, &results) : cf_fail_memory(r->list->count, "a search");
    bool family_ran = false;
    *verified = false;
    *why = unverified;
    for (int runs = 0, tries = 0; runs < VERIFIERS && tries < MAX_TRIES && status == CONV_FFT_SUCCESS && !*verified;
         ++tries) {
        cf_candidate *other = verifier_of(r, winner, tried);
        const bool other_family = other && independence(r, winner, other) == OTHER_FAMILY;
        bool ran;
        if (!other || (family_ran && !other_family))
            break;
        status = agrees_with(r, &results, other, &ran, verified);
        runs += ran;
        *why = ran ? refusal : *why;
        family_ran = family_ran || (ran && other_family);
    }
    cf_snapshot_clear(&results);
    free(tried);
    return status;
}

/* The best candidate by time and workspace. NULL: none is left. *best is the shortest time. */
static cf_candidate *leader_of(const cf_elimination *r, double *best) {
    cf_candidate *leader = NULL;
    *best = HUGE_VAL;
    for (size_t i = 0; i < r->count; ++i)
        *best = fmin(*best, r->list->items[i].measured);
    for (size_t i = 0; i < r->count; ++i) {
        cf_candidate *c = &r->list->items[i];
        leader = !leader || better(c, leader, *best) == c ? c : leader;
    }
    return leader;
}

/* Move the best verified candidate to the front. If none is verified, *decided stays false. *refused: the number of
 * refused candidates. */
static conv_fft_status decide(cf_elimination *r, bool *decided, int *refused) {
    double best;
    *refused = 0;
    for (cf_candidate *leader; (leader = leader_of(r, &best)) != NULL; ++*refused) {
        bool verified;
        const char *why;
        CF_FORWARD(verify(r, leader, &verified, &why));
        const size_t at = (size_t)(leader - r->list->items);
        if (!verified) {
            cf_elimination_drop(r, at, why);
            continue;
        }
        for (size_t i = 0; i < r->count; ++i)
            r->list->items[i].verdict = r->list->items[i].measured <= TIE * best
                                            ? "as fast, but with a larger workspace or a slower prediction"
                                            : "slower";
        const cf_candidate first = *leader;
        memmove(&r->list->items[1], &r->list->items[0], at * sizeof first);
        r->list->items[0] = first;
        r->list->items[0].verdict = first.measured > best
                                        ? "chosen: as fast as the fastest, with a smaller workspace; verified"
                                        : "chosen: the fastest; verified";
        *decided = true;
        return CONV_FFT_SUCCESS;
    }
    return CONV_FFT_SUCCESS;
}

/* Let all timed candidates take part again, except the refused ones, and make their plans again. */
static conv_fft_status call_back(cf_elimination *r) {
    const cf_tuning_job *job = r->job;
    r->count = 0;
    for (size_t i = 0; i < r->list->count; ++i) {
        cf_candidate *c = &r->list->items[i];
        uint64_t smallest;
        if (c->measured < 0.0 || c->verdict == refusal || c->verdict == unverified)
            continue;
        CF_FORWARD(cf_elimination_go_on(r));
        if (!c->plan)
            CF_FORWARD(cf_plan_create(job->layer, job->context->device, job->passes, c->strategy, false,
                                      job->workspace_limit, &smallest, &c->plan));
        c->runs = 0;
        const cf_candidate moved = *c;
        memmove(&r->list->items[r->count + 1], &r->list->items[r->count], (i - r->count) * sizeof moved);
        r->list->items[r->count++] = moved;
    }
    return CONV_FFT_SUCCESS;
}

/* Refuse all candidates that differ from the first verified one. */
static conv_fft_status refuse_wrong(cf_elimination *r) {
    bool verified = false;
    const char *why;
    cf_snapshot right = {0};
    while (r->count > 0 && !verified) {
        CF_FORWARD(verify(r, &r->list->items[0], &verified, &why));
        if (!verified)
            cf_elimination_drop(r, 0, why);
    }
    if (r->count == 0)
        return CONV_FFT_SUCCESS;
    conv_fft_status status = cf_snapshot_take(&r->buffers, r->list->items[0].plan, &right);
    for (size_t i = 1; i < r->count && status == CONV_FFT_SUCCESS;) {
        bool ran, agrees;
        status = agrees_with(r, &right, &r->list->items[i], &ran, &agrees);
        if (status == CONV_FFT_SUCCESS && !agrees)
            cf_elimination_drop(r, i, refusal);
        else
            ++i;
    }
    cf_snapshot_clear(&right);
    return status;
}

/* A refused candidate may have been fast. The candidates that dropped out because of it are timed again. */
static conv_fft_status eliminate_again(cf_elimination *r) {
    CF_FORWARD(call_back(r));
    CF_FORWARD(refuse_wrong(r));
    return r->count > 0 ? cf_elimination_run(r) : CONV_FFT_SUCCESS;
}

/* Times that other work has changed decide nothing. */
static bool set_aside(cf_tuning_search *s) {
    cf_elimination *r = &s->elimination;
    double slowest, fastest;
    if (!cf_elimination_is_disturbed(r, &slowest, &fastest))
        return false;
    for (size_t i = 0; i < r->count; ++i)
        r->list->items[i].verdict = "not chosen: other work on this host disturbed the measurements";
    snprintf(s->why, sizeof s->why,
             "other work on this host disturbed the measurements: runs of one strategy took %.3g to %.3g ms",
             1e3 * fastest, 1e3 * slowest);
    return true;
}

static conv_fft_status eliminate_and_decide(cf_tuning_search *s) {
    cf_elimination *r = &s->elimination;
    bool *const decided = &s->decided;
    int refused;
    CF_FORWARD(cf_elimination_run(r));
    for (;;) {
        if (set_aside(s))
            return CONV_FFT_SUCCESS;
        CF_FORWARD(decide(r, decided, &refused));
        if (refused == 0)
            return CONV_FFT_SUCCESS;
        *decided = false;
        CF_FORWARD(eliminate_again(r));
        if (r->count == 0)
            return CONV_FFT_SUCCESS;
    }
}

static int by_time(const void *a, const void *b) {
    const cf_candidate *x = a, *y = b;
    if ((x->measured < 0.0) != (y->measured < 0.0))
        return x->measured < 0.0 ? 1 : -1;
    if (x->measured != y->measured)
        return x->measured < y->measured ? -1 : 1;
    return (x->predicted > y->predicted) - (x->predicted < y->predicted);
}

conv_fft_status cf_search_begin(const cf_tuning_job *job, cf_tuning_search *s) {
    memset(s, 0, sizeof *s);
    s->job = *job;
    return cf_candidates_make(&s->job, &s->list);
}

void cf_search_end(cf_tuning_search *s) { cf_candidates_clear(&s->list); }

conv_fft_status cf_searches_plan(cf_tuning_search *searches, int count, conv_fft_tuning mode, double end) {
    cf_elimination **eliminations = calloc((size_t)count + 1, sizeof *eliminations);
    if (!eliminations)
        return cf_fail_memory((size_t)count * sizeof *eliminations, "a search");
    for (int i = 0; i < count; ++i) {
        cf_tuning_search *s = &searches[i];
        s->elimination.job = &s->job;
        s->elimination.list = &s->list;
        for (size_t k = 0; k < s->list.count; ++k)
            s->list.items[k].verdict = cf_elimination_untried;
        eliminations[i] = &s->elimination;
    }
    const conv_fft_status status = cf_eliminations_plan(eliminations, count, mode, end);
    free(eliminations);
    return status;
}

conv_fft_status cf_search_run(cf_tuning_search *s, double seconds) {
    cf_elimination *r = &s->elimination;
    cf_candidates *list = &s->list;
    s->decided = false;
    conv_fft_status status = cf_elimination_open(r, cf_clock_seconds() + seconds);
    /* A single candidate out of several is no comparison. */
    const bool compares = !cf_elimination_is_late(r) && (r->count > 1 || list->count == 1);
    if (r->count == 0)
        snprintf(s->why, sizeof s->why, "none of %zu strategies could be prepared", list->count);
    else if (!compares && !cf_elimination_is_late(r))
        snprintf(s->why, sizeof s->why, "only one of %zu strategies could be prepared within options.workspace_limit",
                 list->count);
    else if (!compares)
        snprintf(s->why, sizeof s->why,
                 "the time allowed was too short to time two strategies: %.3g s were left for it", seconds);
    else
        snprintf(s->why, sizeof s->why, "no strategy's results agreed with those of another");
    if (status == CONV_FFT_SUCCESS && r->count > 0 && compares)
        status = eliminate_and_decide(s);
    cf_elimination_close(r);
    if (list->count > 1)
        qsort(&list->items[s->decided], list->count - s->decided, sizeof *list->items, by_time);
    return status;
}

static bool is_baseline(const cf_tuning_job *job, const cf_candidate *c) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if ((job->passes & 1 << pass) && !c->strategy[pass].family->baseline)
            return false;
    }
    return true;
}

conv_fft_status cf_search_record(const cf_tuning_search *search, conv_fft_tuning mode, cf_record *record) {
    const cf_tuning_job *job = &search->job;
    const cf_candidates *list = &search->list;
    memset(record, 0, sizeof *record);
    CF_FORWARD(cf_record_key_make(job->layer, job->passes, job->keep, job->workspace_limit, &record->key));
    const cf_candidate *winner = &list->items[0];
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (job->passes & 1 << pass)
            cf_strategy_format(&winner->strategy[pass], job->layer->problem.rank, record->strategy[pass],
                               sizeof record->strategy[pass]);
    }
    cf_libraries_of(job->context, job->passes, winner->strategy, record->library);
    record->ms = 1e3 * winner->measured;
    record->predicted_ms = winner->predicted < HUGE_VAL ? 1e3 * winner->predicted : 0.0;
    record->direct_ms = -1.0;
    if (winner->runs > 0) {
        record->fastest_ms = 1e3 * cf_runs_fastest(winner->times, winner->runs);
        record->processors = cf_runs_processors(winner->times, winner->runs);
    }
    record->workspace_bytes = winner->workspace;
    record->mode = mode;
    for (size_t i = 0; i < list->count; ++i) {
        const cf_candidate *c = &list->items[i];
        if (c->measured < 0.0)
            continue;
        ++record->candidates;
        const double ms = 1e3 * c->measured;
        if (c->is_models_choice)
            record->model_ms = ms;
        if (is_baseline(job, c) && (record->direct_ms < 0.0 || ms < record->direct_ms))
            record->direct_ms = ms;
    }
    return CONV_FFT_SUCCESS;
}
