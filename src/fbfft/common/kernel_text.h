/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a kernel for the compiler: the device headers that all kernels share, further headers, and the kernel. */
#ifndef CF_FBFFT_KERNEL_TEXT_H
#define CF_FBFFT_KERNEL_TEXT_H

#include "conv_fft.h"
#include "core/text.h"

/* Join cf_fbfft_kernel_text, `headers` and `kernel`. The caller frees *text. OUT_OF_MEMORY. */
conv_fft_status cf_fbfft_join_text(const char *headers, const char *kernel, char **text);

/* The same for a kernel in a buffer. INTERNAL_ERROR: the kernel did not fit the buffer. */
conv_fft_status cf_fbfft_join_emitted(const char *headers, const cf_text *kernel, char **text);

/* The struct of storage.cuh that loads and stores elements of a tensor. */
const char *cf_storage_name(conv_fft_dtype dtype);

#endif
