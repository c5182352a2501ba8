/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of kernels that NVRTC compiles for GPUs that are not there, and what the compiler says of their registers.
 *
 * What it said of a kernel is kept in a folder of the build tree, under a hash of the kernel's text, its options,
 * the architecture and NVRTC. A kernel that has not changed is not compiled again.
 *
 *     CONV_FFT_TEST_REQUIRE    a list of words; with the word nvrtc, it is a failure if NVRTC is missing
 *     CONV_FFT_TEST_CORE       `write`: compile every kernel, then write tests/data/core/LIST.txt, the kernels that
 *                              every run compiles
 *
 * selection.h has the variables that choose the kernels of one run. */
#ifndef TEST_NVRTC_COMPILE_H
#define TEST_NVRTC_COMPILE_H

#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"

/* What the compiler says of one kernel. */
typedef struct nvrtc_result {
    int stack, spills; /* bytes of local memory, and of these, what registers are spilled to */
    int registers;     /* of a thread */
    int milliseconds;  /* of CPU time that the compiler took */
} nvrtc_result;

/* The result comes from `folder` if it is kept there; otherwise the kernel is compiled, and its result is kept
 * there. An entry that is cut short, changed, or of another kernel counts as none. Failures are those of
 * cf_jit_compile(), and are not kept. */
conv_fft_status nvrtc_compile(const cf_jit *jit, const char *folder, const char *architecture, const cf_source *source,
                              nvrtc_result *result);

typedef struct nvrtc_kernel {
    cf_source source; /* its text belongs to this */
    char architecture[CF_ARCHITECTURE_BYTES];
    char name[512]; /* begins with the architecture */
    char kind[128]; /* the core has one of each */
    int allowed;    /* bytes of spills, and of local memory in all */
    nvrtc_result result;
} nvrtc_kernel;

typedef struct nvrtc_list {
    const char *name; /* test_NAME is the program */
    nvrtc_kernel *kernels;
    int count, capacity;
} nvrtc_list;

/* A kernel at the end of the list. The architecture is put before its kind and its name; the caller fills in the
 * source. */
nvrtc_kernel *nvrtc_list_add(nvrtc_list *list, const cf_gpu_properties *properties, int allowed, const char *kind,
                             const char *name);

/* The program test_NAME: compiles the kernels that this run takes of those that `add_kernels` adds, and prints a
 * line for each that does not compile or that needs more than is allowed. Returns what main() returns: 0, 1, or 77
 * if NVRTC is missing, which CTest counts as skipped. */
int nvrtc_list_run(const char *name, void (*add_kernels)(nvrtc_list *list));

#endif
