/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/common/kernel_text.h"

#include "cuda/jit/kernel_sources.h"

#include <string.h>

conv_fft_status cf_source_set_text(cf_source *source, const cf_text *kernel) {
    if (kernel->length >= kernel->bytes)
        return cf_fail(CONV_FFT_INTERNAL_ERROR, "the text of a kernel has %zu bytes; its buffer has %zu",
                       kernel->length, kernel->bytes - 1);
    source->text = strdup(kernel->text);
    return source->text ? CONV_FFT_SUCCESS : cf_fail_memory(kernel->length + 1, "the text of a kernel");
}

conv_fft_status cf_fbfft_set_text(cf_source *source, const char *headers, const cf_text *kernel) {
    source->headers[0] = cf_fbfft_kernel_text;
    source->headers[1] = headers;
    return cf_source_set_text(source, kernel);
}

const char *cf_storage_name(conv_fft_dtype dtype) {
    return dtype == CONV_FFT_FP16 ? "fp16" : dtype == CONV_FFT_BF16 ? "bf16" : "plain";
}
