/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers and streams of all kinds with a real driver: accepted or refused as cuda/driver/pointer_check.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/clock.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/pointer_check.h"
#include "support/error_text.h"
#include "support/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Functions that only this test calls, from the driver that the GPU was opened with. */
static void *symbol(const cf_gpu *gpu, const char *name) {
    void *const library = dlopen(gpu->driver.library.file, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    void *const address = dlsym(library, name);
    dlclose(library);
    if (!address)
        fail_msg("the driver has no %s", name);
    return address;
}

#define GET(gpu, function, parameters)                 \
    cf_cu_result(*function) parameters;                \
    do {                                               \
        void *address_ = symbol(gpu, #function);       \
        memcpy(&function, &address_, sizeof function); \
    } while (0)

#define CALL(call)                                                           \
    do {                                                                     \
        if (cf_driver_status(&gpu->driver, call, #call) != CONV_FFT_SUCCESS) \
            fail_msg("%s", conv_fft_last_error());                           \
    } while (0)

static conv_fft_status check(const cf_gpu *gpu, const void *pointer, size_t bytes) {
    const cf_gpu_argument argument = {"x", pointer, bytes};
    return cf_gpu_check_arguments(gpu, &argument, 1, NULL);
}

static void plain_memory(void **state) {
    NEED_GPU(state);
    enum {
        BYTES = 100000
    };
    char *a, *b;
    assert_int_equal(cf_gpu_allocate(gpu, BYTES, (void **)&a), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_allocate(gpu, BYTES, (void **)&b), CONV_FFT_SUCCESS);
    assert_int_equal(check(gpu, a, BYTES), CONV_FFT_SUCCESS);
    assert_int_equal(check(gpu, a + 1000, BYTES - 1000), CONV_FFT_SUCCESS);
    EXPECT_INVALID(check(gpu, a + 1000, BYTES + (4 << 20)), "x is 0x", "bytes are left in its allocation");
    EXPECT_INVALID(check(gpu, a, BYTES + (4 << 20)), "bytes are left in its allocation");
    cf_gpu_free(gpu, a);
    EXPECT_INVALID(check(gpu, a, 4), "CUDA does not know");
    cf_gpu_free(gpu, b);
}

static void of_the_host(void **state) {
    NEED_GPU(state);
    GET(gpu, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags));
    GET(gpu, cuMemFreeHost, (void *memory));
    GET(gpu, cuMemAllocManaged, (cf_cu_pointer * memory, size_t bytes, unsigned flags));
    char *const ordinary = malloc(1 << 20);
    EXPECT_INVALID(check(gpu, ordinary, 1 << 20), "CUDA does not know");
    EXPECT_INVALID(check(gpu, &ordinary, 4), "CUDA does not know");
    free(ordinary);
    void *locked;
    cf_cu_pointer managed;
    assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
    CALL(cuMemHostAlloc(&locked, 1 << 20, 0));
    CALL(cuMemAllocManaged(&managed, 1 << 20, 1));
    assert_int_equal(check(gpu, locked, 1 << 20), CONV_FFT_SUCCESS);
    assert_int_equal(check(gpu, (void *)(uintptr_t)managed, 1 << 20), CONV_FFT_SUCCESS);
    CALL(cuMemFreeHost(locked));
    CALL(gpu->driver.cuMemFree(managed));
    cf_gpu_leave(gpu);
}

/* Memory of a pool, allocated in stream order. */
static void memory_of_a_pool(void **state) {
    NEED_GPU(state);
    GET(gpu, cuMemAllocAsync, (cf_cu_pointer * memory, size_t bytes, cf_cu_stream stream));
    GET(gpu, cuMemFreeAsync, (cf_cu_pointer memory, cf_cu_stream stream));
    cf_cu_pointer memory[3];
    cf_cu_stream stream;
    assert_int_equal(cf_gpu_stream_create(gpu, &stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CALL(cuMemAllocAsync(&memory[i], 3000000, stream));
        assert_int_equal(check(gpu, (void *)(uintptr_t)memory[i], 3000000), CONV_FFT_SUCCESS);
    }
    for (int i = 0; i < 3; i++)
        CALL(cuMemFreeAsync(memory[i], stream));
    cf_gpu_leave(gpu);
    assert_int_equal(cf_gpu_synchronize(gpu, stream), CONV_FFT_SUCCESS);
    cf_gpu_stream_destroy(gpu, stream);
}

/* Several allocations are mapped one after the other into a reserved range, as growing allocators do it. A tensor may
 * cross a boundary. */
static void mapped_memory(void **state) {
    NEED_GPU(state);
    struct location {
        unsigned type;
        int id;
    };
    const struct { /* CUmemAllocationProp: pinned memory of this device */
        unsigned type, handle_types;
        struct location location;
        void *windows;
        unsigned char flags[8];
    } properties = {.type = 1, .location = {1, gpu->device}};
    const struct { /* CUmemAccessDesc */
        struct location location;
        unsigned flags;
    } access = {{1, gpu->device}, 3};
    enum {
        PIECES = 3
    };
    GET(gpu, cuMemGetAllocationGranularity, (size_t * bytes, const void *of, unsigned option));
    GET(gpu, cuMemAddressReserve,
        (cf_cu_pointer * range, size_t bytes, size_t alignment, cf_cu_pointer wanted, unsigned long long flags));
    GET(gpu, cuMemAddressFree, (cf_cu_pointer range, size_t bytes));
    GET(gpu, cuMemCreate, (unsigned long long *handle, size_t bytes, const void *of, unsigned long long flags));
    GET(gpu, cuMemRelease, (unsigned long long handle));
    GET(gpu, cuMemMap,
        (cf_cu_pointer at, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags));
    GET(gpu, cuMemUnmap, (cf_cu_pointer at, size_t bytes));
    GET(gpu, cuMemSetAccess, (cf_cu_pointer at, size_t bytes, const void *rights, size_t count));
    size_t piece;
    cf_cu_pointer range;
    unsigned long long handle[PIECES];
    assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
    CALL(cuMemGetAllocationGranularity(&piece, &properties, 0));
    CALL(cuMemAddressReserve(&range, 8 * piece, 0, 0, 0));
    for (int i = 0; i < PIECES; i++) {
        CALL(cuMemCreate(&handle[i], piece, &properties, 0));
        CALL(cuMemMap(range + (size_t)i * piece, piece, 0, handle[i], 0));
        CALL(cuMemSetAccess(range + (size_t)i * piece, piece, &access, 1));
    }
    assert_int_equal(check(gpu, (void *)(uintptr_t)range, PIECES * piece), CONV_FFT_SUCCESS);
    assert_int_equal(check(gpu, (void *)(uintptr_t)(range + piece + 1000), 2 * piece - 1000), CONV_FFT_SUCCESS);
    CALL(cuMemUnmap(range, PIECES * piece));
    for (int i = 0; i < PIECES; i++)
        CALL(cuMemRelease(handle[i]));
    CALL(cuMemAddressFree(range, 8 * piece));
    cf_gpu_leave(gpu);
}

static void streams(void **state) {
    NEED_GPU(state);
    GET(gpu, cuCtxCreate_v2, (cf_cu_context * context, unsigned flags, cf_cu_device device));
    GET(gpu, cuCtxDestroy_v2, (cf_cu_context context));
    GET(gpu, cuStreamBeginCapture_v2, (cf_cu_stream stream, cf_cu_capture_mode mode));
    GET(gpu, cuStreamEndCapture, (cf_cu_stream stream, void **graph));
    GET(gpu, cuGraphDestroy, (void *graph));
    cf_cu_stream own, foreign;
    cf_cu_context other;
    void *memory, *graph;
    assert_int_equal(cf_gpu_allocate(gpu, 100, &memory), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_stream_create(gpu, &own), CONV_FFT_SUCCESS);
    const cf_gpu_argument argument = {"x", memory, 100};
    for (uintptr_t handle = 0; handle <= 2; handle++)
        assert_int_equal(cf_gpu_check_arguments(gpu, &argument, 1, (cf_cu_stream)handle), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_check_arguments(gpu, &argument, 1, own), CONV_FFT_SUCCESS);

    /* The check does not disturb a capture in the strictest mode, for any stream and pointer. */
    assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
    CALL(cuStreamBeginCapture_v2(own, 0));
    assert_int_equal(cf_gpu_check_arguments(gpu, &argument, 1, own), CONV_FFT_SUCCESS);
    EXPECT_INVALID(check(gpu, &argument, 4), "CUDA does not know");
    CALL(cuStreamEndCapture(own, &graph));
    CALL(cuGraphDestroy(graph));

    CALL(cuCtxCreate_v2(&other, 0, gpu->device)); /* and makes it current */
    CALL(gpu->driver.cuStreamCreate(&foreign, CF_CU_STREAM_NON_BLOCKING));
    assert_int_equal(cf_gpu_check_arguments(gpu, &argument, 1, own), CONV_FFT_SUCCESS);
    EXPECT_INVALID(cf_gpu_check_arguments(gpu, &argument, 1, foreign), "stream is 0x", "of another CUDA context");
    CALL(gpu->driver.cuStreamDestroy(foreign));
    CALL(cuCtxDestroy_v2(other));
    cf_gpu_leave(gpu);
    cf_gpu_stream_destroy(gpu, own);
    cf_gpu_free(gpu, memory);
}

/* Memory of a second GPU is refused until peer access is enabled. Skipped without a second GPU. */
static void memory_of_another_gpu(void **state) {
    NEED_GPU(state);
    int count = 0, possible = 0;
    CALL(gpu->driver.cuDeviceGetCount(&count));
    if (count < 2)
        skip();
    GET(gpu, cuDeviceCanAccessPeer, (int *can, cf_cu_device device, cf_cu_device peer));
    GET(gpu, cuCtxEnablePeerAccess, (cf_cu_context peer, unsigned flags));
    GET(gpu, cuCtxDisablePeerAccess, (cf_cu_context peer));
    cf_cu_device second;
    cf_cu_context context;
    cf_cu_pointer memory;
    CALL(gpu->driver.cuDeviceGet(&second, 1));
    CALL(gpu->driver.cuDevicePrimaryCtxRetain(&context, second));
    CALL(gpu->driver.cuCtxPushCurrent(context));
    CALL(gpu->driver.cuMemAlloc(&memory, 1 << 20));
    EXPECT_INVALID(check(gpu, (void *)(uintptr_t)memory, 1 << 20), "memory of GPU 1; it must be of GPU 0");
    CALL(cuDeviceCanAccessPeer(&possible, gpu->device, second));
    if (possible) {
        assert_int_equal(cf_gpu_enter(gpu), CONV_FFT_SUCCESS);
        CALL(cuCtxEnablePeerAccess(context, 0));
        assert_int_equal(check(gpu, (void *)(uintptr_t)memory, 1 << 20), CONV_FFT_SUCCESS);
        CALL(cuCtxDisablePeerAccess(context));
        cf_gpu_leave(gpu);
    }
    CALL(gpu->driver.cuMemFree(memory));
    CALL(gpu->driver.cuCtxPopCurrent(&context));
    CALL(gpu->driver.cuDevicePrimaryCtxRelease(second));
}

/* The time of a check for one call: five pointers and a stream. */
static void time_of_a_check(void **state) {
    NEED_GPU(state);
    enum {
        ROUNDS = 20000
    };
    void *memory;
    cf_cu_stream stream;
    assert_int_equal(cf_gpu_allocate(gpu, 1 << 20, &memory), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_stream_create(gpu, &stream), CONV_FFT_SUCCESS);
    cf_gpu_argument arguments[5];
    for (int i = 0; i < 5; i++)
        arguments[i] = (cf_gpu_argument){"x", (char *)memory + 1024 * i, 1024};
    const double start = cf_clock_seconds();
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(cf_gpu_check_arguments(gpu, arguments, 5, stream), CONV_FFT_SUCCESS);
    const double us = 1e6 * (cf_clock_seconds() - start) / ROUNDS;
    print_message("five pointers and a stream: %.2f us\n", us);
    assert_true(us < 50);
    cf_gpu_stream_destroy(gpu, stream);
    cf_gpu_free(gpu, memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GPU(plain_memory), WITH_GPU(of_the_host),           WITH_GPU(memory_of_a_pool), WITH_GPU(mapped_memory),
        WITH_GPU(streams),      WITH_GPU(memory_of_another_gpu), WITH_GPU(time_of_a_check),
    };
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("pointers on a GPU", tests, NULL, NULL));
}
