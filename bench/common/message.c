/* SPDX-License-Identifier: Apache-2.0 */
#include "common/message.h"

#include "tools/message.h"

#include <stdarg.h>
#include <stdio.h>

void bench_message(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

void bench_copy(char *to, size_t bytes, const char *from) { snprintf(to, bytes, "%s", from); }
