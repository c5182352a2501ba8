/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for tensors on the device of a context: of the host, or of a GPU through its driver. */
#ifndef CONV_FFT_PROGRAM_DEVICE_MEMORY_H
#define CONV_FFT_PROGRAM_DEVICE_MEMORY_H

#include "conv_fft.h"

#include <stdbool.h>

typedef struct device_memory device_memory;

/* NULL: a message has been written. */
device_memory *device_memory_open(const conv_fft_context *context);
void device_memory_close(device_memory *m);

/* NULL: there is no memory. A size of 0 gives memory, too. */
void *device_memory_get(device_memory *m, size_t bytes);
void device_memory_release(device_memory *m, void *memory);

/* Copy to the device, or from it after all calls on the default stream. False: a message has been written. */
bool device_memory_write(device_memory *m, void *to, const void *from, size_t bytes);
bool device_memory_read(device_memory *m, void *to, const void *from, size_t bytes);

#endif
