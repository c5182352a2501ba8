/* SPDX-License-Identifier: Apache-2.0 */
#include "core/words.h"

#define CF_DTYPE_WORD(name, value, word, bytes, bits) [value] = word,
#define CF_WORD(name, value, word) [value] = word,
const char *const cf_dtype_words[CF_DTYPE_COUNT + 1] = {CONV_FFT_DTYPE_LIST(CF_DTYPE_WORD)};
const char *const cf_math_words[CF_MATH_COUNT + 1] = {CONV_FFT_MATH_LIST(CF_WORD)};
const char *const cf_padding_words[CF_PADDING_COUNT + 1] = {CONV_FFT_PADDING_LIST(CF_WORD)};
const char *const cf_layout_words[CF_LAYOUT_COUNT + 1] = {CONV_FFT_LAYOUT_LIST(CF_WORD)};

#define CF_DTYPE_NAME(name, value, word, bytes, bits) [value] = #name,
#define CF_NAME(name, value, word) [value] = #name,
const char *const cf_dtype_names[CF_DTYPE_COUNT + 1] = {CONV_FFT_DTYPE_LIST(CF_DTYPE_NAME)};
const char *const cf_math_names[CF_MATH_COUNT + 1] = {CONV_FFT_MATH_LIST(CF_NAME)};
const char *const cf_padding_names[CF_PADDING_COUNT + 1] = {CONV_FFT_PADDING_LIST(CF_NAME)};

const char *cf_pass_text(int set) {
    switch (set) {
#define CF_CASE(name, value, text) \
    case CONV_FFT_##name:          \
        return text;
        CONV_FFT_PASS_LIST(CF_CASE)
#undef CF_CASE
    default:
        return "the passes";
    }
}
