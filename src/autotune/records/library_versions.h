/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of libraries that only some strategies use. Times of such a strategy hold for one version. */
#ifndef CF_AUTOTUNE_LIBRARIES_H
#define CF_AUTOTUNE_LIBRARIES_H

#include "autotune/records/records.h"
#include "conv/plan/context.h"

/* The libraries of the strategies of the passes: "", "cudnn 9.19.0", or several, joined by commas. */
void cf_libraries_of(const conv_fft_context *context, int passes, const cf_strategy strategy[CF_PASS_COUNT],
                     char text[CF_RECORD_LIBRARY_BYTES]);

/* Whether the text of a record names the installed versions. */
bool cf_libraries_are_here(const conv_fft_context *context, const char *text);

#endif
