/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/baselines/onednn_library.h"

#include <stdio.h>

static onednn_functions functions;

static bool accept(const void *table, int driver_version, cf_library *library) {
    const onednn_functions *call = table;
    (void)driver_version;
    if (!call->version)
        return true; /* then the missing function is reported */
    const onednn_version *v = call->version();
    snprintf(library->version, sizeof library->version, "%d.%d.%d", v->major, v->minor, v->patch);
    if (v->major != 3)
        snprintf(library->problem, sizeof library->problem, "oneDNN 3 is needed, found %s", library->version);
    else if (v->cpu_runtime != ONEDNN_RUNTIME_OPENMP)
        snprintf(library->problem, sizeof library->problem,
                 "oneDNN with OpenMP is needed, found %s with other threads (runtime %u)", library->version,
                 v->cpu_runtime);
    else
        return true;
    return false;
}

/* Debian 13 has its own soname. That of version 2 is searched only to name the version in the message. */
static const char *const sonames[] = {"libdnnl.so.3", "libdnnl.so.3.6", "libdnnl.so", "libdnnl.so.2", NULL};

#define ONEDNN_SYMBOL(result, member, parameters) {"dnnl_" #member, offsetof(onednn_functions, member)},
static const cf_symbol symbols[] = {ONEDNN_FUNCTIONS(ONEDNN_SYMBOL, onednn_version, onednn_argument)};
#undef ONEDNN_SYMBOL

static const cf_library_spec spec = {
    .name = "oneDNN",
    .sonames = sonames,
    .how_to_get = "optional: scripts/with_onednn.sh PROGRAM gets oneDNN 3 and runs PROGRAM with it; or name the folder "
                  "of an oneDNN 3 with OpenMP in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

const cf_library *onednn_library(void) {
    static cf_library library;
    static bool tried;
    const cf_search search = cf_search_default();
    if (!tried)
        cf_library_open(&library, &spec, &search, 0, &functions);
    tried = true;
    return &library;
}

const onednn_functions *onednn_calls(void) { return &functions; }
