/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's small operations against their definitions in double: fold, gradient of the bias, zeros. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/arith.h"
#include "core/dtype.h"
#include "reference/dtype.h"
#include "support/cpu_fft_check.h"
#include "support/tensor.h"

#include <math.h>

static cf_cpu_device *device;

static int64_t padded_index(conv_fft_padding mode, int64_t n, int64_t i) {
    if (i >= 0 && i < n)
        return i;
    switch (mode) {
    case CONV_FFT_PAD_ZEROS:
        return -1;
    case CONV_FFT_PAD_CIRCULAR:
        return (i % n + n) % n;
    case CONV_FFT_PAD_REFLECT:
        return i < 0 ? -i : 2 * n - 2 - i;
    case CONV_FFT_PAD_REPLICATE:
        return i < 0 ? 0 : n - 1;
    }
    return -1;
}

static void check_fold(generator *g, conv_fft_dtype dtype, conv_fft_padding mode, conv_fft_layout layout,
                       bool accumulate) {
    const int64_t samples = 2, groups = 2, channels = 3;
    cf_fold_desc d = {.channels = channels, .mode = mode, .scratch_dtype = cf_compute_dtype(dtype)};
    int64_t padded = 1, extent[5] = {samples, groups * channels}, stride[5];
    for (int a = 0; a < 3; ++a) {
        d.size[a] = extent[2 + a] = random_int(g, 1, a == 2 ? 200 : 5);
        const int64_t most = mode == CONV_FFT_PAD_REFLECT    ? d.size[a] - 1
                             : mode == CONV_FFT_PAD_CIRCULAR ? d.size[a]
                                                             : 4;
        d.pad[a] = random_int(g, 0, cf_min(most, 70));
        d.padded[a] = d.pad[a] + d.size[a] + random_int(g, 0, cf_min(most, 70));
        padded *= d.padded[a];
    }
    layout_strides(layout, 5, extent, stride);
    d.tensor = (cf_tensor){.dtype = dtype,
                           .sample_stride = stride[0],
                           .channel_stride = stride[1],
                           .group_stride = channels * stride[1],
                           .axis_stride = {stride[2], stride[3], stride[4]}};
    const int64_t planes = samples * groups * channels, count = planes * d.size[0] * d.size[1] * d.size[2];
    double *from = test_doubles(planes * padded), *expected = test_doubles(count), *magnitude = test_doubles(count);
    void *scratch = random_elements(g, d.scratch_dtype, planes * padded, from),
         *data = random_elements(g, dtype, count, expected);
    for (int64_t i = 0; i < count; ++i)
        magnitude[i] = 0;
    for (int64_t i = 0; !accumulate && i < count; ++i) {
        expected[i] = 0;
        ref_store(dtype, (char *)data + (size_t)i * ref_dtype_size(dtype), NAN);
    }
    for (int64_t i = 0; i < planes * padded; ++i) {
        const int64_t q = i % padded, channel = i / padded % (groups * channels),
                      sample = i / padded / (groups * channels);
        const int64_t position[3] = {q / d.padded[2] / d.padded[1], q / d.padded[2] % d.padded[1], q % d.padded[2]};
        int64_t place = sample * stride[0] + channel * stride[1];
        for (int a = 0; a < 3 && place >= 0; ++a) {
            const int64_t index = padded_index(mode, d.size[a], position[a] - d.pad[a]);
            place = index < 0 ? -1 : place + index * stride[2 + a];
        }
        if (place < 0)
            continue;
        expected[place] += from[i];
        magnitude[place] += fabs(from[i]);
    }
    assert_int_equal(device->base.ops->fold(&device->base, &d, scratch, samples, groups, data, accumulate, NULL),
                     CONV_FFT_SUCCESS);
    for (int64_t i = 0; i < count; ++i) {
        const double actual = ref_load(dtype, (char *)data + (size_t)i * ref_dtype_size(dtype));
        /* Corners with replicated padding are sums of many elements. */
        const double bound = 4 * ref_dtype_roundoff(dtype) * (fabs(expected[i]) + 8) +
                             4 * ref_dtype_roundoff(d.scratch_dtype) * magnitude[i];
        if (!(fabs(actual - expected[i]) <= bound))
            fail_msg("mode %d, element %d is %g, expected %g", (int)mode, (int)i, actual, expected[i]);
    }
    free(from);
    free(expected);
    free(magnitude);
    free(scratch);
    free(data);
}

static void test_fold(void **state) {
    (void)state;
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP64};
    generator g = test_generator(5);
    for (int i = 0; i < 64; ++i)
        check_fold(&g, dtypes[i / 4 % 4], (conv_fft_padding)(i % 4), (conv_fft_layout)(i / 16 % 2), i / 32 != 0);
}

/* ------------------------------------------------------------------------------- bias gradient and zeros */

static void check_bias(generator *g, conv_fft_dtype dtype, conv_fft_dtype result, conv_fft_layout layout,
                       int64_t samples, bool accumulate) {
    const int64_t extent[5] = {samples, 35, 2, 3, 70};
    int64_t stride[5];
    layout_strides(layout, 5, extent, stride);
    cf_bias_desc d = {.result_dtype = result, .samples = samples, .channels = extent[1], .size = {2, 3, 70}};
    d.tensor = (cf_tensor){.dtype = dtype,
                           .sample_stride = stride[0],
                           .channel_stride = stride[1],
                           .axis_stride = {stride[2], stride[3], stride[4]}};
    const int64_t count = samples * 35 * 420;
    double *gy = test_doubles(count), expected[35];
    void *data = random_elements(g, dtype, count, gy), *sum = random_elements(g, result, 35, expected);
    for (int c = 0; c < 35; ++c) {
        if (!accumulate) {
            expected[c] = 0;
            ref_store(result, (char *)sum + (size_t)c * ref_dtype_size(result), NAN);
        }
        for (int64_t i = 0; i < samples * 420; ++i)
            expected[c] += gy[i / 420 * stride[0] + c * stride[1] + i / 210 % 2 * stride[2] + i / 70 % 3 * stride[3] +
                              i % 70 * stride[4]];
    }
    assert_int_equal(device->base.ops->bias_gradient(&device->base, &d, data, sum, accumulate, NULL, NULL),
                     CONV_FFT_SUCCESS);
    for (int c = 0; c < 35; ++c) {
        const double actual = ref_load(result, (char *)sum + (size_t)c * ref_dtype_size(result));
        /* The sum is exact except for its last bits, far below the error of a plain FP32 sum. Adding to old contents
         * rounds once more. */
        if (!(fabs(actual - expected[c]) <= 2 * ref_dtype_roundoff(result) * (fabs(expected[c]) + 1) + 1e-12))
            fail_msg("channel %d is %g, expected %g", c, actual, expected[c]);
    }
    free(gy);
    free(data);
    free(sum);
}

static void test_bias(void **state) {
    (void)state;
    generator g = test_generator(6);
    for (int i = 0; i < 8; ++i) {
        const conv_fft_layout layout = (conv_fft_layout)(i % 2);
        const bool accumulate = i / 2 % 2 != 0;
        const int64_t samples = i / 4 * 3;
        check_bias(&g, CONV_FFT_FP32, CONV_FFT_FP32, layout, samples, accumulate);
        check_bias(&g, CONV_FFT_FP64, CONV_FFT_FP64, layout, samples, accumulate);
        check_bias(&g, CONV_FFT_FP16, CONV_FFT_FP32, layout, samples, accumulate);
        check_bias(&g, CONV_FFT_BF16, CONV_FFT_BF16, layout, samples, accumulate);
    }
}

/* All numbers are equal, so their rounding errors add up: one long FP32 sum of a million numbers would be clearly
 * wrong. */
static void test_long_bias(void **state) {
    (void)state;
    const int64_t count = 10000000;
    double *gy = test_doubles(count), sum = 0;
    for (int64_t i = 0; i < count; ++i)
        gy[i] = 0.1;
    const cf_bias_desc d = {
        .result_dtype = CONV_FFT_FP64,
        .samples = 1,
        .channels = 1,
        .size = {1, 1, count},
        .tensor = {
            .dtype = CONV_FFT_FP64, .sample_stride = count, .channel_stride = count, .axis_stride = {count, count, 1}}};
    assert_int_equal(device->base.ops->bias_gradient(&device->base, &d, gy, &sum, false, NULL, NULL), CONV_FFT_SUCCESS);
    /* count times the number next to 0.1; fma() gives the rounding error exactly */
    const double product = (double)count * 0.1, rest = fma((double)count, 0.1, -product);
    assert_true(fabs(sum - product - rest) <= 2 * ref_dtype_roundoff(CONV_FFT_FP64) * product);
    free(gy);
}

static void test_zeros(void **state) {
    (void)state;
    /* Every second element of the last axis is cleared. The others keep their contents. */
    const cf_tensor t = {
        .dtype = CONV_FFT_FP32, .sample_stride = 120, .channel_stride = 60, .axis_stride = {30, 10, 2}};
    const int64_t extents[5] = {2, 2, 2, 3, 5};
    float data[240];
    for (int i = 0; i < 240; ++i)
        data[i] = 1;
    assert_int_equal(device->base.ops->zero(&device->base, &t, extents, data, NULL), CONV_FFT_SUCCESS);
    for (int i = 0; i < 240; ++i)
        assert_true(data[i] == (float)(i % 2));

    const size_t bytes = (3u << 20) + 5;
    unsigned char *memory = test_alloc(bytes + 1);
    memset(memory, 7, bytes + 1);
    assert_int_equal(device->base.ops->clear(&device->base, memory, bytes, NULL), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < bytes; ++i)
        if (memory[i] != 0)
            fail_msg("byte %zu is not zero", i);
    assert_int_equal(memory[bytes], 7);
    free(memory);
}

int main(void) {
    cf_device *base = NULL;
    if (cf_cpu_create(2, CONV_FFT_LOG_WARNING, &base) != CONV_FFT_SUCCESS)
        return 2;
    device = (cf_cpu_device *)base;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_long_bias),
        cmocka_unit_test(test_zeros),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cf_cpu_destroy(base);
    return failures;
}
