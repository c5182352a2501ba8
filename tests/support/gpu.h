/* SPDX-License-Identifier: Apache-2.0 */
/* Tests on a real GPU, programs gpu_test_*. The GPU is opened for each test. Compiled kernels are kept in the folder
 * CONV_FFT_TEST_CACHE, which programs and runs share. If that is not set, each test has a new, empty folder. */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include "cuda/driver/gpu.h"

/* Setup and teardown of cmocka: *state is a cf_gpu, or NULL if the machine has no GPU. A GPU that does not open is a
 * failure. */
int gpu_setup(void **state);
/* Always with an empty kernel cache. */
int gpu_setup_empty(void **state);
int gpu_teardown(void **state);

/* First line of a test: defines `gpu`, or skips the test. */
#define NEED_GPU(state)           \
    cf_gpu *const gpu = *(state); \
    if (!gpu)                     \
    skip()

#define WITH_GPU(test) cmocka_unit_test_setup_teardown(test, gpu_setup, gpu_teardown)
#define WITH_EMPTY_CACHE(test) cmocka_unit_test_setup_teardown(test, gpu_setup_empty, gpu_teardown)

/* First statement of main(). Two environment variables are patterns of names with * and ?: CONV_FFT_TEST_ONLY has the
 * tests that run, and CONV_FFT_TEST_SKIP the tests that do not. */
void gpu_read_filters(void);

/* The directory of the kernel cache. */
const char *gpu_cache_directory(void);

/* What main() returns: 77, which CTest counts as skipped, if there was no GPU; 2 if no list has a case that
 * CONV_FFT_TEST_CASE asks for. */
int gpu_exit_status(int failed);

#endif
