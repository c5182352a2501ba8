/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks share a multiprocessor. */
#ifndef CF_FBFFT_SHARED_MEMORY_OCCUPANCY_H
#define CF_FBFFT_SHARED_MEMORY_OCCUPANCY_H

#include "fbfft/shared_memory/config.h"

/* Blocks that fit a multiprocessor if each uses this much shared memory. */
int64_t cf_shared_fft_blocks_that_fit(const cf_shared_fft_config *config, int64_t shared,
                                      const cf_gpu_properties *properties);

/* Whether two blocks fit a multiprocessor if they have a thread for each line. lines: of one plane. */
bool cf_shared_fft_two_fit(const cf_shared_fft_config *config, const cf_gpu_properties *properties, int64_t lines);

/* Set threads and blocks. lines: of all planes of a block; shared: bytes of a block. */
void cf_shared_fft_choose_threads(cf_shared_fft_config *config, const cf_gpu_properties *properties, int64_t lines,
                                  int64_t shared);

#endif
