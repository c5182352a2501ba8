/* SPDX-License-Identifier: Apache-2.0 */
/* The report that `conv-fft devices` prints. */
#include "cuda/driver/report.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char said[16384];

static void report(const char *folders, const char *cache) {
    const cf_search search = {.folders = folders, .only_folders = true};
    cf_text text = {.text = said, .bytes = sizeof said};
    cf_device_report(&search, cache, &text);
    assert_int_equal(text.length, strlen(said));
}

static void says(const char *part) {
    if (!strstr(said, part))
        fail_msg("the report does not say \"%s\":\n%s", part, said);
}

static void report_with_everything(void **state) {
    scratch_write(scratch_path(*state, "0123456789abcdef.cubin"), said, 12345);
    scratch_write(scratch_path(*state, "records.jsonl"), said, 1000);
    report(FAKES "/good:" FAKES "/with_cublas", *state);
    says("  CUDA driver  13.0       " FAKES "/good/libcuda.so.1\n");
    says("  NVRTC        13.0       " FAKES "/good/libnvrtc.so.13\n");
    says("  cuBLAS       13.1.1     " FAKES "/with_cublas/libcublas.so.13\n");
    says("  cuFFT        missing    libcufft.so.12 was not found; optional: ");
    says("  cuDNN        missing    libcudnn.so.9 was not found; optional: ");
    says("GPU 0, kernels compiled for sm_90a\n  name=Substitute GPU\n  memory_bytes=1048576\n  compute_major=9\n");
    char line[1200];
    snprintf(line, sizeof line, "kernel cache\n  %s: 1 kernels, 0.0 MB of at most 268.4, writable\n",
             (const char *)*state);
    says(line);
    assert_null(strstr(said, "no GPU"));
}

static void report_without_a_gpu(void **state) {
    const char *const absent = scratch_path(*state, "absent");
    report(*state, absent);
    says("  CUDA driver  missing    libcuda.so.1 was not found; install NVIDIA's GPU driver");
    says("  NVRTC        missing    libnvrtc.so.13 was not found; install the CUDA toolkit, or pip install");
    says("no GPU: the driver is missing\n");
    says("/absent does not exist yet\n");
    assert_int_not_equal(access(absent, F_OK), 0);
}

static void report_with_problems(void **state) {
    chmod(*state, 0777);
    report(FAKES "/no_gpu", *state);
    says("  CUDA driver  13.0 ");
    says("no GPU: cuInit failed with CUDA_ERROR_NO_DEVICE (100)");
    says("is not used, because others can write it\n");
    chmod(*state, 0700);
    report(FAKES "/turing", *state);
    says("GPU 0, not used: compute capability 8.0 is needed\n  name=Substitute GPU");
    report(FAKES "/newer", *state);
    says("NVRTC 13.0 is of CUDA 13, newer than the driver, which has CUDA 12.4");
}

static void public_function(void **state) {
    size_t needed = 0, again = 0;
    setenv("CONV_FFT_CACHE_DIR", *state, 1);
    setenv("CONV_FFT_LIBRARY_PATH", FAKES "/good:" FAKES "/with_cublas", 1);
    assert_int_equal(conv_fft_devices_report(NULL, 0, &needed), CONV_FFT_SUCCESS);
    assert_true(needed > 100 && needed < sizeof said);
    assert_int_equal(conv_fft_devices_report(said, needed, &again), CONV_FFT_SUCCESS);
    assert_int_equal(again, needed);
    assert_int_equal(strlen(said) + 1, needed);
    says("Substitute GPU");
    memset(said, 'x', 100);
    assert_int_equal(conv_fft_devices_report(said, 20, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(strlen(said), 19);
    assert_int_equal(said[20], 'x');
    assert_int_equal(conv_fft_devices_report(NULL, 1, NULL), CONV_FFT_INVALID_ARGUMENT);
    unsetenv("CONV_FFT_CACHE_DIR");
    unsetenv("CONV_FFT_LIBRARY_PATH");
}

#define WITH_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SCRATCH(report_with_everything),
        WITH_SCRATCH(report_without_a_gpu),
        WITH_SCRATCH(report_with_problems),
        WITH_SCRATCH(public_function),
    };
    return cmocka_run_group_tests_name("device report", tests, NULL, NULL);
}
