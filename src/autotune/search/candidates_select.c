/* SPDX-License-Identifier: Apache-2.0 */
/* The candidates that a search times. */
#include "autotune/search/candidate_sources.h"

#include "conv/plan/family.h"

#include <math.h>
#include <string.h>

enum {
    /* Candidates without predictions. Their order in the list says little about their times. */
    MAX_UNKNOWN = 16
};

static void move_to(cf_candidates *list, size_t from, size_t to) {
    const cf_candidate moved = list->items[from];
    memmove(&list->items[to + 1], &list->items[to], (from - to) * sizeof moved);
    list->items[to] = moved;
}

conv_fft_status cf_candidates_insert(cf_candidates *list, size_t at, const cf_candidate *candidate) {
    CF_FORWARD(cf_candidates_add(candidate, list));
    move_to(list, list->count - 1, at);
    return CONV_FFT_SUCCESS;
}

static bool same_bases(const cf_tuning_job *job, const cf_candidate *a, const cf_candidate *b) {
    const int pass = cf_candidate_first_pass(job->passes);
    const cf_strategy *x = &a->strategy[pass], *y = &b->strategy[pass];
    return x->family == y->family && x->shift_dilation == y->shift_dilation &&
           memcmp(x->basis, y->basis, sizeof x->basis) == 0;
}

/* The family as which a search finds the strategy. */
static const cf_family *searched_as(const cf_strategy *s) {
    return s->family->replaces ? cf_family_named(s->family->replaces) : s->family;
}

/* Whether one of the first `count` candidates is of the same family, and dilation as steps or shifts likewise. */
static bool is_known(const cf_tuning_job *job, const cf_candidates *list, size_t count, const cf_candidate *c) {
    const int pass = cf_candidate_first_pass(job->passes);
    for (size_t i = 0; i < count; ++i) {
        const cf_strategy *s = &list->items[i].strategy[pass];
        if (searched_as(s) == searched_as(&c->strategy[pass]) && s->shift_dilation == c->strategy[pass].shift_dilation)
            return true;
    }
    return false;
}

size_t cf_candidates_select(const cf_tuning_job *job, cf_candidates *list, size_t max_count) {
    size_t chosen = 0, unknown = 0;
    for (size_t i = 0; i < list->count; ++i) {
        if (list->items[i].predicted == HUGE_VAL || is_known(job, list, chosen, &list->items[i]))
            continue;
        move_to(list, i, chosen++);
    }
    for (size_t i = chosen; i < list->count && chosen < max_count; ++i) {
        int alike = 0;
        for (size_t k = 0; k < chosen; ++k)
            alike += same_bases(job, &list->items[k], &list->items[i]);
        if (alike < 2 && list->items[i].predicted < HUGE_VAL)
            move_to(list, i, chosen++);
    }
    for (size_t i = chosen; i < list->count && unknown < MAX_UNKNOWN; ++i) {
        if (list->items[i].predicted < HUGE_VAL)
            continue;
        move_to(list, i, chosen++);
        ++unknown;
    }
    return chosen;
}
