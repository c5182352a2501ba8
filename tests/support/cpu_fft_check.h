/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's transforms against the definition: planes are filled by the rules of core/window.h, written here a second
 * time, and transformed by the O(n^2) DFT in double. */
#ifndef TEST_CPU_CHECK_H
#define TEST_CPU_CHECK_H

#include "cpu/device.h"
#include "support/cpu_fft_cases.h"

/** The largest allowed error of a spectrum, relative to its norm. */
double spectrum_tolerance(const setting *s);

/** Transform random tensors; the largest relative error over the planes. */
double forward_error(cf_cpu_device *device, const setting *s, generator *g);

/** Whether the inverse stores the planes, adds the bias, adds to old contents or never reads them, and writes nothing
 * else. */
bool check_inverse(cf_cpu_device *device, const setting *s, generator *g, bool with_bias, bool accumulate);

/** Make a transform and its scratch, filled with a byte pattern. The caller frees both. A failure ends the program. */
cf_transform *test_transform(cf_cpu_device *device, const setting *s, void **scratch);

/** Run a check with each set of kernels that this CPU can run. */
void with_all_kernels(cf_cpu_device *device, void (*check)(void));

/** count random numbers, as stored in the type and as doubles. The caller frees. */
void *random_elements(generator *g, conv_fft_dtype dtype, int64_t count, double *values);
double *test_doubles(int64_t count);

#endif
