/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses, the thread's last error, and the macros that return after a failure. */
#ifndef CF_CORE_STATUS_H
#define CF_CORE_STATUS_H

#include "conv_fft.h"

#if defined(__GNUC__)
#define CF_PRINTF(format_at, arguments_at) __attribute__((format(printf, format_at, arguments_at)))
#else
#define CF_PRINTF(format_at, arguments_at)
#endif

/* Record the sentence as this thread's last error and return `status`. */
conv_fft_status cf_fail(conv_fft_status status, const char *format, ...) CF_PRINTF(2, 3);
conv_fft_status cf_fail_memory(size_t bytes, const char *what);

#define CF_REQUIRE(condition, ...)                                  \
    do {                                                            \
        if (!(condition))                                           \
            return cf_fail(CONV_FFT_INVALID_ARGUMENT, __VA_ARGS__); \
    } while (0)

#define CF_FORWARD(call)                           \
    do {                                           \
        const conv_fft_status cf_status_ = (call); \
        if (cf_status_ != CONV_FFT_SUCCESS)        \
            return cf_status_;                     \
    } while (0)

#endif
