/* SPDX-License-Identifier: Apache-2.0 */
/* How a transform is cut into blocks, threads and registers: a pure function of the transform and the GPU's facts. */
#ifndef CF_FBFFT_CONFIG_H
#define CF_FBFFT_CONFIG_H

#include "cuda/driver/properties.h"
#include "fbfft.h"

typedef struct cf_fft_config {
    bool inverse;
    int rank;
    int basis[2], extent[2]; /* rank 1: [1] only */
    int lanes;               /* per line: warp_line.cuh */
    int planes;              /* per block; of rank 1: lines */
    int threads, blocks;     /* per block; blocks per multiprocessor that registers must allow */
    bool aligned, quads;     /* 16-byte accesses to spectra; to signals */
    bool bulk;               /* bulk copies of what is read */
    bool pairs;              /* rank 1: real1d_warp.cuh */
    bool scaled;
    int64_t shared;      /* bytes */
    int64_t small_batch; /* of pairs: the largest for which blocks have two warps */
} cf_fft_config;

/* NOT_SUPPORTED: no kernel for it. The desc has been checked. */
conv_fft_status cf_fft_configure(const fbfft_desc *desc, const cf_gpu_properties *properties, cf_fft_config *config);

/* The same for pointers of any alignment. */
cf_fft_config cf_fft_unaligned(const cf_fft_config *config);

/* The same with threads, planes and shared as a launch for this batch should have them. */
cf_fft_config cf_fft_for_batch(const cf_fft_config *config, int64_t batch);

/* The kernel's text behind the device headers; its name is cf_fft. */
#define CF_FFT_OPTION "--device-as-default-execution-space" /* for the lambdas of the kernels */
void cf_fft_emit(const cf_fft_config *config, cf_text *text);

void cf_fft_describe(const cf_fft_config *config, cf_text *text);

#endif
