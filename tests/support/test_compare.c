/* SPDX-License-Identifier: Apache-2.0 */
/* The compare function reports wrong results and accepts right ones. Kept results of NVRTC belong to the same kernel,
 * or are not used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reference/conv.h"
#include "reference/dtype.h"
#include "support/case_list.h"
#include "support/compare.h"
#include "support/fake_gpu.h"
#include "support/nvrtc_compile.h"
#include "support/random_problems.h"
#include "support/temp_dirs.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static conv_fft_problem small_problem(void) {
    conv_fft_problem p = {.rank = 2, .batch = 3, .in_channels = 4, .out_channels = 6, .groups = 2};
    for (int a = 0; a < 2; a++) {
        p.input[a] = 9 - a;
        p.kernel[a] = 3 + a;
        p.stride[a] = p.dilation[a] = 1;
        p.pad_before[a] = 2;
        p.pad_after[a] = 1;
    }
    return p;
}

/* ---- the compare function */

/* A right FP32 result, which the tests then change. */
typedef struct subject {
    ref_shape shape;
    double *x, *w, *expected, *magnitude, *broken;
    tensor y;
} subject;

static int setup_subject(void **state) {
    static subject s;
    const conv_fft_problem p = small_problem();
    s.shape = ref_shape_of(&p);
    const int64_t nx = ref_input_count(&s.shape), nw = ref_weight_count(&s.shape), ny = ref_output_count(&s.shape);
    const int64_t extent[] = {3, 6, s.shape.output[1], s.shape.output[2]};
    s.x = test_alloc((size_t)nx * sizeof(double));
    s.w = test_alloc((size_t)nw * sizeof(double));
    s.expected = test_alloc((size_t)ny * sizeof(double));
    s.magnitude = test_alloc((size_t)ny * sizeof(double));
    s.broken = test_alloc((size_t)ny * sizeof(double));
    s.y = tensor_create(CONV_FFT_FP32, 4, extent, NULL);
    assert_int_equal(s.y.count, ny);
    generator g = generator_create(7);
    random_values(&g, nx, s.x);
    random_values(&g, nw, s.w);
    ref_forward(&s.shape, s.x, s.w, s.expected);
    memcpy(s.broken, s.expected, (size_t)ny * sizeof(double));
    for (int64_t i = 0; i < nx; i++)
        s.x[i] = fabs(s.x[i]);
    for (int64_t i = 0; i < nw; i++)
        s.w[i] = fabs(s.w[i]);
    ref_forward(&s.shape, s.x, s.w, s.magnitude);
    g = generator_create(7);
    random_values(&g, nx, s.x);
    random_values(&g, nw, s.w);
    *state = &s;
    return 0;
}

static int teardown_subject(void **state) {
    subject *s = *state;
    free(s->x);
    free(s->w);
    free(s->expected);
    free(s->magnitude);
    free(s->broken);
    tensor_destroy(&s->y);
    return 0;
}

static bool passes(subject *s) {
    tensor_set(&s->y, s->broken);
    const comparison c = compare_tensor(&s->y, s->expected, s->magnitude, CONV_FFT_MATH_FP32, DEFAULT_SHARE);
    assert_true(strlen(c.text) > 0);
    return c.ok;
}

static void test_correct_passes(void **state) {
    subject *s = *state;
    assert_true(passes(s));
    for (int64_t i = 0; i < s->y.count; i++) /* an error as of FP32 arithmetic */
        s->broken[i] = s->expected[i] + (i % 3 - 1.0) * 0x1p-24 * s->magnitude[i];
    assert_true(passes(s));
}

static void test_wrong_conjugate(void **state) {
    subject *s = *state;
    const int64_t plane = s->shape.kernel[1] * s->shape.kernel[2], count = ref_weight_count(&s->shape);
    double *flipped = test_alloc((size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        flipped[i] = s->w[i / plane * plane + plane - 1 - i % plane];
    ref_forward(&s->shape, s->x, flipped, s->broken);
    free(flipped);
    assert_false(passes(s));
}

static void test_crop_off_by_one(void **state) {
    subject *s = *state;
    for (int64_t i = 0; i < s->y.count; i++)
        s->broken[i] = s->expected[i + 1 < s->y.count ? i + 1 : i];
    assert_false(passes(s));
}

static void test_one_nan(void **state) {
    subject *s = *state;
    const int64_t places[] = {0, s->y.count / 2, s->y.count - 1};
    for (int i = 0; i < 3; i++) {
        memcpy(s->broken, s->expected, (size_t)s->y.count * sizeof(double));
        s->broken[places[i]] = NAN;
        assert_false(passes(s));
    }
}

static void test_left_poisoned(void **state) {
    subject *s = *state;
    tensor_poison(&s->y);
    assert_false(compare_tensor(&s->y, s->expected, s->magnitude, CONV_FFT_MATH_FP32, DEFAULT_SHARE).ok);
}

static void test_all_zeros(void **state) {
    subject *s = *state;
    memset(s->broken, 0, (size_t)s->y.count * sizeof(double));
    assert_false(passes(s));
}

static void test_swapped_channels(void **state) {
    subject *s = *state;
    const size_t plane = (size_t)(s->shape.output[1] * s->shape.output[2]);
    memcpy(s->broken + plane, s->expected + 2 * plane, plane * sizeof(double));
    memcpy(s->broken + 2 * plane, s->expected + plane, plane * sizeof(double));
    assert_false(passes(s));
}

static void test_wrong_scale(void **state) {
    subject *s = *state;
    for (int64_t i = 0; i < s->y.count; i++)
        s->broken[i] = s->expected[i] * 1.001;
    assert_false(passes(s));
}

static void test_one_element_off(void **state) {
    subject *s = *state;
    s->broken[s->y.count / 3] += 1e-4;
    assert_false(passes(s));
}

/* In a tensor so large that its norm does not show the error. */
static void test_one_element_off_in_many(void **state) {
    (void)state;
    const int64_t extent[] = {4, 4, 50000}, count = 800000, bad = 123456;
    double *values = test_alloc((size_t)count * sizeof(double)), *ones = test_alloc((size_t)count * sizeof(double));
    generator g = generator_create(3);
    random_values(&g, count, values);
    for (int64_t i = 0; i < count; i++)
        ones[i] = 1;
    tensor t = tensor_create(CONV_FFT_FP32, 3, extent, NULL);
    tensor_set(&t, values);
    tensor_get(&t, values);
    values[bad] += 1e-5;
    const comparison c = compare_tensor(&t, values, ones, CONV_FFT_MATH_FP32, DEFAULT_SHARE);
    assert_true(c.norm_ratio <= tolerance_of(CONV_FFT_FP32, CONV_FFT_MATH_FP32).norm);
    assert_false(c.ok);
    assert_int_equal(c.worst, bad);
    assert_non_null(strstr(c.text, "[0][2][23456]"));
    tensor_destroy(&t);
    free(values);
    free(ones);
}

static void test_not_accumulated(void **state) {
    subject *s = *state;
    double *sum = test_alloc((size_t)s->y.count * sizeof(double));
    for (int64_t i = 0; i < s->y.count; i++)
        sum[i] = s->expected[i] + (i % 7 - 3.0) / 4;
    tensor_set(&s->y, s->expected);
    assert_false(compare_tensor(&s->y, sum, s->magnitude, CONV_FFT_MATH_FP32, DEFAULT_SHARE).ok);
    tensor_set(&s->y, sum);
    assert_true(compare_tensor(&s->y, sum, s->magnitude, CONV_FFT_MATH_FP32, DEFAULT_SHARE).ok);
    free(sum);
}

static void test_too_few_non_zeros(void **state) {
    subject *s = *state;
    for (int64_t i = 0; i < s->y.count; i++)
        s->broken[i] = s->expected[i] = i % 5 == 0 ? s->expected[i] : 0;
    assert_false(passes(s));
}

static void test_wrong_gradient_type(void **state) {
    (void)state;
    const int64_t extent[] = {100};
    double values[100], ones[100];
    generator g = generator_create(5);
    random_values(&g, 100, values);
    for (int i = 0; i < 100; i++)
        ones[i] = 1;
    tensor t = tensor_create(CONV_FFT_BF16, 1, extent, NULL);
    tensor_set(&t, values);
    assert_true(
        compare_tensor(&t, values, ones, CONV_FFT_MATH_FP32, DEFAULT_SHARE).ok); /* rounded once: right for BF16 */
    double rounded[100];
    tensor_get(&t, rounded);
    tensor wide = tensor_create(CONV_FFT_FP32, 1, extent, NULL);
    tensor_set(&wide, rounded);
    assert_false(compare_tensor(&wide, values, ones, CONV_FFT_MATH_FP32, DEFAULT_SHARE).ok); /* wrong for FP32 */
    tensor_destroy(&t);
    tensor_destroy(&wide);
}

static void test_products(void **state) {
    (void)state;
    double ratio;
    assert_true(compare_products(1, 1 + 1e-9, 1e-9, 2, &ratio));
    assert_false(compare_products(1, 1 + 1e-8, 1e-9, 2, &ratio));
    assert_false(compare_products(1, NAN, 1e-9, 2, &ratio));
    assert_true(compare_products(0, 0, 0, 2, &ratio));
    assert_false(compare_products(0, 1, 0, 2, &ratio));
}

/* ---- canaries */

static void test_canaries(void **state) {
    (void)state;
    for (size_t alignment = 1; alignment <= 64; alignment *= 2) {
        guarded g = guarded_create(37, alignment);
        assert_int_equal((uintptr_t)g.data % (2 * alignment), alignment);
        memset(g.data, 0, g.bytes);
        assert_true(guarded_canaries_intact(&g));
        assert_false(guarded_untouched(&g));
        const ptrdiff_t places[] = {-1, 37};
        for (int i = 0; i < 2; i++) {
            g.data[places[i]] ^= 1;
            assert_false(guarded_canaries_intact(&g));
            g.data[places[i]] ^= 1;
        }
        guarded_destroy(&g);
    }
}

static void test_gaps(void **state) {
    (void)state;
    const int64_t extent[] = {2, 3}, stride[] = {7, 2};
    const double values[] = {1, 2, 3, 4, 5, 6};
    tensor t = tensor_create(CONV_FFT_FP16, 2, extent, stride), copy = tensor_create(CONV_FFT_FP16, 2, extent, NULL);
    tensor_set(&t, values);
    tensor_set(&copy, values);
    assert_true(tensor_untouched(&t) && tensor_same_bits(&t, &copy, 0, 6));
    ref_store(CONV_FFT_FP16, tensor_at(&t, 5), 9);
    assert_true(tensor_gaps_intact(&t));
    assert_false(tensor_untouched(&t) || tensor_same_bits(&t, &copy, 0, 6));
    assert_true(tensor_same_bits(&t, &copy, 0, 5));
    assert_true(tensor_load(&t, 5) == 9);
    ((unsigned char *)tensor_at(&t, 0))[2] ^= 1; /* between elements 0 and 1 */
    assert_false(tensor_gaps_intact(&t));
    tensor_destroy(&t);
    tensor_destroy(&copy);
}

/* ---- lists of cases */

enum {
    CASES = 100
};
static atomic_int times_checked[CASES];

static void count_case(int64_t i, void *argument) {
    times_checked[i]++;
    ++*(atomic_int *)argument;
}

static int run_list(bool threads) {
    case_list list = {.name = "harness_list"};
    atomic_int total = 0;
    for (int i = 0; i < CASES; i++) {
        times_checked[i] = 0;
        case_list_add(&list, "case %d of a list", i);
    }
    const int taken =
        threads ? case_list_side_by_side(&list, count_case, &total) : case_list_each(&list, count_case, &total);
    assert_int_equal(list.count, 0);
    assert_int_equal(total, taken);
    return taken;
}

/* Each selected case is checked once, on one thread and on several. */
static void test_case_lists(void **state) {
    (void)state;
    for (int threads = 0; threads < 2; threads++) {
        setenv("CONV_FFT_TEST_SHARE", "100", 1);
        assert_int_equal(run_list(threads), CASES);
        for (int i = 0; i < CASES; i++)
            assert_int_equal(times_checked[i], 1);
        setenv("CONV_FFT_TEST_SHARE", "30", 1);
        assert_int_equal(run_list(threads), 30);
        for (int i = 0; i < CASES; i++)
            assert_in_range(times_checked[i], 0, 1);
        setenv("CONV_FFT_TEST_CASE", "case 42 ", 1);
        const int before = case_list_taken();
        assert_int_equal(run_list(threads), 1);
        assert_int_equal(times_checked[42], 1);
        assert_int_equal(case_list_taken(), before + 1);
        setenv("CONV_FFT_TEST_CASE", "no such case", 1); /* another list of the program may have it */
        assert_int_equal(run_list(threads), 0);
        unsetenv("CONV_FFT_TEST_CASE");
    }
    unsetenv("CONV_FFT_TEST_SHARE");
}

/* ---- kept results of NVRTC */

typedef struct kept {
    const char *folder;
    cf_jit jit;
} kept;

static kept resident_in(void **state) {
    const cf_search search = {.folders = FAKES "/good", .only_folders = true};
    kept k = {.folder = scratch_path(*state, "kept")};
    assert_int_equal(cf_jit_open(&k.jit, &search, 0, CONV_FFT_LOG_SILENT), CONV_FFT_SUCCESS);
    return k;
}

/* The number of compilations that this kernel's result takes. The result is checked. */
static int compilations_of(const kept *k, const char *architecture, const char *text, const char *option, int spills) {
    const cf_source source = {.name = "kernel", .text = text, .options = {option}};
    nvrtc_result result = {0};
    const int before = fake_compilations();
    assert_int_equal(nvrtc_compile(&k->jit, k->folder, architecture, &source, &result), CONV_FFT_SUCCESS);
    assert_int_equal(result.spills, spills);
    assert_int_equal(result.stack, 8);
    assert_int_equal(result.registers, 40);
    return fake_compilations() - before;
}

static void test_results_are_kept(void **state) {
    const kept k = resident_in(state);
    assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 1);
    assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 0);
    /* Another text, architecture, option. */
    assert_int_equal(compilations_of(&k, "sm_80", "b spills=13", NULL, 13), 1);
    assert_int_equal(compilations_of(&k, "sm_90a", "a spills=12", NULL, 12), 1);
    assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", "-G", 12), 1);
    assert_int_equal(scratch_count(k.folder, ".txt", NULL), 4);
    assert_int_equal(compilations_of(&k, "sm_80", "b spills=13", NULL, 13), 0);
}

static void test_failures_are_not_kept(void **state) {
    const kept k = resident_in(state);
    const cf_source source = {.name = "kernel", .text = "#error no"};
    nvrtc_result result;
    for (int i = 0; i < 2; ++i) {
        const int before = fake_compilations();
        assert_int_equal(nvrtc_compile(&k.jit, k.folder, "sm_80", &source, &result), CONV_FFT_COMPILE_ERROR);
        assert_int_equal(fake_compilations() - before, 1);
    }
}

/* An entry is cut, changed in each of its bytes, made longer, or replaced by the entry of another kernel. */
static void test_bad_results_are_compiled_again(void **state) {
    const kept k = resident_in(state);
    char path[1024], other_path[1024];
    size_t bytes = 0, other_bytes = 0;
    compilations_of(&k, "sm_80", "a spills=12", NULL, 12);
    assert_int_equal(scratch_count(k.folder, ".txt", path), 1);
    char *const entry = scratch_read(path, &bytes);
    for (size_t i = 0; i < bytes; ++i) {
        entry[i] ^= 1;
        scratch_write(path, entry, bytes);
        assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 1);
        entry[i] ^= 1;
        scratch_write(path, entry, i);
        assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 1);
    }
    char longer[1024];
    snprintf(longer, sizeof longer, "%.*s.", (int)bytes, entry);
    scratch_write(path, longer, bytes + 1);
    assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 1);
    free(entry);
    unlink(path);
    compilations_of(&k, "sm_80", "b spills=13", NULL, 13);
    assert_int_equal(scratch_count(k.folder, ".txt", other_path), 1);
    char *const other = scratch_read(other_path, &other_bytes);
    scratch_write(path, other, other_bytes);
    assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 1);
    assert_int_equal(compilations_of(&k, "sm_80", "a spills=12", NULL, 12), 0);
    free(other);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)
#define WITH_SUBJECT(test) cmocka_unit_test_setup_teardown(test, setup_subject, teardown_subject)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_SUBJECT(test_correct_passes),
        WITH_SUBJECT(test_wrong_conjugate),
        WITH_SUBJECT(test_crop_off_by_one),
        WITH_SUBJECT(test_one_nan),
        WITH_SUBJECT(test_left_poisoned),
        WITH_SUBJECT(test_all_zeros),
        WITH_SUBJECT(test_swapped_channels),
        WITH_SUBJECT(test_wrong_scale),
        WITH_SUBJECT(test_one_element_off),
        cmocka_unit_test(test_one_element_off_in_many),
        WITH_SUBJECT(test_not_accumulated),
        WITH_SUBJECT(test_too_few_non_zeros),
        cmocka_unit_test(test_wrong_gradient_type),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_canaries),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_case_lists),
        IN_SCRATCH(test_results_are_kept),
        IN_SCRATCH(test_failures_are_not_kept),
        IN_SCRATCH(test_bad_results_are_compiled_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
