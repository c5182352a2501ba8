/* SPDX-License-Identifier: Apache-2.0 */
/* The best few candidates of a list. */
#include "autotune/search/candidate_sources.h"

#include <math.h>
#include <string.h>

enum {
    MAX_UNKNOWN =
        16 /* candidates without predictions; the order in which families name them says little of their times */
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

size_t cf_candidates_select(const cf_tuning_job *job, cf_candidates *list, size_t most) {
    size_t chosen = 0, unknown = 0;
    bool seen[CF_FAMILY_COUNT][2] = {{false}}; /* [1]: dilation as shifts */
    for (size_t i = 0; i < list->count; ++i) {
        const bool shift = list->items[i].strategy[cf_candidate_first_pass(job->passes)].shift_dilation;
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
    for (size_t i = chosen; i < list->count && unknown < MAX_UNKNOWN; ++i) {
        if (list->items[i].predicted < HUGE_VAL)
            continue;
        move_to(list, i, chosen++);
        ++unknown;
    }
    return chosen;
}
