/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on a substitute GPU are compiled once, kept, loaded and launched. Failures are tested too. */
#include "cuda/driver/memory.h"
#include "cuda/jit/build_list.h"
#include "cuda/jit/launch.h"
#include "fakes/fake.h"
#include "support/fake_gpu.h"
#include "support/temp_dirs.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const cf_source sources[] = {
    {.name = "first", .text = "extern \"C\" __global__ void first() {}", .dynamic_shared = 100000},
    {.name = "second", .text = "extern \"C\" __global__ void second() {}", .options = {"-DN=64"}},
    {.name = "third", .text = "extern \"C\" __global__ void third() {}"},
};

static void destroy(cf_kernel **kernels, int count) {
    for (int i = 0; i < count; ++i)
        cf_kernel_destroy(kernels[i]);
}

static void built_and_launched(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    cf_kernel *kernels[3];
    const int before = fake_compilations();
    assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS);
    assert_int_equal(fake_compilations() - before, 3);
    assert_string_equal(kernels[2]->name, "third");
    assert_int_equal(kernels[0]->registers, 40);
    assert_int_equal(kernels[0]->local_bytes, 0);
    assert_int_equal(kernels[0]->static_shared, 1024);

    unsigned threads = 0;
    void *memory, *parameters[] = {&memory};
    assert_int_equal(cf_gpu_allocate(gpu, sizeof threads, &memory), CONV_FFT_SUCCESS);
    cf_launch launch = {.grid = {2, 3, 5}, .block = {7, 11, 13}, .dynamic_shared = 100000};
    fake_cuda *const driver = inside_fake(FAKES "/good/libcuda.so.1", "fake_cuda_state");
    const int elsewhere = driver->elsewhere;
    driver->expected_stream = &launch;
    assert_int_equal(cf_kernel_launch(kernels[0], &launch, parameters, (cf_cu_stream)(void *)&launch),
                     CONV_FFT_SUCCESS);
    assert_int_equal(driver->elsewhere, elsewhere);
    driver->expected_stream = NULL;
    assert_int_equal(cf_gpu_download(gpu, &threads, memory, sizeof threads, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(threads, 2 * 3 * 5 * 7 * 11 * 13);
    launch.grid[1] = 0;
    assert_int_equal(cf_kernel_launch(kernels[1], &launch, parameters, NULL), CONV_FFT_DEVICE_ERROR);
    assert_says("the launch of kernel second failed with CUDA_ERROR_OTHER (1): what went wrong");
    assert_int_equal(cf_kernel_launch(NULL, &launch, parameters, NULL), CONV_FFT_NOT_SUPPORTED);
    assert_says("no kernel was compiled for addresses that are no multiples of 16 bytes; options.any_alignment of the "
                "plan does that");
    cf_gpu_free(gpu, memory);
    destroy(kernels, 3);
    close_gpu(gpu);
}

/* Kernels with a PDL wait are launched early. Other kernels are not. */
static void launched_early(void **state) {
    static const cf_source two[] = {
        {.name = "first", .text = "extern \"C\" __global__ void first() {}", .pdl_wait = true},
        {.name = "second", .text = "extern \"C\" __global__ void second() {}"},
    };
    cf_gpu *const gpu = good_gpu(*state);
    const fake_cuda *const driver = inside_fake(FAKES "/good/libcuda.so.1", "fake_cuda_state");
    unsigned threads = 0;
    void *address = &threads, *parameters[] = {&address};
    const cf_launch launch = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
    cf_kernel *kernels[2];
    assert_int_equal(cf_kernels_build(gpu, two, 2, kernels), CONV_FFT_SUCCESS);
    for (int i = 0; i < 2; ++i) {
        const int early = driver->overlapping, all = driver->launches;
        assert_int_equal(cf_kernel_launch(kernels[i], &launch, parameters, NULL), CONV_FFT_SUCCESS);
        assert_int_equal(driver->launches - all, 1);
        assert_int_equal(driver->overlapping - early, i == 0);
    }
    assert_int_equal(threads, 32);
    destroy(kernels, 2);
    close_gpu(gpu);
}

typedef struct builder {
    cf_gpu *gpu;
    conv_fft_status status;
} builder;

static void *build_all(void *argument) {
    builder *const b = argument;
    cf_kernel *kernels[3];
    b->status = cf_kernels_build(b->gpu, sources, 3, kernels);
    if (b->status == CONV_FFT_SUCCESS)
        destroy(kernels, 3);
    return NULL;
}

/* Several threads need the same kernels. Each kernel is compiled once, and the other threads wait for it. */
static void compiled_once_by_threads(void **state) {
    enum {
        THREADS = 8
    };
    cf_gpu *const gpu = good_gpu(*state);
    const int before = fake_compilations();
    pthread_t threads[THREADS];
    builder builders[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        builders[i] = (builder){gpu, CONV_FFT_DEVICE_ERROR};
        assert_int_equal(pthread_create(&threads[i], NULL, build_all, &builders[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
        assert_int_equal(builders[i].status, CONV_FFT_SUCCESS);
    }
    assert_int_equal(fake_compilations() - before, 3);
    close_gpu(gpu);
}

static void warm_cache(void **state) {
    cf_gpu *gpu = good_gpu(*state);
    cf_kernel *kernels[3];
    assert_int_equal(cf_kernels_build(gpu, sources, 2, kernels), CONV_FFT_SUCCESS);
    destroy(kernels, 2);
    close_gpu(gpu);
    gpu = good_gpu(*state);
    const int before = fake_compilations();
    assert_int_equal(cf_kernels_build(gpu, sources, 2, kernels), CONV_FFT_SUCCESS);
    destroy(kernels, 2);
    assert_int_equal(fake_compilations() - before, 0);
    assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS); /* only what is new */
    destroy(kernels, 3);
    assert_int_equal(fake_compilations() - before, 1);
    close_gpu(gpu);
}

/* A read-only directory with all kernels serves a process without NVRTC. */
static void without_compiler(void **state) {
    unprivileged_begin(*state);
    cf_gpu *gpu;
    cf_kernel *kernels[3];
    conv_fft_status status = open_gpu(FAKES "/good", *state, 0, &gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_kernels_build(gpu, sources, 2, kernels);
    if (status == CONV_FFT_SUCCESS)
        destroy(kernels, 2);
    cf_gpu_close(gpu);
    chmod(*state, 0500);
    const conv_fft_status opened = open_gpu(FAKES "/driver_only", *state, 0, &gpu);
    const bool usable = gpu && gpu->jit.library.usable;
    const conv_fft_status warm = gpu ? cf_kernels_build(gpu, sources, 2, kernels) : CONV_FFT_INTERNAL_ERROR;
    if (warm == CONV_FFT_SUCCESS)
        destroy(kernels, 2);
    const conv_fft_status cold = gpu ? cf_kernels_build(gpu, sources, 3, kernels) : CONV_FFT_INTERNAL_ERROR;
    cf_gpu_close(gpu);
    chmod(*state, 0700);
    unprivileged_end();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(opened, CONV_FFT_SUCCESS);
    assert_false(usable);
    assert_int_equal(warm, CONV_FFT_SUCCESS);
    assert_int_equal(cold, CONV_FFT_LIBRARY_MISSING);
    assert_says("kernel third for sm_90a is not in the kernel cache /");
    assert_says(
        "it cannot be compiled, because NVRTC is missing: libnvrtc.so.13 was not found; install the CUDA toolkit");
    assert_true(nothing_open(FAKES "/driver_only/libcuda.so.1"));
}

/* A valid kernel of the cache that is not code for this GPU is removed and compiled again. */
static void code_of_another_gpu(void **state) {
    static const char *const codes[] = {FAKE_CUBIN "sm_80 text", "no machine code"};
    for (int i = 0; i < 2; ++i) {
        cf_gpu *gpu = good_gpu(*state);
        char code[64];
        snprintf(code, sizeof code, "%s", codes[i]);
        const cf_cubin wrong = {.data = code, .bytes = sizeof code};
        const cf_cubin_key key = cf_cubin_key_of("sm_90a", &sources[1]);
        cf_cubin_cache_store(gpu->cache, &key, &wrong, "13.0");
        cf_kernel *kernels[3];
        const int before = fake_compilations();
        assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS);
        assert_int_equal(fake_compilations() - before, i == 0 ? 3 : 1);
        destroy(kernels, 3);
        assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS);
        assert_int_equal(fake_compilations() - before, i == 0 ? 3 : 1);
        destroy(kernels, 3);

        /* Without a compiler, the message of the driver remains. */
        cf_cubin_cache_store(gpu->cache, &key, &wrong, "13.0");
        close_gpu(gpu);
        assert_int_equal(open_gpu(FAKES "/driver_only", *state, 0, &gpu), CONV_FFT_SUCCESS);
        assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_DEVICE_ERROR);
        assert_says(i == 0 ? "cuModuleLoadData failed with CUDA_ERROR_NO_BINARY_FOR_GPU (209)"
                           : "cuModuleLoadData failed with");
        assert_null(kernels[0]);
        assert_null(kernels[2]);
        cf_gpu_close(gpu);
        assert_true(nothing_open(FAKES "/driver_only/libcuda.so.1"));
    }
}

static void build_failures(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    cf_kernel *kernels[2];
    const cf_source wrong[] = {sources[0], {.name = "broken", .text = "\n#error of the test\n"}};
    assert_int_equal(cf_kernels_build(gpu, wrong, 2, kernels), CONV_FFT_COMPILE_ERROR);
    assert_says("kernel broken did not compile for sm_90a with NVRTC 13.0");
    assert_says("broken.cu(2): error: #error directive: of the test");
    assert_null(kernels[0]);
    const int before = fake_compilations();
    assert_int_equal(cf_kernels_build(gpu, sources, 1, kernels), CONV_FFT_SUCCESS); /* what did compile was kept */
    assert_int_equal(fake_compilations(), before);
    destroy(kernels, 1);

    const cf_source absent[] = {sources[0], {.name = "absent", .text = "text without such a kernel"}};
    assert_int_equal(cf_kernels_build(gpu, absent, 2, kernels), CONV_FFT_DEVICE_ERROR);
    assert_says("cuModuleGetFunction failed");
    assert_int_equal(fake_compilations() - before, 1); /* compiling again would not help */
    const cf_source large[] = {sources[1], {.name = "large", .text = "text", .dynamic_shared = 232448 - 1024 + 1}};
    assert_int_equal(cf_kernels_build(gpu, large, 2, kernels), CONV_FFT_NOT_SUPPORTED);
    assert_says("kernel large asks for 231425 bytes of shared memory; GPU 0 (Substitute GPU) has 231424 for it");
    close_gpu(gpu);
}

static cf_source owned(const char *name, int work) {
    const cf_source source = {.name = name, .work = work, .text = malloc(96)};
    assert_non_null(source.text);
    snprintf((char *)(uintptr_t)source.text, 96, "extern \"C\" __global__ void %s() {}", name);
    return source;
}

/* A list gives each kernel to its slot. A shared slot that has a kernel keeps it. After a failure no slot has one. */
static void lists_of_kernels(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    cf_kernel *own[40] = {NULL}, *shared = NULL;
    for (int turn = 0; turn < 2; ++turn) {
        cf_build_list *list = NULL;
        cf_kernel *const before = shared;
        assert_int_equal(cf_build_list_create(gpu, &list), CONV_FFT_SUCCESS);
        for (int i = 0; i < 40; ++i) {
            const cf_source source = owned(i % 2 ? "second" : "first", i);
            assert_int_equal(cf_build_list_add(list, &source, &own[i], NULL), CONV_FFT_SUCCESS);
        }
        const cf_source third = owned("third", 100);
        assert_int_equal(cf_build_list_add(list, &third, &shared, &mutex), CONV_FFT_SUCCESS);
        assert_true(shared == before && (turn || !own[0]));
        assert_int_equal(cf_build_list_end(list, CONV_FFT_SUCCESS), CONV_FFT_SUCCESS);
        assert_true(shared && (!before || shared == before));
        for (int i = 0; i < 40; ++i) {
            assert_string_equal(own[i]->name, i % 2 ? "second" : "first");
            cf_kernel_destroy(own[i]);
            own[i] = NULL;
        }
    }
    cf_build_list *list = NULL;
    const cf_source broken = {.name = "broken", .text = strdup("\n#error of the test\n")}, good = owned("first", 0);
    assert_int_equal(cf_build_list_create(gpu, &list), CONV_FFT_SUCCESS);
    assert_int_equal(cf_build_list_add(list, &good, &own[0], NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_build_list_add(list, &broken, &own[1], NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_build_list_end(list, CONV_FFT_SUCCESS), CONV_FFT_COMPILE_ERROR);
    assert_true(!own[0] && !own[1]);
    assert_int_equal(cf_build_list_create(gpu, &list), CONV_FFT_SUCCESS);
    const int before = fake_compilations();
    const cf_source unused = owned("unused", 0);
    assert_int_equal(cf_build_list_add(list, &unused, &own[0], NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_build_list_end(list, CONV_FFT_OUT_OF_MEMORY), CONV_FFT_OUT_OF_MEMORY);
    assert_true(!own[0] && fake_compilations() == before);
    cf_kernel_destroy(shared);
    pthread_mutex_destroy(&mutex);
    close_gpu(gpu);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(built_and_launched), WITH_SCRATCH(warm_cache),       WITH_SCRATCH(compiled_once_by_threads),
        WITH_SCRATCH(launched_early),     WITH_SCRATCH(without_compiler), WITH_SCRATCH(code_of_another_gpu),
        WITH_SCRATCH(build_failures),     WITH_SCRATCH(lists_of_kernels),
    };
    return cmocka_run_group_tests_name("device kernel", tests, NULL, NULL);
}
