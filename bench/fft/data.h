/* SPDX-License-Identifier: Apache-2.0 */
/* The input of a case, and the error of its output. */
#ifndef BENCH_FFT_DATA_H
#define BENCH_FFT_DATA_H

#include "fft/cases.h"
#include "fft/cufft.h"

/* One case in one direction. */
typedef struct fft_job {
    const fft_case *c;
    bool inverse;
    cf_gpu *gpu;
    conv_fft_context *context;
    const fft_cufft *cufft;
    cf_cu_stream stream;
    void *in, *out; /* device memory; `in` is never written to */
    size_t in_bytes, out_bytes;
    float *block; /* on the host: the first planes of `in`, in natural order; further planes repeat them */
    int64_t block_planes;
    double *expected; /* sampled planes, in natural order */
} fft_job;

/* Fill in job.in and all members below it. Inputs are random. Spectra of real signals are Hermitian. */
conv_fft_status fft_data_create(fft_job *job);
void fft_data_destroy(fft_job *job);

/* Write the input in natural order to in_bytes of device memory, whatever order the case has. */
conv_fft_status fft_natural_input(const fft_job *job, void *to);

/* Overwrite the output with NaN. */
conv_fft_status fft_poison(const fft_job *job);

/* ||out - exact|| / ||exact|| over the sampled planes. NaN if an output is NaN. natural: the output is in natural
 * order, whatever order the case has. */
conv_fft_status fft_error(const fft_job *job, bool natural, double *error);

#endif
