/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device and the operations that its files contribute to the stage interface. */
#ifndef CF_CPU_DEVICE_H
#define CF_CPU_DEVICE_H

#include "cpu/backend.h"
#include "cpu/fft/kernels.h"
#include "cpu/gemm/openblas.h"

typedef struct cf_cpu_device {
    cf_device base;
    const cf_kernels *kernels;
    cf_blas blas;
    char description[512];
} cf_cpu_device;

static inline const cf_cpu_device *cf_cpu(const cf_device *device) { return (const cf_cpu_device *)device; }

/* The number of threads for `work`, the larger number of floating-point operations and bytes, in `tasks` that can run
 * in parallel. It grows with the work, and is one if waking other threads would cost more than it saves. */
int cf_cpu_threads(const cf_device *device, int64_t tasks, double work);

/* Every set of kernels that was built and that this CPU can run, best first; `*count` of them. */
const cf_kernels *const *cf_cpu_kernels_list(int *count);

conv_fft_status cf_cpu_transform_create(cf_device *device, const cf_transform_desc *desc, cf_transform **transform);
void cf_cpu_transform_destroy(cf_transform *transform);
size_t cf_cpu_transform_scratch(const cf_transform *transform, int64_t rows);
conv_fft_status cf_cpu_forward(const cf_transform *transform, const void *tensor, cf_origin origin, cf_block block,
                               void *scratch, struct CUstream_st *stream);
conv_fft_status cf_cpu_inverse(const cf_transform *transform, cf_block block, void *tensor, cf_origin origin,
                               const void *bias, bool accumulate, void *scratch, struct CUstream_st *stream);
conv_fft_status cf_cpu_cgemm(cf_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                             bool accumulate, void *scratch, struct CUstream_st *stream);
conv_fft_status cf_cpu_convolution_create(cf_device *device, const cf_convolution_desc *desc,
                                          cf_convolution **convolution);
void cf_cpu_convolution_destroy(cf_convolution *convolution);
size_t cf_cpu_convolution_scratch(const cf_convolution *convolution);
conv_fft_status cf_cpu_convolve(const cf_convolution *convolution, void *x, void *w, void *y, const void *bias,
                                bool accumulate, void *scratch, struct CUstream_st *stream);
double cf_cpu_convolution_seconds(const cf_device *device, const cf_convolution_desc *desc);
conv_fft_status cf_cpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream);
conv_fft_status cf_cpu_bias_gradient(cf_device *device, const cf_bias_desc *desc, const void *gy, void *gbias,
                                     bool accumulate, void *scratch, struct CUstream_st *stream);
conv_fft_status cf_cpu_clear(cf_device *device, void *memory, size_t bytes, struct CUstream_st *stream);
conv_fft_status cf_cpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream);

conv_fft_status cf_cpu_allocate(cf_device *device, size_t bytes, void **memory);
conv_fft_status cf_cpu_write(cf_device *device, void *memory, const void *host, size_t bytes);
void cf_cpu_release(cf_device *device, void *memory);
conv_fft_status cf_cpu_timer_create(cf_device *device, cf_timer **timer);
void cf_cpu_timer_destroy(cf_timer *timer);
conv_fft_status cf_cpu_timer_mark(cf_timer *timer, int mark, struct CUstream_st *stream);
conv_fft_status cf_cpu_timer_seconds(cf_timer *timer, int mark, double *seconds);

#endif
