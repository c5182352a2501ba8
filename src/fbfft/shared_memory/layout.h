/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a block's planes in shared memory: extents, distances of lines and planes, bytes. */
#ifndef CF_FBFFT_SHARED_MEMORY_LAYOUT_H
#define CF_FBFFT_SHARED_MEMORY_LAYOUT_H

#include "fbfft/shared_memory/config.h"

/* Bytes of a real number in shared memory and registers. */
int64_t cf_shared_fft_number_bytes(const cf_shared_fft_config *config);

/* Positions of axis x that may hold data. */
int64_t cf_shared_fft_extent(const cf_shared_fft_config *config, int x);

/* Lines along the axes before the last one, for each position of those axes. */
int64_t cf_shared_fft_columns(const cf_shared_fft_config *config);

/* Lines of the step that has the most of them, for one plane. */
int64_t cf_shared_fft_max_lines(const cf_shared_fft_config *config);

/* The smallest distance of two lines, and of two planes if lines have the config's pitch. Both count complex
 * numbers. */
int64_t cf_shared_fft_min_pitch(const cf_shared_fft_config *config);
int64_t cf_shared_fft_min_plane(const cf_shared_fft_config *config);

/* Bytes of a block that transforms the config's planes. */
int64_t cf_shared_fft_shared_bytes(const cf_shared_fft_config *config);

/* Set pitch, plane and shared to the distances with the fewest bank conflicts. Planes may be up to `longer` complex
 * numbers longer than necessary. */
void cf_shared_fft_choose_distances(cf_shared_fft_config *config, int64_t longer);

#endif
