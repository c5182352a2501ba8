/* SPDX-License-Identifier: Apache-2.0 */
/* Families `cufft` and `cudnn` with their own kernels in the emulator, and computing substitutes of cuFFT and
 * cuBLAS. */
#ifndef SIMT_FAMILY_CASES_H
#define SIMT_FAMILY_CASES_H

#include <stddef.h>

/* Returns the failures of all problems. */
int family_cases_run(const char *cache_directory);

/* Run a launch in the emulator. 0: it ran without errors. */
int family_emulate(const char *kernel, const unsigned grid[3], const unsigned block[3], size_t shared,
                   void **parameters);

#endif
