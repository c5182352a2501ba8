/* SPDX-License-Identifier: Apache-2.0 */
#include "support/gpu.h"

#include "support/case_list.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *directory;
static void *scratch;
static bool missing;

static const char *variable(const char *name) {
    const char *const text = getenv(name);
    return text && *text ? text : NULL;
}

static int open_with(const char *cache, void **state) {
    cf_driver driver;
    const cf_search search = cf_search_default();
    *state = NULL;
    scratch = NULL;
    if (!cache)
        scratch_create(&scratch);
    directory = cache ? cache : scratch;
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

int gpu_setup(void **state) { return open_with(variable("CONV_FFT_TEST_CACHE"), state); }

int gpu_setup_empty(void **state) { return open_with(NULL, state); }

int gpu_teardown(void **state) {
    cf_gpu_close(*state);
    return scratch ? scratch_remove(&scratch) : 0;
}

const char *gpu_cache_directory(void) { return directory; }

void gpu_read_filters(void) {
    cmocka_set_test_filter(variable("CONV_FFT_TEST_ONLY"));
    cmocka_set_skip_filter(variable("CONV_FFT_TEST_SKIP"));
}

int gpu_exit_status(int failed) {
    const char *const only = variable("CONV_FFT_TEST_CASE");
    if (failed == 0 && missing)
        return 77;
    if (!only || case_list_taken() > 0)
        return failed;
    fprintf(stderr, "CONV_FFT_TEST_CASE=%s: no case of this program has this in its name\n", only);
    return 2;
}
