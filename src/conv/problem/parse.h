/* SPDX-License-Identifier: Apache-2.0 */
/* Text forms of problems and strategies. */
#ifndef CF_CONV_TEXT_H
#define CF_CONV_TEXT_H

#include "conv/problem/layer.h"

#include "core/text.h"

/* " key=1x2x3" */
void cf_text_axes(cf_text *t, const char *key, int rank, const int64_t *axes);

/* Place of `value` in a NULL-terminated list, or -1. */
int cf_text_word(const char *const *words, const char *value);
/* Whole numbers joined by x, at most max_count. */
conv_fft_status cf_text_numbers(const char *key, const char *value, int max_count, int64_t *numbers, int *count);

conv_fft_status cf_problem_parse(const char *line, conv_fft_problem *problem, char *name, size_t name_bytes);
conv_fft_status cf_problem_format(const cf_layer *layer, char *text, size_t bytes);

#endif
