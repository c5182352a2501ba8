/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/common/kernel_text.h"

#include "cuda/jit/kernel_sources.h"

#include <stdlib.h>
#include <string.h>

conv_fft_status cf_fbfft_join_text(const char *headers, const char *kernel, char **text) {
    const size_t first = strlen(cf_fbfft_kernel_text), second = strlen(headers), last = strlen(kernel) + 1;
    *text = malloc(first + second + last);
    if (!*text)
        return cf_fail_memory(first + second + last, "the text of a kernel");
    memcpy(*text, cf_fbfft_kernel_text, first);
    memcpy(*text + first, headers, second);
    memcpy(*text + first + second, kernel, last);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fbfft_join_emitted(const char *headers, const cf_text *kernel, char **text) {
    if (kernel->length >= kernel->bytes)
        return cf_fail(CONV_FFT_INTERNAL_ERROR, "the text of a kernel has %zu bytes; its buffer has %zu",
                       kernel->length, kernel->bytes - 1);
    return cf_fbfft_join_text(headers, kernel->text, text);
}

const char *cf_storage_name(conv_fft_dtype dtype) {
    return dtype == CONV_FFT_FP16 ? "fp16" : dtype == CONV_FFT_BF16 ? "bf16" : "plain";
}
