/* SPDX-License-Identifier: Apache-2.0 */
#include "device_memory.h"

#include "message.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* X(member, symbol, parameters) of the driver. */
#define DRIVER_LIST(X)                                                                                           \
    X(init, cuInit, (unsigned flags))                                                                            \
    X(get, cuDeviceGet, (int *device, int ordinal))                                                              \
    X(retain, cuDevicePrimaryCtxRetain, (void **context, int device))                                            \
    X(release, cuDevicePrimaryCtxRelease_v2, (int device))                                                       \
    X(push, cuCtxPushCurrent_v2, (void *context))                                                                \
    X(pop, cuCtxPopCurrent_v2, (void **context))                                                                 \
    X(allocate, cuMemAlloc_v2, (unsigned long long *memory, size_t bytes))                                       \
    X(free, cuMemFree_v2, (unsigned long long memory))                                                           \
    X(write, cuMemcpyHtoDAsync_v2,                                                                               \
      (unsigned long long to, const void *from, size_t bytes, struct CUstream_st *stream))                       \
    X(read, cuMemcpyDtoHAsync_v2, (void *to, unsigned long long from, size_t bytes, struct CUstream_st *stream)) \
    X(synchronize, cuStreamSynchronize, (struct CUstream_st * stream))

typedef struct driver {
#define DRIVER_MEMBER(member, symbol, parameters) int(*member) parameters;
    DRIVER_LIST(DRIVER_MEMBER)
#undef DRIVER_MEMBER
} driver;

struct device_memory {
    void *library; /* NULL: the CPU */
    driver driver;
    int device;
    void *context;
};

/* The file of the driver that the library uses. */
static bool driver_file(char file[1024]) {
    static const char name[] = "\n  CUDA driver ";
    enum {
        VERSION_COLUMNS = 11,
        REPORT_BYTES = 32768
    };
    char *const report = malloc(REPORT_BYTES);
    const char *line = NULL;
    if (report && conv_fft_devices_report(report, REPORT_BYTES, NULL) == CONV_FFT_SUCCESS)
        line = strstr(report, name);
    if (line)
        line += sizeof name - 1 + strspn(line + sizeof name - 1, " ");
    if (line)
        snprintf(file, 1024, "%.*s", (int)strcspn(line, "\n") - VERSION_COLUMNS, line + VERSION_COLUMNS);
    free(report);
    return line != NULL;
}

static bool load(driver *d, void *library) {
    void *address;
    /* dlsym returns an object pointer; POSIX promises that its bytes are those of the function pointer. */
#define DRIVER_LOAD(member, symbol, parameters)   \
    address = dlsym(library, #symbol);            \
    memcpy(&d->member, &address, sizeof address); \
    if (!address)                                 \
        return false;
    DRIVER_LIST(DRIVER_LOAD)
#undef DRIVER_LOAD
    return true;
}

static bool succeeded(int result, const char *what) {
    if (result)
        fprintf(stderr, "%s: %s failed with error %d of the CUDA driver\n", program_name, what, result);
    return result == 0;
}

static bool enter(device_memory *m, int ordinal) {
    return succeeded(m->driver.init(0), "cuInit") && succeeded(m->driver.get(&m->device, ordinal), "cuDeviceGet") &&
           succeeded(m->driver.retain(&m->context, m->device), "cuDevicePrimaryCtxRetain") &&
           succeeded(m->driver.push(m->context), "cuCtxPushCurrent");
}

device_memory *device_memory_open(const conv_fft_context *context) {
    device_memory *const m = calloc(1, sizeof *m);
    char file[1024];
    if (!m) {
        fprintf(stderr, "%s: out of memory\n", program_name);
        return NULL;
    }
    if (conv_fft_context_device(context) == CONV_FFT_DEVICE_CPU)
        return m;
    m->library = driver_file(file) ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (m->library && load(&m->driver, m->library) && enter(m, conv_fft_context_device(context)))
        return m;
    fprintf(stderr, "%s: the CUDA driver cannot be used for the tensors\n", program_name);
    if (m->library)
        dlclose(m->library);
    free(m);
    return NULL;
}

void device_memory_close(device_memory *m) {
    void *context;
    if (!m)
        return;
    if (m->library) {
        m->driver.pop(&context);
        m->driver.release(m->device);
        dlclose(m->library);
    }
    free(m);
}

void *device_memory_get(device_memory *m, size_t bytes) {
    unsigned long long address = 0;
    bytes += bytes == 0;
    if (!m->library)
        return malloc(bytes);
    return m->driver.allocate(&address, bytes) == 0 ? (void *)(uintptr_t)address : NULL;
}

void device_memory_release(device_memory *m, void *memory) {
    if (!m->library)
        free(memory);
    else if (memory)
        m->driver.free((uintptr_t)memory);
}

bool device_memory_write(device_memory *m, void *to, const void *from, size_t bytes) {
    if (!m->library) {
        memcpy(to, from, bytes);
        return true;
    }
    return bytes == 0 || (succeeded(m->driver.write((uintptr_t)to, from, bytes, NULL), "cuMemcpyHtoDAsync") &&
                          succeeded(m->driver.synchronize(NULL), "cuStreamSynchronize"));
}

bool device_memory_read(device_memory *m, void *to, const void *from, size_t bytes) {
    if (!m->library) {
        memcpy(to, from, bytes);
        return true;
    }
    return bytes == 0 || (succeeded(m->driver.read(to, (uintptr_t)from, bytes, NULL), "cuMemcpyDtoHAsync") &&
                          succeeded(m->driver.synchronize(NULL), "cuStreamSynchronize"));
}
