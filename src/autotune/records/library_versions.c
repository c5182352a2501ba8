/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/library_versions.h"

#include "core/text.h"
#include "cuda/libs/cudnn.h"
#include "cuda/libs/cufft.h"

#include <string.h>

static bool uses(int passes, const cf_strategy strategy[CF_PASS_COUNT], cf_family_id family) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if ((passes & 1 << pass) && strategy[pass].family == family)
            return true;
    }
    return false;
}

static void name_versions(const conv_fft_context *context, bool cudnn, bool cufft, char text[CF_RECORD_LIBRARY_BYTES]) {
    cf_text t = {text, CF_RECORD_LIBRARY_BYTES, 0};
    text[0] = '\0';
    if (!context->gpu)
        return;
    if (cudnn)
        cf_text_add(&t, "cudnn %s", cf_cudnn_library(context->gpu->cudnn)->version);
    if (cufft)
        cf_text_add(&t, "%scufft %s", t.length ? ", " : "", cf_cufft_library(context->gpu->cufft)->version);
}

void cf_libraries_of(const conv_fft_context *context, int passes, const cf_strategy strategy[CF_PASS_COUNT],
                     char text[CF_RECORD_LIBRARY_BYTES]) {
    name_versions(context, uses(passes, strategy, CF_FAMILY_CUDNN), uses(passes, strategy, CF_FAMILY_CUFFT), text);
}

bool cf_libraries_are_here(const conv_fft_context *context, const char *text) {
    char here[CF_RECORD_LIBRARY_BYTES];
    name_versions(context, strstr(text, "cudnn") != NULL, strstr(text, "cufft") != NULL, here);
    return strcmp(here, text) == 0;
}
