/* SPDX-License-Identifier: Apache-2.0 */
/* Problem lines: every field is read and written, and errors are named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/random_problems.h"

#include <stdio.h>
#include <string.h>

static conv_fft_problem parse(const char *line) {
    conv_fft_problem p;
    memset(&p, 0x55, sizeof p);
    if (conv_fft_problem_parse(line, &p, NULL, 0) != CONV_FFT_SUCCESS)
        fail_msg("%s: %s", line, conv_fft_last_error());
    return p;
}

static void assert_axes(const int64_t *axes, int64_t a, int64_t b, int64_t c) {
    assert_int_equal(axes[0], a);
    assert_int_equal(axes[1], b);
    assert_int_equal(axes[2], c);
}

static void test_every_field(void **state) {
    (void)state;
    char name[8];
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_parse("L1 in=128x6x32x33x34 out=96 kernel=11x5x3 stride=1x2x3 dilation=3x2x1 "
                                            "pad=1:2x3x4:0 groups=3 mode=reflect layout=last wlayout=first dtype=bf16 "
                                            "w=fp32 gw=bf16 math=half # the first layer",
                                            &p, name, sizeof name),
                     CONV_FFT_SUCCESS);
    assert_string_equal(name, "L1");
    assert_int_equal(p.rank, 3);
    assert_int_equal(p.batch, 128);
    assert_int_equal(p.in_channels, 6);
    assert_int_equal(p.out_channels, 96);
    assert_int_equal(p.groups, 3);
    assert_axes(p.input, 32, 33, 34);
    assert_axes(p.kernel, 11, 5, 3);
    assert_axes(p.stride, 1, 2, 3);
    assert_axes(p.dilation, 3, 2, 1);
    assert_axes(p.pad_before, 1, 3, 4);
    assert_axes(p.pad_after, 2, 3, 0);
    assert_int_equal(p.padding, CONV_FFT_PAD_REFLECT);
    assert_int_equal(p.tensor_layout, CONV_FFT_CHANNELS_LAST);
    assert_int_equal(p.weight_layout, CONV_FFT_CHANNELS_FIRST);
    assert_int_equal(p.dtype, CONV_FFT_BF16);
    assert_int_equal(p.fp32_weights, 1);
    assert_int_equal(p.weight_grad_dtype, CONV_FFT_BF16);
    assert_int_equal(p.math, CONV_FFT_MATH_HALF);
}

static void test_defaults(void **state) {
    (void)state;
    const conv_fft_problem p = parse("in=2x1x5x6 out=1");
    conv_fft_problem defaults;
    assert_int_equal(conv_fft_problem_init(&defaults, 2), CONV_FFT_SUCCESS);
    defaults.batch = 2;
    defaults.input[0] = 5;
    defaults.input[1] = 6;
    assert_memory_equal(&p, &defaults, sizeof p);
}

static void test_words(void **state) {
    (void)state;
    static const char *const modes[] = {"zeros", "circular", "reflect", "replicate"};
    static const char *const dtypes[] = {"fp32", "fp16", "bf16", "fp64"};
    static const struct {
        const char *text;
        conv_fft_math math;
    } maths[] = {{"dtype=fp32 math=fp32", CONV_FFT_MATH_FP32},
                 {"dtype=fp32 math=tf32", CONV_FFT_MATH_TF32},
                 {"dtype=fp16 math=half", CONV_FFT_MATH_HALF},
                 {"dtype=fp64 math=fp64", CONV_FFT_MATH_FP64}};
    char line[128];
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "in=1x1x9 out=1 mode=%s", modes[i]);
        assert_int_equal(parse(line).padding, i);
        snprintf(line, sizeof line, "in=1x1x9 out=1 dtype=%s", dtypes[i]);
        assert_int_equal(parse(line).dtype, i);
        snprintf(line, sizeof line, "in=1x1x9 out=1 %s", maths[i].text);
        assert_int_equal(parse(line).math, maths[i].math);
        snprintf(line, sizeof line, "in=1x1x9 out=1 dtype=%s gw=%s", dtypes[i], dtypes[i]);
        assert_int_equal(parse(line).weight_grad_dtype, i);
        snprintf(line, sizeof line, "in=1x1x9 out=1 dtype=%s w=%s", dtypes[i], dtypes[i]);
        assert_int_equal(parse(line).fp32_weights, 0);
        snprintf(line, sizeof line, "w=same in=1x1x9 out=1 dtype=%s", dtypes[i]);
        assert_int_equal(parse(line).fp32_weights, 0);
    }
    assert_int_equal(parse("w=fp32 in=1x1x9 out=1 dtype=fp16").fp32_weights, 1);
    assert_int_equal(parse("in=1x1x9 out=1 dtype=bf16 w=fp32").fp32_weights, 1);
    assert_int_equal(parse("in=1x1x9 out=1 dtype=fp16 gw=same").weight_grad_dtype, CONV_FFT_DTYPE_SAME);
    assert_int_equal(parse("in=1x1x9 out=1 layout=last").weight_layout, CONV_FFT_CHANNELS_LAST);
    assert_int_equal(parse("wlayout=first in=1x1x9 out=1 layout=last").weight_layout, CONV_FFT_CHANNELS_FIRST);
    assert_int_equal(parse("in=1x1x9 out=1 wlayout=last").tensor_layout, CONV_FFT_CHANNELS_FIRST);
}

static void test_axes(void **state) {
    (void)state;
    const conv_fft_problem all = parse("in=1x2x9x9x9 out=2 kernel=3 stride=2 dilation=2 pad=1:4");
    assert_axes(all.kernel, 3, 3, 3);
    assert_axes(all.stride, 2, 2, 2);
    assert_axes(all.dilation, 2, 2, 2);
    assert_axes(all.pad_before, 1, 1, 1);
    assert_axes(all.pad_after, 4, 4, 4);
    const conv_fft_problem same = parse("pad=same in=1x2x9x9x9 out=2 kernel=3x4x5 dilation=1x3x2");
    assert_axes(same.pad_before, 1, 4, 4);
    assert_axes(same.pad_after, 1, 5, 4);
    int64_t output[3];
    assert_int_equal(conv_fft_problem_output(&same, output), CONV_FFT_SUCCESS);
    assert_axes(output, 9, 9, 9);
}

static void test_empty_lines(void **state) {
    (void)state;
    static const char *const lines[] = {"", "   \t ", "# comment", "   # in=1x1x1", "\n", "  \r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_int_equal(parse(lines[i]).rank, 0);
}

static void test_spacing(void **state) {
    (void)state;
    const conv_fft_problem plain = parse("in=2x3x7 out=4 kernel=3");
    const conv_fft_problem spaced = parse(" \t name  kernel=3\tout=4   in=2x3x7 \r\n");
    assert_memory_equal(&plain, &spaced, sizeof plain);
}

/* The name fits, or the call fails. Bytes beyond name_bytes are never written. */
static void test_name(void **state) {
    (void)state;
    conv_fft_problem p;
    char name[8];
    memset(name, '#', sizeof name);
    assert_int_equal(conv_fft_problem_parse("abc in=1x1x1 out=1", &p, name, 4), CONV_FFT_SUCCESS);
    assert_memory_equal(name, "abc\0####", 8);
    memset(name, '#', sizeof name);
    if (conv_fft_problem_parse("abcd in=1x1x1 out=1", &p, name, 4) == CONV_FFT_SUCCESS)
        assert_memory_equal(name, "abc\0####", 8);
    else
        assert_memory_equal(name, "########", 8);
    assert_int_equal(conv_fft_problem_parse("in=1x1x1 out=1", &p, name, 4), CONV_FFT_SUCCESS);
    assert_string_equal(name, "");
}

/* Every field of a line, by value, because padding bytes of the struct may differ. */
static void assert_same_problem(const conv_fft_problem *a, const conv_fft_problem *b) {
    assert_int_equal(a->rank, b->rank);
    assert_int_equal(a->batch, b->batch);
    assert_int_equal(a->in_channels, b->in_channels);
    assert_int_equal(a->out_channels, b->out_channels);
    assert_int_equal(a->groups, b->groups);
    for (int axis = 0; axis < a->rank; axis++) {
        assert_int_equal(a->input[axis], b->input[axis]);
        assert_int_equal(a->kernel[axis], b->kernel[axis]);
        assert_int_equal(a->stride[axis], b->stride[axis]);
        assert_int_equal(a->dilation[axis], b->dilation[axis]);
        assert_int_equal(a->pad_before[axis], b->pad_before[axis]);
        assert_int_equal(a->pad_after[axis], b->pad_after[axis]);
    }
    assert_int_equal(a->padding, b->padding);
    assert_int_equal(a->tensor_layout, b->tensor_layout);
    assert_int_equal(a->weight_layout, b->weight_layout);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->fp32_weights, b->fp32_weights);
    assert_int_equal(a->weight_grad_dtype, b->weight_grad_dtype);
    assert_int_equal(a->math, b->math);
}

static conv_fft_problem resolved(conv_fft_problem p) {
    if (p.weight_grad_dtype == CONV_FFT_DTYPE_SAME)
        p.weight_grad_dtype = p.fp32_weights ? CONV_FFT_FP32 : p.dtype;
    if (p.math == CONV_FFT_MATH_DEFAULT)
        p.math = p.dtype == CONV_FFT_FP64 ? CONV_FFT_MATH_FP64 : CONV_FFT_MATH_FP32;
    return p;
}

/* Defaults of gw and math may be written out; otherwise parse(format(p)) is p, and formatting again gives the same
 * line. */
static void test_round_trip(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        generator g = test_generator(i);
        const conv_fft_problem p = random_problem(&g, 1e6);
        char line[512], again[512];
        assert_int_equal(conv_fft_problem_format(&p, line, sizeof line), CONV_FFT_SUCCESS);
        const conv_fft_problem read = parse(line), wanted = resolved(p), got = resolved(read);
        assert_same_problem(&wanted, &got);
        assert_int_equal(conv_fft_problem_format(&read, again, sizeof again), CONV_FFT_SUCCESS);
        assert_string_equal(line, again);
    }
}

/* The line of a problem without the field is as it was before the field was there; gw is written if it differs from w.
 */
static void test_format_weights(void **state) {
    (void)state;
    static const struct {
        const char *fields, *written;
    } cases[] = {{"dtype=fp16", " dtype=fp16 math=fp32"},
                 {"dtype=fp16 w=same gw=fp32", " dtype=fp16 gw=fp32 math=fp32"},
                 {"dtype=bf16 w=fp32", " dtype=bf16 w=fp32 math=fp32"},
                 {"dtype=bf16 w=fp32 gw=fp32", " dtype=bf16 w=fp32 math=fp32"},
                 {"dtype=bf16 w=fp32 gw=bf16", " dtype=bf16 w=fp32 gw=bf16 math=fp32"},
                 {"dtype=fp32 w=fp32", " dtype=fp32 math=fp32"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char line[128], text[512];
        snprintf(line, sizeof line, "in=1x1x9 out=1 %s", cases[i].fields);
        const conv_fft_problem p = parse(line);
        assert_int_equal(conv_fft_problem_format(&p, text, sizeof text), CONV_FFT_SUCCESS);
        assert_non_null(strstr(text, " dtype="));
        assert_string_equal(strstr(text, " dtype="), cases[i].written);
    }
}

static void test_format_size(void **state) {
    (void)state;
    const conv_fft_problem p =
        parse("in=2x4x9x8 out=6 kernel=3x2 pad=1:0x0:2 groups=2 mode=circular dtype=fp16 gw=fp32");
    char line[512], text[512];
    assert_int_equal(conv_fft_problem_format(&p, line, sizeof line), CONV_FFT_SUCCESS);
    const size_t bytes = strlen(line) + 1;
    for (size_t room = 0; room < bytes; room++) {
        memset(text, '#', sizeof text);
        assert_int_equal(conv_fft_problem_format(&p, text, room), CONV_FFT_INVALID_ARGUMENT);
        for (size_t i = 0; i < sizeof text; i++)
            assert_int_equal(text[i], '#');
    }
    assert_int_equal(conv_fft_problem_format(&p, text, bytes), CONV_FFT_SUCCESS);
    assert_int_equal(text[bytes], '#');
}

/* The longest numbers fit the 512 bytes that the header promises. */
static void test_format_longest(void **state) {
    (void)state;
    char line[512];
    conv_fft_problem p =
        parse("in=1x1x1x1x1 out=1 dtype=bf16 w=fp32 gw=bf16 math=half mode=replicate layout=first wlayout=last");
    for (int a = 0; a < 3; a++) {
        p.stride[a] = p.dilation[a] = 100000000000000001;
        p.pad_before[a] = p.pad_after[a] = 100000000000000001 + a;
    }
    for (int a = 0; a < 3; a++)
        p.pad_after[a]++;
    assert_int_equal(conv_fft_problem_format(&p, line, sizeof line), CONV_FFT_SUCCESS);
    const conv_fft_problem read = parse(line);
    assert_same_problem(&p, &read);
}

static void test_wrong_lines(void **state) {
    (void)state;
    static const struct {
        const char *line, *sentence; /* a part of it */
    } cases[] = {
        {"out=3", "in"},
        {"L1", "the field in=BATCHxCHANNELSxD1.. is missing"},
        {"IN=1x1x3 out=1", "unknown field \"IN\"; fields are in, out, kernel"},
        {"in=1x1x3 kernal=3", "unknown field \"kernal\"; did you mean kernel? Fields are in, out, kernel"},
        {"in=1x1x3 strdie=3", "did you mean stride?"},
        {"in=1x1x3 pda=3", "did you mean pad?"},
        {"in=1x1x3 ker=3", "unknown field \"ker\"; fields are in"},
        {"in=1x1x3 a-word-that-is-longer-than-all-words-that-are-compared=3", "; fields are in"},
        {"in=1x2 out=3", "in"},
        {"in=1x2x3x4x5x6 out=3", "in"},
        {"in=1x2x out=3", "in"},
        {"in=1x2xa out=3", "in"},
        {"in=1x2x3.5 out=3", "in"},
        {"in= out=3", "in"},
        {"in=1x2x-3 out=3", "input"},
        {"in=1x2x0 out=3", "input"},
        {"in=1x2x99999999999999999999 out=3", "in is \"1x2x99999999999999999999\"; a number in it is out of range"},
        {"in=-1x2x3 out=3", "batch"},
        {"in=1x0x3 out=3", "in_channels"},
        {"in=1x1x3 out=0", "out_channels"},
        {"in=1x1x3 out=", "out is \"\"; it must be a whole number"},
        {"in=1x1x3 out=4x4", "out is \"4x4\"; it must be a whole number"},
        {"in=1x1x3 out=+4", "out is \"+4\"; it must be a whole number"},
        {"in=1x1x3 out=9223372036854775808", "out is \"9223372036854775808\"; a number in it is out of range"},
        {"in=1x1x3 out=1 kernel=4", "kernel"},
        {"in=1x1x3 out=1 kernel=0", "kernel"},
        {"in=1x1x3x3 out=1 kernel=1x1x1", "kernel"},
        {"in=1x1x3x3x3 out=1 kernel=1x1", "kernel"},
        {"in=1x1x3 out=1 kernel=1x", "kernel is \"1x\"; it must be 1 to 3 whole numbers joined by x"},
        {"in=1x1x3 out=1 stride=0", "stride"},
        {"in=1x1x3 out=1 stride=two", "stride"},
        {"in=1x1x3 out=1 dilation=0", "dilation"},
        {"in=1x1x3 out=1 dilation=-1", "dilation"},
        {"in=1x1x3 out=1 pad=-1", "pad"},
        {"in=1x1x3 out=1 pad=1:",
         "pad is \"1:\"; it must be same, or entries joined by x: one whole number, or two joined "
         "by ':'"},
        {"in=1x1x3 out=1 pad=:1", "pad is \":1\"; it must be same"},
        {"in=1x1x3 out=1 pad=", "pad is \"\"; it must be same"},
        {"in=1x1x3x3 out=1 pad=1:2x", "pad is \"1:2x\"; it must be same"},
        {"in=1x1x3 out=1 pad=1:99999999999999999999",
         "pad is \"1:99999999999999999999\"; a number in it is out of range"},
        {"in=1x1x3 out=1 pad=1:2:3", "pad is \"1:2:3\"; it must be same"},
        {"in=1x1x3 out=1 pad=1x2", "pad is \"1x2\"; it must have one entry"},
        {"in=1x1x3 out=1 pad=3 mode=reflect", "pad"},
        {"in=1x1x3 out=1 pad=4 mode=circular", "pad"},
        {"in=1x3x3 out=3 groups=2", "groups"},
        {"in=1x3x3 out=3 groups=0", "groups"},
        {"in=1x1x3 out=1 mode=mirror", "mode"},
        {"in=1x1x3 out=1 layout=nchw", "layout"},
        {"in=1x1x3 out=1 wlayout=LAST", "wlayout"},
        {"in=1x1x3 out=1 dtype=int8", "dtype"},
        {"in=1x1x3 out=1 gw=fp8", "gw"},
        {"in=1x1x3 out=1 dtype=fp32 gw=fp16", "weight_grad_dtype"},
        {"in=1x1x3 out=1 w=fp8", "w is \"fp8\"; it must be one of fp32, fp16, bf16, fp64"},
        {"in=1x1x3 out=1 w=fp16", "w is \"fp16\" for FP32 tensors; it must be same, fp32"},
        {"in=1x1x3 out=1 dtype=fp64 w=fp32", "w is \"fp32\" for FP64 tensors; it must be same, fp64"},
        {"w=bf16 in=1x1x3 out=1 dtype=fp16", "w is \"bf16\" for FP16 tensors; it must be same, fp16 or fp32"},
        {"in=1x1x3 out=1 math=fp16", "math"},
        {"in=1x1x3 out=1 dtype=fp32 math=half", "math"},
        {"in=1x1x3 out=1 kernal=3", "kernal"},
        {"in=1x1x3 out=1 out=2", "the field out is given twice"},
        {"in=1x1x3 out=1 stray", "stray"},
        {"in=1x1x3 out=1 =3", "field"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        conv_fft_problem p, before;
        memset(&p, 0x55, sizeof p);
        before = p;
        if (conv_fft_problem_parse(cases[i].line, &p, NULL, 0) != CONV_FFT_INVALID_ARGUMENT)
            fail_msg("accepted: %s", cases[i].line);
        if (!strstr(conv_fft_last_error(), cases[i].sentence))
            fail_msg("%s: the sentence does not name %s: %s", cases[i].line, cases[i].sentence, conv_fft_last_error());
        assert_memory_equal(&p, &before, sizeof p);
    }
}

static void test_long_line(void **state) {
    (void)state;
    static char line[100000];
    conv_fft_problem p;
    memset(line, 'a', sizeof line - 1);
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_INVALID_ARGUMENT);
    memset(line, ' ', sizeof line - 1);
    memcpy(line, "in=1x1x3 out=1 #", 16);
    memset(line + 16, 'c', sizeof line - 17); /* a comment may be as long as it likes */
    assert_int_equal(conv_fft_problem_parse(line, &p, NULL, 0), CONV_FFT_SUCCESS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field),    cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_words),          cmocka_unit_test(test_axes),
        cmocka_unit_test(test_empty_lines),    cmocka_unit_test(test_spacing),
        cmocka_unit_test(test_name),           cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_format_size),    cmocka_unit_test(test_format_longest),
        cmocka_unit_test(test_format_weights), cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_long_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
