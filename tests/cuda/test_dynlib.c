/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries that are missing, too old, too new, damaged or incomplete, and which of several copies is used. */
#include "cuda/jit/nvrtc.h"
#include "cuda/libs/cublas.h"
#include "support/temp_dirs.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cf_search only(const char *folders) { return (cf_search){.folders = folders, .only_folders = true}; }

#define assert_says(text, part)                                 \
    do {                                                        \
        if (!strstr(text, part))                                \
            fail_msg("\"%s\" does not say \"%s\"", text, part); \
    } while (0)

static conv_fft_status open_driver(const char *folders, cf_driver *driver) {
    const cf_search search = only(folders);
    return cf_driver_open(driver, &search);
}

static conv_fft_status open_jit(const char *folders, int driver_version, cf_jit *jit) {
    const cf_search search = only(folders);
    return cf_jit_open(jit, &search, driver_version, CONV_FFT_LOG_SILENT);
}

static void good(void **state) {
    (void)state;
    cf_driver driver;
    assert_int_equal(open_driver(FAKES "/good", &driver), CONV_FFT_SUCCESS);
    assert_int_equal(driver.version, 13000);
    assert_string_equal(driver.library.version, "13.0");
    assert_string_equal(driver.library.file, FAKES "/good/libcuda.so.1");
    cf_jit jit;
    assert_int_equal(open_jit(FAKES "/good", 13000, &jit), CONV_FFT_SUCCESS);
    assert_int_equal(jit.major, 13);
    assert_string_equal(jit.library.file, FAKES "/good/libnvrtc.so.13");
}

/* The message says which library is missing, why, and how to get it. */
static void refused(const char *sentence, conv_fft_status status, const char *why, const char *how) {
    assert_int_equal(status, CONV_FFT_LIBRARY_MISSING);
    assert_says(conv_fft_last_error(), " is missing: ");
    assert_says(conv_fft_last_error(), sentence);
    assert_says(sentence, why);
    assert_says(sentence, how);
}

static void missing(void **state) {
    const char *const empty = *state;
    cf_driver driver;
    conv_fft_status status = open_driver(empty, &driver);
    refused(driver.library.problem, status, "libcuda.so.1 was not found", "install NVIDIA's GPU driver");
    assert_false(driver.library.usable);
    cf_jit jit;
    status = open_jit(empty, 0, &jit);
    refused(jit.library.problem, status, "libnvrtc.so.13 was not found", "pip install nvidia-cuda-nvrtc");
    cf_library library;
    cf_cublas_functions functions;
    const cf_search search = only(empty);
    status = cf_cublas_open(&library, &functions, &search, 0);
    refused(library.problem, status, "libcublas.so.13 was not found", "pip install nvidia-cublas");
}

static void too_old(void **state) {
    (void)state;
    cf_driver driver;
    conv_fft_status status = open_driver(FAKES "/old", &driver);
    refused(driver.library.problem, status, "the driver has CUDA 11.8, at least CUDA 12.0 is needed", "version 525");
    cf_jit jit;
    status = open_jit(FAKES "/old", 0, &jit);
    refused(jit.library.problem, status, "NVRTC 11.8 is too old", "pip install");
    assert_says(jit.library.problem, FAKES "/old/libnvrtc.so.13");
}

static void symbol_missing(void **state) {
    (void)state;
    cf_driver driver;
    conv_fft_status status = open_driver(FAKES "/lacking", &driver);
    refused(driver.library.problem, status, "has no function cuLaunchKernelEx", "install");
    cf_jit jit;
    status = open_jit(FAKES "/lacking", 0, &jit);
    refused(jit.library.problem, status, "has no function nvrtcGetCUBIN:", "install");
}

static void newer_than_driver(void **state) {
    (void)state;
    cf_driver driver;
    assert_int_equal(open_driver(FAKES "/newer", &driver), CONV_FFT_SUCCESS);
    cf_jit jit;
    const conv_fft_status status = open_jit(FAKES "/newer", driver.version, &jit);
    refused(jit.library.problem, status, "NVRTC 13.0 is of CUDA 13, newer than the driver, which has CUDA 12.4",
            "nvidia-cuda-nvrtc-cu12");
    /* A newer minor version than the driver's works, and if both major versions are installed, the older one is
     * used. */
    assert_int_equal(open_jit(FAKES "/both", 12040, &jit), CONV_FFT_SUCCESS);
    assert_string_equal(jit.library.version, "12.6");
    assert_int_equal(open_jit(FAKES "/both", 13000, &jit), CONV_FFT_SUCCESS);
    assert_string_equal(jit.library.version, "13.0");
    assert_int_equal(open_jit(FAKES "/both", 0, &jit), CONV_FFT_SUCCESS);
    assert_string_equal(jit.library.version, "13.0");
}

static void damaged(void **state) {
    const char *const path = scratch_path(*state, "libcuda.so.1");
    scratch_write(path, "not a library\n", 14);
    cf_driver driver;
    const conv_fft_status status = open_driver(*state, &driver);
    refused(driver.library.problem, status, path, "install");
    /* The next folder has a good one. */
    char folders[2048];
    snprintf(folders, sizeof folders, ":%s:%s:", (const char *)*state, FAKES "/good");
    assert_int_equal(open_driver(folders, &driver), CONV_FFT_SUCCESS);
    assert_string_equal(driver.library.problem, "");
}

static void no_gpu(void **state) {
    (void)state;
    cf_driver driver;
    assert_int_equal(open_driver(FAKES "/no_gpu", &driver), CONV_FFT_NO_DEVICE);
    assert_true(driver.library.usable);
    assert_string_equal(conv_fft_last_error(),
                        "cuInit failed with CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected");
}

/* A library of the test itself: the search without CUDA's libraries. */
typedef struct table {
    cf_cu_result (*cuDriverGetVersion)(int *version);
} table;

static bool accept(const void *functions, int driver_version, cf_library *library) {
    (void)driver_version;
    snprintf(library->version, sizeof library->version, "1");
    return ((const table *)functions)->cuDriverGetVersion != NULL;
}

static void loaded_copy_first(void **state) {
    static const char *const sonames[] = {"libconv_fft_fake.so.1", NULL};
    static const cf_symbol symbols[] = {{"cuDriverGetVersion", offsetof(table, cuDriverGetVersion)}};
    const cf_library_spec spec = {.name = "a library",
                                  .sonames = sonames,
                                  .how_to_get = "no way",
                                  .symbols = symbols,
                                  .symbol_count = 1,
                                  .accept = accept};
    size_t bytes;
    char *const content = scratch_read(FAKES "/good/libcuda.so.1", &bytes);
    const char *const other = scratch_path(*state, sonames[0]);
    scratch_write(other, content, bytes);
    free(content);
    void *const handle = dlopen(FAKES "/loaded/libconv_fft_fake.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(handle);
    cf_library library;
    table functions;
    cf_search search = {.folders = *state};
    assert_int_equal(cf_library_open(&library, &spec, &search, 0, &functions), CONV_FFT_SUCCESS);
    assert_string_equal(library.file, FAKES "/loaded/libconv_fft_fake.so.1");
    int version = 0;
    functions.cuDriverGetVersion(&version);
    assert_int_equal(version, 12010);
    search.only_folders = true;
    assert_int_equal(cf_library_open(&library, &spec, &search, 0, &functions), CONV_FFT_SUCCESS);
    assert_string_equal(library.file, other);
    dlclose(handle);
}

static void environment(void **state) {
    (void)state;
    unsetenv("CONV_FFT_LIBRARY_PATH");
    assert_null(cf_search_default().folders);
    setenv("CONV_FFT_LIBRARY_PATH", FAKES "/turing", 1);
    const cf_search search = cf_search_default();
    assert_false(search.only_folders);
    cf_driver driver;
    assert_int_equal(cf_driver_open(&driver, &search), CONV_FFT_SUCCESS);
    assert_string_equal(driver.library.file, FAKES "/turing/libcuda.so.1");
    unsetenv("CONV_FFT_LIBRARY_PATH");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test_setup_teardown(missing, scratch_create, scratch_remove),
        cmocka_unit_test(too_old),
        cmocka_unit_test(symbol_missing),
        cmocka_unit_test(newer_than_driver),
        cmocka_unit_test_setup_teardown(damaged, scratch_create, scratch_remove),
        cmocka_unit_test(no_gpu),
        cmocka_unit_test_setup_teardown(loaded_copy_first, scratch_create, scratch_remove),
        cmocka_unit_test(environment),
    };
    return cmocka_run_group_tests_name("device library", tests, NULL, NULL);
}
