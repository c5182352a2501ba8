/* SPDX-License-Identifier: Apache-2.0 */
/* The file CONV_FFT_RECORD: problem lines for which plans found no record, each once for every process. */
#ifndef CF_AUTOTUNE_UNTUNED_LOG_H
#define CF_AUTOTUNE_UNTUNED_LOG_H

#include "core/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero: nothing was noted. */
typedef struct cf_untuned {
    uint64_t *noted; /* hashes of the problems that were written */
    size_t count, room;
    bool failed; /* which has been said */
} cf_untuned;

void cf_untuned_clear(cf_untuned *untuned);

/* Add a problem to the file, if there is one. That it cannot be written is one warning. */
void cf_untuned_note(cf_untuned *untuned, conv_fft_log_level level, const char *problem);

#endif
