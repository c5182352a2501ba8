/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms from FP16 to FP16: what is refused, what is planned for a GPU, and the CPU's results against the
 * definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fbfft/c2c_fp16/plan.h"
#include "support/c2c_fp16_cases.h"
#include "support/error_text.h"
#include "support/layer.h"

static conv_fft_context *context;

/* --------------------------------------------------------------------------------------------------------- refusals */

#define BAD(rank, assignment, ...)                                          \
    do {                                                                    \
        fbfft_desc d = half_desc(rank, FBFFT_C2C_FORWARD, 6, 6);            \
        fbfft_plan *plan = NULL;                                            \
        d.assignment;                                                       \
        EXPECT_INVALID(fbfft_plan_create(context, &d, &plan), __VA_ARGS__); \
        assert_null(plan);                                                  \
    } while (0)

static void refusals(void **state) {
    (void)state;
    BAD(1, spectrum = CONV_FFT_FP64, "spectrum is 3", "CONV_FFT_FP32 (0)", "CONV_FFT_FP16 (1)");
    BAD(1, spectrum = CONV_FFT_BF16, "spectrum is 2", "CONV_FFT_FP16");
    BAD(1, spectrum = CONV_FFT_DTYPE_SAME, "spectrum is -1");
    BAD(1, kind = FBFFT_R2C, "kind is 0", "FBFFT_C2C_FORWARD (2)", "FP16");
    BAD(1, kind = FBFFT_C2R, "kind is 1", "FBFFT_C2C_INVERSE (3)");
    BAD(1, dtype = CONV_FFT_FP32, "dtype is 0", "CONV_FFT_FP16 (1)");
    BAD(1, dtype = CONV_FFT_BF16, "dtype is 2", "CONV_FFT_FP16 (1)");
    BAD(2, rank = 3, "rank is 3", "1 or 2");
    BAD(1, layout = CONV_FFT_CHANNELS_LAST, "layout is 1", "CHANNELS_FIRST");
    BAD(1, order = FBFFT_TRANSPOSED, "order is 1", "NATURAL");
    BAD(2, order = FBFFT_FREQUENCY_MAJOR, "order is 2", "NATURAL");
    BAD(1, padding = CONV_FFT_PAD_CIRCULAR, "padding is 1", "ZEROS");
    BAD(1, basis[0] = 48, "basis[0] is 48", "power of two", "2 to 16777216");
    BAD(1, basis[0] = 1, "basis[0] is 1;", "2 to 16777216");
    BAD(1, basis[0] = 1 << 25, "basis[0] is 33554432", "2 to 16777216");
    BAD(1, basis[0] = 0, "basis[0] is 0", "2 to");
    BAD(1, basis[0] = INT64_MIN, "basis[0] is -9223372036854775808", "2 to");
    BAD(2, basis[1] = 16, "basis[1] is 16", "32 to 2048");
    BAD(2, basis[0] = 4096, "basis[0] is 4096", "32 to 2048");
    BAD(1, extent[0] = 63, "extent[0] is 63", "0 or 64");
    BAD(2, size[1] = 65, "size[1] is 65", "0 or 64");
    BAD(2, offset[0] = 1, "offset[0] is 1", "must be 0");
    BAD(1, step[0] = 2, "step[0] is 2", "must be 1");
    BAD(1, stride[2] = 1, "stride[2] is 1", "must be 0");
    BAD(1, scale = (double)NAN, "scale", "nan", "finite");
    for (int i = 0; i < 3; ++i)
        BAD(1, reserved[i] = 1, "reserved", "1", "0");
}

static void plan_is_explained(void **state) {
    (void)state;
    static const struct {
        int rank, log0, log1;
        const char *words[3];
    } cases[] = {
        {1, 8, 0, {"c2c 256 from 256, fp16", "One kernel: a block holds whole lines", "lines in registers of 256"}},
        {1, 24, 0, {"16777216", "kernel 3", "by 3 kernels each"}},
        {2, 9, 9, {"512x512", "kernel 2", "columns of 512 = 256*2"}}};
    for (int i = 0; i < 3; ++i) {
        const fbfft_desc d = half_desc(cases[i].rank, FBFFT_C2C_FORWARD, cases[i].log0, cases[i].log1);
        char text[4096];
        assert_int_equal(fbfft_explain(NULL, "data/gpus/h200.txt", &d, 0, text, sizeof text, NULL), CONV_FFT_SUCCESS);
        for (int w = 0; w < 3; ++w)
            if (!strstr(text, cases[i].words[w]))
                fail_msg("no \"%s\" in %s", cases[i].words[w], text);
    }
}

/* ------------------------------------------------------------------------------------------------------------ plans */

/* Each point is transformed by exactly one kernel on each axis, blocks fit the GPU, and the gains multiply to the
 * scale. */
static void check_config(const cf_gpu_properties *properties, const fbfft_desc *d) {
    cf_fft_problem problem;
    cf_c2c_fp16_config c;
    assert_int_equal(cf_fft_resolve(d, &problem), CONV_FFT_SUCCESS);
    cf_c2c_fp16_configure(&problem, properties, &c);
    int64_t points = 1;
    double gain = 1;
    for (int i = 0; i < c.count; ++i) {
        const cf_c2c_fp16_pass *const p = &c.pass[i];
        points <<= p->log_n;
        assert_true(p->shared <= properties->shared_per_block);
        assert_true(p->blocks * (p->shared + properties->shared_reserved_per_block) <=
                    properties->shared_per_multiprocessor);
        assert_int_equal(p->lines << p->log_n, c.points);
        assert_true(p->max_blocks >= (p->ahead ? 1 : INT32_MAX));
        for (int step = 0; step < 2; ++step)
            for (int product = 0; product < 2; ++product)
                gain *= (double)p->gain[step][product];
        if (p->form == CF_C2C_FP16_COLUMNS)
            assert_true(p->log_w >= 3 && p->log_w <= p->log_inner);
        if (p->form == CF_C2C_FP16_ROWS)
            assert_true(p->log_w >= 3 && p->log_w <= p->log_first);
    }
    assert_int_equal(points, c.points);
    assert_true(fabs(gain - d->scale) <= 1e-6 * fabs(d->scale));
}

static void check_plans(const char *path) {
    static const double scales[] = {1, -3.5, 0.7, 1e-9, 1e5, 0};
    cf_gpu_properties properties;
    assert_int_equal(cf_gpu_properties_load(path, &properties), CONV_FFT_SUCCESS);
    for (int log = 1; log <= 24; ++log)
        for (int s = -2; s < 6; ++s) {
            fbfft_desc d = half_desc(1, FBFFT_C2C_FORWARD, log, 0);
            d.scale = s == -2 ? ldexp(1, -log) : s == -1 ? d.scale : scales[s];
            check_config(&properties, &d);
        }
    for (int a = 5; a <= 11; ++a)
        for (int b = 5; b <= 11; ++b) {
            const fbfft_desc d = half_desc(2, FBFFT_C2C_INVERSE, a, b);
            check_config(&properties, &d);
        }
}
static void plans(void **state) {
    (void)state;
    check_plans("data/gpus/h200.txt");
    check_plans("data/gpus/a100.txt");
}

/* 2^15 points take one kernel if a block has shared memory for 7/4 of them. */
static void longest_line(void **state) {
    (void)state;
    static const struct {
        const char *properties;
        int passes;
    } cases[] = {{"data/gpus/h200.txt", 1}, {"data/gpus/a100.txt", 2}};
    for (int i = 0; i < 2; ++i) {
        const fbfft_desc d = half_desc(1, FBFFT_C2C_FORWARD, 15, 0);
        cf_gpu_properties properties;
        cf_fft_problem problem;
        cf_c2c_fp16_config c;
        assert_int_equal(cf_gpu_properties_load(cases[i].properties, &properties), CONV_FFT_SUCCESS);
        assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
        cf_c2c_fp16_configure(&problem, &properties, &c);
        assert_int_equal(c.count, cases[i].passes);
        assert_int_equal(c.pass[0].ahead, cases[i].passes == 1);
        assert_int_equal(c.uses_workspace, cases[i].passes == 2);
    }
}

/* -------------------------------------------------------------------------------------------------------------- CPU */

static void lines(void **state) {
    (void)state;
    fft_list list = {0};
    half_add_lines(&list, 1, 15);
    fft_list_check(&list, "lines", NULL, context);
}

static void planes(void **state) {
    (void)state;
    fft_list list = {.one_by_one = true};
    half_add_planes(&list, 13);
    fft_list_check(&list, "planes", NULL, context);
}

/* In FP32, the error beyond one rounding of the result is far below the error that tensor cores may have. */
static void accuracy(void **state) {
    (void)state;
    for (int log = 2; log <= 14; log += 4) {
        const fft_case c = {.desc = half_desc(1, FBFFT_C2C_FORWARD, log, 0), .batch = 3};
        fft_outcome outcome;
        fft_check_case(NULL, context, &c, &outcome);
        assert_true(outcome.ok);
        assert_true(outcome.error <= 1e-6);
    }
}

static void rules(void **state) {
    (void)state;
    static const int shapes[][3] = {{1, 2, 0}, {1, 8, 0}, {1, 13, 0}, {2, 5, 6}};
    for (int i = 0; i < 4; ++i)
        for (int kind = FBFFT_C2C_FORWARD; kind <= FBFFT_C2C_INVERSE; ++kind) {
            const fbfft_desc d = half_desc(shapes[i][0], (fbfft_kind)kind, shapes[i][1], shapes[i][2]);
            fft_check_isolation(NULL, context, &d);
            half_check_range(NULL, context, &d);
            if (kind == FBFFT_C2C_INVERSE)
                continue;
            fft_check_there_and_back(NULL, context, &d);
            fft_check_energy_and_impulse(NULL, context, &d);
        }
    const fbfft_desc d = half_desc(1, FBFFT_C2C_FORWARD, 4, 0);
    half_check_alignment(context, &d, "FP16");
}

static int setup(void **state) {
    (void)state;
    context = test_context(2);
    return 0;
}
static int teardown(void **state) {
    (void)state;
    conv_fft_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(plan_is_explained),
                                       cmocka_unit_test(plans),    cmocka_unit_test(longest_line),
                                       cmocka_unit_test(lines),    cmocka_unit_test(planes),
                                       cmocka_unit_test(accuracy), cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
