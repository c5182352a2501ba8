/* SPDX-License-Identifier: Apache-2.0 */
/* Successive elimination of candidates: their plans, benchmark buffers, and rounds that time the remaining ones. */
#ifndef CF_AUTOTUNE_ELIMINATION_H
#define CF_AUTOTUNE_ELIMINATION_H

#include "autotune/search/bench_buffers.h"
#include "autotune/search/candidates.h"

#include <pthread.h>
#include <stdatomic.h>

/* Seconds. Shorter runs are repeated more often, because the resolution of the timer affects their times. */
#define CF_ELIMINATION_SHORT 1e-4

typedef struct cf_elimination {
    const cf_tuning_job *job;
    cf_candidates *list;
    size_t count;   /* the first `count` candidates of the list take part */
    size_t wanted;  /* candidates that are to take part */
    size_t planned; /* the first `planned` candidates have plans */
    double end;     /* a time of cf_clock_seconds() */
    cf_bench_buffers_sizes sizes;
    cf_bench_buffers buffers;
    pthread_t searcher;  /* the thread that asks for an interruption; other threads also make plans */
    atomic_bool stopped; /* the interruption was wanted */
} cf_elimination;

/* The verdict on candidates that were not selected. */
extern const char cf_elimination_untried[];

/* Select the candidates that the mode times, best prediction first, and make their plans, within half of the time
 * until `end`. On a GPU this compiles kernels. All threads take kernels of all eliminations from one list, so that
 * none waits for the slowest kernel of another. */
conv_fft_status cf_eliminations_plan(cf_elimination *const eliminations[], int count, conv_fft_tuning mode, double end);

/* Make the benchmark buffers for the candidates that have plans. */
conv_fft_status cf_elimination_open(cf_elimination *elimination, double end);
void cf_elimination_close(cf_elimination *elimination);

bool cf_elimination_is_late(const cf_elimination *elimination);

/* CANCELLED: the job's interruption is wanted, or its `cancel` is set. Called before every step that takes long. */
conv_fft_status cf_elimination_go_on(cf_elimination *elimination);

/* If both gradients are tuned together: add a candidate with the fastest strategy of each. All candidates must have
 * run. */
conv_fft_status cf_elimination_combine(cf_elimination *elimination);

/* Time a run of a plan. On a CPU it is repeated if the process did not have a processor all the time. */
conv_fft_status cf_elimination_time(cf_elimination *elimination, const cf_bench_buffers *buffers,
                                    const conv_fft_plan *plan, cf_run_time *time);

/* Time all candidates in rounds, from cold caches. Slow ones drop out. The rest have their median in `measured`.
 * Disturbed runs on a CPU are repeated while there is time. */
conv_fft_status cf_elimination_run(cf_elimination *elimination);

/* Whether other work on the host has disturbed the times of a CPU so much that the fastest candidate is not known, also
 * after repeats. *slowest and *fastest (seconds): of the runs of one such candidate. */
bool cf_elimination_is_disturbed(const cf_elimination *elimination, double *slowest, double *fastest);

/* Take candidate i out, with its verdict, and move it behind the candidates that take part. */
void cf_elimination_drop(cf_elimination *elimination, size_t i, const char *verdict);

/* Whether the failure of a candidate only drops this candidate. False: it ends the search. */
bool cf_elimination_spares(const cf_elimination *elimination, const cf_candidate *candidate, conv_fft_status status);

/* If the job keeps the operand's spectrum: raise *max_bytes to its size. False: the plan has no spectrum to keep. */
bool cf_elimination_held_bytes(const cf_elimination *elimination, const conv_fft_plan *plan, conv_fft_operand operand,
                               size_t *max_bytes);

#endif
