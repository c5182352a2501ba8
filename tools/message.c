/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include "conv_fft.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int usage_error(const char *what, const char *value) {
    fprintf(stderr, "%s: %s%s%s; see %s --help\n", program_name, what, value ? ": " : "", value ? value : "",
            program_name);
    return 2;
}

int library_error(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", program_name, what, conv_fft_last_error());
    return 1;
}

int read_error(const char *file) {
    fprintf(stderr, "%s: cannot read %s: %s\n", program_name, file, strerror(errno));
    return 1;
}
