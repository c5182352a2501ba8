/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that NVRTC compiles for GPUs that are not there, and what the compiler says of their registers. */
#ifndef TEST_COMPILED_H
#define TEST_COMPILED_H

#include "device/facts.h"
#include "device/jit.h"

typedef struct compiled {
    cf_source source; /* its text belongs to this */
    char name[512];   /* for messages */
    int allowed;      /* bytes of spills, and of local memory in all */
} compiled;

/* False: there is no NVRTC; the sentence has been printed. */
bool compiler_open(cf_jit *jit);

/* Compile all and free their texts. A kernel that does not compile ends the test; returned is how many need more than is allowed, which
 * are printed. */
int compile_kernels(const cf_jit *jit, const cf_gpu_facts *facts, compiled *kernels, int count);

#endif
