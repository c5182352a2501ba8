/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of the training program. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/** Exit statuses beside EXIT_SUCCESS. */
enum {
    EXIT_ACCURACY = 1,
    EXIT_ERROR = 2
};

typedef struct options {
    const char *data, *out;
    int epochs;
    int device, threads; /* of conv_fft_context_options */
    uint64_t seed;
} options;

/** False: the program has to end with *status; a message or the help text was written. */
bool options_parse(int argc, char **argv, options *o, int *status);

#endif
