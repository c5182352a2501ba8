/* SPDX-License-Identifier: Apache-2.0 */
/* Tests on a real GPU, programs test_gpu_*.c: opened for each test with a new, empty kernel cache. */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include "device/gpu.h"

/* Setup and teardown of cmocka: *state is a cf_gpu, or NULL without a GPU. That there is none is the only way to get no
 * GPU: one that is there but does not open is a failure. */
int gpu_setup(void **state);
int gpu_teardown(void **state);

/* First line of a test: a variable `gpu`, or the test is skipped. */
#define NEED_GPU(state)           \
    cf_gpu *const gpu = *(state); \
    if (!gpu)                     \
    skip()

#define WITH_GPU(test) cmocka_unit_test_setup_teardown(test, gpu_setup, gpu_teardown)

/* The directory of the kernel cache. */
const char *gpu_cache_directory(void);

/* What main() returns: 77, which CTest counts as skipped, if there was no GPU. */
int gpu_exit_status(int failed);

#endif
