/* SPDX-License-Identifier: Apache-2.0 */
/* How a transform is divided into blocks, threads and registers. It depends only on the transform and on the properties
 * of the GPU. */
#ifndef CF_FBFFT_CONFIG_H
#define CF_FBFFT_CONFIG_H

#include "cuda/driver/properties.h"
#include "fbfft.h"

typedef struct cf_fft_config {
    bool inverse;
    int rank;
    int basis[2], extent[2]; /* rank 1 uses [1] only */
    int lanes;               /* of a line: warp_line.cuh */
    int planes;              /* of a block; for rank 1, lines of a block */
    int threads, blocks;     /* threads of a block; blocks that the registers of a multiprocessor must allow */
    bool aligned, quads;     /* 16-byte accesses to spectra; 16-byte accesses to signals */
    bool bulk;               /* input is read by TMA bulk copies */
    bool pairs;              /* rank 1: the kernel of real1d_warp.cuh */
    bool scaled;
    int64_t shared;      /* bytes of a block */
    int64_t small_batch; /* pairs: the largest batch whose blocks have two warps */
} cf_fft_config;

/* NOT_SUPPORTED: no kernel computes it. The description has been checked. */
conv_fft_status cf_fft_configure(const fbfft_desc *desc, const cf_gpu_properties *properties, cf_fft_config *config);

/* The same config for pointers of any alignment. */
cf_fft_config cf_fft_unaligned(const cf_fft_config *config);

/* The same config with the threads, planes and shared memory of a launch for this batch. */
cf_fft_config cf_fft_for_batch(const cf_fft_config *config, int64_t batch);

/* The text of the kernel cf_fft. It follows the device headers. */
#define CF_FFT_OPTION "--device-as-default-execution-space" /* the kernels have lambdas */
void cf_fft_emit(const cf_fft_config *config, cf_text *text);

void cf_fft_describe(const cf_fft_config *config, cf_text *text);

#endif
