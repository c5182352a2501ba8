/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/records/library_versions.h"

#include "conv/plan/family.h"
#include "core/text.h"

#include <string.h>

static bool uses(int passes, const cf_strategy strategy[CF_PASS_COUNT], const cf_family *family) {
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if ((passes & 1 << pass) && strategy[pass].family == family)
            return true;
    }
    return false;
}

static void add_version(const cf_family *family, const cf_device *device, cf_text *t) {
    const char *version = family->library_version(device);
    if (version)
        cf_text_add(t, "%s%s %s", t->length ? ", " : "", family->library, version);
}

static int family_count(void) {
    int count = 0;
    while (cf_families[count])
        ++count;
    return count;
}

/* In reverse order of families, as in existing records. */
void cf_libraries_of(const conv_fft_context *context, int passes, const cf_strategy strategy[CF_PASS_COUNT],
                     char text[CF_RECORD_LIBRARY_BYTES]) {
    cf_text t = {text, CF_RECORD_LIBRARY_BYTES, 0};
    text[0] = '\0';
    for (int i = family_count() - 1; i >= 0; --i)
        if (cf_families[i]->library && uses(passes, strategy, cf_families[i]))
            add_version(cf_families[i], context->device, &t);
}

bool cf_libraries_are_here(const conv_fft_context *context, const char *text) {
    char here[CF_RECORD_LIBRARY_BYTES];
    cf_text t = {here, sizeof here, 0};
    here[0] = '\0';
    for (int i = family_count() - 1; i >= 0; --i)
        if (cf_families[i]->library && strstr(text, cf_families[i]->library))
            add_version(cf_families[i], context->device, &t);
    return strcmp(here, text) == 0;
}
