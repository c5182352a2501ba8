/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/baselines/cudnn_causal_library.h"

#include <stddef.h>

static cudnn_causal_functions functions;

/* The library does not tell its version. A copy that lacks a function is refused without this. */
static bool accept(const void *table, int driver_version, cf_library *library) {
    (void)table, (void)driver_version, (void)library;
    return true;
}

static const char *const sonames[] = {"libcudnn_ext.so.9", NULL};

#define CUDNN_CAUSAL_SYMBOL(member, parameters) {#member, offsetof(cudnn_causal_functions, member)},
static const cf_symbol symbols[] = {CUDNN_CAUSAL_FUNCTIONS(CUDNN_CAUSAL_SYMBOL)};
#undef CUDNN_CAUSAL_SYMBOL

static const cf_library_spec spec = {
    .name = "libcudnn_ext of cuDNN",
    .sonames = sonames,
    .how_to_get = "optional: pip install nvidia-cudnn-cu13 (9.26 or newer) and name the folder of its libraries in "
                  "CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

const cf_library *cudnn_causal_library(void) {
    static cf_library library;
    static bool tried;
    const cf_search search = cf_search_default();
    if (!tried)
        cf_library_open(&library, &spec, &search, 0, &functions);
    tried = true;
    return &library;
}

const cudnn_causal_functions *cudnn_causal_calls(void) { return &functions; }
