/* SPDX-License-Identifier: Apache-2.0 */
/* fbfft.h without a GPU: defaults, and bad arguments one at a time, on the CPU and on the substitute GPU of
 * tests/fakes, which computes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/error_text.h"
#include "support/fft_rules.h"
#include "support/temp_dirs.h"

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
    for (int rank = 1; rank <= 3; ++rank)
        for (int kind = 0; kind < 4; ++kind) {
            fbfft_desc d, expected;
            memset(&d, 0x5A, sizeof d);
            memset(&expected, 0, sizeof expected);
            assert_int_equal(fbfft_desc_init(&d, rank, (fbfft_kind)kind), CONV_FFT_SUCCESS);
            expected.rank = rank;
            expected.kind = (fbfft_kind)kind;
            expected.scale = 1.0;
            expected.channels = 1;
            for (int a = 0; a < CONV_FFT_MAX_RANK; ++a)
                expected.basis[a] = expected.step[a] = 1;
            assert_memory_equal(&d, &expected, sizeof d);
        }
    assert_int_equal(CONV_FFT_FP32 + CONV_FFT_CHANNELS_FIRST + FBFFT_NATURAL + CONV_FFT_PAD_ZEROS, 0);
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
    EXPECT_INVALID(fbfft_desc_init(&d, 2, (fbfft_kind)4), "kind", "4", "FBFFT_R2C");
    EXPECT_INVALID(fbfft_desc_init(&d, 2, (fbfft_kind)-1), "kind", "FBFFT_R2C");
    assert_memory_equal(&d, &before, sizeof d);
}

/* The plan is refused with this status and these words in its message, and the handle stays unchanged. */
static void expect_refused(conv_fft_context *context, const fbfft_desc *d, conv_fft_status status, const char *a,
                           const char *b, const char *c) {
    char there;
    fbfft_plan *const marker = (fbfft_plan *)(void *)&there;
    fbfft_plan *plan = marker;
    const char *const parts[] = {a, b, c, NULL};
    expect_refused_(fbfft_plan_create(context, d, &plan), status, parts, "fbfft_plan_create", __FILE__, __LINE__);
    assert_ptr_equal(plan, marker);
}

/* A 16x16 transform of a 9x9 window of one kind, with one wrong assignment. */
#define BAD_OF(of_kind, assignment, a, b, c)                             \
    do {                                                                 \
        fbfft_desc d = fft_desc(2, of_kind, 16, 9);                      \
        d.assignment;                                                    \
        expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, a, b, c); \
    } while (0)
#define BAD(assignment, a, b, c) BAD_OF(FBFFT_R2C, assignment, a, b, c)

static void bad_scalars_on(conv_fft_context *context) {
    BAD(rank = 0, "rank", "0", "1 to 3");
    BAD(rank = 4, "rank", "4", "1 to 3");
    BAD(rank = -7, "rank", "-7", "1 to 3");
    BAD(kind = (fbfft_kind)4, "kind", "4", "FBFFT_C2C_INVERSE");
    BAD(kind = (fbfft_kind)-1, "kind", "", "FBFFT_C2R"); /* the enum may be unsigned */
    BAD(scale = (double)NAN, "scale", "nan", "finite");
    BAD(scale = -(double)INFINITY, "scale", "-inf", "finite");
    BAD(scale = 1e300, "scale", "1e+300", "3.40282e+38");
    BAD(channels = 0, "channels is 0", "1 to", "");
    BAD(channels = -3, "channels is -3", "1 to", "");
    BAD(channels = INT64_MAX / 1000, "more than", "elements", "");
    BAD(channels = INT64_MAX / 16 / 81, "channels is 7116", "bins, 144 each", "at most");
    BAD(dtype = (conv_fft_dtype)4, "dtype is 4", "0 to 3", "");
    BAD(dtype = CONV_FFT_DTYPE_SAME, "dtype is -1", "0 to 3", "");
    BAD(layout = (conv_fft_layout)2, "layout is 2", "0 to 1", "");
    BAD(order = (fbfft_order)3, "order is 3", "0 to 2", "");
    BAD(padding = (conv_fft_padding)4, "padding is 4", "0 to 3", "");
    for (int i = 0; i < 3; ++i)
        BAD(reserved[i] = 1, "reserved", "1", "0");
    for (int mode = CONV_FFT_PAD_CIRCULAR; mode <= CONV_FFT_PAD_REPLICATE; ++mode) {
        BAD_OF(FBFFT_C2R, padding = (conv_fft_padding)mode, "padding is", "ZEROS", "write");
        BAD_OF(FBFFT_C2C_INVERSE, padding = (conv_fft_padding)mode, "padding is", "ZEROS", "write");
    }
}

static void bad_axes_on(conv_fft_context *context) {
    BAD(basis[0] = 0, "basis[0] is 0", "1 to 256", "");
    BAD(basis[1] = -4, "basis[1] is -4", "1 to 256", "");
    BAD(basis[0] = INT64_MIN, "basis[0]", "-9223372036854775808", "1 to 256");
    BAD(basis[0] = 22, "basis[0] is 22", "2, 3, 5 and 7", "1 to 256");
    BAD(basis[1] = 270, "basis[1] is 270", "1 to 256", "");
    BAD(basis[0] = INT64_MAX, "basis[0] is 9223372036854775807", "1 to 256", "");
    BAD(extent[0] = 17, "extent[0] is 17", "0 to 16", "");
    BAD(extent[1] = -1, "extent[1] is -1", "0 to 16", "");
    BAD(basis[1] = 8, "extent[1] is 9", "0 to 8", "");
    BAD(size[0] = -1, "size[0] is -1", "0 to", "");
    BAD(size[1] = INT64_MAX, "size[1] is 9223372036854775807", "0 to", "");
    BAD(size[1] = INT64_MAX / 16, "more than", "elements", "");
    BAD(offset[0] = INT64_MIN, "offset[0] is -9223372036854775808", "", "");
    BAD(offset[1] = INT64_MAX, "offset[1] is 9223372036854775807", "", "");
    BAD(step[0] = 0, "step[0] is 0", "1 to", "");
    BAD(step[1] = -2, "step[1] is -2", "1 to", "");
    BAD(step[1] = INT64_MAX / 16, "step[1] is 576460752303423487", "9 points", "at most");
    fbfft_desc line = fft_desc(1, FBFFT_R2C, 16807, 0);
    expect_refused(context, &line, CONV_FFT_INVALID_ARGUMENT, "basis[0] is 16807", "1 to 16384", "");
    line.basis[0] = 16382;
    expect_refused(context, &line, CONV_FFT_INVALID_ARGUMENT, "basis[0] is 16382", "2, 3, 5 and 7", "1 to 16384");
}

/* Reflected windows must be within reach of the signal. All others may be anywhere. */
static void bad_windows_on(conv_fft_context *context) {
    fbfft_desc d = fft_desc(1, FBFFT_R2C, 16, 9);
    d.padding = CONV_FFT_PAD_REFLECT;
    d.size[0] = 5;
    d.offset[0] = -5;
    expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, "offset[0] is -5", "at least -4", "5 points");
    d.offset[0] = 1;
    expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, "offset[0] is 1", "the window 9", "at most 8");
    d.offset[0] = -4;
    d.step[0] = 2;
    expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, "offset[0] is -4", "the window 12", "at most 8");
    d.size[0] = 1;
    d.offset[0] = 0;
    expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, "offset[0] is 0", "at most 0", "1 points");
}

static void bad_strides_on(conv_fft_context *context) {
    BAD(stride[0] = -1, "stride[0] is -1", "0 to", "");
    BAD(stride[3] = -1, "stride[3] is -1", "0 to", "");
    BAD(stride[2] = INT64_MAX, "stride[2]", "0 to", "");
    BAD(stride[3] = INT64_MAX / 16, "stride[3]", "elements away", "");
    /* All elements of all rows at one address; stride 0 stands for the dense stride. */
    BAD_OF(FBFFT_C2R, stride[3] = 1, "stride holds the stride 0", "written", "share an address");
    BAD_OF(FBFFT_C2C_INVERSE, stride[2] = 9, "stride holds the stride 0", "written", "share an address");
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 16, 9);
    d.channels = 4;
    d.stride[0] = 1000;
    d.stride[1] = 80; /* 81 elements in a channel */
    d.stride[2] = 9;
    d.stride[3] = 1;
    expect_refused(context, &d, CONV_FFT_INVALID_ARGUMENT, "stride", "80", "at least 81");
}

static void bad_fields_on(conv_fft_context *context) {
    const fbfft_desc good = fft_desc(2, FBFFT_R2C, 16, 9);
    fbfft_plan *plan = NULL;
    EXPECT_INVALID(fbfft_plan_create(NULL, &good, &plan), "context", "NULL");
    EXPECT_INVALID(fbfft_plan_create(context, NULL, &plan), "desc", "NULL");
    EXPECT_INVALID(fbfft_plan_create(context, &good, NULL), "plan", "NULL");
    assert_null(plan);
    bad_scalars_on(context);
    bad_axes_on(context);
    bad_windows_on(context);
    bad_strides_on(context);
}

/* Every device first reports wrong fields, and then missing support. */
static void bad_fields(void **state) {
    conv_fft_context *cpu = create_context(CONV_FFT_DEVICE_CPU, NULL), *gpu = substitute_gpu(state);
    bad_fields_on(cpu);
    bad_fields_on(gpu);
    conv_fft_context_destroy(cpu);
    conv_fft_context_destroy(gpu);
}

/* Entries of unused axes are ignored. */
static void unused_axes(void **state) {
    (void)state;
    conv_fft_context *const cpu = create_context(CONV_FFT_DEVICE_CPU, NULL);
    fbfft_desc d = fft_desc(2, FBFFT_C2R, 16, 9);
    fbfft_plan *plan = NULL;
    d.basis[2] = d.extent[2] = d.size[2] = d.step[2] = d.stride[4] = -7;
    d.offset[2] = INT64_MIN;
    assert_int_equal(fbfft_plan_create(cpu, &d, &plan), CONV_FFT_SUCCESS);
    fbfft_plan_destroy(plan);
    conv_fft_context_destroy(cpu);
}

/* Batch entries that would overlap are refused when the batch size is known. */
static void interleaved_batch(void **state) {
    (void)state;
    conv_fft_context *const cpu = create_context(CONV_FFT_DEVICE_CPU, NULL);
    fbfft_desc d = fft_desc(1, FBFFT_C2R, 4, 0);
    fbfft_plan *plan = NULL;
    float in[8 * 2 * 3] = {0}, out[64];
    size_t bytes = 0;
    d.stride[0] = 1; /* entries innermost: room for 8 of them */
    d.stride[1] = 1000;
    d.stride[2] = 8;
    assert_int_equal(fbfft_plan_create(cpu, &d, &plan), CONV_FFT_SUCCESS);
    assert_int_equal(fbfft_plan_workspace(plan, 8, &bytes), CONV_FFT_SUCCESS);
    void *const workspace = malloc(bytes);
    assert_int_equal(fbfft_execute(plan, in, out, 8, workspace, bytes, NULL), CONV_FFT_SUCCESS);
    EXPECT_INVALID(fbfft_execute(plan, in, out, 9, workspace, bytes, NULL), "stride 8", "at least 9", "written");
    EXPECT_INVALID(fbfft_plan_workspace(plan, 9, &bytes), "stride 8", "at least 9", "written");
    free(workspace);
    fbfft_plan_destroy(plan);
    conv_fft_context_destroy(cpu);
}

/* On the substitute GPU, good calls only launch. */
static void execution(void **state) {
    conv_fft_context *const gpu = substitute_gpu(state);
    const fbfft_desc d = fft_desc(1, FBFFT_R2C, 16, 0);
    fbfft_plan *plan = NULL;
    _Alignas(16) float in[64], out[64];
    size_t bytes = 1;
    fft_check_arguments(gpu);
    if (fbfft_plan_create(gpu, &d, &plan) != CONV_FFT_SUCCESS)
        fail_msg("no plan: %s", conv_fft_last_error());
    assert_int_equal(fbfft_plan_workspace(plan, 1, &bytes), CONV_FFT_SUCCESS);
    assert_int_equal(bytes, 0);
    assert_int_equal(fbfft_execute(plan, in, out, 1, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(fbfft_execute(plan, in + 1, out + 2, 1, NULL, 0, NULL), CONV_FFT_SUCCESS);
    fbfft_plan_destroy(plan);
    conv_fft_context_destroy(gpu);
}

/* Each arithmetic is launched, without a workspace, and says so. */
static void arithmetics(void **state) {
    static const struct {
        fbfft_arithmetic arithmetic;
        conv_fft_dtype dtype;
        const char *words;
    } cases[] = {{FBFFT_ARITHMETIC_FP32, CONV_FFT_FP32, "complex"},
                 {FBFFT_ARITHMETIC_SPLIT, CONV_FFT_FP32, "split into two FP16 numbers; lines of 512 = 2*256"},
                 {FBFFT_ARITHMETIC_FP16, CONV_FFT_FP16, "c2c of FP16"}};
    _Alignas(16) static float in[3 * 1024], out[3 * 1024];
    conv_fft_context *const gpu = substitute_gpu(state);
    for (int i = 0; i < 3; ++i) {
        fbfft_desc d = fft_desc(1, FBFFT_C2C_FORWARD, 512, 0);
        fbfft_plan *plan = NULL;
        size_t bytes = 1;
        d.arithmetic = cases[i].arithmetic;
        d.dtype = d.spectrum = cases[i].dtype;
        if (fbfft_plan_create(gpu, &d, &plan) != CONV_FFT_SUCCESS)
            fail_msg("no plan: %s", conv_fft_last_error());
        if (!strstr(fbfft_plan_description(plan), cases[i].words))
            fail_msg("no \"%s\" in %s", cases[i].words, fbfft_plan_description(plan));
        assert_int_equal(fbfft_plan_workspace(plan, 3, &bytes), CONV_FFT_SUCCESS);
        assert_int_equal(bytes, 0);
        assert_int_equal(fbfft_execute(plan, in, out, 3, NULL, 0, NULL), CONV_FFT_SUCCESS);
        fbfft_plan_destroy(plan);
    }
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
        cmocka_unit_test(defaults),    cmocka_unit_test(bad_defaults),      IN_SCRATCH(bad_fields),
        cmocka_unit_test(unused_axes), cmocka_unit_test(interleaved_batch), IN_SCRATCH(execution),
        IN_SCRATCH(arithmetics),       cmocka_unit_test(null_handles),
    };
    return cmocka_run_group_tests_name("fbfft", tests, NULL, NULL);
}
