/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a source of toeplitz_emit.c: the text of a kernel with a unique name, in a namespace, and its
 * Registration. */
#ifndef SIMT_TOEPLITZ_H
#define SIMT_TOEPLITZ_H

#include "conv/toeplitz/weights.cuh"

struct Registration {
    Registration(const char *text, void (*kernel)(cf_toeplitz_call)); /* the whole text */
};

#endif
