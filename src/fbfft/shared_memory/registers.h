/* SPDX-License-Identifier: Apache-2.0 */
/* Registers that a thread needs, as the compiler allocates them. The figures are from kernels compiled for an H200. */
#ifndef CF_FBFFT_SHARED_MEMORY_REGISTERS_H
#define CF_FBFFT_SHARED_MEMORY_REGISTERS_H

#include "fbfft/shared_memory/config.h"

/* Registers of a thread. It needs the radices. Kernels with sums also need planes and threads. */
int cf_shared_fft_registers(const cf_shared_fft_config *config);

/* Points of a task in the last step before the spectrum. With one axis: 2, the pair of bins that get_bins() of
 * fused/shared_memory.cuh takes. */
int cf_shared_fft_last_points(const cf_shared_fft_config *config);

/* Complex numbers of the sums that a thread holds from one row to the next. 0: the kernel has no sums. */
int64_t cf_shared_fft_register_sums(const cf_shared_fft_config *config);

#endif
