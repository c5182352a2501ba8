/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/noise.h"

#include <math.h>

#define MIN_SHARE 0.85     /* processors */
#define USUAL_SHARE 0.75   /* of the highest share of another run */
#define SLOWER 1.15        /* than the fastest run */
#define SCATTER 2.0        /* the median over the fastest run */
#define PROCESS_CLOCK 2e-3 /* seconds: what other threads have used is counted that late */
#define RESOLUTION 2e-5    /* seconds: caches and clocks alone change times by that much */

bool cf_run_was_interrupted(const cf_run_time *run) { return run->share < MIN_SHARE; }

static bool is_disturbed(const cf_run_time *run, double fastest, double highest_share) {
    return cf_run_was_interrupted(run) ||
           (run->seconds > SLOWER * fastest + RESOLUTION && run->share < USUAL_SHARE * highest_share);
}

bool cf_runs_are_disturbed(const cf_run_time *runs, int count) {
    const double fastest = cf_runs_fastest(runs, count);
    double highest = 0.0;
    int disturbed = 0;
    for (int i = 0; i < count; ++i)
        highest = fmax(highest, runs[i].share);
    if (highest == HUGE_VAL)
        return false;
    for (int i = 0; i < count; ++i)
        disturbed += is_disturbed(&runs[i], fastest, highest);
    return 2 * disturbed >= count || cf_runs_median(runs, count) > SCATTER * fastest + RESOLUTION;
}

double cf_runs_median(const cf_run_time *runs, int count) {
    double seconds[CF_RUNS_MAX];
    for (int i = 0; i < count; ++i)
        seconds[i] = runs[i].seconds;
    return cf_median(seconds, count);
}

double cf_runs_fastest(const cf_run_time *runs, int count) {
    double fastest = HUGE_VAL;
    for (int i = 0; i < count; ++i)
        fastest = fmin(fastest, runs[i].seconds);
    return fastest;
}

double cf_runs_seconds(const cf_run_time *runs, int count) {
    double possible = HUGE_VAL;
    if (!cf_runs_are_disturbed(runs, count))
        return cf_runs_median(runs, count);
    for (int i = 0; i < count; ++i)
        possible = fmin(possible, runs[i].seconds * fmin(1.0, runs[i].share));
    return possible;
}

double cf_runs_processors(const cf_run_time *runs, int count) {
    double seconds = 0.0, used = 0.0;
    for (int i = 0; i < count; ++i) {
        seconds += runs[i].seconds;
        used += runs[i].seconds * runs[i].share;
    }
    return seconds > PROCESS_CLOCK && used < HUGE_VAL ? used / seconds : 0.0;
}

void cf_runs_improve(cf_run_time *runs, int count, const cf_run_time *run) {
    int slowest = 0;
    for (int i = 1; i < count; ++i)
        slowest = runs[i].seconds > runs[slowest].seconds ? i : slowest;
    if (run->seconds < runs[slowest].seconds)
        runs[slowest] = *run;
}
