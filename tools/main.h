/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the program conv-fft share. */
#ifndef CONV_FFT_PROGRAM_H
#define CONV_FFT_PROGRAM_H

#include "conv_fft.h"
#include "message.h"
#include "network.h"
#include "options.h"

typedef struct options {
    int device;
    bool again, kernels;
    int64_t threads, measure, candidates, count, milliseconds, workspace_limit;
    conv_fft_tuning mode; /* CONV_FFT_TUNE_OFF: not given */
    conv_fft_tune_policy policy;
    char *file, *properties;
    char given[OPTIONS_MAX + 1]; /* the letters of the options that were given: tools/main.c */
} options;

/* 0, or an exit status: an option was given whose letter is not in `takes`. */
int check_given(const options *o, const char *name, const char *takes);

/* 0, or an exit status. */
int open_context(const options *o, conv_fft_context **context);

/* The commands. Each gets the words that follow its name, and returns an exit status. */
int explain_command(const options *o, char **words, int count);
int tune_command(const options *o, char **words, int count);
int cache_command(const options *o, char **words, int count);
int bench_command(const options *o, char **words, int count);

/* The same for the words that follow `explain fft`. */
int explain_fft(const options *o, char **words, int count);

#endif
