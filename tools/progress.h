/* SPDX-License-Identifier: Apache-2.0 */
/* A progress bar on a terminal, for the layers of a network that are tuned one after another. */
#ifndef CONV_FFT_PROGRAM_PROGRESS_H
#define CONV_FFT_PROGRAM_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    const bool *known; /* for each layer: it has its records, so it takes no time */
    int64_t total;
    double max_seconds; /* of one layer; 0: no limit */
    /* The number of layers measured so far, and their seconds. */
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
