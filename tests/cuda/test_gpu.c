/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU with substitutes of its libraries: opening, memory, events, the pool of cuBLAS handles. Everything opened is
 * closed, and each failure has its status and message. */
#include "cuda/driver/memory.h"
#include "cuda/libs/cublas.h"
#include "fakes/fake.h"
#include "support/fake_gpu.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void opened(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    assert_string_equal(gpu->properties.name, "Substitute GPU");
    assert_int_equal(gpu->properties.memory_bytes, FAKE_MEMORY);
    assert_int_equal(gpu->properties.shared_per_block, 232448);
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
    assert_true(nothing_open(FAKES "/good/libcuda.so.1"));
    assert_true(nothing_open(FAKES "/turing/libcuda.so.1"));
}

static void memory(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    const char text[] = "to the device and back";
    char back[sizeof text] = "";
    void *a, *b, *none = &back;
    cf_cu_stream stream;
    assert_int_equal(cf_gpu_stream_create(gpu, &stream), CONV_FFT_SUCCESS);
    fake_cuda *const driver = inside_fake(FAKES "/good/libcuda.so.1", "fake_cuda_state");
    const int elsewhere = driver->elsewhere;
    driver->expected_stream = stream;
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
    assert_int_equal(cf_gpu_fill(gpu, a, 0x01, 12, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_fill(gpu, a, 0xff, 2, stream), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_download(gpu, words, a, 12, stream), CONV_FFT_SUCCESS);
    assert_true(words[0] == 0x0101ffff && words[2] == 0x01010101 && words[3] == 4);
    assert_int_equal(driver->elsewhere, elsewhere);
    driver->expected_stream = NULL;
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
    cf_cu_stream stream = (cf_cu_stream)(void *)&start;
    float ms = 0;
    fake_cuda *const driver = inside_fake(FAKES "/good/libcuda.so.1", "fake_cuda_state");
    const int elsewhere = driver->elsewhere;
    driver->expected_stream = stream;
    assert_int_equal(cf_gpu_event_create(gpu, &start), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_event_create(gpu, &end), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_event_record(gpu, start, stream), CONV_FFT_SUCCESS);
    assert_int_equal(driver->elsewhere, elsewhere);
    driver->expected_stream = NULL;
    assert_int_equal(cf_gpu_event_elapsed(gpu, start, end, &ms), CONV_FFT_SUCCESS);
    assert_ptr_equal(driver->waited_for, end);
    assert_true(ms == 1.5f);
    cf_gpu_event_destroy(gpu, start);
    cf_gpu_event_destroy(gpu, end);
    close_gpu(gpu);
}

static void cublas_missing(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    cf_cublas_guard guard;
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(cf_cublas_guard_acquire(gpu->cublas, NULL, CF_CUBLAS_DEFAULT_MATH, NULL, 0, &guard),
                         CONV_FFT_LIBRARY_MISSING);
        assert_says("cuBLAS is missing: libcublas.so.13 was not found; install the CUDA toolkit");
    }
    close_gpu(gpu);
}

static void cublas_pool(void **state) {
    cf_gpu *gpu;
    assert_int_equal(open_gpu(FAKES "/with_cublas", *state, 0, &gpu), CONV_FFT_SUCCESS);
    char workspace[16];
    cf_cublas_guard a, b;
    cf_cu_stream stream = (cf_cu_stream)(void *)&a;
    assert_int_equal(cf_cublas_guard_acquire(gpu->cublas, NULL, CF_CUBLAS_DEFAULT_MATH, NULL, 0, &a), CONV_FFT_SUCCESS);
    assert_int_equal(cf_cublas_guard_acquire(gpu->cublas, stream, CF_CUBLAS_TF32_MATH, workspace, sizeof workspace, &b),
                     CONV_FFT_SUCCESS);
    assert_ptr_not_equal(a.handle, b.handle);
    const fake_cublas *const fake = inside_fake(FAKES "/with_cublas/libcublas.so.13", "fake_cublas_state");
    assert_int_equal(fake->handles, 2);
    assert_ptr_equal(fake->stream, stream);
    assert_ptr_equal(fake->workspace, workspace);
    assert_int_equal(fake->math, CF_CUBLAS_TF32_MATH);
    const cf_cublas_handle kept = b.handle;
    cf_cublas_guard_release(gpu->cublas, &a);
    cf_cublas_guard_release(gpu->cublas, &b);
    assert_int_equal(
        cf_cublas_guard_acquire(gpu->cublas, stream, CF_CUBLAS_DEFAULT_MATH, workspace, FAKE_CUBLAS_FAILING_BYTES, &a),
        CONV_FFT_OUT_OF_MEMORY);
    assert_says("cublasSetWorkspace failed with CUBLAS_STATUS_ALLOC_FAILED (3)");
    assert_int_equal(
        cf_cublas_guard_acquire(gpu->cublas, stream, CF_CUBLAS_DEFAULT_MATH, workspace, sizeof workspace, &a),
        CONV_FFT_SUCCESS);
    assert_ptr_equal(a.handle, kept); /* the last one back, and none was lost on the way */
    assert_int_equal(fake->handles, 2);
    cf_cublas_guard_release(gpu->cublas, &a);
    cf_gpu_close(gpu);
    assert_int_equal(fake->handles, 0);
    assert_true(nothing_open(FAKES "/with_cublas/libcuda.so.1"));
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(opened), WITH_SCRATCH(not_opened),     WITH_SCRATCH(memory),      WITH_SCRATCH(out_of_memory),
        WITH_SCRATCH(events), WITH_SCRATCH(cublas_missing), WITH_SCRATCH(cublas_pool),
    };
    return cmocka_run_group_tests_name("device GPU", tests, NULL, NULL);
}
