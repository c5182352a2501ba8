/* SPDX-License-Identifier: Apache-2.0 */
/* Families `cufft` and `cudnn` with their own kernels in the emulator, and substitutes of cuFFT and cuBLAS that
 * compute. */
#ifndef SIMT_FAMILY_CASES_H
#define SIMT_FAMILY_CASES_H

#include <stddef.h>

/* Failures of all problems. */
int family_cases_run(const char *cache_directory);

/* What a launch becomes; the emulator's side. 0: it ran without complaint. */
int family_emulate(const char *kernel, const unsigned grid[3], const unsigned block[3], size_t shared,
                   void **parameters);

#endif
