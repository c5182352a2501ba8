/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of programs that take options only. */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include "tools/options.h"

/* Read the options; see options_read(). False: the program ends with *status. Either --help was answered, or a
 * message has been written. */
bool bench_options_read(const option_rule *rules, const char *help, int argc, char **argv, void *options, int *status);

#endif
