/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_FBFFT_KERNEL_TEXT_H
#define CF_FBFFT_KERNEL_TEXT_H

#include "core/text.h"

/* The device headers of common, warp and shared_memory, one after the other; made by cmake/Kernels.cmake. */
extern const char cf_fbfft_kernel_text[];
/* Those for pairs of FP16, to come behind them. */
extern const char cf_half_kernel_text[];
/* Those for 16-bit spectra by matrix products, to come behind them. */
extern const char cf_matrix_kernel_text[];

/* One text for the compiler, to be freed: cf_fbfft_kernel_text, further headers, and a kernel. OUT_OF_MEMORY. */
conv_fft_status cf_fbfft_join_text(const char *headers, const char *kernel, char **text);
/* The same of a kernel that has been written into a buffer. INTERNAL_ERROR: the buffer was too small for it. */
conv_fft_status cf_fbfft_join_emitted(const char *headers, const cf_text *kernel, char **text);

#endif
