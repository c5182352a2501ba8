/* SPDX-License-Identifier: Apache-2.0 */
/* Layers whose Toeplitz kernels toeplitz_emit.c writes and test_toeplitz.cpp runs in the emulator. */
#ifndef SIMT_TOEPLITZ_CASES_H
#define SIMT_TOEPLITZ_CASES_H

#include "conv/toeplitz/toeplitz.h"
#include "cuda/driver/gpu.h"
#include "support/selection.h"

typedef struct toeplitz_case {
    const char *problem; /* its line; with it the case is selected */
    int passes;          /* set of conv_fft_pass; 0: all */
    bool shifted;        /* tensors off by one element: kernels for any alignment */
    bool spoiled;        /* also with a NaN in one channel of one sample */
    int64_t processors;  /* of the GPU: so few that there are several items per block; 0: 1 */
    int64_t shared;      /* bytes of shared memory of a block; 0: all that the GPU has */
} toeplitz_case;

/* All cases, and whether this run takes each. Valid after toeplitz_case_list(). */
int toeplitz_case_list(const toeplitz_case **cases);
test_part toeplitz_case_part(int number);

/* A case with a plan for a GPU that is not installed. */
typedef struct toeplitz_opened {
    cf_gpu gpu;
    cf_device *device;
    conv_fft_problem problem;
    conv_fft_plan *plan;
} toeplitz_opened;

/* On false, conv_fft_last_error() has the reason, and there is nothing to close. `opened` must not move. */
bool toeplitz_case_open(const toeplitz_case *c, const char *properties, toeplitz_opened *opened);
void toeplitz_case_close(toeplitz_opened *opened);

/* Run random tensors through the passes of the case, and compare the results with the reference. Failures are
 * printed. */
bool toeplitz_case_check(const toeplitz_case *c, int number, const toeplitz_opened *opened);

#endif
