/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/libs/cudnn_causal.h"

#include <stddef.h>

/* A copy that lacks a function is refused without this. */
static bool accept(const void *table, int driver_version, cf_library *library) {
    (void)table, (void)driver_version, (void)library;
    return true;
}

static const char *const sonames[] = {"libcudnn_ext.so.9", NULL};

#define CF_SYMBOL(member, parameters) {#member, offsetof(cf_cudnn_causal_functions, member)},
static const cf_symbol symbols[] = {CF_CUDNN_CAUSAL_FUNCTIONS(CF_SYMBOL)};
#undef CF_SYMBOL

const cf_library_spec cf_cudnn_causal_spec = {
    .name = "cuDNN with causal operations",
    .sonames = sonames,
    .how_to_get = "optional: pip install nvidia-cudnn-cu13 (9.26 or newer) and name the folder of its libraries in "
                  "CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};
