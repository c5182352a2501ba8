/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft_explain(): it reports the planner's choice, and its budget is the memory traffic of the transform. No GPU is
 * needed. */
#include "fbfft/plan/roofline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const files[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};

static fbfft_desc transform(int rank, fbfft_kind kind, int64_t n0, int64_t n1, int64_t n2) {
    const int64_t n[3] = {n0, n1, n2};
    fbfft_desc d;
    assert_int_equal(fbfft_desc_init(&d, rank, kind), CONV_FFT_SUCCESS);
    for (int a = 0; a < rank; ++a)
        d.basis[a] = n[a];
    return d;
}

/* count is 0 if the GPU is too small. */
static cf_fft_passes plan(const fbfft_desc *d, const char *file, cf_gpu_properties *properties) {
    cf_fft_problem problem;
    cf_fft_passes passes = {.count = 0};
    assert_int_equal(cf_gpu_properties_load(file, properties), CONV_FFT_SUCCESS);
    assert_int_equal(cf_fft_resolve(d, &problem), CONV_FFT_SUCCESS);
    const conv_fft_status status = cf_fft_passes_of(&problem, properties, &passes);
    assert_true(status == CONV_FFT_SUCCESS || (status == CONV_FFT_NOT_SUPPORTED && passes.count == 0));
    return passes;
}

/* The i-th transform, over all kinds. Returns false after the last one. */
static bool next(int i, fbfft_desc *d) {
    static const struct {
        int rank;
        int64_t n[3];
    } shapes[] = {{1, {2}},        {1, {64}},         {1, {45}},         {1, {256}},
                  {1, {16384}},    {2, {8, 8}},       {2, {64, 64}},     {2, {45, 75}},
                  {2, {256, 256}}, {3, {16, 16, 16}}, {3, {64, 64, 64}}, {3, {256, 256, 256}}};
    const int count = sizeof shapes / sizeof shapes[0], shape = i % count, variant = i / count % 4,
              kind = i / count / 4;
    if (kind == 4)
        return false;
    *d = transform(shapes[shape].rank, (fbfft_kind)kind, shapes[shape].n[0], shapes[shape].n[1], shapes[shape].n[2]);
    d->channels = variant ? 16 : 1;
    d->order = variant == 1 ? FBFFT_FREQUENCY_MAJOR : variant == 2 ? FBFFT_TRANSPOSED : FBFFT_NATURAL;
    d->layout = variant == 2 ? CONV_FFT_CHANNELS_LAST : CONV_FFT_CHANNELS_FIRST;
    d->dtype = variant == 3 ? CONV_FFT_FP64 : CONV_FFT_FP32;
    return true;
}

static void everything_is_explained(void **unused) {
    (void)unused;
    fbfft_desc d;
    for (int f = 0; f < 2; ++f)
        for (int i = 0; next(i, &d); ++i) {
            char text[16384], line[32];
            size_t needed = 0;
            cf_gpu_properties properties;
            const cf_fft_passes passes = plan(&d, files[f], &properties);
            const conv_fft_status status = fbfft_explain(NULL, files[f], &d, 0, text, sizeof text, &needed);
            assert_int_equal(status, passes.count ? CONV_FFT_SUCCESS : CONV_FFT_NOT_SUPPORTED);
            if (!passes.count)
                continue;
            assert_int_equal(strlen(text) + 1, needed);
            snprintf(line, sizeof line, "\nkernel %d: ", passes.count);
            assert_non_null(strstr(text, line));
            snprintf(line, sizeof line, "\nkernel %d: ", passes.count + 1);
            assert_null(strstr(text, line));
            assert_null(strstr(text, "nan"));
        }
}

/* Each element and each bin crosses memory once, and intermediate results are written and read. */
static void budgets_count_every_byte(void **unused) {
    (void)unused;
    fbfft_desc d;
    for (int i = 0; next(i, &d); ++i) {
        cf_gpu_properties properties;
        const cf_fft_passes passes = plan(&d, files[0], &properties);
        const bool inverse = d.kind == FBFFT_C2R || d.kind == FBFFT_C2C_INVERSE, complex_signal = d.kind >= 2;
        const double number = d.dtype == CONV_FFT_FP64 ? 8 : 4;
        double points = 1, signal, spectrum, read = 0, written = 0, between = 0, waits = 0;
        for (int a = 0; a < d.rank; ++a)
            points *= (double)d.basis[a];
        const double last = (double)d.basis[d.rank - 1];
        const double bins = complex_signal ? points : points / last * (double)(d.basis[d.rank - 1] / 2 + 1);
        signal = 6 * (double)d.channels * points * number * (complex_signal ? 2 : 1);
        spectrum = 6 * (double)d.channels * bins * 2 * number;
        for (int k = 0; k < passes.count; ++k) {
            const cf_fft_budget b = cf_fft_budget_of(&passes, k, &properties, 6);
            const cf_fft_occupancy o = cf_fft_occupancy_of(&passes.pass[k], &properties);
            read += b.read;
            written += b.written;
            between += b.between;
            waits += k + 1 < passes.count ? 2 * 6 * (double)passes.between[k] : 0;
            assert_true(b.shared > 0 && (b.operations > 0 || points == 2));
            assert_true(b.seconds[0] >= 0 && b.seconds[1] > 0 && b.seconds[2] >= 0);
            assert_true(o.blocks >= 1 && o.registers >= 16 && o.registers <= 255);
            assert_true(o.threads * o.blocks * o.registers <= properties.registers_per_multiprocessor);
        }
        if (!passes.count)
            continue;
        assert_true(read == (inverse ? spectrum : signal));
        assert_true(written == (inverse ? signal : spectrum));
        assert_true(between == waits);
    }
}

/* Half of the window is outside of the signal. Elements outside are not read. */
static void windows_count_existing_elements(void **unused) {
    (void)unused;
    fbfft_desc d = transform(2, FBFFT_R2C, 16, 16, 1);
    cf_gpu_properties properties;
    d.size[0] = d.size[1] = 10;
    d.offset[0] = -3;
    d.offset[1] = 4;
    d.step[1] = 2;
    const cf_fft_passes passes = plan(&d, files[0], &properties);
    assert_true(cf_fft_budget_of(&passes, 0, &properties, 1).read == 10 * 3 * 4);
}

static void says(const char *part) {
    if (!strstr(conv_fft_last_error(), part))
        fail_msg("%s: %s", part, conv_fft_last_error());
}

static void arguments_are_checked(void **unused) {
    (void)unused;
    const fbfft_desc good = transform(2, FBFFT_R2C, 64, 64, 1);
    fbfft_desc bad = good;
    char text[20];
    size_t needed = 0;
    assert_int_equal(fbfft_explain(NULL, files[0], &good, 0, text, sizeof text, &needed), CONV_FFT_SUCCESS);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_true(needed > 200);
    assert_int_equal(fbfft_explain(NULL, files[0], &good, 0, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(fbfft_explain(NULL, files[0], &good, 0, NULL, 1, NULL), CONV_FFT_INVALID_ARGUMENT);
    says("text is NULL");
    assert_int_equal(fbfft_explain(NULL, files[0], NULL, 0, NULL, 0, NULL), CONV_FFT_INVALID_ARGUMENT);
    says("desc is NULL");
    assert_int_equal(fbfft_explain(NULL, NULL, &good, 0, NULL, 0, NULL), CONV_FFT_INVALID_ARGUMENT);
    says("context and facts_file are NULL");
    assert_int_equal(fbfft_explain(NULL, files[0], &good, -1, NULL, 0, NULL), CONV_FFT_INVALID_ARGUMENT);
    says("batch is -1");
    assert_int_equal(fbfft_explain(NULL, "data/gpus/absent.txt", &good, 0, NULL, 0, NULL), CONV_FFT_IO_ERROR);
    says("data/gpus/absent.txt");
    bad.basis[1] = 11;
    assert_int_equal(fbfft_explain(NULL, files[0], &bad, 0, NULL, 0, NULL), CONV_FFT_INVALID_ARGUMENT);
    says("basis[1] is 11");

    conv_fft_context *cpu;
    conv_fft_context_options options;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    assert_int_equal(conv_fft_context_create(&options, &cpu), CONV_FFT_SUCCESS);
    assert_int_equal(fbfft_explain(cpu, NULL, &good, 0, NULL, 0, NULL), CONV_FFT_NOT_SUPPORTED);
    assert_int_equal(fbfft_explain(cpu, files[0], &good, 0, NULL, 0, NULL), CONV_FFT_INVALID_ARGUMENT);
    conv_fft_context_destroy(cpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_explained),
        cmocka_unit_test(budgets_count_every_byte),
        cmocka_unit_test(windows_count_existing_elements),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests_name("fbfft explain", tests, NULL, NULL);
}
