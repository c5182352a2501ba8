/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands, options and topics. --help, the manual page, the completion of shells and the checks of
 * command lines come from them. */
#ifndef CONV_FFT_PROGRAM_COMMANDS_H
#define CONV_FFT_PROGRAM_COMMANDS_H

#include "main.h"

/* A text is paragraphs, divided by empty lines. A paragraph that begins with two spaces keeps its lines. */
typedef struct command {
    const char *name;                                      /* two words: an action of a command, such as "cache list" */
    const char *arguments;                                 /* of the usage line */
    const char *takes;                                     /* the letters of its options */
    const char *summary;                                   /* a clause without a full stop */
    const char *text;                                      /* more; "": nothing */
    int (*run)(const options *o, char **words, int count); /* NULL: the command only has actions */
} command;

typedef struct option_entry {
    option_rule rule;
    const char *value; /* "N", "auto|cpu|N"; NULL: it takes none */
    const char *text;
} option_entry;

typedef struct topic {
    const char *title, *text;
} topic;

extern const command commands[];            /* ends with a name of NULL */
extern const option_entry option_entries[]; /* ends with a rule of letter 0 */
extern const topic topics[];                /* problem lines first; ends with a title of NULL */
extern const char *const problem_fields[];  /* keys of problem lines; ends with NULL */
extern const char program_summary[];        /* one sentence */

/* Write that a word is no command; group "cache ": no action of that command. The word may be NULL: it is missing.
 * Returns an exit status. */
int unknown_command(const char *group, const char *word);

#endif
