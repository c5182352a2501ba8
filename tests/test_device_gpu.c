/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU end to end, with substitutes of driver and compiler: what is opened is closed, what is compiled is kept, and each
 * failure has its status and sentence. */
#include "device/cublas.h"
#include "device/kernel.h"
#include "device/memory.h"
#include "fakes/fake.h"
#include "scratch.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static conv_fft_status open_gpu(const char *fakes, const char *cache, int ordinal, cf_gpu **gpu) {
    const cf_gpu_options options = {.ordinal = ordinal,
                                    .cache_directory = cache,
                                    .log_level = CONV_FFT_LOG_WARNING,
                                    .search = {.folders = fakes, .only_folders = true}};
    *gpu = NULL;
    return cf_gpu_open(&options, gpu);
}

static cf_gpu *good_gpu(const char *cache) {
    cf_gpu *gpu;
    assert_int_equal(open_gpu(FAKES "/good", cache, 0, &gpu), CONV_FFT_SUCCESS);
    return gpu;
}

/* A variable of a substitute library that is open already. */
static void *inside(const char *file, const char *variable) {
    void *const handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    void *const address = dlsym(handle, variable);
    assert_non_null(address);
    dlclose(handle);
    return address;
}

static int compilations(void) {
    return atomic_load((atomic_int *)inside(FAKES "/good/libnvrtc.so.13", "fake_nvrtc_compilations"));
}

static void nothing_open(const char *driver) {
    const fake_cuda *const state = inside(driver, "fake_cuda_state");
    assert_int_equal(state->retained, 0);
    assert_int_equal(state->depth, 0);
    assert_int_equal(state->modules, 0);
    assert_int_equal(state->allocations, 0);
}

static void close_gpu(cf_gpu *gpu) {
    cf_gpu_close(gpu);
    nothing_open(FAKES "/good/libcuda.so.1");
}

#define assert_says(part)                                                        \
    do {                                                                         \
        if (!strstr(conv_fft_last_error(), part))                                \
            fail_msg("\"%s\" does not say \"%s\"", conv_fft_last_error(), part); \
    } while (0)

static void opened(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    assert_string_equal(gpu->facts.name, "Substitute GPU");
    assert_int_equal(gpu->facts.memory_bytes, FAKE_MEMORY);
    assert_int_equal(gpu->facts.shared_per_block, 232448);
    assert_string_equal(gpu->architecture, "sm_90a");
    assert_true(gpu->jit.library.usable);
    close_gpu(gpu);
    cf_gpu_close(NULL);
}

static void not_opened(void **state) {
    cf_gpu *gpu;
    assert_int_equal(open_gpu(FAKES "/good", *state, 1, &gpu), CONV_FFT_NO_DEVICE);
    assert_says("there is no GPU 1: the driver has 1");
    assert_int_equal(open_gpu(FAKES "/no_gpu", *state, 0, &gpu), CONV_FFT_NO_DEVICE);
    assert_says("CUDA_ERROR_NO_DEVICE");
    assert_int_equal(open_gpu(FAKES "/turing", *state, 0, &gpu), CONV_FFT_NOT_SUPPORTED);
    assert_says("GPU 0 (Substitute GPU) has compute capability 7.0; at least 8.0 is needed");
    assert_int_equal(open_gpu(FAKES "/old", *state, 0, &gpu), CONV_FFT_LIBRARY_MISSING);
    assert_int_equal(open_gpu(*state, *state, 0, &gpu), CONV_FFT_LIBRARY_MISSING);
    assert_null(gpu);
    nothing_open(FAKES "/good/libcuda.so.1");
    nothing_open(FAKES "/turing/libcuda.so.1");
}

static void memory(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    const char text[] = "to the device and back";
    char back[sizeof text] = "";
    void *a, *b, *none = &back;
    cf_cu_stream stream;
    assert_int_equal(cf_gpu_stream_create(gpu, &stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_allocate(gpu, sizeof text, &a), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_allocate(gpu, sizeof text, &b), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_allocate(gpu, 0, &none), CONV_FFT_SUCCESS);
    assert_null(none);
    assert_int_equal(cf_gpu_upload(gpu, a, text, sizeof text, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_copy(gpu, b, a, sizeof text, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_download(gpu, back, b, sizeof text, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_synchronize(gpu, stream), CONV_FFT_SUCCESS);
    assert_string_equal(back, text);
    uint32_t words[4] = {1, 2, 3, 4};
    assert_int_equal(cf_gpu_fill_words(gpu, a, 0x01020304, 3, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_fill(gpu, a, 0xff, 2, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_download(gpu, words, a, 12, stream), CONV_FFT_SUCCESS);
    assert_true(words[0] == 0x0102ffff && words[2] == 0x01020304 && words[3] == 4);
    cf_gpu_free(gpu, a);
    cf_gpu_free(gpu, b);
    cf_gpu_free(gpu, NULL);
    cf_gpu_stream_destroy(gpu, stream);
    close_gpu(gpu);
}

static void out_of_memory(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    void *memory = state;
    assert_int_equal(cf_gpu_allocate(gpu, FAKE_MEMORY + 1, &memory), CONV_FFT_OUT_OF_MEMORY);
    assert_string_equal(conv_fft_last_error(), "GPU 0 (Substitute GPU) has no 1048577 bytes left of its 1048576");
    assert_ptr_equal(memory, state);
    close_gpu(gpu);
}

static void events(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    cf_cu_event start, end;
    float ms = 0;
    assert_int_equal(cf_gpu_event_create(gpu, &start), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_event_create(gpu, &end), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_event_record(gpu, start, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_event_elapsed(gpu, start, end, &ms), CONV_FFT_SUCCESS);
    assert_true(ms == 1.5f);
    cf_gpu_event_destroy(gpu, start);
    cf_gpu_event_destroy(gpu, end);
    close_gpu(gpu);
}

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
    const int before = compilations();
    assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS);
    assert_int_equal(compilations() - before, 3);
    assert_string_equal(kernels[2]->name, "third");
    assert_int_equal(kernels[0]->registers, 40);
    assert_int_equal(kernels[0]->local_bytes, 0);
    assert_int_equal(kernels[0]->static_shared, 1024);
    int blocks;
    assert_int_equal(cf_kernel_occupancy(kernels[0], 256, 100000, &blocks), CONV_FFT_SUCCESS);
    assert_int_equal(blocks, 8);

    unsigned threads = 0;
    void *memory, *parameters[] = {&memory};
    assert_int_equal(cf_gpu_allocate(gpu, sizeof threads, &memory), CONV_FFT_SUCCESS);
    cf_launch launch = {.grid = {2, 3, 5}, .block = {7, 11, 13}, .dynamic_shared = 100000};
    assert_int_equal(cf_kernel_launch(kernels[0], &launch, parameters, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_download(gpu, &threads, memory, sizeof threads, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(threads, 2 * 3 * 5 * 7 * 11 * 13);
    launch.grid[1] = 0;
    assert_int_equal(cf_kernel_launch(kernels[1], &launch, parameters, NULL), CONV_FFT_DEVICE_ERROR);
    assert_says("the launch of kernel second failed with CUDA_ERROR_OTHER (1): what went wrong");
    cf_gpu_free(gpu, memory);
    destroy(kernels, 3);
    close_gpu(gpu);
}

static void warm_cache(void **state) {
    cf_gpu *gpu = good_gpu(*state);
    cf_kernel *kernels[3];
    assert_int_equal(cf_kernels_build(gpu, sources, 2, kernels), CONV_FFT_SUCCESS);
    destroy(kernels, 2);
    close_gpu(gpu);
    gpu = good_gpu(*state);
    const int before = compilations();
    assert_int_equal(cf_kernels_build(gpu, sources, 2, kernels), CONV_FFT_SUCCESS);
    destroy(kernels, 2);
    assert_int_equal(compilations() - before, 0);
    assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS); /* only what is new */
    destroy(kernels, 3);
    assert_int_equal(compilations() - before, 1);
    close_gpu(gpu);
}

/* A warmed, read-only directory serves a process without NVRTC. */
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
    nothing_open(FAKES "/driver_only/libcuda.so.1");
}

/* A kernel in the cache that is sound, but not code for this GPU: it is forgotten and compiled again. */
static void of_another_gpu(void **state) {
    static const char *const codes[] = {FAKE_CUBIN "sm_80 text", "no machine code"};
    for (int i = 0; i < 2; ++i) {
        cf_gpu *gpu = good_gpu(*state);
        cf_cubin_key key;
        char code[64];
        snprintf(code, sizeof code, "%s", codes[i]);
        const cf_cubin wrong = {.data = code, .bytes = sizeof code};
        assert_int_equal(cf_cubin_key_make("sm_90a", &sources[1], &key), CONV_FFT_SUCCESS);
        cf_cubin_cache_store(gpu->cache, &key, &wrong, "13.0");
        cf_kernel *kernels[3];
        const int before = compilations();
        assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS);
        assert_int_equal(compilations() - before, i == 0 ? 3 : 1);
        destroy(kernels, 3);
        assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_SUCCESS);
        assert_int_equal(compilations() - before, i == 0 ? 3 : 1);
        destroy(kernels, 3);

        /* Without a compiler the driver's own sentence is what is left. */
        cf_cubin_cache_store(gpu->cache, &key, &wrong, "13.0");
        close_gpu(gpu);
        assert_int_equal(open_gpu(FAKES "/driver_only", *state, 0, &gpu), CONV_FFT_SUCCESS);
        assert_int_equal(cf_kernels_build(gpu, sources, 3, kernels), CONV_FFT_DEVICE_ERROR);
        assert_says(i == 0 ? "cuModuleLoadData failed with CUDA_ERROR_NO_BINARY_FOR_GPU (209)"
                           : "cuModuleLoadData failed with");
        assert_null(kernels[0]);
        assert_null(kernels[2]);
        cf_gpu_close(gpu);
        nothing_open(FAKES "/driver_only/libcuda.so.1");
        cf_cubin_key_clear(&key);
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
    const int before = compilations();
    assert_int_equal(cf_kernels_build(gpu, sources, 1, kernels), CONV_FFT_SUCCESS); /* what did compile was kept */
    assert_int_equal(compilations(), before);
    destroy(kernels, 1);

    const cf_source absent[] = {sources[0], {.name = "absent", .text = "text without such a kernel"}};
    assert_int_equal(cf_kernels_build(gpu, absent, 2, kernels), CONV_FFT_DEVICE_ERROR);
    assert_says("cuModuleGetFunction failed");
    const cf_source large[] = {sources[1], {.name = "large", .text = "text", .dynamic_shared = 232448 - 1024 + 1}};
    assert_int_equal(cf_kernels_build(gpu, large, 2, kernels), CONV_FFT_NOT_SUPPORTED);
    assert_says("kernel large asks for 231425 bytes of shared memory; GPU 0 (Substitute GPU) has 231424 for it");
    close_gpu(gpu);
}

/* The kernels of another architecture, or of none of the GPUs here, need no GPU. */
static void cubins_without_gpu(void **state) {
    const cf_search search = {.folders = FAKES "/good", .only_folders = true};
    cf_jit jit;
    cf_cubin_cache *cache;
    assert_int_equal(cf_jit_open(&jit, &search, 0, CONV_FFT_LOG_WARNING), CONV_FFT_SUCCESS);
    assert_int_equal(cf_cubin_cache_create(*state, CF_CUBIN_CACHE_LIMIT, CONV_FFT_LOG_WARNING, &cache),
                     CONV_FFT_SUCCESS);
    cf_cubin cubins[3] = {{0}};
    assert_int_equal(cf_cubins_make(&jit, cache, "sm_80", sources, 3, cubins), CONV_FFT_SUCCESS);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(strncmp(cubins[i].data, FAKE_CUBIN "sm_80 ", strlen(FAKE_CUBIN "sm_80 ")), 0);
        assert_non_null(strstr(cubins[i].data, sources[i].name));
        cf_cubin_clear(&cubins[i]);
    }
    assert_int_equal(cf_cubins_make(&jit, cache, "sm_80", sources, 0, cubins), CONV_FFT_SUCCESS);
    cf_cubin_cache_destroy(cache);
}

static void cublas_missing(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    cf_cublas_lease lease;
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(cf_cublas_acquire(gpu->cublas, NULL, CF_CUBLAS_DEFAULT_MATH, NULL, 0, &lease),
                         CONV_FFT_LIBRARY_MISSING);
        assert_says("cuBLAS is missing: libcublas.so.13 was not found; install the CUDA toolkit");
    }
    close_gpu(gpu);
}

static void cublas_pool(void **state) {
    cf_gpu *gpu;
    assert_int_equal(open_gpu(FAKES "/with_cublas", *state, 0, &gpu), CONV_FFT_SUCCESS);
    char workspace[16];
    cf_cublas_lease a, b;
    cf_cu_stream stream = (cf_cu_stream)(void *)&a;
    assert_int_equal(cf_cublas_acquire(gpu->cublas, NULL, CF_CUBLAS_DEFAULT_MATH, NULL, 0, &a), CONV_FFT_SUCCESS);
    assert_int_equal(cf_cublas_acquire(gpu->cublas, stream, CF_CUBLAS_TF32_MATH, workspace, sizeof workspace, &b),
                     CONV_FFT_SUCCESS);
    assert_ptr_not_equal(a.handle, b.handle);
    const fake_cublas *const fake = inside(FAKES "/with_cublas/libcublas.so.13", "fake_cublas_state");
    assert_int_equal(fake->handles, 2);
    assert_ptr_equal(fake->stream, stream);
    assert_ptr_equal(fake->workspace, workspace);
    assert_int_equal(fake->math, CF_CUBLAS_TF32_MATH);
    const cf_cublas_handle kept = b.handle;
    cf_cublas_release(gpu->cublas, &a);
    cf_cublas_release(gpu->cublas, &b);
    assert_int_equal(
        cf_cublas_acquire(gpu->cublas, stream, CF_CUBLAS_DEFAULT_MATH, workspace, FAKE_CUBLAS_FAILING_BYTES, &a),
        CONV_FFT_OUT_OF_MEMORY);
    assert_says("cublasSetWorkspace failed with CUBLAS_STATUS_ALLOC_FAILED (3)");
    assert_int_equal(cf_cublas_acquire(gpu->cublas, stream, CF_CUBLAS_DEFAULT_MATH, workspace, sizeof workspace, &a),
                     CONV_FFT_SUCCESS);
    assert_ptr_equal(a.handle, kept); /* the last one back, and none was lost on the way */
    assert_int_equal(fake->handles, 2);
    cf_cublas_release(gpu->cublas, &a);
    cf_gpu_close(gpu);
    assert_int_equal(fake->handles, 0);
    nothing_open(FAKES "/with_cublas/libcuda.so.1");
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(opened),
        WITH_SCRATCH(not_opened),
        WITH_SCRATCH(memory),
        WITH_SCRATCH(out_of_memory),
        WITH_SCRATCH(events),
        WITH_SCRATCH(built_and_launched),
        WITH_SCRATCH(warm_cache),
        WITH_SCRATCH(without_compiler),
        WITH_SCRATCH(of_another_gpu),
        WITH_SCRATCH(build_failures),
        WITH_SCRATCH(cubins_without_gpu),
        WITH_SCRATCH(cublas_missing),
        WITH_SCRATCH(cublas_pool),
    };
    return cmocka_run_group_tests_name("device GPU", tests, NULL, NULL);
}
