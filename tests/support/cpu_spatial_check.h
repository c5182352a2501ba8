/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the vectors of a convolution by its definition on a CPU. */
#ifndef TEST_CPU_SPATIAL_CHECK_H
#define TEST_CPU_SPATIAL_CHECK_H

#include "core/device_ops.h"

/** The convolution of a pass: 0, 1, 2. A bad problem ends the program. */
cf_convolution_desc test_convolution(const conv_fft_problem *problem, int pass);

/** Whether positions are vectors, and whether their rows are joined. */
bool has_positions_as_vectors(const cf_device *device, const cf_convolution_desc *desc, bool *joined);

/** Whether a tile has a whole row. */
bool has_whole_rows(const cf_device *device, const cf_convolution_desc *desc);

/** Whether packed weights, or the sums of their gradient, stay in the caches. */
bool packs_once(cf_device *device, const cf_convolution_desc *desc);

#endif
