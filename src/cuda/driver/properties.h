/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The properties of a GPU that planning needs. They come from the driver, or from a text file for a GPU that is not
 * there: planning can then be tried, and kernels can be compiled for it.
 */
#ifndef CF_CUDA_PROPERTIES_H
#define CF_CUDA_PROPERTIES_H

#include "core/text.h"
#include "cuda/driver/driver.h"

/* X(field and key of the file, CUdevice_attribute, its CUDA name after CU_DEVICE_ATTRIBUTE_, smallest value) */
#define CF_GPU_PROPERTIES(X)                                                  \
    X(compute_major, 75, COMPUTE_CAPABILITY_MAJOR, 1)                         \
    X(compute_minor, 76, COMPUTE_CAPABILITY_MINOR, 0)                         \
    X(multiprocessors, 16, MULTIPROCESSOR_COUNT, 1)                           \
    X(shared_per_block, 97, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 1)             \
    X(shared_per_multiprocessor, 81, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 1) \
    X(shared_reserved_per_block, 111, RESERVED_SHARED_MEMORY_PER_BLOCK, 0)    \
    X(registers_per_multiprocessor, 82, MAX_REGISTERS_PER_MULTIPROCESSOR, 1)  \
    X(threads_per_multiprocessor, 39, MAX_THREADS_PER_MULTIPROCESSOR, 1)      \
    X(blocks_per_multiprocessor, 106, MAX_BLOCKS_PER_MULTIPROCESSOR, 1)       \
    X(l2_bytes, 38, L2_CACHE_SIZE, 1)                                         \
    X(clock_khz, 13, CLOCK_RATE, 1)                                           \
    X(memory_clock_khz, 36, MEMORY_CLOCK_RATE, 1)                             \
    X(memory_bus_bits, 37, GLOBAL_MEMORY_BUS_WIDTH, 1)

typedef struct cf_gpu_properties {
    char name[128];
    int64_t memory_bytes;
#define CF_PROPERTY_MEMBER(field, attribute, cuda_name, minimum) int64_t field;
    CF_GPU_PROPERTIES(CF_PROPERTY_MEMBER)
#undef CF_PROPERTY_MEMBER
} cf_gpu_properties;

conv_fft_status cf_gpu_properties_read(const cf_driver *driver, cf_cu_device device, cf_gpu_properties *properties);

/* Read a file of key=value lines; `#` starts a comment. It has name, memory_bytes and every property above once.
 * IO_ERROR: the file cannot be read. INVALID_ARGUMENT: the sentence names file, line and key. */
conv_fft_status cf_gpu_properties_load(const char *path, cf_gpu_properties *properties);

/* Write the properties in the format of such a file, each line after `indent`. */
void cf_gpu_properties_format(const cf_gpu_properties *properties, const char *indent, cf_text *text);

/* The architecture that kernels are compiled for: "sm_80", "sm_90a". */
#define CF_ARCHITECTURE_BYTES 16
void cf_gpu_architecture(const cf_gpu_properties *properties, char architecture[CF_ARCHITECTURE_BYTES]);

#endif
