/* SPDX-License-Identifier: Apache-2.0 */
/* The file CONV_FFT_RECORD: problem lines for which plans found no record. Each process writes a line once. */
#ifndef CF_AUTOTUNE_UNTUNED_LOG_H
#define CF_AUTOTUNE_UNTUNED_LOG_H

#include "core/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero is a valid initial value. */
typedef struct cf_untuned {
    uint64_t *noted; /* hashes of the problems that were written */
    size_t count, capacity;
    bool failed; /* writing has failed, and a warning was logged */
} cf_untuned;

void cf_untuned_clear(cf_untuned *untuned);

/* Add a problem to the file, if CONV_FFT_RECORD names one. If it cannot be written, one warning is logged. */
void cf_untuned_note(cf_untuned *untuned, conv_fft_log_level level, const char *problem);

#endif
