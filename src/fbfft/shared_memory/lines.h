/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a config that does not depend on how many planes share a block. */
#ifndef CF_FBFFT_SHARED_MEMORY_LINES_H
#define CF_FBFFT_SHARED_MEMORY_LINES_H

#include "fbfft/shared_memory/config.h"

/* points: the largest number of points of one step along axis 2. of_columns: the same for the other axes. Both are
 * for FP32. The caller has set order, packs_nyquist, mirrors and sums. NOT_SUPPORTED: cf_shared_fft_check_extents(). */
conv_fft_status cf_shared_fft_choose_lines(const cf_shared_fft_problem *problem, int points, int of_columns,
                                           cf_shared_fft_config *config);

#endif
