/* SPDX-License-Identifier: Apache-2.0 */
#include "fft/cufft.h"

#include <stdio.h>

/* The major version of cuFFT is that of CUDA less one. */
static bool accept(const void *table, int driver_version, cf_library *library) {
    const fft_cufft *const cufft = table;
    int version[3] = {0, 0, 0};
    for (unsigned i = 0; i < 3 && cufft->cufftGetProperty; i++)
        cufft->cufftGetProperty(i, &version[i]);
    snprintf(library->version, sizeof library->version, "%d.%d.%d", version[0], version[1], version[2]);
    return cf_library_fits(library, "cuFFT", version[0] + 1, driver_version);
}

static const char *const sonames[] = {"libcufft.so.12", "libcufft.so.11", NULL};

#define SYMBOL(member, parameters) {#member, offsetof(fft_cufft, member)},
static const cf_symbol symbols[] = {FFT_CUFFT_FUNCTIONS(SYMBOL)};
#undef SYMBOL

static const cf_library_spec spec = {
    .name = "cuFFT",
    .sonames = sonames,
    .how_to_get = "install the CUDA toolkit, or name the folder of the library in CONV_FFT_LIBRARY_PATH",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

conv_fft_status fft_cufft_open(fft_cufft *cufft, const cf_gpu *gpu) {
    return cf_library_open(&cufft->library, &spec, &gpu->search, gpu->driver.version, cufft);
}
