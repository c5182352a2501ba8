/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's products against their definition in double, both variants, with every set of kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakes/fake.h"
#include "reference/dtype.h"
#include "support/cpu_fft_check.h"
#include "support/tensor.h"

#include <dlfcn.h>
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static cf_cpu_device *device;

typedef struct matrix {
    cf_block block;
    int64_t columns, numbers; /* real numbers in all */
    double *value;
} matrix;

static matrix matrix_create(generator *g, conv_fft_dtype dtype, int64_t groups, int64_t bins, int64_t rows,
                            int64_t columns) {
    matrix m = {.columns = columns};
    m.block = (cf_block){
        .groups = groups, .rows = rows, .bin_stride = rows * columns, .group_stride = bins * rows * columns + 5};
    m.numbers = 2 * groups * m.block.group_stride;
    m.value = test_doubles(m.numbers);
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

/* Element (i, j) of one bin's result, by the definition. */
static void defined_product(const cf_cgemm_desc *d, const matrix m[3], int64_t g, int64_t b, int64_t i, int64_t j,
                            double sum[2]) {
    const matrix *x = &m[0], *w = &m[1], *y = &m[2];
    if (d->kind == CF_CGEMM_FORWARD)
        for (int64_t c = 0; c < d->in_columns; ++c)
            add_product(sum, w->value + at(w, g, b, j, c), x->value + at(x, g, b, i, c), true);
    else if (d->kind == CF_CGEMM_BACKWARD_DATA)
        for (int64_t o = 0; o < d->out_columns; ++o)
            add_product(sum, y->value + at(y, g, b, i, o), w->value + at(w, g, b, o, j), false);
    else
        for (int64_t r = 0; r < x->block.rows; ++r)
            add_product(sum, y->value + at(y, g, b, r, i), x->value + at(x, g, b, r, j), true);
}

static void check_product(generator *g, cf_cgemm_desc d, int64_t groups, int64_t rows, bool accumulate) {
    matrix m[3] = {matrix_create(g, d.dtype, groups, d.bins, rows, d.in_columns),
                   matrix_create(g, d.dtype, groups, d.bins, d.out_columns, d.in_columns),
                   matrix_create(g, d.dtype, groups, d.bins, rows, d.out_columns)};
    matrix *result = &m[d.kind == CF_CGEMM_FORWARD ? 2 : d.kind == CF_CGEMM_BACKWARD_DATA ? 0 : 1];
    const size_t size = ref_dtype_size(d.dtype);
    double *expected = test_doubles(result->numbers);
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
                        if (!accumulate)
                            ref_store(d.dtype, (char *)result->block.data + (size_t)(place + k) * size, NAN);
                    }
                }
    assert_int_equal(
        device->base.ops->product(&device->base, &d, m[0].block, m[1].block, m[2].block, accumulate, NULL, NULL),
        CONV_FFT_SUCCESS);
    const double depth = (double)(d.kind == CF_CGEMM_FORWARD         ? d.in_columns
                                  : d.kind == CF_CGEMM_BACKWARD_DATA ? d.out_columns
                                                                     : rows);
    const double allowed = ref_dtype_roundoff(d.dtype) * 4 * (depth + 4);
    for (int64_t i = 0; i < result->numbers; ++i) {
        const double actual = ref_load(d.dtype, (char *)result->block.data + (size_t)i * size);
        if (!(fabs(actual - expected[i]) <= allowed))
            fail_msg("%s, kind %d, variant %d, rows %d, in %d, out %d: number %d is %g, expected %g",
                     device->kernels->name, (int)d.kind, (int)d.variant, (int)rows, (int)d.in_columns,
                     (int)d.out_columns, (int)i, actual, expected[i]);
    }
    free(expected);
    for (int i = 0; i < 3; ++i)
        matrix_destroy(&m[i]);
}

static void products(void) {
    static const int64_t extents[][4] = {/* bins, rows, in, out */
                                         {5, 7, 3, 2},
                                         {3, 40, 1, 1},
                                         {2, 1, 1, 1},
                                         {1, 33, 20, 17},
                                         {1, 2, 40, 3},
                                         {4, 16, 16, 16},
                                         {2, 5, 1, 19},
                                         {2, 50, 18, 1},
                                         {3, 0, 2, 3},
                                         {40, 6, 4, 5},
                                         /* channels that fill vectors, with few rows and with more */
                                         {9, 7, 8, 24},
                                         {8, 20, 40, 16},
                                         {8, 32, 24, 8},
                                         {8, 33, 24, 8},
                                         {8, 1, 64, 72},
                                         {8, 257, 16, 8},
                                         {8, 8, 64, 24},
                                         {8, 7, 72, 8},
                                         /* forward: transposed blocks of w */
                                         {8, 100, 24, 8},
                                         {8, 35, 136, 72}};
    generator g = test_generator(3);
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; ++i)
        for (int which = 0; which < 24; ++which) {
            const int64_t *e = extents[i];
            const cf_cgemm_desc d = {.kind = (cf_cgemm_kind)(which % 3),
                                     .variant = which / 3 % 2 ? CF_CGEMM_BLAS : CF_CGEMM_LOOP,
                                     .dtype = which / 6 % 2 ? CONV_FFT_FP64 : CONV_FFT_FP32,
                                     .bins = e[0],
                                     .in_columns = e[2],
                                     .out_columns = e[3]};
            check_product(&g, d, 2, e[1], which / 12 != 0);
        }
}

static void test_products(void **state) {
    (void)state;
    with_all_kernels(device, products);
}

/* One large bin: threads share the rows of its result. */
static void test_large_product(void **state) {
    (void)state;
    generator g = test_generator(4);
    for (int kind = 0; kind < 3; ++kind)
        check_product(
            &g,
            (cf_cgemm_desc){
                .kind = (cf_cgemm_kind)kind, .variant = CF_CGEMM_BLAS, .bins = 1, .in_columns = 70, .out_columns = 65},
            1, 67, false);
}

/* Sums over rows of equal numbers, so that rounding errors add up. */
static void long1d_sums(void) {
    for (int columns = 1; columns <= 3; columns += 2) {
        const int64_t rows = 100000;
        generator g = test_generator(6);
        matrix m[3] = {matrix_create(&g, CONV_FFT_FP32, 1, 1, rows, columns),
                       matrix_create(&g, CONV_FFT_FP32, 1, 1, columns, columns),
                       matrix_create(&g, CONV_FFT_FP32, 1, 1, rows, columns)};
        float *const x = m[0].block.data, *const w = m[1].block.data, *const y = m[2].block.data;
        for (int64_t i = 0; i < m[0].numbers; ++i)
            x[i] = y[i] = i % 2 ? 0.0f : 0.1f;
        const cf_cgemm_desc d = {.kind = CF_CGEMM_BACKWARD_WEIGHTS,
                                 .variant = CF_CGEMM_LOOP,
                                 .dtype = CONV_FFT_FP32,
                                 .bins = 1,
                                 .in_columns = columns,
                                 .out_columns = columns};
        assert_int_equal(
            device->base.ops->product(&device->base, &d, m[0].block, m[1].block, m[2].block, false, NULL, NULL),
            CONV_FFT_SUCCESS);
        const double exact = (double)rows * (double)x[0] * (double)y[0];
        for (int i = 0; i < columns * columns; ++i)
            assert_true(fabs((double)w[2 * i] - exact) <= 40 * ref_dtype_roundoff(CONV_FFT_FP32) * exact);
        for (int i = 0; i < 3; ++i)
            matrix_destroy(&m[i]);
    }
}

static void test_long_sums(void **state) {
    (void)state;
    with_all_kernels(device, long1d_sums);
}

/* The caller's OpenMP settings do not change. */
static void test_settings(void **state) {
    (void)state;
#ifdef _OPENMP
    generator g = test_generator(5);
    const int before = omp_get_max_threads();
    check_product(&g, (cf_cgemm_desc){.variant = CF_CGEMM_BLAS, .bins = 40, .in_columns = 20, .out_columns = 30}, 1, 25,
                  false);
    assert_int_equal(omp_get_max_threads(), before);
    device->base.threads = 1;
    check_product(&g, (cf_cgemm_desc){.variant = CF_CGEMM_BLAS, .bins = 1, .in_columns = 20, .out_columns = 30}, 1, 25,
                  false);
    device->base.threads = 2;
    assert_int_equal(omp_get_max_threads(), before);
#else
    skip();
#endif
}

/* An OpenBLAS on another OpenMP runtime computes on the threads that call it. The setting that the caller has in that
 * runtime does not change either. */
static void test_other_openmp(void **state) {
    (void)state;
#ifdef _OPENMP
    cf_device *other = NULL;
    assert_int_equal(setenv("CONV_FFT_LIBRARY_PATH", FAKES "/openblas", 1), 0);
    assert_int_equal(cf_cpu_create(2, CONV_FFT_LOG_SILENT, &other), CONV_FFT_SUCCESS);
    unsetenv("CONV_FFT_LIBRARY_PATH");
    void *const library = dlopen(FAKES "/openblas/libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    const fake_openblas *const seen = dlsym(library, "fake_openblas_state");
    void *const address = dlsym(library, "omp_get_max_threads");
    int (*get_threads)(void);
    memcpy(&get_threads, &address, sizeof get_threads);
    generator g = test_generator(7);
    const cf_cgemm_desc d = {.variant = CF_CGEMM_BLAS, .bins = 40, .in_columns = 20, .out_columns = 30};
    matrix x = matrix_create(&g, CONV_FFT_FP32, 1, d.bins, 25, d.in_columns),
           w = matrix_create(&g, CONV_FFT_FP32, 1, d.bins, d.out_columns, d.in_columns),
           y = matrix_create(&g, CONV_FFT_FP32, 1, d.bins, 25, d.out_columns);
    assert_int_equal(other->ops->product(other, &d, x.block, w.block, y.block, false, NULL, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(seen->products, d.bins);
    assert_int_equal(seen->on_several_threads, 0);
    assert_int_equal(get_threads(), FAKE_OPENBLAS_THREADS);
    matrix_destroy(&x);
    matrix_destroy(&w);
    matrix_destroy(&y);
    cf_cpu_destroy(other);
    dlclose(library);
#else
    skip();
#endif
}

/* An OpenBLAS that is serial, lacks functions or is no library is not used. The description says so, whether there is
 * another or not. */
static void test_refused(void **state) {
    static const char *const cases[][2] = {{FAKES "/serial_openblas", "is serial"},
                                           {FAKES "/lacking_openblas", "lacks functions"},
                                           {FAKES "/no_openblas", "cannot be loaded"}};
    cf_cpu_device *const own = device;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cf_device *other = NULL;
        assert_int_equal(setenv("CONV_FFT_LIBRARY_PATH", cases[i][0], 1), 0);
        assert_int_equal(cf_cpu_create(2, CONV_FFT_LOG_SILENT, &other), CONV_FFT_SUCCESS);
        unsetenv("CONV_FFT_LIBRARY_PATH");
        const char *const said = cf_cpu_description(other);
        assert_non_null(strstr(said, cases[i][0]));
        assert_non_null(strstr(said, cases[i][1]));
        assert_int_equal(strstr(said, "no OpenBLAS") != NULL, !other->has_blas);
        device = (cf_cpu_device *)other;
        device->blas = (cf_blas){0}; /* as if there were no other */
        device->base.has_blas = false;
        generator g = test_generator(8 + i);
        const cf_cgemm_desc d = {.variant = CF_CGEMM_BLAS, .bins = 3, .in_columns = 20, .out_columns = 30};
        check_product(&g, d, 1, 25, false);
        device = own;
        cf_cpu_destroy(other);
    }
}

int main(void) {
    cf_device *base = NULL;
    if (cf_cpu_create(2, CONV_FFT_LOG_WARNING, &base) != CONV_FFT_SUCCESS)
        return 2;
    device = (cf_cpu_device *)base;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_large_product), cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_settings), cmocka_unit_test(test_other_openmp),  cmocka_unit_test(test_refused),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cf_cpu_destroy(base);
    return failures;
}
