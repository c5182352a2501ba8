/* SPDX-License-Identifier: Apache-2.0 */
/* The field `arithmetic` of fbfft.h, and arithmetic SPLIT: what is refused, what is planned for a GPU, and the CPU's
 * results against the definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fbfft/c2c_split/geometry.h"
#include "fbfft/c2c_split/plan.h"
#include "support/c2c_fp16_cases.h"
#include "support/error_text.h"
#include "support/layer.h"

static conv_fft_context *context;

/* --------------------------------------------------------------------------------------------------------- refusals */

#define BAD(assignment, ...)                                                \
    do {                                                                    \
        fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 10);                   \
        fbfft_plan *plan = NULL;                                            \
        d.assignment;                                                       \
        EXPECT_INVALID(fbfft_plan_create(context, &d, &plan), __VA_ARGS__); \
        assert_null(plan);                                                  \
    } while (0)

static void refusals(void **state) {
    (void)state;
    const char *const split = "FBFFT_ARITHMETIC_SPLIT (2)";
    BAD(arithmetic = (fbfft_arithmetic)-1, "arithmetic is -1", "FBFFT_ARITHMETIC_DEFAULT (0)");
    BAD(arithmetic = (fbfft_arithmetic)4, "arithmetic is 4", "FBFFT_ARITHMETIC_FP32 (1)", split);
    BAD(arithmetic = FBFFT_ARITHMETIC_FP16, "FBFFT_ARITHMETIC_FP16 (3)", "spectrum is CONV_FFT_FP32 (0)");
    BAD(spectrum = CONV_FFT_FP16, split, "must be FBFFT_ARITHMETIC_FP16 (3)", "DEFAULT");
    BAD(dtype = CONV_FFT_FP16, "dtype is 1", "CONV_FFT_FP32 (0)", split);
    BAD(dtype = CONV_FFT_FP64, "dtype is 3", "CONV_FFT_FP32 (0)", split);
    BAD(layout = CONV_FFT_CHANNELS_LAST, "layout is 1", "CHANNELS_FIRST", split);
    BAD(order = FBFFT_FREQUENCY_MAJOR, "order is 2", "NATURAL", split);
    BAD(padding = CONV_FFT_PAD_CIRCULAR, "padding is 1", "ZEROS", split);
    BAD(basis[0] = 1000, "basis[0] is 1000", "power of two", "256 to 134217728", split);
    BAD(basis[0] = 128, "basis[0] is 128", "256 to 134217728", split);
    BAD(basis[0] = 1 << 28, "basis[0] is 268435456", "256 to 134217728", split);
    BAD(extent[0] = 1023, "extent[0] is 1023", "0 or 1024", split);
    BAD(size[0] = 1025, "size[0] is 1025", "0 or 1024", split);
    BAD(offset[0] = 1, "offset[0] is 1", "must be 0", split);
    BAD(step[0] = 2, "step[0] is 2", "must be 1", split);
    BAD(stride[1] = 1024, "stride[1] is 1024", "must be 0", split);
    for (int i = 0; i < 3; ++i)
        BAD(reserved[i] = 1, "reserved", "1", "0");
}

/* Each axis has its limits. */
static void axes(void **state) {
    (void)state;
    static const struct {
        fbfft_kind kind;
        int rank;
        int64_t basis[3];
        const char *field, *range; /* NULL: allowed */
    } cases[] = {{FBFFT_C2C_FORWARD, 2, {4096, 256, 0}, NULL, NULL},
                 {FBFFT_C2C_FORWARD, 2, {256, 16384, 0}, NULL, NULL},
                 {FBFFT_C2C_FORWARD, 2, {8192, 256, 0}, "basis[0] is 8192", "256 to 4096"},
                 {FBFFT_C2C_FORWARD, 2, {256, 32768, 0}, "basis[1] is 32768", "256 to 16384"},
                 {FBFFT_C2C_FORWARD, 2, {128, 256, 0}, "basis[0] is 128", "256 to 4096"},
                 {FBFFT_C2C_FORWARD, 3, {256, 256, 256}, NULL, NULL},
                 {FBFFT_C2C_FORWARD, 3, {256, 8192, 256}, "basis[1] is 8192", "256 to 4096"},
                 {FBFFT_C2C_FORWARD, 3, {256, 256, 64}, "basis[2] is 64", "256 to 16384"},
                 {FBFFT_R2C, 1, {512, 0, 0}, NULL, NULL},
                 {FBFFT_R2C, 1, {256, 0, 0}, "basis[0] is 256", "512 to 268435456"},
                 {FBFFT_C2R, 1, {1 << 29, 0, 0}, "basis[0] is 536870912", "512 to 268435456"},
                 {FBFFT_R2C, 2, {256, 32768, 0}, NULL, NULL},
                 {FBFFT_C2R, 2, {256, 256, 0}, "basis[1] is 256", "512 to 32768"},
                 {FBFFT_R2C, 2, {8192, 512, 0}, "basis[0] is 8192", "256 to 4096"},
                 {FBFFT_C2R, 3, {256, 256, 65536}, "basis[2] is 65536", "512 to 32768"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fbfft_desc d = split_desc(cases[i].kind, 10);
        fbfft_plan *plan = NULL;
        d.rank = cases[i].rank;
        memcpy(d.basis, cases[i].basis, sizeof d.basis);
        if (cases[i].field)
            EXPECT_INVALID(fbfft_plan_create(context, &d, &plan), cases[i].field, "power of two", cases[i].range);
        else
            assert_int_equal(fbfft_plan_create(context, &d, &plan), CONV_FFT_SUCCESS);
        fbfft_plan_destroy(plan);
    }
}

/* What DEFAULT does not choose for a type is refused. */
static void types(void **state) {
    (void)state;
    static const struct {
        conv_fft_dtype dtype, spectrum;
        bool allowed[4]; /* by arithmetic */
    } cases[] = {{CONV_FFT_FP32, CONV_FFT_FP32, {true, true, true, false}},
                 {CONV_FFT_FP16, CONV_FFT_FP32, {true, true, false, false}},
                 {CONV_FFT_BF16, CONV_FFT_FP32, {true, true, false, false}},
                 {CONV_FFT_FP64, CONV_FFT_FP32, {true, false, false, false}},
                 {CONV_FFT_FP16, CONV_FFT_FP16, {true, false, false, true}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int a = 0; a < 4; ++a) {
            fbfft_desc d = split_desc(FBFFT_C2C_INVERSE, 8);
            fbfft_plan *plan = NULL;
            d.dtype = cases[i].dtype;
            d.spectrum = cases[i].spectrum;
            d.arithmetic = (fbfft_arithmetic)a;
            const conv_fft_status status = fbfft_plan_create(context, &d, &plan);
            assert_int_equal(status, cases[i].allowed[a] ? CONV_FFT_SUCCESS : CONV_FFT_INVALID_ARGUMENT);
            assert_int_equal(plan && strstr(fbfft_plan_description(plan), "split") != NULL,
                             a == FBFFT_ARITHMETIC_SPLIT && cases[i].allowed[a]);
            fbfft_plan_destroy(plan);
        }
}

/* ------------------------------------------------------------------------------------------------------------ plans */

static void explain(const fbfft_desc *d, char text[4096]) {
    if (fbfft_explain(NULL, "data/gpus/h200.txt", d, 0, text, 4096, NULL) != CONV_FFT_SUCCESS)
        fail_msg("no explanation: %s", conv_fft_last_error());
}

static void plan_is_explained(void **state) {
    (void)state;
    static const char *const words[] = {"c2c 4096 from 4096, fp32", "\narithmetic: FP32 as two FP16 numbers",
                                        "lines of 4096 = 16*256", "2147.48 MB read", "batch 65536"};
    char text[4096];
    fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, 12);
    explain(&d, text);
    for (int w = 0; w < 5; ++w)
        if (!strstr(text, words[w]))
            fail_msg("no \"%s\" in %s", words[w], text);
    d = split_desc_of(FBFFT_C2C_FORWARD, (const int[3]){8, 9, 8});
    explain(&d, text);
    static const char *const of_volumes[] = {
        "c2c 256x512x256", "each kernel reads and writes", "kernel 1: ", "lines of 256;",
        "kernel 2: ",      "columns of 512 = 2*256",       "kernel 3: ", "by 3 kernels each",
        "0.33 of it"};
    for (int w = 0; w < 9; ++w)
        if (!strstr(text, of_volumes[w]))
            fail_msg("no \"%s\" in %s", of_volumes[w], text);
    d = split_desc(FBFFT_C2C_FORWARD, 19);
    explain(&d, text);
    assert_non_null(strstr(text, "columns to lines of 512 = 2*256"));
    assert_non_null(strstr(text, "columns of 1024 = 4*256"));
    d = split_desc(FBFFT_C2C_INVERSE, 26);
    explain(&d, text);
    static const char *const of_longest[] = {
        "kernel 1: ",       "columns to lines of 512 = 2*256", "columns of 512", "kernel 3: ", "columns of 256;",
        "by 3 kernels each"};
    for (int w = 0; w < 6; ++w)
        if (!strstr(text, of_longest[w]))
            fail_msg("no \"%s\" in %s", of_longest[w], text);
    d = split_desc(FBFFT_R2C, 11);
    explain(&d, text);
    assert_non_null(strstr(text, "kernel 1: r2c of FP32 by tensor cores"));
    assert_non_null(strstr(text, "lines of 2048 = 8*256 pairs of reals"));
    d = split_desc(FBFFT_R2C, 15);
    explain(&d, text);
    static const char *const of_reals[] = {"r2c 65536 from 65536, fp32", "columns to lines of 2048 = 8*256",
                                           "kernel 3: bins of lines of 32768 complex numbers to those of 65536 reals",
                                           "1073.74 MB read", "by 3 kernels each"};
    for (int w = 0; w < 5; ++w)
        if (!strstr(text, of_reals[w]))
            fail_msg("no \"%s\" in %s", of_reals[w], text);
    d = split_desc_of(FBFFT_C2R, (const int[3]){0, 8, 8});
    explain(&d, text);
    assert_non_null(strstr(text, "kernel 1: bins of lines of 256 complex numbers from those of 512 reals"));
    assert_non_null(strstr(text, "kernel 3: "));
    d = split_desc(FBFFT_C2C_FORWARD, 12);
    d.arithmetic = FBFFT_ARITHMETIC_FP32;
    explain(&d, text);
    assert_non_null(strstr(text, "\narithmetic: FP32 units\n"));
    d.arithmetic = FBFFT_ARITHMETIC_DEFAULT;
    d.dtype = CONV_FFT_FP64;
    explain(&d, text);
    assert_non_null(strstr(text, "\narithmetic: FP64 units\n"));
    d.dtype = d.spectrum = CONV_FFT_FP16;
    explain(&d, text);
    assert_non_null(strstr(text, "\narithmetic: FP16 on tensor cores"));
}

static cf_gpu_properties properties_of(const char *path) {
    cf_gpu_properties properties;
    assert_int_equal(cf_gpu_properties_load(path, &properties), CONV_FFT_SUCCESS);
    return properties;
}

/* Blocks fit the GPU, and as many as the compiler is told of fit a multiprocessor. Each kernel has its axis. */
static void check_plan(const cf_gpu_properties *p, fbfft_kind kind, const int log[3]) {
    const fbfft_desc d = split_desc_of(kind, log);
    const bool reals = kind == FBFFT_R2C || kind == FBFFT_C2R, inverse = kind == FBFFT_C2R || kind == FBFFT_C2C_INVERSE;
    cf_fft_problem problem;
    cf_c2c_split_config c;
    int done = 0, axes = log[2] > 24 ? 3 : log[2] > 14 ? 2 : 1 + (log[1] > 0) + (log[0] > 0);
    assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
    assert_int_equal(cf_c2c_split_configure(&problem, p, &c), CONV_FFT_SUCCESS);
    assert_true(c.inverse == inverse && c.reals == reals && c.points == 1LL << (log[0] + log[1] + log[2]));
    assert_int_equal(c.rows, 1LL << (log[0] + log[1]));
    const bool one_more = reals && axes > 1;
    assert_int_equal(c.count, axes + one_more);
    assert_true(c.pass[0].reals == (reals && !one_more));
    if (one_more) {
        const cf_c2c_split_pass *const pass = &c.pass[inverse ? 0 : axes];
        assert_int_equal(pass->form, CF_C2C_SPLIT_REALS);
        assert_true(pass->log_n == log[2] && pass->log_rows[0] == log[0] && pass->log_rows[1] == log[1]);
        assert_true(pass->shared == 0 && pass->blocks * pass->threads <= 2048);
    }
    for (int i = 0; i < axes; ++i) {
        const cf_c2c_split_pass *const pass = &c.pass[i + (one_more && inverse)];
        const bool rows = pass->form == CF_C2C_SPLIT_ROWS;
        done += pass->log_n;
        assert_true(pass->blocks >= 1 && (pass->log_n >= 8 || log[2] == 15) && pass->log_n <= (rows ? 14 : 12));
        assert_int_equal(pass->form, i > 0         ? CF_C2C_SPLIT_COLUMNS
                                     : log[2] > 14 ? CF_C2C_SPLIT_FIRST
                                                   : CF_C2C_SPLIT_ROWS);
        assert_int_equal(pass->log_inner, i > 0 ? done - pass->log_n : rows ? 0 : log[2] - pass->log_n);
        assert_int_equal(pass->log_last,
                         axes == 3 && log[2] > 24 && i < 2 ? c.pass[c.count - 1 - !inverse * one_more].log_n : 0);
        assert_true(rows || pass->lines >> pass->log_inner == 0); /* the lines of a block are neighbours */
        assert_true(pass->log_last == 0 || pass->lines >> pass->log_last == 0);
        assert_true(pass->shared <= p->shared_per_block);
        assert_true(pass->blocks * (pass->shared + p->shared_reserved_per_block) <= p->shared_per_multiprocessor);
        assert_true(pass->blocks * pass->threads <= 2048);
    }
    assert_int_equal(done, log[0] + log[1] + log[2]);
}
static void plans(void **state) {
    (void)state;
    static const char *const files[] = {"data/gpus/h200.txt", "data/gpus/a100.txt"};
    for (int f = 0; f < 2; ++f) {
        const cf_gpu_properties p = properties_of(files[f]);
        for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_INVERSE; ++kind) {
            for (int log = 8; log <= 27; ++log)
                check_plan(&p, (fbfft_kind)kind, (const int[3]){0, 0, log});
            for (int log = 8; log <= 12; ++log)
                check_plan(&p, (fbfft_kind)kind, (const int[3]){0, log, 14}),
                    check_plan(&p, (fbfft_kind)kind, (const int[3]){log, 20 - log, 8});
        }
    }
}

/* A GPU with less shared memory than a line takes. */
static void too_small(void **state) {
    (void)state;
    cf_gpu_properties p = properties_of("data/gpus/a100.txt");
    cf_c2c_split_config c;
    p.shared_per_block = 101376;
    for (int i = 0; i < 2; ++i) {
        const fbfft_desc d = split_desc(FBFFT_C2C_FORWARD, i ? 24 : 14);
        cf_fft_problem problem;
        assert_int_equal(cf_fft_resolve(&d, &problem), CONV_FFT_SUCCESS);
        EXPECT(NOT_SUPPORTED, cf_c2c_split_configure(&problem, &p, &c), i ? "lines of 4096" : "lines of 16384",
               "101376", "choose shorter axes, or FBFFT_ARITHMETIC_FP32 (1)");
    }
}

/* -------------------------------------------------------------------------------------------------------------- CPU */

static void lines(void **state) {
    (void)state;
    fft_list list = {0};
    split_add_lines(&list);
    fft_list_check(&list, "lines", NULL, context);
}

static void planes(void **state) {
    (void)state;
    fft_list list = {0};
    split_add_axes(&list, 17);
    fft_list_check(&list, "planes", NULL, context);
}

static void rules(void **state) {
    (void)state;
    for (int kind = FBFFT_R2C; kind <= FBFFT_C2C_FORWARD; kind += 2) {
        const fbfft_desc d = split_desc((fbfft_kind)kind, 9);
        fft_check_isolation(NULL, context, &d);
        fft_check_there_and_back(NULL, context, &d);
        half_check_alignment(context, &d, "FBFFT_ARITHMETIC_SPLIT (2)");
    }
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),          cmocka_unit_test(axes),   cmocka_unit_test(types),
        cmocka_unit_test(plan_is_explained), cmocka_unit_test(planes), cmocka_unit_test(plans),
        cmocka_unit_test(too_small),         cmocka_unit_test(lines),  cmocka_unit_test(rules)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
