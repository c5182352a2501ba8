/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the bias, launched as on a GPU, in the emulator. */
#ifndef SIMT_BIAS_CASES_H
#define SIMT_BIAS_CASES_H

#include <stddef.h>

/* Returns the failures of all cases that begin with `layout`: "first", "last" or "other". */
int bias_cases_run(const char *layout);

/* Run a launch in the emulator. 0: it ran without errors. */
int bias_emulate(unsigned blocks, unsigned threads, size_t shared, const void *call);

#endif
