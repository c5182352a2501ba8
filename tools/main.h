/* SPDX-License-Identifier: Apache-2.0 */
/* main.h - what the parts of the program conv-fft share. */
#ifndef CONV_FFT_PROGRAM_H
#define CONV_FFT_PROGRAM_H

#include "conv_fft.h"

typedef struct options {
    int device, threads, measure, candidates, again, quality;
    int64_t count, milliseconds;
    conv_fft_tuning mode; /* CONV_FFT_TUNE_OFF: not given */
    conv_fft_tune_policy policy;
    uint64_t workspace_limit;
    char *file, *facts;
    char given[24]; /* the letters of those that are there: tools/main.c */
} options;

/* Each writes a message and returns the program's exit status. */
int usage_error(const char *what, const char *value); /* value may be NULL */
int library_error(const char *what);
int read_error(const char *file);

/* 0, or an exit status: an option is given that is not among these letters. */
int check_given(const options *o, const char *name, const char *takes);

/* 0, or an exit status. */
int open_context(const options *o, conv_fft_context **context);

/* The commands. Each gets the words behind its name and returns an exit status. */
int explain_command(const options *o, char **words, int count);
int tune_command(const options *o, char **words, int count);
int cache_command(const options *o, char **words, int count);
int bench_command(const options *o, char **words, int count);

/* The words behind `explain fft`. */
int explain_fft(const options *o, char **words, int count);

/* Problem lines, of files or of the command line (file is NULL). */
typedef struct layer_line {
    char name[64], text[1024]; /* the text is that of conv_fft_problem_format() */
    conv_fft_problem problem;
    const char *file;
    long line;
} layer_line;

typedef struct network {
    layer_line *layers;
    int64_t count, room;
    int64_t bad; /* lines that are no problem: each has been reported with its file and number */
} network;

/* Read a line of `length` bytes into `layer`, whose file and line number are set. 0, or an exit status behind a message. */
int layer_read(const char *text, size_t length, layer_line *layer);
/* What the library said of a layer, behind its place. Returns the exit status. */
int layer_error(const layer_line *layer);

/* The problems of files; at most `most` if it is positive. A line that says what another has said, and has no name or the same, is left out.
 * 0, or an exit status: a file cannot be read, or there is no problem in any; the others are there nevertheless. */
int network_read_all(char *const *files, int count, int64_t most, network *n);
void network_free(network *n);

/* The quality of the cost model and of the quick search, against the exhaustive one. */
int measure_quality(const options *o, conv_fft_context *context, const network *n);

#endif
