/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a benchmark program. */
#ifndef BENCH_MESSAGE_H
#define BENCH_MESSAGE_H

#include <stddef.h>

/* Write program_name (tools/message.h) and a message to the standard error stream. */
void bench_message(const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 1, 2)))
#endif
    ;

/* Copy a text, and cut it if it does not fit. */
void bench_copy(char *to, size_t bytes, const char *from);

#endif
