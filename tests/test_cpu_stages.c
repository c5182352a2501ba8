/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's other stages against their definitions in double: products, fold, gradient of the bias, zeros, conversions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/convert.h"
#include "cpu/device.h"
#include "ref/dtype.h"
#include "tensor.h"

#include <math.h>

static cf_cpu_device *device;

/* Run a check with each set of kernels that this CPU runs. */
static void with_all_kernels(void (*check)(void)) {
    int count;
    const cf_kernels *const *list = cf_cpu_kernels_list(&count), *const best = device->kernels;
    for (int i = 0; i < count; ++i) {
        device->kernels = list[i];
        check();
    }
    device->kernels = best;
}

/* count random numbers as stored in the type, also as doubles. */
static void *random_elements(generator *g, conv_fft_dtype dtype, int64_t count, double *values) {
    const size_t size = ref_dtype_size(dtype);
    char *data = test_alloc((size_t)count * size + 1);
    for (int64_t i = 0; i < count; ++i) {
        ref_store(dtype, data + (size_t)i * size, random_value(g));
        values[i] = ref_load(dtype, data + (size_t)i * size);
    }
    return data;
}

static double *doubles(int64_t count) {
    return test_alloc((size_t)count * sizeof(double) + 1);
}

/* --------------------------------------------------------------------------------------------- products */

typedef struct matrix {
    cf_block block;
    int64_t columns, numbers; /* real numbers in all */
    double *value;
} matrix;

static matrix matrix_create(generator *g, conv_fft_dtype dtype, int64_t groups, int64_t bins, int64_t rows, int64_t columns) {
    matrix m = {.columns = columns};
    m.block = (cf_block){.groups = groups, .rows = rows, .bin_stride = rows * columns, .group_stride = bins * rows * columns + 5};
    m.numbers = 2 * groups * m.block.group_stride;
    m.value = doubles(m.numbers);
    m.block.data = random_elements(g, dtype, m.numbers, m.value);
    return m;
}

static void matrix_destroy(matrix *m) {
    free(m->block.data);
    free(m->value);
}

static int64_t at(const matrix *m, int64_t group, int64_t bin, int64_t row, int64_t column) {
    return 2 * (group * m->block.group_stride + bin * m->block.bin_stride + row * m->columns + column);
}

/* sum += a b, or conj(a) b. */
static void add_product(double sum[2], const double *a, const double *b, bool conjugate) {
    const double ai = conjugate ? -a[1] : a[1];
    sum[0] += a[0] * b[0] - ai * b[1];
    sum[1] += a[0] * b[1] + ai * b[0];
}

/* Element (i, j) of one bin's result. */
static void defined_product(const cf_product_desc *d, const matrix m[3], int64_t g, int64_t b, int64_t i, int64_t j, double sum[2]) {
    const matrix *x = &m[0], *w = &m[1], *y = &m[2];
    if (d->kind == CF_PRODUCT_FORWARD)
        for (int64_t c = 0; c < d->in_columns; ++c)
            add_product(sum, w->value + at(w, g, b, j, c), x->value + at(x, g, b, i, c), true);
    else if (d->kind == CF_PRODUCT_BACKWARD_DATA)
        for (int64_t o = 0; o < d->out_columns; ++o)
            add_product(sum, y->value + at(y, g, b, i, o), w->value + at(w, g, b, o, j), false);
    else
        for (int64_t r = 0; r < x->block.rows; ++r)
            add_product(sum, y->value + at(y, g, b, r, i), x->value + at(x, g, b, r, j), true);
}

static void check_product(generator *g, cf_product_desc d, int64_t groups, int64_t rows, bool accumulate) {
    matrix m[3] = {matrix_create(g, d.dtype, groups, d.bins, rows, d.in_columns),
                   matrix_create(g, d.dtype, groups, d.bins, d.out_columns, d.in_columns),
                   matrix_create(g, d.dtype, groups, d.bins, rows, d.out_columns)};
    matrix *result = &m[d.kind == CF_PRODUCT_FORWARD ? 2 : d.kind == CF_PRODUCT_BACKWARD_DATA ? 0 : 1];
    const size_t size = ref_dtype_size(d.dtype);
    double *expected = doubles(result->numbers);
    memcpy(expected, result->value, (size_t)result->numbers * sizeof(double));
    for (int64_t group = 0; group < groups; ++group)
        for (int64_t bin = 0; bin < d.bins; ++bin)
            for (int64_t i = 0; i < result->block.rows; ++i)
                for (int64_t j = 0; j < result->columns; ++j) {
                    double sum[2] = {0, 0};
                    const int64_t place = at(result, group, bin, i, j);
                    defined_product(&d, m, group, bin, i, j, sum);
                    for (int k = 0; k < 2; ++k) {
                        expected[place + k] = sum[k] + (accumulate ? expected[place + k] : 0);
                        /* Without accumulation the old contents must not be read. */
                        if (!accumulate) ref_store(d.dtype, (char *)result->block.data + (size_t)(place + k) * size, NAN);
                    }
                }
    assert_int_equal(device->base.ops->product(&device->base, &d, m[0].block, m[1].block, m[2].block, accumulate, NULL),
                     CONV_FFT_SUCCESS);
    const double depth = (double)(d.kind == CF_PRODUCT_FORWARD ? d.in_columns : d.kind == CF_PRODUCT_BACKWARD_DATA ? d.out_columns : rows);
    const double allowed = ref_dtype_roundoff(d.dtype) * 4 * (depth + 4);
    for (int64_t i = 0; i < result->numbers; ++i) {
        const double actual = ref_load(d.dtype, (char *)result->block.data + (size_t)i * size);
        if (!(fabs(actual - expected[i]) <= allowed))
            fail_msg("%s, kind %d, variant %d, rows %d, in %d, out %d: number %d is %g, expected %g", device->kernels->name,
                     (int)d.kind, (int)d.variant, (int)rows, (int)d.in_columns, (int)d.out_columns, (int)i, actual, expected[i]);
    }
    free(expected);
    for (int i = 0; i < 3; ++i) matrix_destroy(&m[i]);
}

static void products(void) {
    static const int64_t extents[][4] = {/* bins, rows, in, out */
                                         {5, 7, 3, 2},   {3, 40, 1, 1},  {2, 1, 1, 1},   {1, 33, 20, 17}, {1, 2, 40, 3},
                                         {4, 16, 16, 16}, {2, 5, 1, 19}, {2, 50, 18, 1}, {3, 0, 2, 3},    {40, 6, 4, 5}};
    generator g = generator_create(3);
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; ++i)
        for (int which = 0; which < 24; ++which) {
            const int64_t *e = extents[i];
            const cf_product_desc d = {.kind = (cf_product_kind)(which % 3),
                                       .variant = which / 3 % 2 ? CF_PRODUCT_BLAS : CF_PRODUCT_LOOP,
                                       .dtype = which / 6 % 2 ? CONV_FFT_FP64 : CONV_FFT_FP32,
                                       .bins = e[0], .in_columns = e[2], .out_columns = e[3]};
            check_product(&g, d, 2, e[1], which / 12 != 0);
        }
}

static void test_products(void **state) {
    (void)state;
    with_all_kernels(products);
}

/* One large bin: its result is dealt out to the threads. */
static void test_large_product(void **state) {
    (void)state;
    generator g = generator_create(4);
    for (int kind = 0; kind < 3; ++kind)
        check_product(&g, (cf_product_desc){.kind = (cf_product_kind)kind, .variant = CF_PRODUCT_BLAS, .bins = 1,
                                            .in_columns = 70, .out_columns = 65}, 1, 67, false);
}

/* ------------------------------------------------------------------------------------------------- fold */

static int64_t padded_index(conv_fft_padding mode, int64_t n, int64_t i) {
    if (i >= 0 && i < n) return i;
    switch (mode) {
    case CONV_FFT_PAD_ZEROS: return -1;
    case CONV_FFT_PAD_CIRCULAR: return (i % n + n) % n;
    case CONV_FFT_PAD_REFLECT: return i < 0 ? -i : 2 * n - 2 - i;
    case CONV_FFT_PAD_REPLICATE: return i < 0 ? 0 : n - 1;
    }
    return -1;
}

static void check_fold(generator *g, conv_fft_dtype dtype, conv_fft_padding mode, conv_fft_layout layout, bool accumulate) {
    const int64_t samples = 2, groups = 2, channels = 3;
    cf_fold_desc d = {.channels = channels, .mode = mode, .scratch_dtype = cf_compute_dtype(dtype)};
    int64_t padded = 1, extent[5] = {samples, groups * channels}, stride[5];
    for (int a = 0; a < 3; ++a) {
        d.size[a] = extent[2 + a] = random_int(g, 1, a == 2 ? 200 : 5);
        const int64_t most = mode == CONV_FFT_PAD_REFLECT ? d.size[a] - 1 : mode == CONV_FFT_PAD_CIRCULAR ? d.size[a] : 4;
        d.pad[a] = random_int(g, 0, cf_min(most, 70));
        d.padded[a] = d.pad[a] + d.size[a] + random_int(g, 0, cf_min(most, 70));
        padded *= d.padded[a];
    }
    layout_strides(layout, 5, extent, stride);
    d.tensor = (cf_tensor){.dtype = dtype, .sample_stride = stride[0], .channel_stride = stride[1],
                           .group_stride = channels * stride[1], .axis_stride = {stride[2], stride[3], stride[4]}};
    const int64_t planes = samples * groups * channels, count = planes * d.size[0] * d.size[1] * d.size[2];
    double *from = doubles(planes * padded), *expected = doubles(count);
    void *scratch = random_elements(g, d.scratch_dtype, planes * padded, from), *data = random_elements(g, dtype, count, expected);
    for (int64_t i = 0; !accumulate && i < count; ++i) {
        expected[i] = 0;
        ref_store(dtype, (char *)data + (size_t)i * ref_dtype_size(dtype), NAN);
    }
    for (int64_t i = 0; i < planes * padded; ++i) {
        const int64_t q = i % padded, channel = i / padded % (groups * channels), sample = i / padded / (groups * channels);
        const int64_t position[3] = {q / d.padded[2] / d.padded[1], q / d.padded[2] % d.padded[1], q % d.padded[2]};
        int64_t place = sample * stride[0] + channel * stride[1];
        for (int a = 0; a < 3 && place >= 0; ++a) {
            const int64_t index = padded_index(mode, d.size[a], position[a] - d.pad[a]);
            place = index < 0 ? -1 : place + index * stride[2 + a];
        }
        if (place >= 0) expected[place] += from[i];
    }
    assert_int_equal(device->base.ops->fold(&device->base, &d, scratch, samples, groups, data, accumulate, NULL), CONV_FFT_SUCCESS);
    for (int64_t i = 0; i < count; ++i) {
        const double actual = ref_load(dtype, (char *)data + (size_t)i * ref_dtype_size(dtype));
        if (!(fabs(actual - expected[i]) <= 4 * ref_dtype_roundoff(dtype) * (fabs(expected[i]) + 8)))
            fail_msg("mode %d, element %d is %g, expected %g", (int)mode, (int)i, actual, expected[i]);
    }
    free(from);
    free(expected);
    free(scratch);
    free(data);
}

static void test_fold(void **state) {
    (void)state;
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP64};
    generator g = generator_create(5);
    for (int i = 0; i < 64; ++i)
        check_fold(&g, dtypes[i / 4 % 4], (conv_fft_padding)(i % 4), (conv_fft_layout)(i / 16 % 2), i / 32 != 0);
}

/* ------------------------------------------------------------------------------- bias gradient and zeros */

static void check_bias(generator *g, conv_fft_dtype dtype, conv_fft_dtype result, conv_fft_layout layout, int64_t samples, bool accumulate) {
    const int64_t extent[5] = {samples, 35, 2, 3, 70};
    int64_t stride[5];
    layout_strides(layout, 5, extent, stride);
    cf_bias_desc d = {.result_dtype = result, .samples = samples, .channels = extent[1], .size = {2, 3, 70}};
    d.tensor = (cf_tensor){.dtype = dtype, .sample_stride = stride[0], .channel_stride = stride[1],
                           .axis_stride = {stride[2], stride[3], stride[4]}};
    const int64_t count = samples * 35 * 420;
    double *gy = doubles(count), expected[35];
    void *data = random_elements(g, dtype, count, gy), *sum = random_elements(g, result, 35, expected);
    for (int c = 0; c < 35; ++c) {
        if (!accumulate) {
            expected[c] = 0;
            ref_store(result, (char *)sum + (size_t)c * ref_dtype_size(result), NAN);
        }
        for (int64_t i = 0; i < samples * 420; ++i)
            expected[c] += gy[i / 420 * stride[0] + c * stride[1] + i / 210 % 2 * stride[2] + i / 70 % 3 * stride[3] + i % 70 * stride[4]];
    }
    assert_int_equal(device->base.ops->bias_gradient(&device->base, &d, data, sum, accumulate, NULL), CONV_FFT_SUCCESS);
    for (int c = 0; c < 35; ++c) {
        const double actual = ref_load(result, (char *)sum + (size_t)c * ref_dtype_size(result));
        /* The sum is exact but for its last bits, far below a plain FP32 sum's error; adding to old contents rounds once more. */
        if (!(fabs(actual - expected[c]) <= 2 * ref_dtype_roundoff(result) * (fabs(expected[c]) + 1) + 1e-12))
            fail_msg("channel %d is %g, expected %g", c, actual, expected[c]);
    }
    free(gy);
    free(data);
    free(sum);
}

static void test_bias(void **state) {
    (void)state;
    generator g = generator_create(6);
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

static void test_zeros(void **state) {
    (void)state;
    /* Every second element of the last axis; the others keep their contents. */
    const cf_tensor t = {.dtype = CONV_FFT_FP32, .sample_stride = 120, .channel_stride = 60, .axis_stride = {30, 10, 2}};
    const int64_t extents[5] = {2, 2, 2, 3, 5};
    float data[240];
    for (int i = 0; i < 240; ++i) data[i] = 1;
    assert_int_equal(device->base.ops->zero(&device->base, &t, extents, data, NULL), CONV_FFT_SUCCESS);
    for (int i = 0; i < 240; ++i) assert_true(data[i] == (float)(i % 2));

    const size_t bytes = (3u << 20) + 5;
    unsigned char *memory = test_alloc(bytes + 1);
    memset(memory, 7, bytes + 1);
    assert_int_equal(device->base.ops->clear(&device->base, memory, bytes, NULL), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < bytes; ++i)
        if (memory[i] != 0) fail_msg("byte %zu is not zero", i);
    assert_int_equal(memory[bytes], 7);
    free(memory);
}

/* ------------------------------------------------------------------------------------------ conversions */

static bool same_bits(float a, float b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

/* All 16-bit patterns, and from each the numbers just below, at and above the middle to the next one. */
static void test_conversions(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        const float half = cf_half_to_float((uint16_t)bits), bfloat = cf_bfloat_to_float((uint16_t)bits);
        const double half_value = ref_decode16(CONV_FFT_FP16, (uint16_t)bits), bfloat_value = ref_decode16(CONV_FFT_BF16, (uint16_t)bits);
        assert_true(isnan(half_value) ? isnan(half) : same_bits(half, (float)half_value));
        assert_true(isnan(bfloat_value) ? isnan(bfloat) : same_bits(bfloat, (float)bfloat_value));
        const double next = ref_decode16(CONV_FFT_FP16, (uint16_t)(bits + 1)), next_bfloat = ref_decode16(CONV_FFT_BF16, (uint16_t)(bits + 1));
        const float middle = (float)(half_value + (next - half_value) / 2);
        const float bfloat_middle = (float)(bfloat_value + (next_bfloat - bfloat_value) / 2);
        const float tried[] = {half, bfloat, middle, nextafterf(middle, 1e30f), nextafterf(middle, -1e30f), bfloat_middle,
                               nextafterf(bfloat_middle, 3e38f), nextafterf(bfloat_middle, -3e38f)};
        for (size_t i = 0; i < sizeof tried / sizeof tried[0]; ++i) {
            const uint16_t to_half = cf_float_to_half(tried[i]), to_bfloat = cf_float_to_bfloat(tried[i]);
            if (isnan(tried[i])) {
                assert_true(isnan(cf_half_to_float(to_half)));
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
            for (int l = 0; l < 16; ++l) offset[l] = adjacent ? l : l * 4096;
            for (uint32_t i = 0; i < 65536; ++i) from[i] = (uint16_t)i;
            cf_piece piece = {.dtype = dtype, .data = from, .offset = offset, .step = adjacent ? 16 : 1, .elements = 4096,
                              .lanes = 16, .adjacent = adjacent};
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
    with_all_kernels(vector_conversions);
}

int main(void) {
    cf_device *base = NULL;
    if (cf_cpu_create(2, CONV_FFT_LOG_WARNING, &base) != CONV_FFT_SUCCESS) return 2;
    device = (cf_cpu_device *)base;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_large_product), cmocka_unit_test(test_fold),
        cmocka_unit_test(test_bias),     cmocka_unit_test(test_zeros),         cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_vector_conversions),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cf_cpu_destroy(base);
    return failures;
}
