/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WIDTH = 30
};

/* Between two pictures of the bar. */
#define PERIOD 0.25

double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void format_time(double seconds, char text[32]) {
    const int64_t whole = (int64_t)ceil(seconds), minutes = whole / 60;
    if (minutes >= 60)
        snprintf(text, 32, "%" PRId64 " h %02d min", minutes / 60, (int)(minutes % 60));
    else
        snprintf(text, 32, "%d min %02d s", (int)minutes, (int)(whole % 60));
}

/* Estimate the time that is left. Layers with records take no time. Each other layer takes the mean of the measured
 * layers, or before the first measurement, the limit for one layer. "": there is no estimate, or it was too short. */
static void estimate(const progress *p, double now, char text[64]) {
    const bool busy = !p->known[p->at];
    int64_t later = 0;
    for (int64_t i = p->at + 1; i < p->total; ++i)
        later += !p->known[i];
    const double each = p->measured > 0 ? p->seconds / (double)p->measured : p->max_seconds;
    const double here = busy ? fmax(0.0, each - (now - p->began)) : 0.0, seconds = here + each * (double)later;
    char left[32];
    text[0] = '\0';
    if (seconds == 0.0 && (busy || later > 0))
        return;
    format_time(seconds, left);
    snprintf(text, 64, ", %s%s left", p->measured > 0 || seconds == 0.0 ? "" : "at most ", left);
}

/* The cursor returns to the beginning of the line, so that a message of the library overwrites the bar. */
static void show(progress *p) {
    char bar[WIDTH + 1], left[64];
    const int filled = (int)(p->at * WIDTH / p->total);
    p->shown = seconds_now();
    memset(bar, '.', WIDTH);
    memset(bar, '#', (size_t)filled);
    bar[WIDTH] = '\0';
    estimate(p, p->shown, left);
    fprintf(stderr, "\r\033[K[%s] %" PRId64 "/%" PRId64 " %.24s, %.0f s%s\r", bar, p->at, p->total, p->name,
            p->shown - p->began, left);
}

void progress_begin(progress *p, int64_t layer, const char *name) {
    p->at = layer;
    p->name = name;
    p->began = seconds_now();
    if (isatty(STDERR_FILENO))
        show(p);
}

void progress_tick(progress *p) {
    if (isatty(STDERR_FILENO) && seconds_now() - p->shown > PERIOD)
        show(p);
}

void progress_end(progress *p) {
    if (!p->known[p->at]) {
        ++p->measured;
        p->seconds += seconds_now() - p->began;
    }
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
