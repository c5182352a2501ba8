/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the bias as a GPU's stage launches them, in the emulator. */
#ifndef SIMT_BIAS_CASES_H
#define SIMT_BIAS_CASES_H

#include <stddef.h>

/* Failures of all cases that begin with `layout`: "first", "last" or "other". */
int bias_cases_run(const char *layout);

/* What a launch becomes; the emulator's side. 0: it ran without complaint. */
int bias_emulate(unsigned blocks, unsigned threads, size_t shared, const void *call);

#endif
