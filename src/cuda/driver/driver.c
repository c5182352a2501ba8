/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/driver/driver.h"

#include <stdio.h>

static bool accept(const void *table, int unused, cf_library *library) {
    (void)unused;
    const cf_driver *const driver = table;
    int version = 0;
    if (driver->cuDriverGetVersion)
        driver->cuDriverGetVersion(&version);
    snprintf(library->version, sizeof library->version, "%d.%d", version / 1000, version % 1000 / 10);
    if (version >= CF_DRIVER_MIN_VERSION)
        return true;
    snprintf(library->problem, sizeof library->problem, "the driver has CUDA %s, at least CUDA %d.%d is needed",
             library->version, CF_DRIVER_MIN_VERSION / 1000, CF_DRIVER_MIN_VERSION % 1000 / 10);
    return false;
}

static const char *const sonames[] = {"libcuda.so.1", NULL};

#define CF_SYMBOL(member, symbol, parameters) {#symbol, offsetof(cf_driver, member)},
static const cf_symbol symbols[] = {CF_DRIVER_FUNCTIONS(CF_SYMBOL)};
#undef CF_SYMBOL

static const cf_library_spec spec = {
    .name = "the CUDA driver",
    .sonames = sonames,
    .how_to_get = "install NVIDIA's GPU driver, version 525 or newer, from nvidia.com/drivers or the distribution",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof symbols[0],
    .accept = accept,
};

conv_fft_status cf_driver_open(cf_driver *driver, const cf_search *search) {
    *driver = (cf_driver){0};
    CF_FORWARD(cf_library_open(&driver->library, &spec, search, 0, driver));
    CF_FORWARD(CF_CU(driver, cuInit, 0));
    return CF_CU(driver, cuDriverGetVersion, &driver->version);
}

static conv_fft_status meaning(cf_cu_result result) {
    switch (result) {
    case CF_CU_OUT_OF_MEMORY:
        return CONV_FFT_OUT_OF_MEMORY;
    case CF_CU_NO_DEVICE:
    case CF_CU_INVALID_DEVICE:
        return CONV_FFT_NO_DEVICE;
    case CF_CU_STUB_LIBRARY:
    case CF_CU_SYSTEM_DRIVER_MISMATCH:
        return CONV_FFT_LIBRARY_MISSING;
    default:
        return CONV_FFT_DEVICE_ERROR;
    }
}

conv_fft_status cf_driver_fail(const cf_driver *driver, cf_cu_result result, const char *call) {
    const char *name = NULL, *text = NULL;
    driver->cuGetErrorName(result, &name);
    driver->cuGetErrorString(result, &text);
    return cf_fail(meaning(result), "%s failed with %s (%u): %s", call, name ? name : "an unknown result", result,
                   text ? text : "no description");
}
