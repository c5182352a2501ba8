/* SPDX-License-Identifier: Apache-2.0 */
/* src/cuda on a real GPU: memory, compilation, launches, events, a filled cache, cuBLAS. Skipped without a GPU. */
#include "core/clock.h"
#include "cuda/driver/memory.h"
#include "cuda/jit/launch.h"
#include "cuda/libs/cublas.h"
#include "support/cuda_calls.h"
#include "support/gpu.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define assert_success(call)                                  \
    do {                                                      \
        if ((call) != CONV_FFT_SUCCESS)                       \
            fail_msg("%s: %s", #call, conv_fft_last_error()); \
    } while (0)

static void properties(void **state) {
    NEED_GPU(state);
    const cf_gpu_properties *const f = &gpu->properties;
    char text[2048];
    cf_text report = {.text = text, .bytes = sizeof text};
    cf_gpu_properties_format(f, "", &report);
    print_message("%s", text);
    /* The properties can be written as a file and read again: none is missing or out of range. */
    cf_gpu_properties again;
    const char *const path = scratch_path(gpu_cache_directory(), "facts.txt");
    scratch_write(path, text, report.length);
    assert_success(cf_gpu_properties_load(path, &again));
    assert_memory_equal(f, &again, sizeof again);
    assert_true(f->shared_per_block >= 96 << 10 && f->memory_bytes > (int64_t)1 << 30);
}

static void memory(void **state) {
    NEED_GPU(state);
    enum {
        COUNT = 1000003
    };
    uint32_t *const host = malloc(COUNT * sizeof *host);
    void *a, *b;
    cf_cu_stream stream;
    for (uint32_t i = 0; i < COUNT; ++i)
        host[i] = i * 2654435761u;
    assert_success(cf_gpu_stream_create(gpu, &stream));
    assert_success(cf_gpu_allocate(gpu, COUNT * sizeof *host, &a));
    assert_success(cf_gpu_allocate(gpu, COUNT * sizeof *host, &b));
    assert_success(cf_gpu_upload(gpu, a, host, COUNT * sizeof *host, stream));
    assert_success(cf_gpu_fill(gpu, b, 0xde, COUNT * sizeof *host, stream));
    assert_success(cf_gpu_copy(gpu, b, a, (COUNT - 1) * sizeof *host, stream));
    assert_success(cf_gpu_fill(gpu, b, 0x11, 8, stream));
    memset(host, 0, COUNT * sizeof *host);
    assert_success(cf_gpu_download(gpu, host, b, COUNT * sizeof *host, stream));
    assert_success(cf_gpu_synchronize(gpu, stream));
    assert_int_equal(host[0], 0x11111111);
    assert_int_equal(host[1], 0x11111111);
    for (uint32_t i = 2; i < COUNT - 1; ++i)
        if (host[i] != i * 2654435761u)
            fail_msg("word %u is %u", i, host[i]);
    assert_int_equal(host[COUNT - 1], 0xdededede);
    cf_gpu_free(gpu, a);
    cf_gpu_free(gpu, b);
    cf_gpu_stream_destroy(gpu, stream);
    free(host);
}

static void out_of_memory(void **state) {
    NEED_GPU(state);
    void *memory = NULL;
    assert_int_equal(cf_gpu_allocate(gpu, (size_t)gpu->properties.memory_bytes + 1, &memory), CONV_FFT_OUT_OF_MEMORY);
    assert_null(memory);
    print_message("%s\n", conv_fft_last_error());
    assert_success(cf_gpu_allocate(gpu, 1 << 20, &memory)); /* the context is as good as before */
    cf_gpu_free(gpu, memory);
}

static const cf_source sources[] = {
    {.name = "saxpy",
     .text = "extern \"C\" __global__ void saxpy(int n, float a, const float *x, float *y) {\n"
             "    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
             "    if (i < n) y[i] += a * x[i];\n"
             "}\n"},
    /* Reverses blocks of 8192 numbers in 64 KiB of shared memory. A kernel must ask for that much. */
    {.name = "reverse",
     .text = "extern __shared__ double tile[];\n"
             "extern \"C\" __global__ void reverse(const double *x, double *y) {\n"
             "    for (int i = threadIdx.x; i < 8192; i += blockDim.x) tile[i] = x[blockIdx.x * 8192 + i];\n"
             "    __syncthreads();\n"
             "    for (int i = threadIdx.x; i < 8192; i += blockDim.x) y[blockIdx.x * 8192 + i] = tile[8191 - i];\n"
             "}\n",
     .dynamic_shared = 65536},
};

static void need_compiler(const cf_gpu *gpu) {
    if (gpu->jit.library.usable)
        return;
    print_message("NVRTC is missing: %s\n", gpu->jit.library.problem);
    skip();
}

static void compile_and_launch(void **state) {
    NEED_GPU(state);
    need_compiler(gpu);
    int n = 100000;
    float a = 0.5f, *const host = malloc((size_t)n * sizeof *host);
    void *x, *y;
    cf_kernel *kernels[2];
    const double start = cf_clock_seconds();
    assert_success(cf_kernels_build(gpu, sources, 2, kernels));
    const double cold = cf_clock_seconds();
    assert_true(kernels[0]->registers > 0);
    assert_int_equal(kernels[0]->local_bytes, 0);
    int blocks = 0;
    assert_success(cf_gpu_enter(gpu));
    const cf_cu_result result =
        cuda_calls_of(gpu).cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernels[1]->function, 256, 65536);
    cf_gpu_leave(gpu);
    assert_int_equal(result, 0);
    assert_true(blocks >= 1 && blocks <= gpu->properties.shared_per_multiprocessor / 65536);

    const size_t bytes = (size_t)n * sizeof *host;
    for (int i = 0; i < n; ++i)
        host[i] = (float)i;
    assert_success(cf_gpu_allocate(gpu, bytes, &x));
    assert_success(cf_gpu_allocate(gpu, bytes, &y));
    assert_success(cf_gpu_upload(gpu, x, host, bytes, NULL));
    assert_success(cf_gpu_upload(gpu, y, host, bytes, NULL));
    const cf_launch launch = {.grid = {((unsigned)n + 255) / 256, 1, 1}, .block = {256, 1, 1}};
    void *parameters[] = {&n, &a, &x, &y};
    cf_cu_event before, after;
    float ms = -1;
    assert_success(cf_gpu_event_create(gpu, &before));
    assert_success(cf_gpu_event_create(gpu, &after));
    assert_success(cf_gpu_event_record(gpu, before, NULL));
    assert_success(cf_kernel_launch(kernels[0], &launch, parameters, NULL));
    assert_success(cf_gpu_event_record(gpu, after, NULL));
    assert_success(cf_gpu_event_elapsed(gpu, before, after, &ms));
    assert_true(ms > 0 && ms < 1000);
    assert_success(cf_gpu_download(gpu, host, y, bytes, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    for (int i = 0; i < n; ++i)
        if (host[i] != 1.5f * (float)i)
            fail_msg("element %d is %g", i, (double)host[i]);

    for (int i = 0; i < 2; ++i)
        cf_kernel_destroy(kernels[i]);
    const double again = cf_clock_seconds();
    assert_success(cf_kernels_build(gpu, sources, 2, kernels));
    print_message("two kernels: %.1f ms cold, %.2f ms from the cache; launch %.3f ms\n", (cold - start) * 1e3,
                  (cf_clock_seconds() - again) * 1e3, (double)ms);
    assert_int_equal(scratch_count(gpu_cache_directory(), ".cubin", NULL), 2);
    for (int i = 0; i < 2; ++i)
        cf_kernel_destroy(kernels[i]);
    cf_gpu_event_destroy(gpu, before);
    cf_gpu_event_destroy(gpu, after);
    cf_gpu_free(gpu, x);
    cf_gpu_free(gpu, y);
    free(host);
}

static void large_shared_memory(void **state) {
    NEED_GPU(state);
    need_compiler(gpu);
    enum {
        COUNT = 3 * 8192
    };
    double *const host = malloc(COUNT * sizeof *host);
    void *x, *y;
    cf_kernel *kernel;
    for (int i = 0; i < COUNT; ++i)
        host[i] = i;
    assert_success(cf_kernels_build(gpu, &sources[1], 1, &kernel));
    assert_success(cf_gpu_allocate(gpu, COUNT * sizeof *host, &x));
    assert_success(cf_gpu_allocate(gpu, COUNT * sizeof *host, &y));
    assert_success(cf_gpu_upload(gpu, x, host, COUNT * sizeof *host, NULL));
    cf_launch launch = {.grid = {3, 1, 1}, .block = {256, 1, 1}, .dynamic_shared = 65536};
    void *parameters[] = {&x, &y};
    assert_success(cf_kernel_launch(kernel, &launch, parameters, NULL));
    assert_success(cf_gpu_download(gpu, host, y, COUNT * sizeof *host, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    for (int i = 0; i < COUNT; ++i)
        assert_true(host[i] == i / 8192 * 8192 + 8191 - i % 8192);
    launch.block[0] = 4096; /* more threads than a block may have */
    assert_int_equal(cf_kernel_launch(kernel, &launch, parameters, NULL), CONV_FFT_DEVICE_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "the launch of kernel reverse failed with CUDA_ERROR_INVALID_VALUE"));
    print_message("%s\n", conv_fft_last_error());
    cf_kernel_destroy(kernel);
    cf_gpu_free(gpu, x);
    cf_gpu_free(gpu, y);
    free(host);
}

/* The cache has machine code for another GPU generation, or invalid code. It is removed, and the kernels are compiled
 * again. */
static void code_of_another_gpu(void **state) {
    NEED_GPU(state);
    need_compiler(gpu);
    cf_cubin other = {0}, *targets[] = {&other};
    const cf_source *const list[] = {&sources[0]};
    assert_success(cf_jit_compile(&gpu->jit, gpu->properties.compute_major == 8 ? "sm_90" : "sm_80", list, 1, targets));
    char code[4096] = "no machine code";
    const cf_cubin wrong[] = {{.data = other.data, .bytes = other.bytes}, {.data = code, .bytes = sizeof code}};
    const cf_cubin_key key = cf_cubin_key_of(gpu->architecture, &sources[0]);
    for (int i = 0; i < 2; ++i) {
        cf_kernel *kernel;
        bool refused;
        cf_cubin_cache_store(gpu->cache, &key, &wrong[i], "0.0");
        assert_int_equal(cf_kernel_load(gpu, &wrong[i], &sources[0], &kernel, &refused), CONV_FFT_DEVICE_ERROR);
        assert_true(refused);
        print_message("%s\n", conv_fft_last_error());
        assert_success(cf_kernels_build(gpu, sources, 1, &kernel));
        cf_kernel_destroy(kernel);
    }
    cf_cubin_clear(&other);
}

/* (1 + 2i) (3 + 4i) = -5 + 10i in each of two products. */
static void cublas(void **state) {
    NEED_GPU(state);
    _Alignas(16) const float operands[] = {1, 2, 3, 4, 1, 0, 0, 0};
    float result[4];
    void *memory, *product, *workspace;
    const size_t workspace_bytes = 32 << 20;
    cf_cublas_guard guard;
    cf_cu_stream stream;
    assert_success(cf_gpu_stream_create(gpu, &stream));
    assert_success(cf_gpu_allocate(gpu, workspace_bytes, &workspace));
    if (cf_cublas_guard_acquire(gpu->cublas, stream, CF_CUBLAS_DEFAULT_MATH, workspace, workspace_bytes, &guard) ==
        CONV_FFT_LIBRARY_MISSING) {
        print_message("%s\n", conv_fft_last_error());
        cf_gpu_free(gpu, workspace);
        cf_gpu_stream_destroy(gpu, stream);
        skip();
    }
    assert_non_null(guard.handle);
    assert_success(cf_gpu_allocate(gpu, sizeof operands, &memory));
    assert_success(cf_gpu_allocate(gpu, sizeof result, &product));
    assert_success(cf_gpu_upload(gpu, memory, operands, sizeof operands, stream));
    const struct float2 *const a = memory, *const one = (const void *)&operands[4],
                               *const zero = (const void *)&operands[6];
    const struct float2 *const b = (const void *)((const char *)memory + 8);
    assert_success(CF_CUBLAS(guard.call, cublasCgemmStridedBatched, guard.handle, CF_CUBLAS_OP_N, CF_CUBLAS_OP_N, 1, 1,
                             1, one, a, 1, 0, b, 1, 0, zero, product, 1, 1, 2));
    cf_cublas_guard_release(gpu->cublas, &guard);
    assert_success(cf_gpu_download(gpu, result, product, sizeof result, stream));
    assert_success(cf_gpu_synchronize(gpu, stream));
    for (int i = 0; i < 2; ++i)
        assert_true(result[2 * i] == -5 && result[2 * i + 1] == 10);
    cf_gpu_free(gpu, memory);
    cf_gpu_free(gpu, product);
    cf_gpu_free(gpu, workspace);
    cf_gpu_stream_destroy(gpu, stream);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_EMPTY_CACHE(properties),
        WITH_GPU(memory),
        WITH_GPU(out_of_memory),
        WITH_EMPTY_CACHE(compile_and_launch),
        WITH_GPU(large_shared_memory),
        WITH_EMPTY_CACHE(code_of_another_gpu),
        WITH_GPU(cublas),
    };
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("GPU device", tests, NULL, NULL));
}
