/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on a GPU with 16-bit spectra and inputs near the limits of FP16, or beyond them for FP32 tensors. Each sample
 * is compared with the rounding of a direct convolution. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reference/dtype.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_fp16.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIMITS HALF_LAYER " dtype=fp16 math=half"

static double ordinary(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g);
}
static double absmax(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) < 0 ? -65504 : 65504;
}
static double all_largest(generator *g, int64_t sample, int64_t channel) {
    return (void)g, (void)sample, (void)channel, 65504;
}
static double sizes(generator *g, int64_t sample, int64_t channel) {
    return (void)channel, ldexp(random_value(g), sample == 0 ? 14 : -6 * (int)sample);
}
static double outlier(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_once_in(g, 500) ? 30000 : random_value(g);
}

/* Numbers that FP16 does not have; samples of every magnitude that FP32 has; channels far below their sample's largest
 * one, with large weights. */
static double huge(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * 0x1p56;
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

/* Rounded to 11 bits, as TF32 rounds factors. */
static double rounded(double v) {
    int exponent;
    const double fraction = frexp(v, &exponent);
    return ldexp(nearbyint(ldexp(fraction, 11)), exponent - 11);
}

/* The error of a slice, divided by the error of rounding it once. */
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

/* The contents of the operands. */
typedef struct contents {
    const char *name;
    number_maker x, w, gy;
} contents;

static const contents half_contents[] = {
    {"ordinary", ordinary, ordinary, ordinary},
    {"65504 by tiny", absmax, tiny_number, small_number},
    {"65504 everywhere", all_largest, tiny_number, tiny_number},
    {"tiny by large", tiny_number, absmax, small_number},
    {"tiny by ordinary", small_number, small_number, tiny_number},
    {"samples of all sizes", sizes, small_number, small_number},
    {"gradients of all sizes", small_number, small_number, sizes},
    {"outliers", outlier, small_number, small_number},
};
static const contents float_contents[] = {
    {"ordinary", ordinary, ordinary, ordinary},
    {"2^56 by 2^-56", huge, minute_number, minute_number},
    {"2^-56 by 2^56", minute_number, huge, huge},
    {"samples of all sizes", all_sizes, ordinary, ordinary},
    {"gradients of all sizes", ordinary, ordinary, all_sizes},
    {"spikes", spikes, ordinary, ordinary},
    {"low channels", low_channels, high_channels, ordinary},
};

static void check_limits(const char *line, const contents *with, const strategies *s) {
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create(5);
    layer l = layer_create(&p, &g);
    fill_operand(&l, &l.x, with->x, &g);
    fill_operand(&l, &l.w, with->w, &g);
    fill_operand(&l, &l.gy, with->gy, &g);
    char name[256];
    snprintf(name, sizeof name, "%s: %s", line, with->name);
    case_begin(name, NULL);
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

/* A layer with the strategies of the problem `of`. */
typedef struct limit_case {
    char line[192];
    const char *of, *basis; /* basis NULL: as the library finds one */
    int64_t tiles;
    bool any_rank; /* strategies of one_tile_strategies() */
    const contents *with;
} limit_case;

typedef struct limit_list {
    case_list names;
    limit_case cases[256];
} limit_list;

static void add_limit(limit_list *list, limit_case c, const contents *with) {
    assert_in_range(list->names.count, 0, sizeof list->cases / sizeof list->cases[0] - 1);
    c.with = with;
    list->cases[list->names.count] = c;
    case_list_add(&list->names, "%s basis=%s tiles=%d: %s", c.line, c.basis ? c.basis : "any", (int)c.tiles,
                  with->name);
}

/* All contents, in the layer LIMITS with FP16 tensors and with FP32 tensors. */
static void add_all_limits(limit_list *list, const char *layout, const char *basis, int64_t tiles) {
    limit_case c = {.of = LIMITS, .basis = basis, .tiles = tiles};
    snprintf(c.line, sizeof c.line, LIMITS " layout=%s", layout);
    for (size_t i = 0; i < sizeof half_contents / sizeof half_contents[0]; i++)
        add_limit(list, c, &half_contents[i]);
    snprintf(c.line, sizeof c.line, HALF_LAYER " math=tf32 layout=%s", layout);
    for (size_t i = 0; i < sizeof float_contents / sizeof float_contents[0]; i++)
        add_limit(list, c, &float_contents[i]);
}

static void check_limit(int64_t i, void *cases) {
    const limit_case *const c = (const limit_case *)cases + i;
    const conv_fft_problem p = test_problem(c->of);
    strategies s;
    const bool found = c->any_rank ? one_tile_strategies(&p, c->basis, &s)
                       : c->basis  ? matrix_strategies(&p, c->basis, &s)
                                   : half_strategies(&p, c->tiles, "save", "step", &s);
    if (found)
        check_limits(c->line, c->with, &s);
    else
        case_fail("no basis for %d tiles", (int)c->tiles);
}

static void check_limit_list(limit_list *list) {
    device_each(&list->names, check_limit, list->cases);
    assert_int_equal(case_failures(), 0);
}

static void limits(void **state) {
    NEED_DEVICE(state);
    limit_list list = {.names = {.name = "gpu_layers_half_limits"}};
    for (int64_t tiles = 1; tiles <= 2; tiles++)
        add_all_limits(&list, "first", NULL, tiles);
    check_limit_list(&list);
}

typedef struct layer_basis {
    const char *line, *basis;
} layer_basis;

/* Add the layer with the contents of this name. */
static void add_layer(limit_list *list, const layer_basis *of, limit_case c, const char *name) {
    const bool is_float = test_problem(of->line).dtype == CONV_FFT_FP32;
    const contents *with = is_float ? float_contents : half_contents;
    while (strcmp(with->name, name) != 0)
        with++;
    c.of = of->line;
    snprintf(c.line, sizeof c.line, "%s", of->line);
    add_limit(list, c, with);
}

static void limits_of_matrices(void **state) {
    NEED_DEVICE(state);
    static const layer_basis cases[] = {
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
    limit_list list = {.names = {.name = "gpu_layers_half_matrices"}};
    for (int i = 0; i < 4; i++)
        add_all_limits(&list, layouts[i % 2], bases[i / 2], 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        add_layer(&list, &cases[i], (limit_case){.basis = cases[i].basis, .tiles = 1}, "ordinary");
    check_limit_list(&list);
}

/* With one tile. extremes: also contents at the limits of FP16. */
static void add_one_tile(limit_list *list, const layer_basis *of, bool extremes) {
    static const char *const few[] = {"ordinary",         "samples of all sizes", "outliers",
                                      "65504 everywhere", "tiny by large",        "gradients of all sizes"};
    const conv_fft_dtype dtype = test_problem(of->line).dtype;
    const limit_case c = {.basis = of->basis, .tiles = 1, .any_rank = true};
    const size_t count = dtype == CONV_FFT_FP32               ? sizeof float_contents / sizeof float_contents[0]
                         : extremes && dtype == CONV_FFT_FP16 ? 6
                                                              : 3;
    for (size_t i = 0; i < count; i++)
        add_layer(list, of, c, dtype == CONV_FFT_FP32 ? float_contents[i].name : few[i]);
}

static void limits_of_lines(void **state) {
    NEED_DEVICE(state);
    static const layer_basis cases[] = {
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
    limit_list list = {.names = {.name = "gpu_layers_half_lines"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        add_one_tile(&list, &cases[i], false);
    check_limit_list(&list);
}

/* Planes and volumes that two kernels transform. Numbers between the kernels have 16 bits. */
static void limits_of_two_kernels(void **state) {
    NEED_DEVICE(state);
    static const layer_basis cases[] = {
        {"in=2x8x19x20x18 out=16 kernel=5x5x5 pad=2 dtype=fp16 math=half", "24x24x24"},
        {"in=2x24x19x20x18 out=8 kernel=5x5x5 pad=2 dtype=bf16 math=half layout=last", "24x24x24"},
        {"in=2x16x20x19x30 out=8 kernel=3x2x7 pad=1 groups=2 math=tf32", "24x24x36"},
        {"in=2x5x35x33x40 out=3 kernel=5x4x5 pad=2 mode=reflect stride=2 dtype=fp16 math=half", "20x20x36"},
        {"in=2x16x32x31x33 out=8 kernel=5x5x5 pad=2 dtype=fp16 math=half", "36x36x40"},
        {"in=2x24x120x112 out=16 kernel=9x9 dtype=fp16 math=half", "120x120"},
        {"in=2x9x140x100 out=5 kernel=13x13 pad=6 dtype=bf16 math=half", "160x120"},
        {"in=2x16x100x120 out=8 kernel=7x8 pad=3 math=tf32 layout=last wlayout=last", "128x128"}};
    limit_list list = {.names = {.name = "gpu_layers_half_two_kernels"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        add_one_tile(&list, &cases[i], true);
    check_limit_list(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),
        cmocka_unit_test(limits_of_matrices),
        cmocka_unit_test(limits_of_lines),
        cmocka_unit_test(limits_of_two_kernels),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("limits of 16-bit spectra on a GPU", tests, device_gpu_setup, device_teardown));
}
