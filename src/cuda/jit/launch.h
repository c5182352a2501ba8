/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of kernels, and recordings of launches (core/recording.h). */
#ifndef CF_CUDA_LAUNCH_H
#define CF_CUDA_LAUNCH_H

#include "core/recording.h"
#include "cuda/jit/kernel.h"

/* Launch a kernel. While this thread records, the launch is recorded instead.
 * parameters: the address of each parameter of the kernel, in order. The message of a failure names the kernel.
 * NOT_SUPPORTED: kernel is NULL, because a plan for aligned tensors has no kernel for tensors at any address. */
conv_fft_status cf_kernel_launch(const cf_kernel *kernel, const cf_launch *launch, void **parameters,
                                 cf_cu_stream stream);

/* Set bytes of memory to zero; or record that, as above. */
conv_fft_status cf_clear_launch(const cf_gpu *gpu, void *memory, size_t bytes, cf_cu_stream stream);

/* This thread records all launches until cf_recording_end(). */
void cf_recording_begin(void);
/* NULL: a launch could not be recorded, there were too many of them, or memory is short. */
cf_recording *cf_recording_end(void);
/* Whether this thread records. Work other than launches asks first. If the thread records, the work is not done, and
 * there is no recording. */
bool cf_recording_refused(void);

/* Launch what was recorded. arguments: an address or NULL for each CF_ARGUMENT. The context is current. */
conv_fft_status cf_recording_launch(const cf_recording *recording, const void *const arguments[CF_ARGUMENT_COUNT],
                                    cf_cu_stream stream);
void cf_recording_destroy(cf_recording *recording); /* NULL is allowed */

#endif
