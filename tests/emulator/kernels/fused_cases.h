/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose fused kernels fused_emit.c writes and test_fused*.cpp run in the emulator: their list and plans. */
#ifndef SIMT_FUSED_CASES_H
#define SIMT_FUSED_CASES_H

#include "conv/fused/fused.h"
#include "cuda/driver/gpu.h"
#include "support/selection.h"

#include <string.h>

typedef struct fused_case {
    const char *problem;           /* its line */
    const char *grid;              /* basis, tiles and, but for `step`, dilation of its strategy's line */
    int passes;                    /* set of conv_fft_pass */
    bool shifted;                  /* tensors off by one element: kernels for any alignment */
    bool strided;                  /* strides by chance */
    const conv_fft_problem *drawn; /* in place of what the line says; NULL: none */
    int64_t shared;                /* bytes of shared memory of a block; 0: all that the GPU has */
    int64_t memory;                /* bytes of the GPU; 0: all that it has */
    bool older;                    /* a GPU of compute capability 8 */
    int64_t processors;            /* so few that there are blocks enough; 0: 2 */
} fused_case;

/* All cases. facts: the file of the GPU's properties. */
int fused_case_list(const char *properties, const fused_case **cases);

/* A line that identifies a case, and whether this run takes it. Valid after fused_case_list(). */
enum {
    FUSED_NAME_BYTES = 1024
};
void fused_case_name(const fused_case *c, char *text, size_t bytes);
test_part fused_case_part(int number);

static inline bool fused_case_is_double(const fused_case *c) { return strstr(c->problem, "fp64") != NULL; }

/* A case with a plan for a GPU that is not installed. */
typedef struct fused_opened {
    conv_fft_problem problem;
    cf_gpu gpu;
    cf_device *device;
    conv_fft_plan *plan;
} fused_opened;

/* On false, conv_fft_last_error() has the reason, and there is nothing to close. `opened` must not move. */
bool fused_case_open(const fused_case *c, int number, const char *properties, fused_opened *opened);
void fused_case_close(fused_opened *opened);

/* Run random tensors through the passes of the case, and check them as layers are checked. Failures are printed. */
bool fused_case_check(const fused_case *c, int number, const fused_opened *opened);

/* The hash by which the text of a kernel is found. */
uint64_t fused_text_hash(const char *text);

#endif
