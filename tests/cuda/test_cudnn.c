/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN and cuFFT: missing, incomplete, too new, failing; their handles and plans. All with substitutes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/libs/cudnn.h"
#include "cuda/libs/cufft.h"
#include "fakes/fake.h"
#include "support/error_text.h"
#include "support/fake_gpu.h"
#include "support/temp_dirs.h"

#define CUDNN FAKES "/with_cudnn/libcudnn.so.9"
#define CUFFT FAKES "/with_cudnn/libcufft.so.12"

static conv_fft_status open_cudnn(const char *folders, int driver_version, cf_library *library) {
    const cf_search search = {.folders = folders, .only_folders = true};
    cf_cudnn_functions functions;
    return cf_cudnn_open(library, &functions, &search, driver_version);
}

static void libraries(void **state) {
    cf_library library;
    EXPECT(LIBRARY_MISSING, open_cudnn(*state, 0, &library), "cuDNN is missing: libcudnn.so.9 was not found",
           "optional", "pip install nvidia-cudnn-cu13", "CONV_FFT_LIBRARY_PATH");
    EXPECT(LIBRARY_MISSING, open_cudnn(FAKES "/bad_cudnn", 0, &library), "has no function cudnnBackendExecute");
    EXPECT(LIBRARY_MISSING, open_cudnn(FAKES "/newer_cudnn", 13000, &library),
           "cuDNN 9.19.19 is of CUDA 14, newer than the driver, which has CUDA 13.0");
    assert_int_equal(open_cudnn(FAKES "/with_cudnn", 13000, &library), CONV_FFT_SUCCESS);
    assert_string_equal(library.version, "9.19.19");
    assert_string_equal(library.file, CUDNN);

    cf_search search = {.folders = *state, .only_folders = true};
    cf_cufft_functions functions;
    EXPECT(LIBRARY_MISSING, cf_cufft_open(&library, &functions, &search, 0),
           "cuFFT is missing: libcufft.so.12 was not found", "pip install nvidia-cufft");
    search.folders = FAKES "/with_cudnn";
    EXPECT(LIBRARY_MISSING, cf_cufft_open(&library, &functions, &search, 12040), "cuFFT 12.0.0 is of CUDA 13");
    assert_int_equal(cf_cufft_open(&library, &functions, &search, 13000), CONV_FFT_SUCCESS);
    assert_string_equal(library.version, "12.0.0");
}

/* A GPU works without these libraries, and reports the same each time. */
static void missing(void **state) {
    cf_gpu *const gpu = good_gpu(*state);
    const int64_t n[3] = {1, 8, 8};
    cf_cudnn_guard guard;
    cf_cufft_plan *plan;
    for (int i = 0; i < 2; ++i) {
        EXPECT(LIBRARY_MISSING, cf_cudnn_guard_acquire(gpu->cudnn, NULL, &guard), "cuDNN is missing: libcudnn.so.9");
        EXPECT(LIBRARY_MISSING, cf_cufft_plan_create(gpu->cufft, n, 4, false, false, &plan),
               "cuFFT is missing: libcufft.so.12");
        assert_false(cf_cudnn_library(gpu->cudnn)->usable);
        assert_false(cf_cufft_library(gpu->cufft)->usable);
    }
    close_gpu(gpu);
}

static void pool(void **state) {
    cf_gpu *gpu;
    assert_int_equal(open_gpu(FAKES "/good:" FAKES "/with_cudnn", *state, 0, &gpu), CONV_FFT_SUCCESS);
    cf_cudnn_guard a, b;
    const cf_cu_stream stream = (cf_cu_stream)(void *)&a;
    assert_int_equal(cf_cudnn_guard_acquire(gpu->cudnn, NULL, &a), CONV_FFT_SUCCESS);
    assert_int_equal(cf_cudnn_guard_acquire(gpu->cudnn, stream, &b), CONV_FFT_SUCCESS);
    assert_ptr_not_equal(a.handle, b.handle);
    const fake_cudnn *const fake = inside_fake(CUDNN, "fake_cudnn_state");
    assert_int_equal(fake->handles, 2);
    const cf_cudnn_handle kept = b.handle;
    cf_cudnn_guard_release(gpu->cudnn, &a);
    cf_cudnn_guard_release(gpu->cudnn, &b);
    assert_int_equal(cf_cudnn_guard_acquire(gpu->cudnn, NULL, &a), CONV_FFT_SUCCESS);
    assert_ptr_equal(a.handle, kept);
    assert_int_equal(fake->handles, 2);
    cf_cudnn_guard_release(gpu->cudnn, &a);
    close_gpu(gpu);
    assert_int_equal(fake->handles, 0);
}

static void failing(void **state) {
    cf_gpu *gpu;
    cf_cudnn_guard guard;
    assert_int_equal(open_gpu(FAKES "/good:" FAKES "/failing_cudnn", *state, 0, &gpu), CONV_FFT_SUCCESS);
    EXPECT(DEVICE_ERROR, cf_cudnn_guard_acquire(gpu->cudnn, NULL, &guard),
           "cudnnCreate failed with CUDNN_STATUS_OTHER (1000)");
    close_gpu(gpu);
}

static void transforms(void **state) {
    static const int64_t n[3] = {1, 12, 10};
    cf_gpu *gpu;
    cf_cufft_plan *plan = NULL;
    double in[4], out[4], work[4];
    assert_int_equal(open_gpu(FAKES "/good:" FAKES "/with_cudnn", *state, 0, &gpu), CONV_FFT_SUCCESS);
    for (int kind = 0; kind < 4; ++kind) {
        assert_int_equal(cf_cufft_plan_create(gpu->cufft, n, 7, kind & 1, kind & 2, &plan), CONV_FFT_SUCCESS);
        assert_int_equal(cf_cufft_plan_work_bytes(plan), 4096);
        const fake_cufft *const fake = inside_fake(CUFFT, "fake_cufft_state");
        const int runs = fake->runs;
        assert_int_equal(fake->rank, 2);
        assert_int_equal(fake->batch, 7);
        assert_int_equal(cf_cufft_plan_run(plan, in, out, work, (cf_cu_stream)(void *)in), CONV_FFT_SUCCESS);
        assert_int_equal(fake->runs, runs + 1);
        assert_ptr_equal(fake->work, work);
        assert_ptr_equal(fake->stream, in);
        cf_cufft_plan_destroy(plan);
        assert_int_equal(fake->plans, 0);
    }
    EXPECT(OUT_OF_MEMORY, cf_cufft_plan_create(gpu->cufft, n, FAKE_CUFFT_FAILING_BATCH, false, false, &plan),
           "cufftMakePlanMany64 failed with result 2 of cuFFT");
    assert_int_equal(((const fake_cufft *)inside_fake(CUFFT, "fake_cufft_state"))->plans, 0);
    close_gpu(gpu);
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(libraries), WITH_SCRATCH(missing),    WITH_SCRATCH(pool),
        WITH_SCRATCH(failing),   WITH_SCRATCH(transforms),
    };
    return cmocka_run_group_tests_name("cuDNN and cuFFT", tests, NULL, NULL);
}
