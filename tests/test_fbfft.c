/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft.h without a GPU: defaults, bad arguments one at a time, what this version has no kernel for; with the substitute
 * GPU of tests/fakes, where nothing is computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fbfft_check.h"
#include "scratch.h"
#include "sentence.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static conv_fft_context *create_context(int device, const char *cache) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_context_options_init(&options);
    options.device = device;
    options.cache_directory = cache;
    if (conv_fft_context_create(&options, &context) != CONV_FFT_SUCCESS)
        fail_msg("no context: %s", conv_fft_last_error());
    return context;
}

/* *state is the path of a new directory. */
static conv_fft_context *substitute_gpu(void **state) {
    setenv("CONV_FFT_LIBRARY_PATH", FAKES "/good", 1);
    return create_context(0, *state);
}

static void defaults(void **state) {
    (void)state;
    for (int rank = 1; rank <= 3; ++rank) {
        fbfft_desc d;
        memset(&d, 0x5A, sizeof d);
        const fbfft_kind kind = rank % 2 ? FBFFT_C2R : FBFFT_R2C;
        assert_int_equal(fbfft_desc_init(&d, rank, kind), CONV_FFT_SUCCESS);
        assert_int_equal(d.rank, rank);
        assert_int_equal(d.kind, kind);
        assert_true(d.scale == 1.0);
        for (int a = 0; a < CONV_FFT_MAX_RANK; ++a) {
            assert_int_equal(d.basis[a], 1);
            assert_int_equal(d.extent[a], 0);
        }
        for (int i = 0; i < 4; ++i)
            assert_int_equal(d.reserved[i], 0);
    }
}

static void bad_defaults(void **state) {
    (void)state;
    fbfft_desc d, before;
    memset(&d, 0x5A, sizeof d);
    before = d;
    EXPECT_INVALID(fbfft_desc_init(NULL, 1, FBFFT_R2C), "desc", "NULL");
    EXPECT_INVALID(fbfft_desc_init(&d, 0, FBFFT_R2C), "rank", "0", "1 to 3");
    EXPECT_INVALID(fbfft_desc_init(&d, 4, FBFFT_R2C), "rank", "4", "1 to 3");
    EXPECT_INVALID(fbfft_desc_init(&d, -1, FBFFT_R2C), "rank", "-1", "1 to 3");
    EXPECT_INVALID(fbfft_desc_init(&d, 2, (fbfft_kind)2), "kind", "2", "FBFFT_R2C");
    EXPECT_INVALID(fbfft_desc_init(&d, 2, (fbfft_kind)-1), "kind", "FBFFT_R2C");
    assert_memory_equal(&d, &before, sizeof d);
}

/* The plan is refused with this status and these words, and the handle stays as it is. */
static void expect_refused(conv_fft_context *context, const fbfft_desc *d, conv_fft_status status, const char *a,
                           const char *b, const char *c) {
    char there;
    fbfft_plan *const marker = (fbfft_plan *)(void *)&there;
    fbfft_plan *plan = marker;
    const char *const parts[] = {a, b, c, NULL};
    expect_refused_(fbfft_plan_create(context, d, &plan), status, parts, "fbfft_plan_create", __FILE__, __LINE__);
    assert_ptr_equal(plan, marker);
}

#define BAD(assignment, a, b, c)                                         \
    do {                                                                 \
        fbfft_desc d = fft_desc(2, FBFFT_R2C, 16, 9);                    \
        d.assignment;                                                    \
        expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, a, b, c); \
    } while (0)

/* What is wrong with a transform is said on any device, before what is missing. */
static void bad_fields_on(conv_fft_context *context) {
    const fbfft_desc good = fft_desc(2, FBFFT_R2C, 16, 9);
    fbfft_plan *plan = NULL;
    EXPECT_INVALID(fbfft_plan_create(NULL, &good, &plan), "context", "NULL");
    EXPECT_INVALID(fbfft_plan_create(context, NULL, &plan), "desc", "NULL");
    EXPECT_INVALID(fbfft_plan_create(context, &good, NULL), "plan", "NULL");
    assert_null(plan);
    BAD(rank = 0, "rank", "0", "1 to 3");
    BAD(rank = 4, "rank", "4", "1 to 3");
    BAD(rank = -7, "rank", "-7", "1 to 3");
    BAD(kind = (fbfft_kind)2, "kind", "2", "FBFFT_C2R");
    BAD(kind = (fbfft_kind)-1, "kind", "", "FBFFT_C2R"); /* the enum may be unsigned */
    BAD(basis[0] = 0, "basis[0]", "0", "1");
    BAD(basis[1] = -4, "basis[1]", "-4", "1");
    BAD(basis[0] = INT64_MIN, "basis[0]", "-9223372036854775808", "1");
    BAD(extent[0] = 17, "extent[0]", "17", "0 to 16");
    BAD(extent[1] = -1, "extent[1]", "-1", "0 to 16");
    BAD(basis[1] = 8, "extent[1]", "9", "0 to 8");
    for (int i = 0; i < 4; ++i)
        BAD(reserved[i] = 1, "reserved", "1", "0");
}

static void bad_fields(void **state) {
    conv_fft_context *cpu = create_context(CONV_FFT_DEVICE_CPU, NULL), *gpu = substitute_gpu(state);
    bad_fields_on(cpu);
    bad_fields_on(gpu);
    conv_fft_context_destroy(cpu);
    conv_fft_context_destroy(gpu);
}

static void no_transforms_on_the_cpu(void **state) {
    (void)state;
    conv_fft_context *const cpu = create_context(CONV_FFT_DEVICE_CPU, NULL);
    for (int rank = 1; rank <= 3; ++rank) {
        const fbfft_desc d = fft_desc(rank, FBFFT_R2C, 16, 0);
        expect_refused(cpu, &d, CONV_FFT_NOT_SUPPORTED, "context", "CPU", "GPU");
    }
    conv_fft_context_destroy(cpu);
}

static void not_in_this_version(void **state) {
    conv_fft_context *const gpu = substitute_gpu(state);
    static const struct {
        int rank;
        int64_t basis;
        const char *says;
    } cases[] = {
        {3, 16, "rank is 3"},
        {1, 1, "basis[0] is 1;"},
        {1, 15, "basis[0] is 15"},
        {1, 258, "basis[0] is 258"},
        {1, 4096, "4096"},
        {1, INT64_MAX, "basis[0] is 9223372036854775807"},
        {2, 7, "basis[0] is 7"},
        {2, 256, "basis"},
        {2, 66, "basis is 66x66"},
        {1, 254, "basis is 254"},
        {2, INT64_MAX - 1, "basis[0] is 9223372036854775806"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        for (int kind = 0; kind < 2; ++kind) {
            const fbfft_desc d = fft_desc(cases[i].rank, (fbfft_kind)kind, cases[i].basis, 0);
            expect_refused(gpu, &d, CONV_FFT_NOT_SUPPORTED, cases[i].says, "", "");
        }
    conv_fft_context_destroy(gpu);
}

/* Bad arguments of an execution; the good one only launches. */
static void execution(void **state) {
    conv_fft_context *const gpu = substitute_gpu(state);
    const fbfft_desc d = fft_desc(1, FBFFT_R2C, 16, 0);
    fbfft_plan *plan = NULL;
    _Alignas(16) float in[64], out[64];
    if (fbfft_plan_create(gpu, &d, &plan) != CONV_FFT_SUCCESS)
        fail_msg("no plan: %s", conv_fft_last_error());
    assert_true(strlen(fbfft_plan_description(plan)) > 0);
    assert_null(strchr(fbfft_plan_description(plan), '\n'));
    memset(in, 0x11, sizeof in);
    memset(out, 0x22, sizeof out);
    EXPECT_INVALID(fbfft_execute(NULL, in, out, 1, NULL), "plan", "NULL");
    EXPECT_INVALID(fbfft_execute(plan, NULL, out, 1, NULL), "in is NULL");
    EXPECT_INVALID(fbfft_execute(plan, in, NULL, 1, NULL), "out is NULL");
    for (int off = 1; off < 4; ++off) {
        EXPECT_INVALID(fbfft_execute(plan, (char *)in + off, out, 1, NULL), "in is", "multiple of 4");
        EXPECT_INVALID(fbfft_execute(plan, in, (char *)out + off, 1, NULL), "out is", "multiple of 4");
    }
    EXPECT_INVALID(fbfft_execute(plan, in, out, -1, NULL), "batch is -1");
    EXPECT_INVALID(fbfft_execute(plan, in, out, INT64_MIN, NULL), "batch is -9223372036854775808");
    assert_int_equal(fbfft_execute(plan, in, out, 0, NULL), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof in; ++i) {
        assert_int_equal(((unsigned char *)in)[i], 0x11);
        assert_int_equal(((unsigned char *)out)[i], 0x22);
    }
    assert_int_equal(fbfft_execute(plan, in, out, 1, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(fbfft_execute(plan, in + 1, out + 1, 1, NULL), CONV_FFT_SUCCESS);
    fbfft_plan_destroy(plan);
    conv_fft_context_destroy(gpu);
}

static void null_handles(void **state) {
    (void)state;
    fbfft_plan_destroy(NULL);
    assert_string_equal(fbfft_plan_description(NULL), "");
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),      cmocka_unit_test(bad_defaults),
        IN_SCRATCH(bad_fields),          cmocka_unit_test(no_transforms_on_the_cpu),
        IN_SCRATCH(not_in_this_version), IN_SCRATCH(execution),
        cmocka_unit_test(null_handles),
    };
    return cmocka_run_group_tests_name("fbfft", tests, NULL, NULL);
}
