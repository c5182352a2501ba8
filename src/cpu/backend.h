/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a device: the stage interface by vectorised transforms over planes, and OpenBLAS. */
#ifndef CF_CPU_CPU_H
#define CF_CPU_CPU_H

#include "core/device_ops.h"
#include "core/log.h"

/* threads: the number that a call may use; 0: OpenMP's current maximum, but at most
 * the processors that the affinity mask and the quota of the control groups allow. OUT_OF_MEMORY. */
conv_fft_status cf_cpu_create(int threads, conv_fft_log_level level, cf_device **device);
void cf_cpu_destroy(cf_device *device);

/* One line: instruction set, threads, BLAS. Lives as long as the device. */
const char *cf_cpu_description(const cf_device *device);

/* The transforms of fbfft.h. They take any number of rows (batch entries), and every dimension of the spectrum has a
 * stride. Signals may be complex: then an element of the tensor is two numbers, and the spectrum has all bins. */
typedef struct cf_cpu_strides {
    int64_t row, column, bin[3]; /* complex numbers */
} cf_cpu_strides;

conv_fft_status cf_cpu_planes_create(cf_device *device, const cf_transform_desc *desc, bool complex_signal,
                                     cf_transform **transform);
void cf_cpu_planes_destroy(cf_transform *transform);
/* Bytes that a run over `rows` rows may use. */
size_t cf_cpu_planes_scratch(const cf_transform *transform, int64_t rows);
/* From tensor to spectrum; an inverse transform: from spectrum to tensor. */
void cf_cpu_planes_run(const cf_transform *transform, const void *in, void *out, int64_t rows, cf_cpu_strides strides,
                       void *scratch);

/* Transforms from and to dense planes of complex FP16 numbers. The axes are powers of two, at most 2^24. */
typedef struct cf_cpu_c2c_fp16 cf_cpu_c2c_fp16;
conv_fft_status cf_cpu_c2c_fp16_create(const cf_device *device, const int64_t basis[2], bool inverse, double scale,
                                       cf_cpu_c2c_fp16 **half);
void cf_cpu_c2c_fp16_destroy(cf_cpu_c2c_fp16 *half); /* NULL is allowed */
size_t cf_cpu_c2c_fp16_scratch(const cf_cpu_c2c_fp16 *half, int64_t planes);
void cf_cpu_c2c_fp16_run(const cf_cpu_c2c_fp16 *half, const void *in, void *out, int64_t planes, void *scratch);

#endif
