/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_CORE_TEXT_H
#define CF_CORE_TEXT_H

#include "core/status.h"

/* A text that grows in a buffer of fixed size. When the buffer is full, `length` keeps counting. */
typedef struct cf_text {
    char *text;
    size_t bytes, length;
} cf_text;

void cf_text_add(cf_text *t, const char *format, ...) CF_PRINTF(2, 3);

#endif
