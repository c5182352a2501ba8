/* SPDX-License-Identifier: Apache-2.0 */
/* C++ sources that a program writes for the emulator. PREFIX_core_N.cpp change only with the kernels,
 * PREFIX_share_N.cpp also with the seed, and PREFIX_selection.cpp says how the cases were chosen. A file whose text is
 * unchanged is not written again. */
#ifndef SIMT_EMIT_H
#define SIMT_EMIT_H

#include "support/selection.h"

#include <stdio.h>

enum {
    EMIT_MAX_UNITS = 64
};

typedef struct emission {
    const char *prefix;
    int units[2], next[2]; /* of the core, of the share */
    FILE *stream[2][EMIT_MAX_UNITS];
    char *text[2][EMIT_MAX_UNITS];
    size_t bytes[2][EMIT_MAX_UNITS];
} emission;

/* Every source begins with #include "header". The program ends if memory is missing. */
void emission_open(emission *e, const char *prefix, const char *header, int core_units, int share_units);

/* The source for the next case of this part. Sources alternate. */
FILE *emission_next(emission *e, test_part part);

/* Write the files. Returns the exit status of the program. */
int emission_close(emission *e);

#endif
