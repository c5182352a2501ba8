/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver, libcuda: the functions that the library calls, and what their results mean. They are declared here,
 * so that no CUDA header is needed. tests/checks/cuda_declarations.c compares the declarations with CUDA's headers.
 */
#ifndef CF_DEVICE_DRIVER_H
#define CF_DEVICE_DRIVER_H

#include "cuda/driver/dynlib.h"

#include <stdint.h>

/* CUDA's enumerations, as integers of the same type. */
typedef unsigned cf_cu_result, cf_cu_attribute, cf_cu_function_attribute, cf_cu_capture_mode, cf_cu_pointer_attribute,
    cf_cu_capture_status;
typedef int cf_cu_device;
typedef unsigned long long cf_cu_pointer; /* device memory */
typedef struct CUctx_st *cf_cu_context;
typedef struct CUmod_st *cf_cu_module;
typedef struct CUfunc_st *cf_cu_function;
typedef struct CUstream_st *cf_cu_stream;
typedef struct CUevent_st *cf_cu_event;
struct CUlaunchConfig_st; /* cf_cu_launch_config */

/* X(name, CUDA's name, value) */
#define CF_CU_CONSTANTS(X)                                                                         \
    X(CF_CU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, 1)                                            \
    X(CF_CU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY, 2)                                            \
    X(CF_CU_STUB_LIBRARY, CUDA_ERROR_STUB_LIBRARY, 34)                                             \
    X(CF_CU_NO_DEVICE, CUDA_ERROR_NO_DEVICE, 100)                                                  \
    X(CF_CU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE, 101)                                        \
    X(CF_CU_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE, 200)                                          \
    X(CF_CU_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU, 209)                                  \
    X(CF_CU_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                        \
    X(CF_CU_FUNCTION_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                         \
    X(CF_CU_FUNCTION_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                           \
    X(CF_CU_FUNCTION_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                     \
    X(CF_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8) \
    X(CF_CU_MEMORY_OF_HOST, CU_MEMORYTYPE_HOST, 1)                                                 \
    X(CF_CU_MEMORY_OF_DEVICE, CU_MEMORYTYPE_DEVICE, 2)                                             \
    X(CF_CU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                              \
    X(CF_CU_POINTER_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                        \
    X(CF_CU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                \
    X(CF_CU_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                        \
    X(CF_CU_POINTER_IS_LEGACY_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10)    \
    X(CF_CU_POINTER_RANGE_START, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                        \
    X(CF_CU_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                               \
    X(CF_CU_POINTER_ACCESS_FLAGS, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 16)                           \
    X(CF_CU_ACCESS_READWRITE, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE, 3)                       \
    X(CF_CU_LAUNCH_OVERLAPS, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)             \
    X(CF_CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                                        \
    X(CF_CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                    \
    X(CF_CU_NOT_CAPTURING, CU_STREAM_CAPTURE_STATUS_NONE, 0)

#define CF_CU_ENUMERATOR(name, cuda_name, value) name = value,
enum {
    CF_CU_CONSTANTS(CF_CU_ENUMERATOR)
};
#undef CF_CU_ENUMERATOR

/* The argument of cuLaunchKernelEx(), with the layout of CUlaunchConfig and CUlaunchAttribute. */
typedef struct cf_cu_launch_attribute {
    unsigned id;
    union {
        int value;
        uint64_t padding[8];
    };
} cf_cu_launch_attribute;
typedef struct cf_cu_launch_config {
    unsigned grid[3], block[3], dynamic_shared_bytes;
    cf_cu_stream stream;
    cf_cu_launch_attribute *attributes;
    unsigned attribute_count;
} cf_cu_launch_config;

/* X(member of cf_driver, exported symbol, parameters) */
#define CF_DRIVER_FUNCTIONS(X)                                                                                      \
    X(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                                       \
    X(cuInit, cuInit, (unsigned flags))                                                                             \
    X(cuGetErrorName, cuGetErrorName, (cf_cu_result result, const char **text))                                     \
    X(cuGetErrorString, cuGetErrorString, (cf_cu_result result, const char **text))                                 \
    X(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                                             \
    X(cuDeviceGet, cuDeviceGet, (cf_cu_device * device, int ordinal))                                               \
    X(cuDeviceGetName, cuDeviceGetName, (char *name, int bytes, cf_cu_device device))                               \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *value, cf_cu_attribute attribute, cf_cu_device device))     \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, cf_cu_device device))                                 \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (cf_cu_context * context, cf_cu_device device))           \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cf_cu_device device))                               \
    X(cuCtxPushCurrent, cuCtxPushCurrent_v2, (cf_cu_context context))                                               \
    X(cuCtxPopCurrent, cuCtxPopCurrent_v2, (cf_cu_context * context))                                               \
    X(cuModuleLoadData, cuModuleLoadData, (cf_cu_module * module, const void *image))                               \
    X(cuModuleUnload, cuModuleUnload, (cf_cu_module module))                                                        \
    X(cuModuleGetFunction, cuModuleGetFunction, (cf_cu_function * function, cf_cu_module module, const char *name)) \
    X(cuFuncGetAttribute, cuFuncGetAttribute,                                                                       \
      (int *value, cf_cu_function_attribute attribute, cf_cu_function function))                                    \
    X(cuFuncSetAttribute, cuFuncSetAttribute,                                                                       \
      (cf_cu_function function, cf_cu_function_attribute attribute, int value))                                     \
    X(cuLaunchKernelEx, cuLaunchKernelEx,                                                                           \
      (const struct CUlaunchConfig_st *config, cf_cu_function function, void **parameters, void **extra))           \
    X(cuMemAlloc, cuMemAlloc_v2, (cf_cu_pointer * memory, size_t bytes))                                            \
    X(cuMemFree, cuMemFree_v2, (cf_cu_pointer memory))                                                              \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                                      \
      (cf_cu_pointer to, const void *from, size_t bytes, cf_cu_stream stream))                                      \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, cf_cu_pointer from, size_t bytes, cf_cu_stream stream))   \
    X(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,                                                                      \
      (cf_cu_pointer to, cf_cu_pointer from, size_t bytes, cf_cu_stream stream))                                    \
    X(cuMemsetD8Async, cuMemsetD8Async,                                                                             \
      (cf_cu_pointer memory, unsigned char value, size_t count, cf_cu_stream stream))                               \
    X(cuPointerGetAttribute, cuPointerGetAttribute,                                                                 \
      (void *data, cf_cu_pointer_attribute attribute, cf_cu_pointer memory))                                        \
    X(cuPointerGetAttributes, cuPointerGetAttributes,                                                               \
      (unsigned count, cf_cu_pointer_attribute *attributes, void **data, cf_cu_pointer memory))                     \
    X(cuStreamGetCtx, cuStreamGetCtx, (cf_cu_stream stream, cf_cu_context * context))                               \
    X(cuStreamCreate, cuStreamCreate, (cf_cu_stream * stream, unsigned flags))                                      \
    X(cuStreamSynchronize, cuStreamSynchronize, (cf_cu_stream stream))                                              \
    X(cuStreamDestroy, cuStreamDestroy_v2, (cf_cu_stream stream))                                                   \
    X(cuStreamIsCapturing, cuStreamIsCapturing, (cf_cu_stream stream, cf_cu_capture_status * status))               \
    X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (cf_cu_capture_mode * mode))            \
    X(cuEventCreate, cuEventCreate, (cf_cu_event * event, unsigned flags))                                          \
    X(cuEventRecord, cuEventRecord, (cf_cu_event event, cf_cu_stream stream))                                       \
    X(cuEventSynchronize, cuEventSynchronize, (cf_cu_event event))                                                  \
    X(cuEventElapsedTime, cuEventElapsedTime, (float *ms, cf_cu_event start, cf_cu_event end))                      \
    X(cuEventDestroy, cuEventDestroy_v2, (cf_cu_event event))

/* The oldest driver that the library works with: CUDA 12.0. */
#define CF_DRIVER_MIN_VERSION 12000

typedef struct cf_driver {
    cf_library library;
    int version; /* of CUDA: 1000 * major + 10 * minor; 0 without a driver */
#define CF_DRIVER_MEMBER(member, symbol, parameters) cf_cu_result(*member) parameters;
    CF_DRIVER_FUNCTIONS(CF_DRIVER_MEMBER)
#undef CF_DRIVER_MEMBER
} cf_driver;

/* Open libcuda and initialise it. LIBRARY_MISSING; NO_DEVICE: the driver works but has no GPU; DEVICE_ERROR. */
conv_fft_status cf_driver_open(cf_driver *driver, const cf_search *search);

/* A failure. Its sentence has the call, the name of the result and its meaning. */
conv_fft_status cf_driver_fail(const cf_driver *driver, cf_cu_result result, const char *call);

/* SUCCESS, or that failure. */
static inline conv_fft_status cf_driver_status(const cf_driver *driver, cf_cu_result code, const char *call) {
    return code == 0 ? CONV_FFT_SUCCESS : cf_driver_fail(driver, code, call);
}
#define CF_CU(driver, call, ...) cf_driver_status(driver, (driver)->call(__VA_ARGS__), #call)

#endif
