/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy line: round trips, and every kind of error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "conv/plan/plan.h"
#include "conv/plan/strategy.h"
#include "conv/problem/parse.h"

static void round_trip(void **unused) {
    (void)unused;
    static const struct {
        const char *line;
        int rank;
    } cases[] = {
        {"staged basis=64x64 tiles=1x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=128 groups=1 "
         "keep=none",
         2},
        {"staged basis=2187 tiles=17 dilation=shift overlap=add product=loop spectrum=fp64 chunk=0 groups=0 keep=xw",
         1},
        {"staged basis=1x7x16 tiles=3x1x2 dilation=shift overlap=add product=tensor spectrum=fp32 chunk=9 groups=4 "
         "keep=x",
         3},
        {"staged basis=64x64 tiles=1x2 segments=3x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=128 "
         "groups=1 "
         "keep=none",
         2},
        {"staged basis=8x6 tiles=2x2 dilation=step overlap=add product=blas spectrum=fp32 chunk=1 groups=2 keep=w", 2},
        {"cufft basis=64x64 chunk=128", 2},
        {"cufft basis=1x7x16 chunk=0", 3},
        {"cudnn algorithm=graph:29:k2=27,k13=-1", 2},
        {"cudnn algorithm=old:FFT_TILING:fma", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_strategy s;
        char text[256];
        assert_int_equal(cf_strategy_parse(cases[i].line, cases[i].rank, &s), CONV_FFT_SUCCESS);
        cf_strategy_format(&s, cases[i].rank, text, sizeof text);
        assert_string_equal(text, cases[i].line);
        for (int a = 0; a < 3 - cases[i].rank; ++a)
            assert_true(s.basis[a] == 1 && s.tiles[a] == 1);
    }
}

/* Old lines without the field `segments` have none, and strategies without segments do not write it. */
static void lines_without_segments(void **unused) {
    (void)unused;
    cf_strategy s;
    char text[256];
    const char
        *line = "staged basis=8x8 tiles=2x2 segments=1x1 dilation=step overlap=add product=blas spectrum=fp32 chunk=1 "
                "groups=2 keep=w",
        *same =
            "staged basis=8x8 tiles=2x2 dilation=step overlap=add product=blas spectrum=fp32 chunk=1 groups=2 keep=w";
    assert_int_equal(cf_strategy_parse(line, 2, &s), CONV_FFT_SUCCESS);
    cf_strategy_format(&s, 2, text, sizeof text);
    assert_string_equal(text, same);
    assert_int_equal(cf_strategy_parse(same, 2, &s), CONV_FFT_SUCCESS);
    for (int a = 0; a < 3; ++a)
        assert_int_equal(s.segments[a], 1);
}

/* Any number of spaces may be around and between the fields. */
static void spacing(void **unused) {
    (void)unused;
    const char *plain = "staged basis=8 tiles=2 dilation=step overlap=add product=blas spectrum=fp32 chunk=1 groups=2 "
                        "keep=w";
    const char *spaced = "  staged  basis=8 tiles=2   dilation=step overlap=add product=blas spectrum=fp32 chunk=1 "
                         "groups=2  keep=w  ";
    cf_strategy s;
    char text[256];
    assert_int_equal(cf_strategy_parse(spaced, 1, &s), CONV_FFT_SUCCESS);
    cf_strategy_format(&s, 1, text, sizeof text);
    assert_string_equal(text, plain);
}

/* Words of older records, and the family that takes over layers of another one. */
static void old_words(void **unused) {
    (void)unused;
    static const struct {
        const char *problem, *old, *now;
    } cases[] = {
        {"in=2x3x8x8 out=4 kernel=3x3", "direct algorithm=old:GEMM:fma", "cudnn algorithm=old:GEMM:fma"},
        {"in=2x3x8x8 out=4 kernel=3x3", "reference basis=8x8 chunk=1", "cufft basis=8x8 chunk=1"},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=4", "fused basis=2048 tiles=1 dilation=step spectrum=fp32",
         "long1d basis=2048 tiles=1 dilation=step spectrum=fp32"},
        {"in=4x8x1024 out=8 groups=4 kernel=9 pad=4", "fused basis=2048 tiles=1 dilation=step spectrum=fp32",
         "fused basis=2048 tiles=1 dilation=step spectrum=fp32"},
        {"in=4x8x1024 out=8 groups=8 kernel=9 pad=4", "fused basis=1200 tiles=1 dilation=step spectrum=fp32",
         "fused basis=1200 tiles=1 dilation=step spectrum=fp32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        conv_fft_problem p;
        cf_layer layer;
        cf_strategy s;
        char text[256];
        assert_int_equal(conv_fft_problem_parse(cases[i].problem, &p, NULL, 0), CONV_FFT_SUCCESS);
        assert_int_equal(cf_layer_make(&p, &layer), CONV_FFT_SUCCESS);
        assert_int_equal(cf_strategy_parse(cases[i].old, p.rank, &s), CONV_FFT_SUCCESS);
        cf_strategy_resolve(&layer, CF_PASS_FORWARD, &s);
        cf_strategy_format(&s, p.rank, text, sizeof text);
        assert_string_equal(text, cases[i].now);
    }
}

static void wrong_lines(void **unused) {
    (void)unused;
    static const struct {
        const char *line, *sentence;
    } cases[] = {
        {"", "is not a family"},
        {"fast basis=8x8",
         "\"fast\" is not a family; it must be staged, fused, long1d, toeplitz, dft, implicit_gemm, spatial, cufft or "
         "cudnn"},
        {"cufft basis=8x8", "the line ends where chunk= is expected"},
        {"cufft basis=8x8 tiles=1x1 chunk=1", "\"tiles=1x1\" stands where chunk= is expected"},
        {"cufft basis=8x8 chunk=-1", "chunk is -1"},
        {"cudnn", "the line ends where algorithm= is expected"},
        {"cudnn algorithm=", "algorithm has 0 bytes; it must have 1 to 159"},
        {"cudnn algorithm=graph:1 basis=8x8", "\"basis=8x8\" follows the last field"},
        {"staged", "the line ends where basis= is expected"},
        {"staged tiles=1x1", "\"tiles=1x1\" stands where basis= is expected"},
        {"staged basis=8 tiles=1x1", "basis is \"8\"; it must have 2 numbers"},
        {"staged basis=8x8x8 tiles=1x1", "it must have 2 numbers"},
        {"staged basis=8x0 tiles=1x1", "at least 1"},
        {"staged basis=8x-4 tiles=1x1", "at least 1"},
        {"staged basis=axb tiles=1x1", "whole numbers"},
        {"staged basis=8x8 tiles=1x1 segments=2 dilation=step", "segments is \"2\"; it must have 2 numbers"},
        {"staged basis=8x8 tiles=1x1 segments=0x1 dilation=step", "at least 1"},
        {"fused basis=8x8 tiles=1x1 segments=2x1 dilation=step", "\"segments=2x1\" stands where dilation= is expected"},
        {"staged basis=8x8 tiles=1x1 dilation=maybe overlap=save", "\"maybe\" is not a value of dilation"},
        {"staged basis=8x8 tiles=1x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=-1 groups=1 keep=none",
         "chunk is -1"},
        {"staged basis=8x8 tiles=1x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=1 groups=1 keep=y",
         "keep"},
        {"staged basis=8x8 tiles=1x1 dilation=step overlap=save product=blas spectrum=fp32 chunk=1 groups=1 keep=x "
         "more",
         "\"more\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        cf_strategy s;
        assert_int_equal(cf_strategy_parse(cases[i].line, 2, &s), CONV_FFT_INVALID_ARGUMENT);
        if (!strstr(conv_fft_last_error(), cases[i].sentence))
            fail_msg("%s: %s", cases[i].line, conv_fft_last_error());
    }
    cf_strategy one;
    assert_int_equal(cf_strategy_parse("staged basis=8x8 tiles=1", 1, &one), CONV_FFT_INVALID_ARGUMENT);
    assert_non_null(strstr(conv_fft_last_error(), "basis is \"8x8\"; it must have 1 number"));
    assert_null(strstr(conv_fft_last_error(), "numbers"));

    char line[400] = "cudnn algorithm=";
    memset(line + strlen(line), 'x', 160);
    assert_int_equal(cf_strategy_parse(line, 2, &one), CONV_FFT_INVALID_ARGUMENT);
    assert_non_null(strstr(conv_fft_last_error(), "algorithm has 160 bytes; it must have 1 to 159"));

    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    cf_strategy s;
    assert_int_equal(cf_strategy_parse(line, 2, &s), CONV_FFT_INVALID_ARGUMENT);
    assert_non_null(strstr(conv_fft_last_error(), "399 bytes"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),  cmocka_unit_test(lines_without_segments),
        cmocka_unit_test(spacing),     cmocka_unit_test(old_words),
        cmocka_unit_test(wrong_lines),
    };
    return cmocka_run_group_tests_name("strategy", tests, NULL, NULL);
}
