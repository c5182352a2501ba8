/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel reads and writes the signal: limits of coordinates, and vectors. */
#ifndef CF_FBFFT_SHARED_MEMORY_SIGNAL_ACCESS_H
#define CF_FBFFT_SHARED_MEMORY_SIGNAL_ACCESS_H

#include "fbfft/shared_memory/config.h"

/* NOT_SUPPORTED: the window reaches beyond 2^30 elements along an axis. */
conv_fft_status cf_shared_fft_check_extents(const cf_fft_problem *fft);

/* Set planes_interleaved, staged, vector_width and alignment_shift from the problem, the kind, the radices and
 * packs_nyquist. */
void cf_shared_fft_choose_access(cf_shared_fft_config *config);

#endif
