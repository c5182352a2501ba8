/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on a GPU whose spectra are in 16 bits: all ways to run them, and inputs near the limits of FP16 and, with FP16 spectra of FP32
 * tensors, beyond, sample by sample against what a direct convolution would round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "device.h"
#include "gpu.h"
#include "layer.h"
#include "layer_properties.h"
#include "ref/dtype.h"
#include "strategies.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[] = {"fp16", "bf16"};
static const char *const classes[] = {"dtype=fp16 math=half", "dtype=bf16 math=half", "math=tf32"};

/* The ways that the library has for the problem, with spectra of the type of the tensors, or FP16. False: there are none. */
static bool half_strategies(const conv_fft_problem *p, int64_t tiles, const char *overlap, const char *dilation,
                            strategies *s) {
    strategies found;
    if (!find_strategies(device_context(), p, tiles, overlap, dilation, "tensor", &found))
        return false;
    for (int pass = 0; pass < 3; pass++)
        edit_strategy(found.line[pass], "spectrum", types[p->dtype == CONV_FFT_BF16], s->line[pass],
                      sizeof s->line[pass]);
    return true;
}

static conv_fft_plan_options half_options(const strategies *s) {
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[pass];
    return options;
}

static conv_fft_plan *half_plan(const conv_fft_problem *p, const strategies *s, int passes) {
    conv_fft_plan_options options = half_options(s);
    options.passes = (conv_fft_pass)passes;
    return test_plan(device_context(), p, &options);
}

/* ------------------------------------------------------------------------------------------------------------- ways */

static const struct {
    const char *line;
    int64_t tiles; /* that it must be possible with */
} problems[] = {
    {"in=2x3x40 out=4 kernel=7 pad=3", 4},
    {"in=3x8x20x23 out=12 kernel=3x5 pad=1x2", 3},
    {"in=2x3x20x23 out=4 kernel=5x4 pad=2:0x1:3 mode=reflect", 3},
    {"in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=circular groups=2 layout=last", 3},
    {"in=2x16x31x29 out=8 kernel=5x4 stride=2x3 pad=2", 2},
    {"in=2x3x30x33 out=4 kernel=3x4 dilation=2x3 pad=3", 2},
    {"in=2x3x33x31 out=4 kernel=4x3 stride=2 dilation=3 pad=4 mode=reflect gw=fp32", 2},
    {"in=2x4x9x10x11 out=4 kernel=3x2x3 pad=1 groups=4", 2},
    {"in=70x33x9x9 out=66 kernel=3x3 layout=last", 1},
};

enum {
    PROBLEMS = sizeof problems / sizeof problems[0],
    CLASSES = sizeof classes / sizeof classes[0],
    WAYS = 2
};

/* One layer in whole chunks, or few rows and groups at a time, or with kept spectra. */
static void check_chunks(layer *l, const strategies *whole, bool kept) {
    static const char *const chunks[] = {"0", "1", "5", "0"}, *const groups[] = {"0", "1", "2", "0"};
    for (int i = 0; i < (kept ? 4 : 3); i++) {
        char text[1200], problem[256];
        strategies s;
        for (int pass = 0; pass < 3; pass++) {
            char a[256], b[256];
            edit_strategy(whole->line[pass], "chunk", chunks[i], a, sizeof a);
            edit_strategy(a, "groups", groups[i], b, sizeof b);
            edit_strategy(b, "keep", i < 3 ? "none" : "xw", s.line[pass], sizeof s.line[pass]);
        }
        describe_problem(&l->problem, problem, sizeof problem);
        snprintf(text, sizeof text, "%s\n            %s\n            %s\n            %s", problem, s.line[0], s.line[1],
                 s.line[2]);
        case_begin(text, program_invocation_short_name);
        conv_fft_plan *plan = half_plan(&l->problem, &s, CONV_FFT_ALL_PASSES);
        if (plan && i < 3)
            layer_check_all(l, plan);
        else if (plan)
            layer_check_kept(l, plan);
        conv_fft_plan_destroy(plan);
    }
}

/* Each problem of each class and in two ways, with one tile and with the most. */
static void check_way(int64_t i, void *unused) {
    static const char *const overlaps[] = {"save", "add"}, *const dilations[] = {"step", "shift"};
    (void)unused;
    const int64_t way = i % WAYS, class = i / WAYS % CLASSES, tiled = i / WAYS / CLASSES % 2,
                  number = i / WAYS / CLASSES / 2, tiles = tiled ? problems[number].tiles : 1;
    char line[256];
    if ((tiled && tiles == 1) || i % (int64_t)environment_number("CONV_FFT_TEST_EVERY", 1) != 0)
        return;
    snprintf(line, sizeof line, "%s %s", problems[number].line, classes[class]);
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create((uint64_t)number);
    layer l = layer_create(&p, &g);
    strategies s;
    if (half_strategies(&p, tiles, overlaps[way], dilations[way], &s))
        check_chunks(&l, &s, tiles == 1);
    else
        case_fail("%s: no basis for %d tiles", line, (int)tiles);
    layer_destroy(&l);
}

static void ways(void **state) {
    NEED_DEVICE(state);
    device_each(PROBLEMS * 2 * CLASSES * WAYS, check_way, NULL);
    print_worst_ratios("16-bit spectra");
    assert_int_equal(case_failures(), 0);
}

/* ----------------------------------------------------------------------------------------------------------- limits */

#define LAYER "in=4x24x20x20 out=16 kernel=5x5 pad=2"
#define LIMITS LAYER " dtype=fp16 math=half"
#define LINE "in=4x24x400 out=16 kernel=25 pad=12"
#define VOLUME "in=4x8x18x20x20 out=16 kernel=3x3x3 pad=1"
#define SHORT_LINE "in=4x24x56 out=16 kernel=5 pad=2"

typedef double (*maker)(generator *g, int64_t sample, int64_t channel);

static double ordinary(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g);
}
static double largest(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) < 0 ? -65504 : 65504;
}
static double all_largest(generator *g, int64_t sample, int64_t channel) {
    return (void)g, (void)sample, (void)channel, 65504;
}
static double tiny(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, floor(random_value(g) * 4) * 0x1p-24;
}
static double small(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * 1e-3;
}
static double sizes(generator *g, int64_t sample, int64_t channel) {
    return (void)channel, ldexp(random_value(g), sample == 0 ? 14 : -6 * (int)sample);
}
static double outlier(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_once_in(g, 500) ? 30000 : random_value(g);
}

static void fill(layer *l, operand *o, maker make, generator *g) {
    const int64_t count = o->tensor.count, slice = count / o->tensor.extent[0], channels = o->tensor.extent[1];
    double *const values = test_alloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = make(g, i / slice, i / (slice / channels) % channels);
    layer_set(l, o, values);
    free(values);
}

/* To 11 bits, as TF32 rounds factors. */
static double rounded(double v) {
    int exponent;
    const double fraction = frexp(v, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 11)), exponent - 11);
}

/* Error of a slice over that of rounding it, once. */
static double error_ratio(const result *r, int64_t first, int64_t count) {
    double error = 0, rounding = 0;
    for (int64_t i = first; i < first + count; i++) {
        unsigned char memory[8];
        const double exact = r->expected[i], e = tensor_load(&r->tensor, i) - exact;
        ref_store(r->tensor.dtype, memory, exact);
        const double d =
            (r->tensor.dtype == CONV_FFT_FP32 ? rounded(exact) : ref_load(r->tensor.dtype, memory)) - exact;
        error += e * e;
        rounding += d * d;
    }
    return error == 0 ? 0 : sqrt(error / rounding);
}

static void check_limits(const char *line, const char *name, maker x, maker w, maker gy, const strategies *s) {
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create(5);
    layer l = layer_create(&p, &g);
    fill(&l, &l.x, x, &g);
    fill(&l, &l.w, w, &g);
    fill(&l, &l.gy, gy, &g);
    case_begin(name, program_invocation_short_name);
    conv_fft_plan *plan = half_plan(&p, s, CONV_FFT_ALL_PASSES);
    const backward_call both = {.gx = true, .gw = true};
    bool ok = plan && layer_check_forward(&l, plan, false) && layer_check_backward(&l, plan, &both);
    result *const results[] = {&l.y, &l.gx, &l.gw};
    for (int i = 0; ok && i < 3; i++) {
        const int64_t slices = i < 2 ? results[i]->tensor.extent[0] : 1, count = results[i]->tensor.count / slices;
        double most = 0;
        for (int64_t k = 0; k < slices; k++)
            most = fmax(most, error_ratio(results[i], k * count, count));
        print_message("%s: %s: %.2f times the error of one rounding\n", name, results[i]->name, most);
        if (!(most <= 3))
            ok = case_fail("%s: %.2f times the error of one rounding", results[i]->name, most);
    }
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* layout: of a problem line. */
static void check_all_limits(const char *layout, const strategies *s) {
    char line[256];
    snprintf(line, sizeof line, LIMITS " layout=%s", layout);
    check_limits(line, "ordinary", ordinary, ordinary, ordinary, s);
    check_limits(line, "65504 by tiny", largest, tiny, small, s);
    check_limits(line, "65504 everywhere", all_largest, tiny, tiny, s);
    check_limits(line, "tiny by large", tiny, largest, small, s);
    check_limits(line, "tiny by ordinary", small, small, tiny, s);
    check_limits(line, "samples of all sizes", sizes, small, small, s);
    check_limits(line, "gradients of all sizes", small, small, sizes, s);
    check_limits(line, "outliers", outlier, small, small, s);
}

/* Numbers that FP16 has none for, samples of all sizes that FP32 has, and channels far below their sample's largest whose weights make up for
 * it. */
static double huge(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * 0x1p56;
}
static double minute(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * 0x1p-56;
}
static double all_sizes(generator *g, int64_t sample, int64_t channel) {
    return (void)channel, ldexp(random_value(g), 40 - 27 * (int)(sample % 4));
}
static double spikes(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * (random_once_in(g, 2000) ? 0x1p18 : 1);
}
static double low_channels(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, ldexp(random_value(g), channel % 2 ? -10 : 4);
}
static double high_channels(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, ldexp(random_value(g), channel % 2 ? 10 : -4);
}

static void check_float_extremes(const char *line, const strategies *s) {
    check_limits(line, "tf32: 2^56 by 2^-56", huge, minute, minute, s);
    check_limits(line, "tf32: 2^-56 by 2^56", minute, huge, huge, s);
    check_limits(line, "tf32: samples of all sizes", all_sizes, ordinary, ordinary, s);
    check_limits(line, "tf32: gradients of all sizes", ordinary, ordinary, all_sizes, s);
    check_limits(line, "tf32: spikes", spikes, ordinary, ordinary, s);
    check_limits(line, "tf32: low channels", low_channels, high_channels, ordinary, s);
}

static void check_float_limits(const char *layout, const strategies *s) {
    char line[256];
    snprintf(line, sizeof line, LAYER " math=tf32 layout=%s", layout);
    check_limits(line, "tf32: ordinary", ordinary, ordinary, ordinary, s);
    check_float_extremes(line, s);
}

static void limits(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p = test_problem(LIMITS);
    strategies s;
    for (int64_t tiles = 1; tiles <= 2; tiles++) {
        assert_true(half_strategies(&p, tiles, "save", "step", &s));
        check_all_limits("first", &s);
        check_float_limits("first", &s);
    }
    assert_int_equal(case_failures(), 0);
}

/* Bases whose transforms are matrix products, with one tile. */
static strategies matrix_strategies(const conv_fft_problem *p, const char *basis) {
    strategies found, s;
    assert_true(half_strategies(p, 1, "save", "step", &found));
    for (int pass = 0; pass < 3; pass++)
        edit_strategy(found.line[pass], "basis", basis, s.line[pass], sizeof s.line[pass]);
    return s;
}

typedef struct {
    const char *line, *basis;
} limit_case;

static void limits_of_matrices(void **state) {
    NEED_DEVICE(state);
    static const limit_case cases[] = {
        {"in=2x24x20x20 out=16 kernel=5x5 pad=2 dtype=bf16 math=half", "32x32"},
        {"in=2x24x40x29 out=16 kernel=5x4 pad=2 dtype=bf16 math=half", "64x32"},
        {"in=2x64x64x64 out=8 kernel=9x9 dtype=bf16 math=half", "64x64"},
        {"in=2x64x64x64 out=8 kernel=9x9 dtype=fp16 math=half", "64x64"},
        {"in=2x24x40x29 out=16 kernel=5x4 pad=2 math=tf32", "64x32"},
        {"in=2x64x64x64 out=8 kernel=9x9 math=tf32", "64x64"},
        {"in=2x128x30x30 out=104 kernel=3x3 math=tf32", "32x32"},
        {"in=2x104x30x30 out=128 kernel=3x3 dtype=fp16 math=half", "32x32"},
        {"in=2x24x40x29 out=16 kernel=5x4 pad=2 dtype=bf16 math=half layout=last", "64x32"},
        {"in=2x64x64x64 out=8 kernel=9x9 dtype=fp16 math=half layout=last wlayout=last", "64x64"},
        {"in=2x64x64x64 out=8 kernel=9x9 math=tf32 layout=last wlayout=last", "64x64"},
        {"in=2x48x61x45 out=16 kernel=5x5 pad=2 stride=2 groups=2 dtype=fp16 math=half layout=last", "32x32"},
        {"in=2x16x40x40 out=8 kernel=5x5 pad=2 mode=reflect dtype=fp16 math=half layout=last", "64x64"},
        {"in=2x5x30x30 out=6 kernel=3x3 dtype=bf16 math=half", "32x32"},
        {"in=3x10x30x30 out=4 kernel=3x3 dtype=fp16 math=half", "32x32"},
        {"in=3x32x14x14 out=24 kernel=3x3 pad=1 dtype=fp16 math=half layout=last wlayout=last", "16x16"},
        {"in=3x24x10x12 out=16 kernel=5x5 math=tf32 layout=last wlayout=last", "16x16"},
        /* of w alone */
        {"in=3x24x20x22 out=16 kernel=5x4 pad=2 dtype=fp16 math=half", "24x28"},
        {"in=2x10x30x30 out=9 kernel=7x7 math=tf32", "40x36"},
        {"in=4x24x16x16 out=32 kernel=7x7 dtype=bf16 math=half", "16x16"},
        {"in=2x16x40x44 out=8 kernel=5x7 stride=2x3 pad=2x3 math=tf32 layout=last wlayout=last", "32x32"},
        {"in=2x8x9x10x11 out=16 kernel=3x2x3 pad=1 dtype=fp16 math=half", "12x12x14"},
        {"in=2x40x30x30 out=24 kernel=11x11 dtype=fp16 math=half", "32x32"}};
    static const char *const layouts[] = {"first", "last"}, *const bases[] = {"32x32", "32x64"};
    const conv_fft_problem p = test_problem(LIMITS);
    strategies s;
    for (int i = 0; i < 4; i++) {
        s = matrix_strategies(&p, bases[i / 2]);
        check_all_limits(layouts[i % 2], &s);
        check_float_limits(layouts[i % 2], &s);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const conv_fft_problem q = test_problem(cases[i].line);
        s = matrix_strategies(&q, cases[i].basis);
        check_limits(cases[i].line, "ordinary", ordinary, ordinary, ordinary, &s);
    }
    assert_int_equal(case_failures(), 0);
}

/* Of any rank, whatever the model would choose. */
static strategies one_tile_strategies(const conv_fft_problem *p, const char *basis) {
    static const char *const tiles[] = {"1", "1x1", "1x1x1"};
    const char *const fields[][2] = {{"tiles", tiles[p->rank - 1]},
                                     {"overlap", "save"},
                                     {"product", "tensor"},
                                     {"spectrum", types[p->dtype == CONV_FFT_BF16]},
                                     {"basis", basis}};
    strategies s = chosen_strategies(device_context(), p);
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
            const strategies before = s;
            edit_strategy(before.line[pass], fields[i][0], fields[i][1], s.line[pass], sizeof s.line[pass]);
        }
    return s;
}

/* With one tile. extremes: those of FP16, too. */
static void check_one_tile(const limit_case *c, bool extremes) {
    const conv_fft_problem p = test_problem(c->line);
    const strategies s = one_tile_strategies(&p, c->basis);
    check_limits(c->line, "ordinary", ordinary, ordinary, ordinary, &s);
    if (p.dtype == CONV_FFT_FP32) {
        check_float_extremes(c->line, &s);
        return;
    }
    check_limits(c->line, "samples of all sizes", sizes, small, small, &s);
    check_limits(c->line, "outliers", outlier, small, small, &s);
    if (extremes && p.dtype == CONV_FFT_FP16) {
        check_limits(c->line, "65504 everywhere", all_largest, tiny, tiny, &s);
        check_limits(c->line, "tiny by large", tiny, largest, small, &s);
        check_limits(c->line, "gradients of all sizes", small, small, sizes, &s);
    }
}

static void limits_of_lines(void **state) {
    NEED_DEVICE(state);
    static const limit_case cases[] = {
        {"in=2x40x230 out=24 kernel=27 pad=5 dtype=fp16 math=half", "256"},
        {"in=5x13x480 out=7 kernel=30 dtype=bf16 math=half", "512"},
        {"in=2x5x1000 out=6 kernel=25 dtype=fp16 math=half", "1024"},
        {"in=6x9x1900 out=2 kernel=80 dtype=bf16 math=half", "2048"},
        {"in=2x24x900 out=8 kernel=20 pad=7 math=tf32", "1024"},
        {"in=2x24x1000 out=16 kernel=33 pad=16 mode=reflect groups=2 dtype=fp16 math=half", "2048"},
        {"in=2x8x3200 out=4 kernel=801 pad=same stride=2 dtype=fp16 math=half", "4096"},
        {"in=4x8x2300 out=4 kernel=30 math=tf32", "4096"},
        {"in=6x40x110 out=24 kernel=17 pad=8 dtype=fp16 math=half", "128"},
        {"in=9x8x100 out=16 kernel=15 pad=7 dtype=bf16 math=half", "128"},
        {"in=7x24x100 out=8 kernel=20 pad=7 math=tf32", "128"},
        {"in=5x13x60 out=7 kernel=9 dtype=bf16 math=half", "64"},
        {"in=4x24x50 out=16 kernel=7 pad=3 mode=reflect groups=2 dtype=fp16 math=half", "64"},
        {"in=11x16x61 out=8 kernel=3 pad=1 math=tf32", "64"},
        {"in=9x16x28 out=8 kernel=5 pad=2 stride=2 dtype=fp16 math=half", "32"},
        {"in=33x5x12 out=24 kernel=5 pad=2 dtype=bf16 math=half", "16"},
        {"in=20x8x16 out=16 kernel=3 groups=2 math=tf32", "16"},
        {"in=6x40x110 out=24 kernel=17 pad=8 dtype=fp16 math=half layout=last wlayout=last", "128"},
        {"in=7x24x100 out=8 kernel=20 pad=7 math=tf32 layout=last", "128"},
        {"in=4x48x50 out=16 kernel=7 pad=3 mode=reflect groups=2 dtype=bf16 math=half layout=last", "64"},
        {"in=9x16x28 out=8 kernel=5 pad=2 stride=2 dtype=fp16 math=half layout=last", "32"},
        {"in=20x8x16 out=32 kernel=3 math=tf32 layout=last wlayout=last", "16"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_one_tile(&cases[i], false);
    assert_int_equal(case_failures(), 0);
}

/* Planes and volumes that two kernels transform, between which numbers have 16 bits. */
static void limits_of_two_kernels(void **state) {
    NEED_DEVICE(state);
    static const limit_case cases[] = {
        {"in=2x8x19x20x18 out=16 kernel=5x5x5 pad=2 dtype=fp16 math=half", "24x24x24"},
        {"in=2x24x19x20x18 out=8 kernel=5x5x5 pad=2 dtype=bf16 math=half layout=last", "24x24x24"},
        {"in=2x16x20x19x30 out=8 kernel=3x2x7 pad=1 groups=2 math=tf32", "24x24x36"},
        {"in=2x5x35x33x40 out=3 kernel=5x4x5 pad=2 mode=reflect stride=2 dtype=fp16 math=half", "20x20x36"},
        {"in=2x24x120x112 out=16 kernel=9x9 dtype=fp16 math=half", "120x120"},
        {"in=2x9x140x100 out=5 kernel=13x13 pad=6 dtype=bf16 math=half", "160x120"},
        {"in=2x16x100x120 out=8 kernel=7x8 pad=3 math=tf32 layout=last wlayout=last", "128x128"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_one_tile(&cases[i], true);
    assert_int_equal(case_failures(), 0);
}

/* Samples that a NaN, an infinity or huge numbers stand in: all others keep every bit, forward and backward. */
static void isolation(void **state) {
    NEED_DEVICE(state);
    static const double bad[] = {65504, INFINITY, NAN};
    strategies s;
    static const char *const lines[] = {LIMITS,
                                        LIMITS,
                                        LIMITS " layout=last",
                                        LINE " dtype=fp16 math=half",
                                        "in=4x24x10x12 out=16 kernel=5x5 dtype=fp16 math=half layout=last",
                                        VOLUME " dtype=fp16 math=half",
                                        SHORT_LINE " dtype=fp16 math=half",
                                        SHORT_LINE " dtype=fp16 math=half layout=last"};
    for (int kind = 0; kind < 48; kind++) {
        const conv_fft_problem p = test_problem(lines[kind / 6]);
        if (kind < 6)
            assert_true(half_strategies(&p, 1 + kind % 2, "save", "step", &s));
        else
            s = p.rank == 3   ? one_tile_strategies(&p, kind % 2 ? "24x24x24" : "20x36x36")
                : kind >= 36  ? one_tile_strategies(&p, kind % 2 ? "64" : "128")
                : p.rank == 1 ? one_tile_strategies(&p, kind % 2 ? "512" : "1024")
                : kind >= 24  ? matrix_strategies(&p, "16x16")
                              : matrix_strategies(&p, kind % 2 ? "64x32" : "32x32");
        generator g = generator_create(6);
        layer l = layer_create(&p, &g);
        fill(&l, &l.w, small, &g);
        const conv_fft_plan *const plan = half_plan(&p, &s, CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA);
        const bool data = kind % 6 >= 3;
        operand *const in = data ? &l.gy : &l.x;
        result *const out = data ? &l.gx : &l.y;
        const int64_t slice = out->tensor.count / out->tensor.extent[0];
        double *const before = test_alloc((size_t)out->tensor.count * sizeof *before), *const after = test_alloc(
                                                                                           (size_t)out->tensor.count *
                                                                                           sizeof *after);
        for (int spoiled = 0; spoiled < 2; spoiled++) {
            if (spoiled) {
                double *const values = in->values;
                values[in->tensor.count / in->tensor.extent[0] * 2 + 77] = bad[kind % 3];
                tensor_set(&in->tensor, values);
            }
            guarded ws = layer_workspace(&l, plan, data ? CONV_FFT_BACKWARD_DATA : CONV_FFT_FORWARD);
            tensor_poison(&out->tensor);
            const conv_fft_status status =
                data ? conv_fft_backward_data(plan, l.w.tensor.memory.data, l.gy.tensor.memory.data,
                                              l.gx.tensor.memory.data, 0, ws.data, ws.bytes, device_stream())
                     : conv_fft_forward(plan, l.x.tensor.memory.data, l.w.tensor.memory.data, NULL,
                                        l.y.tensor.memory.data, ws.data, ws.bytes, device_stream());
            assert_int_equal(status, CONV_FFT_SUCCESS);
            assert_int_equal(device_wait(), CONV_FFT_SUCCESS);
            tensor_get(&out->tensor, spoiled ? after : before);
            assert_true(release_workspace(&ws, "a call"));
        }
        bool changed = false;
        for (int64_t i = 0; i < out->tensor.count; i++)
            if (i / slice == 2)
                changed = changed || !(before[i] == after[i]);
            else
                assert_true(before[i] == after[i]);
        assert_true(changed);
        free(before);
        free(after);
        conv_fft_plan_destroy((conv_fft_plan *)plan);
        layer_destroy(&l);
    }
}

/* The layer in each class and with each kind of transform: one tile, two tiles, matrix products, the same of channels that are side by side, of
 * small planes of such, of lines, volumes by two kernels, short lines, and those of channels that are side by side. */
enum {
    KINDS = 9
};
static conv_fft_problem layer_of(int i, strategies *s) {
    static const char *const layers[KINDS] = {LAYER, LAYER,  LAYER,      LAYER,     "in=4x24x10x12 out=16 kernel=5x5",
                                              LINE,  VOLUME, SHORT_LINE, SHORT_LINE};
    const int kind = i % KINDS;
    char line[256];
    snprintf(line, sizeof line, "%s %s layout=%s", layers[kind], classes[i / KINDS],
             kind == 3 || kind == 4 || kind == 8 ? "last" : "first");
    const conv_fft_problem p = test_problem(line);
    if (kind < 2)
        assert_true(half_strategies(&p, 1 + kind, "save", "step", s));
    else
        *s = p.rank == 1   ? one_tile_strategies(&p, kind >= 7 ? "64" : "1024")
             : p.rank == 3 ? one_tile_strategies(&p, "24x24x24")
                           : matrix_strategies(&p, kind == 4 ? "16x16" : "32x32");
    return p;
}

/* Samples apart from one another in the words of layer_properties.h, and the same bits again. */
static void properties(void **state) {
    NEED_DEVICE(state);
    for (int i = 0; i < KINDS * CLASSES; i++) {
        strategies s;
        const conv_fft_problem p = layer_of(i, &s);
        const conv_fft_plan_options options = half_options(&s);
        check_isolation(&p, &options);
        check_determinism(&p, &options);
    }
    assert_int_equal(case_failures(), 0);
}

static double nothing(generator *g, int64_t sample, int64_t channel) { return (void)g, (void)sample, (void)channel, 0; }

/* Of zeros come zeros, and no NaN, however small the gradient of the outputs is beside them. */
static void zeros(void **state) {
    NEED_DEVICE(state);
    for (int i = 0; i < KINDS * CLASSES; i++) {
        strategies s;
        const conv_fft_problem p = layer_of(i, &s);
        generator g = generator_create(7);
        layer l = layer_create(&p, &g);
        fill(&l, &l.x, nothing, &g);
        fill(&l, &l.gy, p.dtype == CONV_FFT_FP16 ? tiny : minute, &g);
        l.y.share = l.gw.share = 0;
        conv_fft_plan *plan = half_plan(&p, &s, CONV_FFT_ALL_PASSES);
        const backward_call both = {.gx = true, .gw = true};
        assert_true(plan && layer_check_forward(&l, plan, false) && layer_check_backward(&l, plan, &both));
        for (int64_t k = 0; k < l.gw.tensor.count; k++)
            assert_true(tensor_load(&l.gw.tensor, k) == 0);
        conv_fft_plan_destroy(plan);
        layer_destroy(&l);
    }
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),          cmocka_unit_test(limits_of_matrices),
        cmocka_unit_test(limits_of_lines), cmocka_unit_test(limits_of_two_kernels),
        cmocka_unit_test(isolation),       cmocka_unit_test(properties),
        cmocka_unit_test(zeros),           cmocka_unit_test(ways),
    };
    /* Patterns of names, with * and ?: the tests to run, and those not to. */
    cmocka_set_test_filter(getenv("CONV_FFT_TEST_ONLY"));
    cmocka_set_skip_filter(getenv("CONV_FFT_TEST_SKIP"));
    return gpu_exit_status(
        cmocka_run_group_tests_name("layers of 16-bit spectra on a GPU", tests, device_gpu_setup, device_teardown));
}
