/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the build and the machine, for the headers of results. */
#ifndef BENCH_BUILD_INFO_H
#define BENCH_BUILD_INFO_H

#include <stddef.h>

/* The commit of the build: `given`. NULL: `git describe` in the working directory. */
void bench_commit(const char *given, char *text, size_t bytes);

/* Today. */
void bench_date(char *text, size_t bytes);

/* The version of the GPU's driver. */
void bench_driver(char *text, size_t bytes);

/* The value of a key in a file of "key : value" lines. key "": the first line. `otherwise`: there is no value. */
void bench_first_line(const char *path, const char *key, const char *otherwise, char *text, size_t bytes);

#endif
