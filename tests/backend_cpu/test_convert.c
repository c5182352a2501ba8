/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of 16-bit numbers: all patterns, and the numbers around every midpoint between two of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/convert.h"
#include "reference/dtype.h"
#include "support/cpu_fft_check.h"

#include <math.h>

static cf_cpu_device *device;

static bool same_bits(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

/* All 16-bit patterns, and for each the numbers just below, at and above the midpoint to the next one. */
static void test_conversions(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const float half = cf_fp16_to_float((uint16_t)bits), bfloat = cf_bfloat_to_float((uint16_t)bits);
        const double half_value = ref_decode16(CONV_FFT_FP16, (uint16_t)bits),
                     bfloat_value = ref_decode16(CONV_FFT_BF16, (uint16_t)bits);
        assert_true(isnan(half_value) ? isnan(half) : same_bits(half, (float)half_value));
        assert_true(isnan(bfloat_value) ? isnan(bfloat) : same_bits(bfloat, (float)bfloat_value));
        const double next = ref_decode16(CONV_FFT_FP16, (uint16_t)(bits + 1)),
                     next_bfloat = ref_decode16(CONV_FFT_BF16, (uint16_t)(bits + 1));
        const float middle = (float)(half_value + (next - half_value) / 2);
        const float bfloat_middle = (float)(bfloat_value + (next_bfloat - bfloat_value) / 2);
        const float tried[] = {half,
                               bfloat,
                               middle,
                               nextafterf(middle, 1e30f),
                               nextafterf(middle, -1e30f),
                               bfloat_middle,
                               nextafterf(bfloat_middle, 3e38f),
                               nextafterf(bfloat_middle, -3e38f)};
        for (size_t i = 0; i < sizeof tried / sizeof tried[0]; ++i) {
            const uint16_t to_half = cf_float_to_fp16(tried[i]), to_bfloat = cf_float_to_bfloat(tried[i]);
            if (isnan(tried[i])) {
                assert_true(isnan(cf_fp16_to_float(to_half)));
                assert_true(isnan(cf_bfloat_to_float(to_bfloat)));
            } else {
                assert_int_equal(to_half, ref_encode16(CONV_FFT_FP16, tried[i]));
                assert_int_equal(to_bfloat, ref_encode16(CONV_FFT_BF16, tried[i]));
            }
        }
    }
}

/* The same through the vectorised loops: every pattern is loaded and stored again. */
static void vector_conversions(void) {
    const cf_real_kernels *kernels = &device->kernels->f32;
    static uint16_t from[65536], to[65536];
    static float line[65536];
    for (int type = 0; type < 2; ++type)
        for (int adjacent = 0; adjacent < 2; ++adjacent) {
            const conv_fft_dtype dtype = type ? CONV_FFT_FP16 : CONV_FFT_BF16;
            int64_t offset[16];
            for (int l = 0; l < 16; ++l)
                offset[l] = adjacent ? l : l * 4096;
            for (uint32_t i = 0; i < 65536; ++i)
                from[i] = (uint16_t)i;
            cf_piece piece = {.dtype = dtype,
                              .data = from,
                              .offset = offset,
                              .step = adjacent ? 16 : 1,
                              .elements = 4096,
                              .lanes = 16,
                              .adjacent = adjacent};
            kernels->load(line, 16, &piece);
            piece.data = to;
            kernels->store(line, 16, &piece, false);
            for (uint32_t i = 0; i < 65536; ++i) {
                const double value = ref_decode16(dtype, (uint16_t)i);
                if (isnan(value))
                    assert_true(isnan(ref_decode16(dtype, to[i])));
                else
                    assert_int_equal(to[i], i);
            }
        }
}

static void test_vector_conversions(void **state) {
    (void)state;
    with_all_kernels(device, vector_conversions);
}

int main(void) {
    cf_device *base = NULL;
    if (cf_cpu_create(2, CONV_FFT_LOG_WARNING, &base) != CONV_FFT_SUCCESS)
        return 2;
    device = (cf_cpu_device *)base;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_vector_conversions),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cf_cpu_destroy(base);
    return failures;
}
