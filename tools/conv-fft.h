/* SPDX-License-Identifier: Apache-2.0 */
/* conv-fft.h - what the parts of the program conv-fft share. */
#ifndef CONV_FFT_PROGRAM_H
#define CONV_FFT_PROGRAM_H

#include "conv_fft.h"

typedef struct options {
    int device, threads, measure;
    uint64_t workspace_limit;
    const char *file, *facts;
} options;

/* Each writes a message and returns the program's exit status. */
int usage_error(const char *what, const char *value); /* value may be NULL */
int library_error(const char *what);

/* 0, or an exit status. */
int open_context(const options *o, conv_fft_context **context);

/* The words behind `explain fft`. Returns an exit status. */
int explain_fft(const options *o, char **words, int count);

#endif
