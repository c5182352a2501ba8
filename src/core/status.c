/* SPDX-License-Identifier: Apache-2.0 */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char last_error[1024];

conv_fft_status cf_fail(conv_fft_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

conv_fft_status cf_fail_memory(size_t bytes, const char *what) {
    return cf_fail(CONV_FFT_OUT_OF_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}

const char *conv_fft_last_error(void) { return last_error; }

const char *conv_fft_status_string(conv_fft_status status) {
    switch (status) {
#define CF_CASE(name, value, text) \
    case CONV_FFT_##name:          \
        return text;
        CONV_FFT_STATUS_LIST(CF_CASE)
#undef CF_CASE
    }
    return "unknown status";
}
