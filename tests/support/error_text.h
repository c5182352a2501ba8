/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of a refused call: its status and its message. For cmocka programs; include cmocka.h first. */
#ifndef TEST_SENTENCE_H
#define TEST_SENTENCE_H

#include "conv_fft.h"

#include <string.h>

/* `parts` ends with NULL; the message must contain each part. */
static inline void expect_refused_(conv_fft_status status, conv_fft_status wanted, const char *const *parts,
                                   const char *call, const char *file, int line) {
    if (status != wanted) {
        print_error("%s: status is \"%s\", not \"%s\"\n", call, conv_fft_status_string(status),
                    conv_fft_status_string(wanted));
        _fail(file, line);
    }
    for (; *parts; parts++)
        if (!strstr(conv_fft_last_error(), *parts)) {
            print_error("%s: the sentence lacks \"%s\": %s\n", call, *parts, conv_fft_last_error());
            _fail(file, line);
        }
}

/** The call is refused with this status (written without its prefix), and the message contains all of the texts. */
#define EXPECT(status, call, ...) \
    expect_refused_(call, CONV_FFT_##status, (const char *const[]){__VA_ARGS__, NULL}, #call, __FILE__, __LINE__)

/** The same for INVALID_ARGUMENT. */
#define EXPECT_INVALID(call, ...) EXPECT(INVALID_ARGUMENT, call, __VA_ARGS__)

#endif
