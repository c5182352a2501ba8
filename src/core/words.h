/* SPDX-License-Identifier: Apache-2.0 */
/* The enumerations of conv_fft.h as words. Each has a NULL-terminated table, indexed by the enumerators. */
#ifndef CF_CORE_WORDS_H
#define CF_CORE_WORDS_H

#include "conv_fft.h"

#define CF_COUNT_ONE(...) +1
enum {
    CF_DTYPE_COUNT = 0 CONV_FFT_DTYPE_LIST(CF_COUNT_ONE),
    CF_MATH_COUNT = 0 CONV_FFT_MATH_LIST(CF_COUNT_ONE),
    CF_PADDING_COUNT = 0 CONV_FFT_PADDING_LIST(CF_COUNT_ONE),
    CF_LAYOUT_COUNT = 0 CONV_FFT_LAYOUT_LIST(CF_COUNT_ONE)
};
#undef CF_COUNT_ONE

/* As in problem lines and strategy lines: "fp32". */
extern const char *const cf_dtype_words[CF_DTYPE_COUNT + 1];
extern const char *const cf_math_words[CF_MATH_COUNT + 1];
extern const char *const cf_padding_words[CF_PADDING_COUNT + 1];
extern const char *const cf_layout_words[CF_LAYOUT_COUNT + 1];

/* As in C: "FP32". Messages and the text of kernels use these. */
extern const char *const cf_dtype_names[CF_DTYPE_COUNT + 1];
extern const char *const cf_math_names[CF_MATH_COUNT + 1];
extern const char *const cf_padding_names[CF_PADDING_COUNT + 1];

/* "backward data"; "the passes" for a set that the list does not name. */
const char *cf_pass_text(int set);

#endif
