/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on a terminal, for the layers of a network that are tuned one after another. */
#ifndef CONV_FFT_PROGRAM_PROGRESS_H
#define CONV_FFT_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const bool *known; /* for each layer: it has its records and takes no time */
    int64_t total;
    double most; /* seconds that a layer may take; 0: any */
    /* The layers that were measured so far, and the seconds that they took. */
    int64_t measured;
    double seconds;
    /* The current layer. */
    int64_t at;
    const char *name;
    double began, shown;
} progress;

double seconds_now(void);

/* Begin a layer and show the bar; end it and remove the bar. */
void progress_begin(progress *p, int64_t layer, const char *name);
void progress_end(progress *p);

/* Call this often during a layer. The bar is drawn again a few times a second. */
void progress_tick(progress *p);

#endif
