/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a kernel for the compiler. */
#ifndef CF_FBFFT_KERNEL_TEXT_H
#define CF_FBFFT_KERNEL_TEXT_H

#include "conv_fft.h"
#include "core/text.h"
#include "cuda/jit/nvrtc.h"

/* Set the text of a source to a copy of `kernel`, which the caller frees. OUT_OF_MEMORY. INTERNAL_ERROR: the kernel did
 * not fit its buffer. */
conv_fft_status cf_source_set_text(cf_source *source, const cf_text *kernel);

/* The same, and set the headers: cf_fbfft_kernel_text and `headers` (NULL: no more). */
conv_fft_status cf_fbfft_set_text(cf_source *source, const char *headers, const cf_text *kernel);

/* The struct of storage.cuh that loads and stores elements of a tensor. */
const char *cf_storage_name(conv_fft_dtype dtype);

#endif
