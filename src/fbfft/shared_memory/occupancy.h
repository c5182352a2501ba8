/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks share a multiprocessor. */
#ifndef CF_FBFFT_SHARED_MEMORY_OCCUPANCY_H
#define CF_FBFFT_SHARED_MEMORY_OCCUPANCY_H

#include "fbfft/shared_memory/config.h"

/* Blocks that fit a multiprocessor if each uses this much shared memory. */
int64_t cf_tile_blocks_that_fit(const cf_tile_config *config, int64_t shared, const cf_gpu_facts *facts);

/* Whether two blocks fit a multiprocessor if they have a thread for each line. lines: of one plane. */
bool cf_tile_two_fit(const cf_tile_config *config, const cf_gpu_facts *facts, int64_t lines);

/* Set threads and blocks. lines: of all planes of a block; shared: bytes of a block. */
void cf_tile_choose_threads(cf_tile_config *config, const cf_gpu_facts *facts, int64_t lines, int64_t shared);

#endif
