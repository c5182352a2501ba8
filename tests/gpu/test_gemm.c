/* SPDX-License-Identifier: Apache-2.0 */
/* Products per frequency on a GPU, by tensor cores, cuBLAS and plain loops, against sums in double: sizes that fill no
 * tile, groups with gaps, pointers aligned to one number only, accumulation. Split products are about as accurate as
 * FP32 products of cuBLAS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/gpu/backend.h"
#include "cuda/driver/memory.h"
#include "support/case_list.h"
#include "support/gpu.h"
#include "support/random_problems.h"
#include "support/tensor.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef float complex number;

typedef struct matrices {
    cf_block block; /* data: on the device */
    int64_t columns, count;
    number *values;
    void *memory;
} matrices;

static cf_device *device;

static matrices create(const cf_gpu *gpu, generator *g, const cf_cgemm_desc *d, int64_t rows, int64_t columns,
                       int64_t shift) {
    matrices m = {.columns = columns};
    m.block = (cf_block){.groups = d->groups,
                         .rows = rows,
                         .bin_stride = rows * columns,
                         .group_stride = d->bins * rows * columns + 2 * columns};
    m.count = d->groups * m.block.group_stride;
    m.values = test_alloc((size_t)m.count * sizeof(number));
    for (int64_t i = 0; i < m.count; ++i)
        m.values[i] = (float)random_value(g) + (float)random_value(g) * (number)I;
    assert_int_equal(cf_gpu_allocate(gpu, (size_t)(m.count + shift) * sizeof(number), &m.memory), CONV_FFT_SUCCESS);
    m.block.data = (number *)m.memory + shift;
    return m;
}

static void destroy(const cf_gpu *gpu, matrices *m) {
    cf_gpu_free(gpu, m->memory);
    free(m->values);
}

static double complex at(const matrices *m, int64_t group, int64_t bin, int64_t row, int64_t column) {
    return (double complex)
        m->values[group * m->block.group_stride + bin * m->block.bin_stride + row * m->columns + column];
}

static double complex defined(const cf_cgemm_desc *d, const matrices m[3], int64_t g, int64_t b, int64_t i, int64_t j) {
    double complex sum = 0;
    if (d->kind == CF_CGEMM_FORWARD)
        for (int64_t c = 0; c < d->in_columns; ++c)
            sum += at(&m[0], g, b, i, c) * conj(at(&m[1], g, b, j, c));
    else if (d->kind == CF_CGEMM_BACKWARD_DATA)
        for (int64_t o = 0; o < d->out_columns; ++o)
            sum += at(&m[2], g, b, i, o) * at(&m[1], g, b, o, j);
    else
        for (int64_t r = 0; r < m[0].block.rows; ++r)
            sum += conj(at(&m[2], g, b, r, i)) * at(&m[0], g, b, r, j);
    return sum;
}

/* The result on the device begins as NaN, or as `values` if the product is added to it. */
static void upload(const cf_gpu *gpu, const matrices *m, bool poison) {
    if (poison)
        assert_int_equal(cf_gpu_fill(gpu, m->block.data, 0xff, (size_t)m->count * sizeof(number), NULL),
                         CONV_FFT_SUCCESS);
    else
        assert_int_equal(cf_gpu_upload(gpu, m->block.data, m->values, (size_t)m->count * sizeof(number), NULL),
                         CONV_FFT_SUCCESS);
}

/* ||got - exact|| / ||exact||. Only the result may be written. */
static double compare(const cf_gpu *gpu, const cf_cgemm_desc *d, const matrices m[3], const double complex *exact,
                      const matrices *result, bool accumulate) {
    const size_t bytes = (size_t)result->count * sizeof(number);
    number *const got = test_alloc(bytes);
    double errors = 0, norm = 0;
    const size_t scratch_bytes = device->ops->product_scratch(device, d);
    void *scratch = NULL;
    for (int i = 0; i < 3; ++i)
        upload(gpu, &m[i], &m[i] == result && !accumulate);
    if (scratch_bytes > 0)
        assert_int_equal(cf_gpu_allocate(gpu, scratch_bytes, &scratch), CONV_FFT_SUCCESS);
    assert_int_equal(device->ops->product(device, d, m[0].block, m[1].block, m[2].block, accumulate, scratch, NULL),
                     CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_download(gpu, got, result->block.data, bytes, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(cf_gpu_synchronize(gpu, NULL), CONV_FFT_SUCCESS);
    for (int64_t i = 0; i < result->count; ++i) {
        if (i % result->block.group_stride >= d->bins * result->block.bin_stride) {
            const number old = result->values[i];
            assert_true(accumulate ? memcmp(&got[i], &old, sizeof old) == 0
                                   : isnan(crealf(got[i])) && isnan(cimagf(got[i])));
            continue;
        }
        const double difference = cabs((double complex)got[i] - exact[i]), size = cabs(exact[i]);
        errors += difference * difference;
        norm += size * size;
    }
    free(got);
    cf_gpu_free(gpu, scratch);
    return sqrt(errors / norm);
}

/* Errors of the three variants, with the accuracy of FP32 and of TF32. */
static void check(const cf_gpu *gpu, generator *g, cf_cgemm_desc d, bool accumulate, int64_t shift) {
    static const cf_cgemm_variant variants[] = {CF_CGEMM_BLAS, CF_CGEMM_TENSOR, CF_CGEMM_LOOP};
    const int64_t rows = d.rows;
    matrices m[3] = {create(gpu, g, &d, rows, d.in_columns, shift),
                     create(gpu, g, &d, d.out_columns, d.in_columns, shift),
                     create(gpu, g, &d, rows, d.out_columns, shift)};
    const matrices *const result = &m[d.kind == CF_CGEMM_FORWARD ? 2 : d.kind == CF_CGEMM_BACKWARD_DATA ? 0 : 1];
    double complex *const exact = test_alloc((size_t)result->count * sizeof *exact);
    for (int64_t group = 0; group < d.groups; ++group)
        for (int64_t bin = 0; bin < d.bins; ++bin)
            for (int64_t i = 0; i < result->block.rows; ++i)
                for (int64_t j = 0; j < result->columns; ++j)
                    exact[group * result->block.group_stride + bin * result->block.bin_stride + i * result->columns +
                          j] = defined(&d, m, group, bin, i, j) + (accumulate ? at(result, group, bin, i, j) : 0);
    const int64_t depth = d.kind == CF_CGEMM_FORWARD         ? d.in_columns
                          : d.kind == CF_CGEMM_BACKWARD_DATA ? d.out_columns
                                                             : rows;
    double error[2][3];
    for (int math = 0; math < 2; ++math)
        for (int v = 0; v < 3; ++v) {
            cf_cgemm_desc own = d, *const built = &own;
            own.variant = variants[v];
            own.math = math ? CONV_FFT_MATH_TF32 : CONV_FFT_MATH_FP32;
            cf_build_list *list = NULL;
            assert_int_equal(device->ops->build_begin(device, &list), CONV_FFT_SUCCESS);
            assert_int_equal(device->ops->build_end(list, device->ops->products_list(device, &built, 1, list)),
                             CONV_FFT_SUCCESS);
            error[math][v] = compare(gpu, &own, m, exact, result, accumulate);
            device->ops->product_destroy(own.compiled);
        }
    print_message("kind %d, %d bins of %d x %d, %d: blas %.2e, tensor %.2e, loop %.2e; TF32: blas %.2e, tensor %.2e\n",
                  (int)d.kind, (int)d.bins, (int)rows, (int)d.in_columns, (int)d.out_columns, error[0][0], error[0][1],
                  error[0][2], error[1][0], error[1][1]);
    /* Short sums may cancel, and consist of few roundings of the split, which are small in long sums. */
    assert_true(error[0][1] <= 1.5 * error[0][0] + (depth < 16 ? 4e-7 : 3e-8));
    /* Long sums of cuBLAS lose more. */
    assert_true(error[0][0] <= (depth > 4096 ? 1e-5 : 1e-6) && error[0][2] <= 1e-6);
    assert_true(error[1][0] <= 1e-3 && error[1][1] <= 5e-4 && error[1][2] <= 1e-6);
    free(exact);
    for (int i = 0; i < 3; ++i)
        destroy(gpu, &m[i]);
}

static const int64_t extents[][5] = {/* groups, bins, rows, in, out */
                                     {2, 3, 5, 7, 3},      {1, 1, 1, 1, 1},     {3, 2, 33, 17, 65}, {1, 5, 128, 64, 64},
                                     {2, 2, 130, 66, 34},  {1, 3, 20, 200, 48}, {1, 1, 700, 40, 8}, {1, 2, 64, 3, 96},
                                     {1, 3, 20011, 20, 36}}; /* long sums, which blocks share */
static const char *const kind_names[] = {"forward", "backward-data", "backward-weights"};
enum {
    EXTENTS = sizeof extents / sizeof extents[0],
    KINDS = sizeof kind_names / sizeof kind_names[0]
};

static void check_product(int64_t i, void *gpu) {
    const int64_t row = i / KINDS, *const e = extents[row];
    const cf_cgemm_desc d = {.kind = (cf_cgemm_kind)(i % KINDS),
                             .dtype = CONV_FFT_FP32,
                             .bins = e[1],
                             .in_columns = e[3],
                             .out_columns = e[4],
                             .rows = e[2],
                             .groups = e[0]};
    generator g = generator_create((uint64_t)i);
    check(gpu, &g, d, row % 2 != 0, row % 3); /* old contents or not; aligned or not */
}

static void products(void **state) {
    NEED_GPU(state);
    case_list list = {.name = "gpu_products"};
    assert_int_equal(cf_gpu_layers_create(gpu, &device), CONV_FFT_SUCCESS);
    assert_int_equal(device->ops->prepare(device), CONV_FFT_SUCCESS);
    for (int i = 0; i < EXTENTS * KINDS; ++i) {
        const int64_t *const e = extents[i / KINDS];
        case_list_add(&list, "%s groups=%d bins=%d rows=%d in=%d out=%d", kind_names[i % KINDS], (int)e[0], (int)e[1],
                      (int)e[2], (int)e[3], (int)e[4]);
    }
    case_list_each(&list, check_product, (void *)gpu);
    cf_gpu_layers_destroy(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {WITH_GPU(products)};
    gpu_read_filters();
    return gpu_exit_status(cmocka_run_group_tests_name("products on a GPU", tests, NULL, NULL));
}
