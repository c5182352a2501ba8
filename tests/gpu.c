/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu.h"

#include "scratch.h"

#include <stdio.h>

static void *directory;
static bool missing;

int gpu_setup(void **state) {
    cf_driver driver;
    const cf_search search = cf_search_default();
    *state = NULL;
    scratch_create(&directory);
    const conv_fft_status there = cf_driver_open(&driver, &search);
    missing = there == CONV_FFT_LIBRARY_MISSING || there == CONV_FFT_NO_DEVICE;
    if (missing)
        return 0;
    const cf_gpu_options options = {.cache_directory = directory, .log_level = CONV_FFT_LOG_INFO, .search = search};
    if (there == CONV_FFT_SUCCESS && cf_gpu_open(&options, (cf_gpu **)state) == CONV_FFT_SUCCESS)
        return 0;
    fprintf(stderr, "the GPU does not open: %s\n", conv_fft_last_error());
    return -1;
}

int gpu_teardown(void **state) {
    cf_gpu_close(*state);
    return scratch_remove(&directory);
}

const char *gpu_cache_directory(void) { return directory; }

int gpu_exit_status(int failed) { return failed == 0 && missing ? 77 : failed; }
