/* SPDX-License-Identifier: Apache-2.0 */
#include "core/clock.h"

#include <time.h>

double cf_clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
