/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of libraries that only some strategies use: times of such a strategy are those of the version. */
#ifndef CF_AUTOTUNE_LIBRARIES_H
#define CF_AUTOTUNE_LIBRARIES_H

#include "autotune/records/records.h"
#include "conv/plan/context.h"

/* "cudnn 9.19.0", "cufft 12.0.0", both joined by a comma, or "" if the strategies of the passes use neither. */
void cf_libraries_of(const conv_fft_context *context, int passes, const cf_strategy strategy[CF_PASS_COUNT],
                     char text[CF_RECORD_LIBRARY_BYTES]);

/* Whether such a text names the versions that are here. */
bool cf_libraries_are_here(const conv_fft_context *context, const char *text);

#endif
