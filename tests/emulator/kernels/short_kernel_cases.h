/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of families toeplitz, dft, implicit_gemm and spatial, whose kernels short_kernels_emit.c writes and
 * test_short_kernels.cpp runs in the emulator. */
#ifndef SIMT_SHORT_KERNEL_CASES_H
#define SIMT_SHORT_KERNEL_CASES_H

#include "conv/dft/dft.h"
#include "conv/implicit_gemm/implicit_gemm.h"
#include "conv/spatial/spatial.h"
#include "conv/toeplitz/toeplitz.h"
#include "cuda/driver/gpu.h"
#include "support/selection.h"

typedef struct short_case {
    const char *problem;      /* its line; with it the case is selected */
    bool spatial, dft, igemm; /* family spatial, dft, or implicit_gemm without gx; else toeplitz */
    int passes;               /* set of conv_fft_pass; 0: all */
    bool shifted;             /* tensors off by one element: kernels for any alignment */
    bool constant;            /* elements of x and w are equal: the largest sums that there are */
    bool spoiled;             /* also with a NaN in one channel of one sample */
    int64_t processors;       /* of the GPU: so few that there are several items per block; 0: 1 */
    int64_t shared;           /* bytes of shared memory of a block; 0: all that the GPU has */
} short_case;

/* All cases, and whether this run takes each. Valid after short_case_list(). */
int short_case_list(const short_case **cases);
test_part short_case_part(int number);

/* A case with a plan for a GPU that is not installed. */
typedef struct short_opened {
    cf_gpu gpu;
    cf_device *device;
    conv_fft_problem problem;
    conv_fft_plan *plan;
} short_opened;

/* On false, conv_fft_last_error() has the reason, and there is nothing to close. `opened` must not move. */
bool short_case_open(const short_case *c, const char *properties, short_opened *opened);
void short_case_close(short_opened *opened);

/* Run random tensors through the passes of the case, and compare the results with the reference. Failures are
 * printed. */
bool short_case_check(const short_case *c, int number, const short_opened *opened);

#endif
