/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as a device of layers (core/device_ops.h): with fbfft's transforms, cuBLAS, and the kernels of the small
 * operations. */
#ifndef CF_CONV_GPU_H
#define CF_CONV_GPU_H

#include "core/device_ops.h"
#include "cuda/driver/gpu.h"

/* Create the device. Nothing is opened or compiled. The GPU must outlive it. OUT_OF_MEMORY. */
conv_fft_status cf_gpu_layers_create(cf_gpu *gpu, cf_device **device);
void cf_gpu_layers_destroy(cf_device *device); /* NULL is allowed */

#endif
