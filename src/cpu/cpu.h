/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a device: the stage interface by vectorised transforms over planes, OpenBLAS and OpenMP. */
#ifndef CF_CPU_CPU_H
#define CF_CPU_CPU_H

#include "core/log.h"
#include "core/stage.h"

/* threads that a call may use; 0: OpenMP's maximum now. OUT_OF_MEMORY. */
conv_fft_status cf_cpu_create(int threads, conv_fft_log_level level, cf_device **device);
void cf_cpu_destroy(cf_device *device);

/* One line: instruction set, threads, BLAS. Lives as long as the device. */
const char *cf_cpu_description(const cf_device *device);

#endif
