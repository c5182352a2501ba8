/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_FBFFT_KERNEL_TEXT_H
#define CF_FBFFT_KERNEL_TEXT_H

/* The device headers of kernels/, one after the other; made by cmake/Kernels.cmake. */
extern const char cf_fbfft_kernel_text[];
/* Those for pairs of FP16, to come behind them. */
extern const char cf_half_kernel_text[];
/* Those for 16-bit spectra by matrix products, to come behind them. */
extern const char cf_matrix_kernel_text[];

/* They, further headers and a kernel, as one text for the compiler: to be freed. NULL: out of memory, as the last error says. */
char *cf_fbfft_join_text(const char *headers, const char *kernel);

#endif
