/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

#include <time.h>

static double seconds_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double cf_clock_seconds(void) { return seconds_of(CLOCK_MONOTONIC); }

double cf_clock_process_seconds(void) { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }
