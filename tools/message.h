/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a program on the standard error stream. */
#ifndef CONV_FFT_PROGRAM_MESSAGE_H
#define CONV_FFT_PROGRAM_MESSAGE_H

/* The name of the program, which the file of its main() defines. */
extern const char program_name[];

/* The command whose --help messages about wrong usage name from now on. */
void usage_of(const char *command);

/* Each writes a message and returns the exit status of the program: 2 for wrong usage, else 1. */
int usage_error(const char *what, const char *value); /* value may be NULL */
int library_error(const char *what);
int read_error(const char *file);

#endif
