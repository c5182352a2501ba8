/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cuFFT. */
#ifndef BENCH_FFT_CUFFT_H
#define BENCH_FFT_CUFFT_H

#include "cuda/driver/memory.h"

typedef int fft_cufft_plan;
struct float2;
struct double2;

/* X(member, parameters). A member has the name of the exported symbol. */
#define FFT_CUFFT_FUNCTIONS(X)                                                                                     \
    X(cufftGetProperty, (unsigned property, int *value))                                                           \
    X(cufftPlanMany, (fft_cufft_plan * plan, int rank, int *n, int *in_embed, int in_stride, int in_distance,      \
                      int *out_embed, int out_stride, int out_distance, unsigned type, int batch))                 \
    X(cufftCreate, (fft_cufft_plan * plan))                                                                        \
    X(cufftXtMakePlanMany, (fft_cufft_plan plan, int rank, long long *n, long long *in_embed, long long in_stride, \
                            long long in_distance, int in_type, long long *out_embed, long long out_stride,        \
                            long long out_distance, int out_type, long long batch, size_t *bytes, int type))       \
    X(cufftXtExec, (fft_cufft_plan plan, void *in, void *out, int direction))                                      \
    X(cufftGetSize, (fft_cufft_plan plan, size_t * bytes))                                                         \
    X(cufftSetStream, (fft_cufft_plan plan, cf_cu_stream stream))                                                  \
    X(cufftExecR2C, (fft_cufft_plan plan, float *in, struct float2 *out))                                          \
    X(cufftExecC2R, (fft_cufft_plan plan, struct float2 * in, float *out))                                         \
    X(cufftExecC2C, (fft_cufft_plan plan, struct float2 * in, struct float2 * out, int direction))                 \
    X(cufftExecD2Z, (fft_cufft_plan plan, double *in, struct double2 *out))                                        \
    X(cufftExecZ2D, (fft_cufft_plan plan, struct double2 * in, double *out))                                       \
    X(cufftDestroy, (fft_cufft_plan plan))

typedef struct fft_cufft {
    cf_library library;
#define FFT_CUFFT_MEMBER(member, parameters) unsigned(*member) parameters;
    FFT_CUFFT_FUNCTIONS(FFT_CUFFT_MEMBER)
#undef FFT_CUFFT_MEMBER
} fft_cufft;

/* LIBRARY_MISSING: library.problem tells why. */
conv_fft_status fft_cufft_open(fft_cufft *cufft, const cf_gpu *gpu);

#endif
