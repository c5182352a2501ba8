/* SPDX-License-Identifier: Apache-2.0 */
#include "support/device.h"

#include "cuda/driver/memory.h"
#include "support/compare.h"
#include "support/cuda_calls.h"
#include "support/gpu.h"
#include "support/layer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static conv_fft_context *context;
static cf_gpu *gpu;
static cuda_calls calls;
static pthread_t first_thread;
static pthread_key_t streams;

static void need(bool condition, const char *what) {
    if (condition)
        return;
    fprintf(stderr, "%s: %s\n", what, conv_fft_last_error());
    exit(2);
}

cuda_calls cuda_calls_of(const cf_gpu *of) {
#define CUDA_CALLS_SYMBOL(member, symbol, parameters) {#symbol, offsetof(cuda_calls, member)},
    static const cf_symbol symbols[] = {CUDA_CALLS_FUNCTIONS(CUDA_CALLS_SYMBOL)};
#undef CUDA_CALLS_SYMBOL
    cuda_calls table;
    void *const library = dlopen(of->driver.library.file, RTLD_NOW | RTLD_NOLOAD);
    need(library != NULL, of->driver.library.file);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *const function = dlsym(library, symbols[i].name);
        need(function != NULL, symbols[i].name);
        *(void **)(void *)((char *)&table + symbols[i].offset) = function;
    }
    dlclose(library);
    return table;
}

/* ------------------------------------------------------------------------------------------------------ the device */

int device_cpu_setup(void **state) {
    (void)state;
    context = test_context(0);
    return 0;
}

static void destroy_stream(void *stream) { cf_gpu_stream_destroy(gpu, stream); }

int device_gpu_setup(void **state) {
    const int status = gpu_setup(state);
    gpu = *state;
    if (status != 0 || !gpu)
        return status;
    if (!gpu->jit.library.usable) {
        fprintf(stderr, "NVRTC is missing: %s\n", gpu->jit.library.problem);
        return 0;
    }
    conv_fft_context_options options;
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = gpu_cache_directory();
    need(conv_fft_context_create(&options, &context) == CONV_FFT_SUCCESS, "no context");
    calls = cuda_calls_of(gpu);
    first_thread = pthread_self();
    tolerate_fast_math();
    need(pthread_key_create(&streams, destroy_stream) == 0, "pthread_key_create");
    return 0;
}

static void free_memory(void);

int device_teardown(void **state) {
    const bool on_gpu = gpu && context;
    conv_fft_context_destroy(context);
    context = NULL;
    if (on_gpu) {
        free_memory();
        pthread_key_delete(streams);
    }
    const bool opened = gpu != NULL;
    gpu = NULL;
    return opened ? gpu_teardown(state) : 0;
}

conv_fft_context *device_context(void) { return context; }

cf_gpu *device_gpu(void) { return context ? gpu : NULL; }

/* --------------------------------------------------------------------------------------------------------- streams */

struct CUstream_st *device_stream(void) {
    if (!device_gpu() || pthread_equal(first_thread, pthread_self()))
        return NULL;
    cf_cu_stream stream = pthread_getspecific(streams);
    if (stream)
        return stream;
    need(cf_gpu_stream_create(gpu, &stream) == CONV_FFT_SUCCESS, "no stream");
    need(pthread_setspecific(streams, stream) == 0, "pthread_setspecific");
    return stream;
}

conv_fft_status device_wait(void) { return device_gpu() ? cf_gpu_synchronize(gpu, device_stream()) : CONV_FFT_SUCCESS; }

/* ---------------------------------------------------------------------------------------------------------- memory */

/* Free blocks of memory, by size: powers of two. They are kept, because locking pages takes long, and unlocking waits
 * for the whole GPU. */
typedef struct spare {
    struct spare *next;
} spare;

enum {
    MIN_BITS = 12,
    SIZES = 36
};
static spare *spares[SIZES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int size_of(size_t bytes) {
    int bits = MIN_BITS;
    while ((size_t)1 << bits < bytes)
        bits++;
    need(bits < SIZES, "memory of this size");
    return bits;
}

static void *lock_pages(size_t bytes) {
    void *memory = NULL;
    need(cf_gpu_enter(gpu) == CONV_FFT_SUCCESS, "cf_gpu_enter");
    const cf_cu_result made = calls.cuMemHostAlloc(&memory, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED);
    cf_gpu_leave(gpu);
    need(cf_driver_status(&gpu->driver, made, "cuMemHostAlloc") == CONV_FFT_SUCCESS, "no memory");
    return memory;
}

void *device_memory(size_t bytes) {
    if (!device_gpu())
        return test_alloc(bytes);
    const int size = size_of(bytes);
    pthread_mutex_lock(&mutex);
    spare *const taken = spares[size];
    if (taken)
        spares[size] = taken->next;
    pthread_mutex_unlock(&mutex);
    return taken ? (void *)taken : lock_pages((size_t)1 << size);
}

void device_memory_free(void *memory, size_t bytes) {
    if (!device_gpu()) {
        free(memory);
        return;
    }
    if (!memory)
        return;
    const int size = size_of(bytes);
    spare *const given = memory;
    pthread_mutex_lock(&mutex);
    given->next = spares[size];
    spares[size] = given;
    pthread_mutex_unlock(&mutex);
}

static void free_memory(void) {
    need(cf_gpu_enter(gpu) == CONV_FFT_SUCCESS, "cf_gpu_enter");
    for (int size = 0; size < SIZES; size++)
        while (spares[size]) {
            spare *const next = spares[size]->next;
            calls.cuMemFreeHost(spares[size]);
            spares[size] = next;
        }
    cf_gpu_leave(gpu);
}

/* ------------------------------------------------------------------------------------------------------------ cases */

static int64_t each_on_cpu(case_list *list, void (*check)(int64_t, void *), void *argument) {
    const int64_t count = list->count;
    for (int64_t i = 0; i < count; i++)
        check(i, argument);
    case_list_clear(list);
    return count;
}

int64_t device_each(case_list *list, void (*check)(int64_t, void *), void *argument) {
    return device_gpu() ? case_list_side_by_side(list, check, argument) : each_on_cpu(list, check, argument);
}
