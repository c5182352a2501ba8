/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include "conv_fft.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *command_name = "";

void usage_of(const char *command) { command_name = command; }

int usage_error(const char *what, const char *value) {
    const bool question = what[0] != '\0' && what[strlen(what) - 1] == '?' && !value;
    fprintf(stderr, "%s: %s%s%s%s %s%s%s --help\n", program_name, what, value ? ": " : "", value ? value : "",
            question ? " See" : "; see", program_name, command_name[0] ? " " : "", command_name);
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
