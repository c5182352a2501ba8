/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of GPUs that are not installed. */
#include "cuda/driver/properties.h"
#include "support/temp_dirs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void shipped_files(void **state) {
    (void)state;
    cf_gpu_properties properties;
    char architecture[CF_ARCHITECTURE_BYTES];
    assert_int_equal(cf_gpu_properties_load("data/gpus/h200.txt", &properties), CONV_FFT_SUCCESS);
    assert_string_equal(properties.name, "NVIDIA H200");
    assert_int_equal(properties.multiprocessors, 132);
    assert_int_equal(properties.shared_per_block, 232448);
    assert_int_equal(properties.compute_minor, 0);
    assert_int_equal(properties.memory_bus_bits, 6016);
    cf_gpu_architecture(&properties, architecture);
    assert_string_equal(architecture, "sm_90a");
    assert_int_equal(cf_gpu_properties_load("data/gpus/a100.txt", &properties), CONV_FFT_SUCCESS);
    assert_int_equal(properties.memory_bytes, 42405855232);
    cf_gpu_architecture(&properties, architecture);
    assert_string_equal(architecture, "sm_80");
}

static void round_trip(void **state) {
    cf_gpu_properties properties, again;
    char text[2048];
    cf_text report = {.text = text, .bytes = sizeof text};
    assert_int_equal(cf_gpu_properties_load("data/gpus/h200.txt", &properties), CONV_FFT_SUCCESS);
    cf_gpu_properties_format(&properties, "  ", &report);
    const char *const path = scratch_path(*state, "facts.txt");
    scratch_write(path, text, report.length);
    assert_int_equal(cf_gpu_properties_load(path, &again), CONV_FFT_SUCCESS);
    assert_memory_equal(&properties, &again, sizeof properties);
}

/* A report of conv_fft_devices_report() or conv-fft devices. The first GPU with properties counts. */
static void reports(void **state) {
    cf_gpu_properties properties, again;
    char text[8192], facts[2048];
    cf_text report = {.text = facts, .bytes = sizeof facts};
    assert_int_equal(cf_gpu_properties_load("data/gpus/h200.txt", &properties), CONV_FFT_SUCCESS);
    cf_gpu_properties_format(&properties, "  ", &report);
    static const char *const heads[] = {"libconv_fft 0.1.0\nNVIDIA H200, key=value\nlibraries\n", "libraries\n"};
    for (int i = 0; i < 2; ++i) {
        snprintf(
            text, sizeof text,
            "%s  NVRTC  13.0  /a=b/%0600d\nGPU 0: it is gone\nGPU 1, kernels compiled for sm_90a\n%sGPU 2, kernels "
            "compiled for sm_80\n%skernel cache\n  /x=y: 3 kernels\n",
            heads[i], 0, facts, facts);
        const char *const path = scratch_path(*state, "report.txt");
        scratch_write(path, text, strlen(text));
        if (cf_gpu_properties_load(path, &again) != CONV_FFT_SUCCESS)
            fail_msg("%s", conv_fft_last_error());
        assert_memory_equal(&properties, &again, sizeof properties);
        scratch_write(path, "libraries\nno GPU: the driver is missing\n", 41);
        assert_int_equal(cf_gpu_properties_load(path, &again), CONV_FFT_INVALID_ARGUMENT);
        assert_non_null(strstr(conv_fft_last_error(), "report.txt is a report without the properties of a GPU"));
    }
}

/* The file of the H200 with the first occurrence of `from` replaced. */
static void broken(const char *directory, const char *from, const char *to, const char *sentence) {
    size_t bytes;
    char *const good = scratch_read("data/gpus/h200.txt", &bytes), *const at = strstr(good, from);
    char text[4096];
    assert_non_null(at);
    const int length = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    const char *const path = scratch_path(directory, "broken.txt");
    scratch_write(path, text, (size_t)length);
    cf_gpu_properties properties;
    memset(&properties, 0x5a, sizeof properties);
    const cf_gpu_properties before = properties;
    assert_int_equal(cf_gpu_properties_load(path, &properties), CONV_FFT_INVALID_ARGUMENT);
    assert_memory_equal(&properties, &before, sizeof properties);
    if (!strstr(conv_fft_last_error(), sentence) || !strstr(conv_fft_last_error(), path))
        fail_msg("\"%s\" does not say \"%s\"", conv_fft_last_error(), sentence);
    free(good);
}

static void malformed(void **state) {
    broken(*state, "multiprocessors=132\n", "", "multiprocessors is missing");
    broken(*state, "name=NVIDIA H200\n", "", "name is missing");
    broken(*state, "=132", "=0", ":5: multiprocessors is \"0\"; it must be a whole number from 1 on");
    broken(*state, "=132", "=-132", "it must be a whole number from 1 on");
    broken(*state, "=132", "= 132 SMs", "\"132 SMs\"; it must be a whole number");
    broken(*state, "=132", "=99999999999999999999", "must be a whole number");
    broken(*state, "=132", "", ":5: \"multiprocessors\" is not key=value");
    broken(*state, "multiprocessors", "multiprocessor", ":5: \"multiprocessor\" is not a property of a GPU");
    broken(*state, "compute_minor=0\n", "compute_major=9\n", ":4: compute_major is given twice");
    broken(*state, "NVIDIA H200\n", "\n", "name must have 1 to 127 bytes");
    char line[600];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    broken(*state, "NVIDIA H200\n", line, ":2: the line is longer than");
}

static void unreadable(void **state) {
    (void)state;
    cf_gpu_properties properties;
    assert_int_equal(cf_gpu_properties_load("data/gpus/nonexistent.txt", &properties), CONV_FFT_IO_ERROR);
    assert_non_null(strstr(conv_fft_last_error(), "data/gpus/nonexistent.txt cannot be opened: No such file"));
    assert_int_equal(cf_gpu_properties_load("facts", &properties), CONV_FFT_IO_ERROR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_files),
        cmocka_unit_test_setup_teardown(round_trip, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(reports, scratch_create, scratch_remove),
        cmocka_unit_test_setup_teardown(malformed, scratch_create, scratch_remove),
        cmocka_unit_test(unreadable),
    };
    return cmocka_run_group_tests_name("device facts", tests, NULL, NULL);
}
