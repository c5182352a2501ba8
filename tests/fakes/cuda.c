/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda with one GPU that exists in host memory. Its kernels do nothing, except for a kernel named "first", which
 * stores its number of threads at its first parameter. */
#include "cuda/driver/properties.h"
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif
#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif
#ifndef FAKE_COMPUTE_MAJOR
#define FAKE_COMPUTE_MAJOR 9
#endif

enum {
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500
};

fake_cuda fake_cuda_state;
static char context, module, first;

/* The properties of an H200. */
#define FACT(field, number, cuda_name, least) fact_##field = number,
enum {
    CF_GPU_PROPERTIES(FACT)
};
#undef FACT

static int value_of(cf_cu_attribute attribute) {
    switch (attribute) {
    case fact_compute_major:
        return FAKE_COMPUTE_MAJOR;
    case fact_multiprocessors:
        return 132;
    case fact_shared_per_block:
        return 232448;
    case fact_shared_per_multiprocessor:
        return 233472;
    case fact_shared_reserved_per_block:
        return 1024;
    case fact_registers_per_multiprocessor:
        return 65536;
    case fact_threads_per_multiprocessor:
        return 2048;
    case fact_blocks_per_multiprocessor:
        return 32;
    case fact_l2_bytes:
        return 62914560;
    case fact_clock_khz:
        return 1980000;
    case fact_memory_clock_khz:
        return 3201000;
    case fact_memory_bus_bits:
        return 6016;
    default:
        return 0;
    }
}

cf_cu_result cuDriverGetVersion(int *version) {
    *version = FAKE_VERSION;
    return 0;
}
cf_cu_result cuInit(unsigned flags) { return flags ? INVALID_VALUE : FAKE_INIT; }
cf_cu_result cuGetErrorName(cf_cu_result result, const char **text) {
    *text = result == CF_CU_OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CF_CU_NO_DEVICE         ? "CUDA_ERROR_NO_DEVICE"
            : result == CF_CU_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                                : "CUDA_ERROR_OTHER";
    return 0;
}
cf_cu_result cuGetErrorString(cf_cu_result result, const char **text) {
    *text = result == CF_CU_NO_DEVICE ? "no CUDA-capable device is detected" : "what went wrong";
    return 0;
}
cf_cu_result cuDeviceGetCount(int *count) {
    *count = 1;
    return 0;
}
cf_cu_result cuDeviceGet(cf_cu_device *device, int ordinal) {
    *device = 0;
    return ordinal == 0 ? 0 : CF_CU_INVALID_DEVICE;
}
cf_cu_result cuDeviceGetName(char *name, int bytes, cf_cu_device device) {
    (void)device;
    snprintf(name, (size_t)bytes, "Substitute GPU");
    return 0;
}
cf_cu_result cuDeviceGetAttribute(int *value, cf_cu_attribute attribute, cf_cu_device device) {
    (void)device;
    *value = value_of(attribute);
    return 0;
}
cf_cu_result cuDeviceTotalMem_v2(size_t *bytes, cf_cu_device device) {
    (void)device;
    *bytes = FAKE_MEMORY;
    return 0;
}
cf_cu_result cuDevicePrimaryCtxRetain(cf_cu_context *result, cf_cu_device device) {
    (void)device;
    ++fake_cuda_state.retained;
    *result = (cf_cu_context)(void *)&context;
    return 0;
}
cf_cu_result cuDevicePrimaryCtxRelease_v2(cf_cu_device device) {
    (void)device;
    --fake_cuda_state.retained;
    return 0;
}
cf_cu_result cuCtxPushCurrent_v2(cf_cu_context pushed) {
    if ((void *)pushed != &context)
        return INVALID_CONTEXT;
    ++fake_cuda_state.depth;
    ++fake_cuda_state.entered;
    return 0;
}
cf_cu_result cuCtxPopCurrent_v2(cf_cu_context *popped) {
    --fake_cuda_state.depth;
    *popped = (cf_cu_context)(void *)&context;
    return 0;
}

/* Everything below needs a current context. */
#define NEED_CONTEXT()                 \
    do {                               \
        if (fake_cuda_state.depth < 1) \
            return INVALID_CONTEXT;    \
    } while (0)

cf_cu_result cuModuleLoadData(cf_cu_module *result, const void *image) {
    NEED_CONTEXT();
    const bool real = memcmp(image, "\177ELF", 4) == 0; /* from a real compiler */
    if (!real && strncmp(image, FAKE_CUBIN, strlen(FAKE_CUBIN)) != 0)
        return CF_CU_INVALID_IMAGE;
    if (!real && strncmp((const char *)image + strlen(FAKE_CUBIN), "sm_90a ", 7) != 0)
        return CF_CU_NO_BINARY_FOR_GPU;
    ++fake_cuda_state.modules;
    *result = (cf_cu_module)(void *)&module;
    return 0;
}
cf_cu_result cuModuleUnload(cf_cu_module unloaded) {
    NEED_CONTEXT();
    (void)unloaded;
    --fake_cuda_state.modules;
    return 0;
}
cf_cu_result cuModuleGetFunction(cf_cu_function *function, cf_cu_module from, const char *name) {
    NEED_CONTEXT();
    *function = (cf_cu_function)(strcmp(name, "first") == 0 ? (void *)&first : (void *)from);
    return strcmp(name, "absent") == 0 ? NOT_FOUND : 0;
}
cf_cu_result cuFuncGetAttribute(int *value, cf_cu_function_attribute attribute, cf_cu_function function) {
    NEED_CONTEXT();
    (void)function;
    *value = attribute == CF_CU_FUNCTION_REGISTERS ? 40 : attribute == CF_CU_FUNCTION_SHARED_BYTES ? 1024 : 0;
    return 0;
}
cf_cu_result cuFuncSetAttribute(cf_cu_function function, cf_cu_function_attribute attribute, int value) {
    NEED_CONTEXT();
    (void)function;
    return attribute == CF_CU_FUNCTION_MAX_DYNAMIC_SHARED_BYTES && value > 0 ? 0 : INVALID_VALUE;
}
static void *behind(cf_cu_pointer memory) { return (void *)(uintptr_t)(memory & ~FAKE_DEVICE); }

static void note(cf_cu_stream stream) { fake_cuda_state.elsewhere += stream != fake_cuda_state.expected_stream; }

#ifndef FAKE_LACKS_LAUNCH
cf_cu_result cuLaunchKernelEx(const struct CUlaunchConfig_st *launch, cf_cu_function function, void **parameters,
                              void **extra) {
    NEED_CONTEXT();
    const cf_cu_launch_config *config = (const cf_cu_launch_config *)launch;
    const unsigned *grid = config->grid, *block = config->block;
    const unsigned threads = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2];
    if (threads == 0 || extra || config->attribute_count > 1)
        return INVALID_VALUE;
    if (config->attribute_count == 1 && (config->attributes->id != CF_CU_LAUNCH_OVERLAPS || !config->attributes->value))
        return INVALID_VALUE;
    fake_cuda_state.overlapping += (int)config->attribute_count;
    ++fake_cuda_state.launches;
    note(config->stream);
    if ((void *)function == &first)
        *(unsigned *)behind(*(cf_cu_pointer *)parameters[0]) = threads;
    return 0;
}
#endif
cf_cu_result cuMemAlloc_v2(cf_cu_pointer *memory, size_t bytes) {
    NEED_CONTEXT();
    if (bytes > FAKE_MEMORY)
        return CF_CU_OUT_OF_MEMORY;
    *memory = (cf_cu_pointer)(uintptr_t)malloc(bytes) | FAKE_DEVICE;
    ++fake_cuda_state.allocations;
    ++fake_cuda_state.taken;
    return 0;
}
cf_cu_result cuMemFree_v2(cf_cu_pointer memory) {
    NEED_CONTEXT();
    free(behind(memory));
    --fake_cuda_state.allocations;
    ++fake_cuda_state.freed;
    return 0;
}
static cf_cu_result copy(void *to, const void *from, size_t bytes) {
    NEED_CONTEXT();
    memcpy(to, from, bytes);
    return 0;
}
cf_cu_result cuMemcpyHtoDAsync_v2(cf_cu_pointer to, const void *from, size_t bytes, cf_cu_stream stream) {
    note(stream);
    return copy(behind(to), from, bytes);
}
cf_cu_result cuMemcpyDtoHAsync_v2(void *to, cf_cu_pointer from, size_t bytes, cf_cu_stream stream) {
    note(stream);
    return copy(to, behind(from), bytes);
}
cf_cu_result cuMemcpyDtoDAsync_v2(cf_cu_pointer to, cf_cu_pointer from, size_t bytes, cf_cu_stream stream) {
    note(stream);
    return copy(behind(to), behind(from), bytes);
}
cf_cu_result cuMemsetD8Async(cf_cu_pointer memory, unsigned char value, size_t count, cf_cu_stream stream) {
    NEED_CONTEXT();
    note(stream);
    memset(behind(memory), value, count);
    return 0;
}
static unsigned long long attribute_of(cf_cu_pointer memory, cf_cu_pointer_attribute attribute) {
    if (fake_cuda_state.special && (uintptr_t)memory == (uintptr_t)fake_cuda_state.special)
        return fake_cuda_state.attribute[attribute];
    return attribute == CF_CU_POINTER_MEMORY_TYPE      ? CF_CU_MEMORY_OF_DEVICE
           : attribute == CF_CU_POINTER_DEVICE_POINTER ? memory
                                                       : 0;
}
/* Addresses and sizes have eight bytes, other attributes four. */
static void store_attribute(void *data, cf_cu_pointer_attribute attribute, unsigned long long value) {
    const bool wide = attribute == CF_CU_POINTER_DEVICE_POINTER || attribute == CF_CU_POINTER_RANGE_START ||
                      attribute == CF_CU_POINTER_RANGE_SIZE;
    const unsigned narrow = (unsigned)value;
    memcpy(data, wide ? (const void *)&value : (const void *)&narrow, wide ? sizeof value : sizeof narrow);
}
cf_cu_result cuPointerGetAttribute(void *data, cf_cu_pointer_attribute attribute, cf_cu_pointer memory) {
    NEED_CONTEXT();
    store_attribute(data, attribute, attribute_of(memory, attribute));
    return 0;
}
cf_cu_result cuPointerGetAttributes(unsigned count, cf_cu_pointer_attribute *attributes, void **data,
                                    cf_cu_pointer memory) {
    NEED_CONTEXT();
    for (unsigned i = 0; i < count; ++i)
        store_attribute(data[i], attributes[i], attribute_of(memory, attributes[i]));
    return 0;
}
cf_cu_result cuStreamGetCtx(cf_cu_stream stream, cf_cu_context *of) {
    NEED_CONTEXT();
    const bool foreign = stream == fake_cuda_state.foreign_stream;
    *of = (cf_cu_context)(void *)(foreign ? &module : &context);
    return 0;
}
cf_cu_result cuStreamCreate(cf_cu_stream *stream, unsigned flags) {
    NEED_CONTEXT();
    *stream = malloc(1);
    return flags == CF_CU_STREAM_NON_BLOCKING ? 0 : INVALID_VALUE;
}
cf_cu_result cuStreamSynchronize(cf_cu_stream stream) {
    NEED_CONTEXT();
    note(stream);
    ++fake_cuda_state.waits;
    return 0;
}
cf_cu_result cuStreamDestroy_v2(cf_cu_stream stream) {
    NEED_CONTEXT();
    free(stream);
    return 0;
}
cf_cu_result cuStreamIsCapturing(cf_cu_stream stream, cf_cu_capture_status *status) {
    NEED_CONTEXT();
    *status = stream && stream == fake_cuda_state.captured_stream;
    return 0;
}
cf_cu_result cuThreadExchangeStreamCaptureMode(cf_cu_capture_mode *mode) {
    NEED_CONTEXT();
    *mode = 0;
    return 0;
}
cf_cu_result cuEventCreate(cf_cu_event *event, unsigned flags) {
    NEED_CONTEXT();
    (void)flags;
    *event = malloc(1);
    return 0;
}
cf_cu_result cuEventRecord(cf_cu_event event, cf_cu_stream stream) {
    NEED_CONTEXT();
    (void)event;
    note(stream);
    return 0;
}
cf_cu_result cuEventSynchronize(cf_cu_event event) {
    NEED_CONTEXT();
    ++fake_cuda_state.waits;
    fake_cuda_state.waited_for = event;
    return 0;
}
cf_cu_result cuEventElapsedTime(float *ms, cf_cu_event start, cf_cu_event end) {
    NEED_CONTEXT();
    (void)start;
    (void)end;
    *ms = 1.5f;
    return 0;
}
cf_cu_result cuEventDestroy_v2(cf_cu_event event) {
    NEED_CONTEXT();
    free(event);
    return 0;
}
