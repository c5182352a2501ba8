/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text.h"

#include <stdarg.h>
#include <stdio.h>

void cf_text_add(cf_text *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const size_t capacity = t->length < t->bytes ? t->bytes - t->length : 0;
    const int wanted = vsnprintf(capacity ? t->text + t->length : NULL, capacity, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        t->length += (size_t)wanted;
}
