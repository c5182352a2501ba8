/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a plan, listed by the parts of the plan, and then compiled and loaded together. */
#ifndef CF_CUDA_BUILD_LIST_H
#define CF_CUDA_BUILD_LIST_H

#include "cuda/jit/kernel.h"

#include <pthread.h>

typedef struct cf_build_list cf_build_list;

/* OUT_OF_MEMORY. */
conv_fft_status cf_build_list_create(cf_gpu *gpu, cf_build_list **list);

/*
 * Add a kernel. The list takes source->text, which was allocated, also after a failure. *slot becomes the kernel when
 * the list ends, and stays NULL until then and after a failure. OUT_OF_MEMORY.
 *
 * mutex: NULL, or the lock of a slot that several plans share. A slot that has a kernel already keeps it.
 */
conv_fft_status cf_build_list_add(cf_build_list *list, const cf_source *source, cf_kernel **slot,
                                  pthread_mutex_t *mutex);

/* If status is SUCCESS, compile and load all kernels, as cf_kernels_build(). Destroy the list. Returns the first
 * failure. */
conv_fft_status cf_build_list_end(cf_build_list *list, conv_fft_status status);

#endif
