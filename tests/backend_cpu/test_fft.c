/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's transforms, with every set of kernels that this CPU can run: all lengths, several axes, random windows and
 * crops. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/compare.h"
#include "support/cpu_fft_check.h"
#include "support/selection.h"
#include "support/tensor.h"

#include <math.h>

static cf_cpu_device *device;

static bool is_basis(int64_t n) {
    for (int64_t p = 2; p <= 7; ++p)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

static void check_basis(const int64_t basis[3], conv_fft_dtype dtype, int64_t channels) {
    generator g = test_generator((uint64_t)(basis[0] * 1000003 + basis[1] * 1009 + basis[2]));
    setting s = simple_setting(basis, dtype, 1, channels);
    complete_whole(&s, CONV_FFT_CHANNELS_FIRST);
    const double error = forward_error(device, &s, &g);
    if (!(error <= spectrum_tolerance(&s)))
        fail_msg("%s, basis %dx%dx%d: error %g", device->kernels->name, (int)basis[0], (int)basis[1], (int)basis[2],
                 error);
    s.desc.inverse = true;
    if (!check_inverse(device, &s, &g, false, false))
        fail_msg("%s, inverse of basis %dx%dx%d", device->kernels->name, (int)basis[0], (int)basis[1], (int)basis[2]);
}

static void every_length(void) {
    for (int64_t n = 1; n <= 256; ++n) {
        if (!is_basis(n))
            continue;
        check_basis((int64_t[3]){1, 1, n}, CONV_FFT_FP32, 3);
        check_basis((int64_t[3]){1, 1, n}, CONV_FFT_FP64, 2);
    }
}

static void several_axes(void) {
    static const int64_t bases[][3] = {{1, 8, 8}, {1, 5, 3}, {1, 7, 1},  {6, 1, 1},
                                       {4, 1, 6}, {3, 5, 7}, {8, 4, 10}, {1, 9, 35}};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; ++i) {
        check_basis(bases[i], CONV_FFT_FP32, 18); /* more than one unit, the last one not full */
        check_basis(bases[i], CONV_FFT_FP64, 1);
    }
    static const int64_t large[][3] = {{1, 64, 96}, {1, 1, 1000}, {1, 1, 1024}, {1, 1, 2187}};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; ++i)
        check_basis(large[i], CONV_FFT_FP32, 1);
}

/* Case i of a run has the seed CONV_FFT_TEST_SEED + i: that seed and a count of 1 replay it. */
static uint64_t count_of_random(void) { return environment_number("CONV_FFT_TEST_COUNT", 2000); }

static void fail_random(uint64_t seed, double error) {
    char variables[96], line[256];
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_SEED=%" PRIu64 " CONV_FFT_TEST_COUNT=1", seed);
    test_replay(line, sizeof line, variables);
    fail_msg("%s: error %g; replay: %s", device->kernels->name, error, line);
}

static void random_windows(void) {
    const uint64_t first = test_seed(), count = count_of_random();
    for (uint64_t seed = first; seed != first + count; ++seed) {
        generator g = generator_create(seed);
        const setting s = random_setting(&g, false, false);
        const double error = forward_error(device, &s, &g);
        if (!(error <= spectrum_tolerance(&s)))
            fail_random(seed, error);
    }
}

static void random_crops(void) {
    const uint64_t first = test_seed(), count = count_of_random();
    for (uint64_t seed = first; seed != first + count; ++seed) {
        generator g = generator_create(seed);
        const bool ordered = random_once_in(&g, 3);
        const setting s = random_setting(&g, true, ordered);
        if (!check_inverse(device, &s, &g, !ordered && random_once_in(&g, 2), ordered || random_once_in(&g, 2)))
            fail_random(seed, NAN);
    }
}

/* A NaN in one plane does not change a bit of other planes. */
static void isolation(void) {
    generator g = test_generator(7);
    setting s = simple_setting((int64_t[3]){1, 12, 10}, CONV_FFT_FP32, 4, 5);
    complete_whole(&s, CONV_FFT_CHANNELS_LAST);
    const size_t count = (size_t)(s.block.group_stride) * 2, bytes = count * sizeof(float);
    float *elements = test_alloc((size_t)s.elements * sizeof(float)), *clean = test_alloc(bytes),
          *dirty = test_alloc(bytes);
    for (int64_t i = 0; i < s.elements; ++i)
        elements[i] = (float)random_value(&g);
    void *scratch;
    cf_transform *t = test_transform(device, &s, &scratch);
    cf_block block = s.block;
    block.data = clean;
    assert_int_equal(device->base.ops->forward(t, elements, s.origin, block, scratch, NULL), CONV_FFT_SUCCESS);
    elements[1 * s.desc.tensor.sample_stride + 2] = NAN; /* row 1, column 2 */
    block.data = dirty;
    assert_int_equal(device->base.ops->forward(t, elements, s.origin, block, scratch, NULL), CONV_FFT_SUCCESS);
    int64_t poisoned = 0;
    for (int64_t bin = 0; bin < s.desc.spectrum.bins; ++bin)
        for (int64_t p = 0; p < s.planes; ++p) {
            const float *a = clean + 2 * (bin * s.block.bin_stride + p),
                        *b = dirty + 2 * (bin * s.block.bin_stride + p);
            if (p == 1 * 5 + 2)
                poisoned += isnan(b[0]) != 0;
            else
                assert_memory_equal(a, b, 2 * sizeof(float));
        }
    assert_int_equal(poisoned, s.desc.spectrum.bins);
    device->base.ops->transform_destroy(t);
    free(scratch);
    free(elements);
    free(clean);
    free(dirty);
}

/* A spectrum large enough to be written past the caches equals the same spectrum in two smaller halves. */
static void large_spectrum(void) {
    generator g = test_generator(8);
    setting s = simple_setting((int64_t[3]){1, 16, 16}, CONV_FFT_FP32, 600, 16);
    complete_whole(&s, CONV_FFT_CHANNELS_FIRST);
    const size_t bytes = (size_t)(s.desc.spectrum.bins * s.planes) * 2 * sizeof(float);
    assert_true(bytes > 8 << 20);
    float *elements = test_alloc((size_t)s.elements * sizeof(float)), *half = test_alloc(bytes / 2);
    char *memory = test_alloc(bytes + 64), *whole = memory + (64 - (uintptr_t)memory % 64);
    for (int64_t i = 0; i < s.elements; ++i)
        elements[i] = (float)random_value(&g);
    void *scratch;
    cf_transform *t = test_transform(device, &s, &scratch);
    cf_block block = s.block;
    block.data = whole;
    assert_int_equal(device->base.ops->forward(t, elements, s.origin, block, scratch, NULL), CONV_FFT_SUCCESS);
    const size_t bin_bytes = (size_t)s.block.bin_stride * 2 * sizeof(float);
    for (int part = 0; part < 2; ++part) {
        block = (cf_block){.data = half, .groups = 1, .row = part * 300, .rows = 300, .bin_stride = 300 * 16};
        assert_int_equal(device->base.ops->forward(t, elements, s.origin, block, scratch, NULL), CONV_FFT_SUCCESS);
        for (int64_t bin = 0; bin < s.desc.spectrum.bins; ++bin)
            assert_memory_equal(whole + (size_t)bin * bin_bytes + (size_t)part * bin_bytes / 2,
                                (char *)half + (size_t)bin * bin_bytes / 2, bin_bytes / 2);
    }
    device->base.ops->transform_destroy(t);
    free(scratch);
    free(elements);
    free(half);
    free(memory);
}

static void test_large_spectrum(void **state) {
    (void)state;
    with_all_kernels(device, large_spectrum);
}

static void test_every_length(void **state) {
    (void)state;
    with_all_kernels(device, every_length);
}
static void test_several_axes(void **state) {
    (void)state;
    with_all_kernels(device, several_axes);
}
static void test_random_windows(void **state) {
    (void)state;
    with_all_kernels(device, random_windows);
}
static void test_random_crops(void **state) {
    (void)state;
    with_all_kernels(device, random_crops);
}
static void test_isolation(void **state) {
    (void)state;
    with_all_kernels(device, isolation);
}

static void test_bad_length(void **state) {
    (void)state;
    cf_line_plan plan;
    assert_int_equal(cf_line_plan_init(&plan, 22), CONV_FFT_INVALID_ARGUMENT);
    assert_int_equal(cf_line_plan_init(&plan, 0), CONV_FFT_INVALID_ARGUMENT);
    assert_int_equal(cf_line_plan_init(&plan, 2 * 3 * 5 * 7), CONV_FFT_SUCCESS);
}

int main(void) {
    cf_device *base = NULL;
    if (cf_cpu_create(2, CONV_FFT_LOG_WARNING, &base) != CONV_FFT_SUCCESS)
        return 2;
    device = (cf_cpu_device *)base;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),   cmocka_unit_test(test_several_axes),
        cmocka_unit_test(test_random_windows), cmocka_unit_test(test_random_crops),
        cmocka_unit_test(test_isolation),      cmocka_unit_test(test_bad_length),
        cmocka_unit_test(test_large_spectrum),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cf_cpu_destroy(base);
    return failures;
}
