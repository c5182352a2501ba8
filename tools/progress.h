/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a bar on a terminal, for the layers of a network that are tuned one after another. */
#ifndef CONV_FFT_PROGRAM_PROGRESS_H
#define CONV_FFT_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const bool *known; /* of each layer: it has its records, and costs no time */
    int64_t total;
    double most; /* seconds that a layer may take; 0: any */
    /* What was measured so far: layers, and seconds for them. */
    int64_t measured;
    double seconds;
    /* The layer that is under way. */
    int64_t at;
    const char *name;
    double began, shown;
} progress;

double seconds_now(void);

/* A layer begins, and shows itself; it has ended, and the bar is gone. */
void progress_begin(progress *p, int64_t layer, const char *name);
void progress_end(progress *p);

/* Whatever is called often during a layer: a few times a second the bar shows how the time goes by. */
void progress_tick(progress *p);

#endif
