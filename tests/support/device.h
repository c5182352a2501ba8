/* SPDX-License-Identifier: Apache-2.0 */
/* The device that a program's tests of layers run on: the CPU or GPU 0. For a GPU, tensors and workspaces are host
 * memory that the GPU accesses in place, so tests read them as on the CPU. Every thread except the first has its own
 * stream. A test waits for a call before it reads the results. */
#ifndef TEST_DEVICE_H
#define TEST_DEVICE_H

#include "cuda/driver/gpu.h"
#include "support/case_list.h"

/* Group setup and teardown of cmocka. After setup there is device_context(), or NULL without a GPU or a compiler for
 * it. */
int device_cpu_setup(void **state);
int device_gpu_setup(void **state);
int device_teardown(void **state);

conv_fft_context *device_context(void);
/* NULL on the CPU. */
cf_gpu *device_gpu(void);

/* First line of a test that may run without a device. */
#define NEED_DEVICE(state) \
    (void)(state);         \
    if (!device_context()) \
    skip()

/* Memory that host and device share; never NULL. Before a setup it comes from malloc(). */
void *device_memory(size_t bytes);
/* `bytes` is the size of the allocation. */
void device_memory_free(void *memory, size_t bytes);

/* The calling thread's stream; NULL on the CPU and in the thread of the setup. */
struct CUstream_st *device_stream(void);
/* Wait for all work of the calling thread's stream. */
conv_fft_status device_wait(void);

/* check(i, argument) for all cases of the list, which becomes empty. On a GPU the selected cases run in parallel,
 * because compiling their kernels takes most of the time. On the CPU all cases run one after the other. check() must
 * not call cmocka. Returns how many cases ran. */
int64_t device_each(case_list *list, void (*check)(int64_t i, void *argument), void *argument);

#endif
