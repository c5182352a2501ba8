/* SPDX-License-Identifier: Apache-2.0 */
/* Successive elimination of candidates: their plans, benchmark buffers, and rounds that time the remaining ones in turns. */
#ifndef CF_AUTOTUNE_ELIMINATION_H
#define CF_AUTOTUNE_ELIMINATION_H

#include "autotune/search/bench_buffers.h"
#include "autotune/search/candidates.h"

#include <pthread.h>
#include <stdatomic.h>

/* Seconds below which the steps of a timer blur what is measured: such runs are repeated more often. */
#define CF_ELIMINATION_SHORT 1e-4

typedef struct cf_elimination {
    const cf_tuning_job *job;
    cf_candidates *list;
    size_t count;   /* the first so many are in the race */
    size_t wanted;  /* so many are to be in it */
    size_t planned; /* the first so many have plans */
    double end;     /* by the clock */
    cf_bench_buffers_sizes sizes;
    cf_bench_buffers buffers;
    pthread_t searcher;  /* who asks whether to go on; plans are made by other threads too */
    atomic_bool stopped; /* not to go on */
} cf_elimination;

/* The verdict on candidates that nothing was done about. */
extern const char cf_elimination_untried[];

/* Take in those that the mode times, best predictions first, and make their plans: of all races together, as many as half of the time until
 * `end` allows. On a GPU that is compiling, which all processors share, so that one race's slowest kernel keeps no other race waiting. */
conv_fft_status cf_eliminations_plan(cf_elimination *const eliminations[], int count, conv_fft_tuning mode, double end);

/* The benchmark buffers, for those that have plans. */
conv_fft_status cf_elimination_open(cf_elimination *elimination, double end);
void cf_elimination_close(cf_elimination *elimination);

bool cf_elimination_is_late(const cf_elimination *elimination);

/* CANCELLED: the job's interruption is wanted. To be asked before every step that takes a while. */
conv_fft_status cf_elimination_go_on(cf_elimination *elimination);

/* Where both gradients are tuned together: add the one that has the fastest strategy of each, unless it is there. All must have run. */
conv_fft_status cf_elimination_combine(cf_elimination *elimination);

/* Time all, in turns and from cold caches; those that fall behind drop out. The others have `measured`, the median. */
conv_fft_status cf_elimination_run(cf_elimination *elimination);

/* Take candidate i out, for a reason; it goes behind the others. */
void cf_elimination_drop(cf_elimination *elimination, size_t i, const char *verdict);

/* Whether a failure of a candidate is its own: it drops out, and the search goes on. */
bool cf_elimination_spares(const cf_elimination *elimination, const cf_candidate *candidate, conv_fft_status status);

/* Raise *most to the bytes that the plan keeps of the operand, if the job keeps it; false if it has no spectrum to keep. */
bool cf_elimination_held_bytes(const cf_elimination *elimination, const conv_fft_plan *plan, conv_fft_operand operand,
                               size_t *most);

#endif
