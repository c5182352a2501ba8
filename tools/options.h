/* SPDX-License-Identifier: Apache-2.0 */
/* The option parser of conv-fft and of the benchmark programs. A program has a table of rules; each rule names a
 * member of a struct. */
#ifndef CONV_FFT_PROGRAM_OPTIONS_H
#define CONV_FFT_PROGRAM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,     /* bool; it takes no value */
    OPTION_TEXT,     /* char *, which may be const */
    OPTION_WHOLE,    /* int64_t, low to high */
    OPTION_BYTES,    /* int64_t, at least 1: 1000, 512K, 10M, 2G, 1T; 1K is 1024 bytes */
    OPTION_POSITIVE, /* double */
    OPTION_READ      /* `read` reads the value into the struct */
} option_kind;

typedef struct option_rule {
    char letter; /* unique in the table, not h or V; 0: end of the table */
    option_kind kind;
    const char *name;
    size_t offset; /* of the member; OPTION_READ: not used */
    int64_t low, high;
    const char *must;                              /* OPTION_READ: completes the message "--name must" */
    bool (*read)(const char *text, void *options); /* false: the value is wrong, and the parser writes a message */
} option_rule;

/* The maximum number of options in a table. */
enum {
    OPTIONS_MAX = 32
};

typedef enum options_result {
    OPTIONS_GOOD,
    OPTIONS_HELP,  /* --help or -h was given */
    OPTIONS_SHOWN, /* --help or --version was given and has been answered */
    OPTIONS_WRONG  /* a message has been written */
} options_result;

/* Read the options of a command line. --help and -h print `help`; if it is NULL, the caller does that. --version
 * prints `version` (NULL: no such option). given: the letters of the options that were given, each once. *first: index
 * of the first word that is no option; the words stand behind the options then. */
options_result options_read(const option_rule *rules, const char *help, const char *version, int argc, char **argv,
                            void *options, char given[OPTIONS_MAX + 1], int *first);

/* Read auto, cpu or the number of a GPU. False: it is none of these. */
bool option_device(const char *text, int *device);

/* The place of a text in a list of words that ends with NULL, or -1. */
int option_choice(const char *text, const char *const *words);

#endif
