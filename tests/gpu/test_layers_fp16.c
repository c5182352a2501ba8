/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on a GPU whose spectra are in 16 bits: all ways to run them, and inputs near the limits of FP16 and, with FP16 spectra of FP32
 * tensors, beyond, sample by sample against what a direct convolution would round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "reference/dtype.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_properties.h"
#include "support/strategy_lines.h"

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
        case_begin(text, NULL);
        conv_fft_plan *plan = half_plan(&l->problem, &s, CONV_FFT_ALL_PASSES);
        if (plan && i < 3)
            layer_check_all(l, plan);
        else if (plan)
            layer_check_kept(l, plan);
        conv_fft_plan_destroy(plan);
    }
}

/* Each problem of each class and in two ways, with one tile and with the most. */
typedef struct way_case {
    char line[256];
    int number, way;
    int64_t tiles;
} way_case;

static const char *const overlaps[] = {"save", "add"}, *const dilations[] = {"step", "shift"};

static void check_way(int64_t i, void *cases) {
    const way_case *const c = (const way_case *)cases + i;
    const conv_fft_problem p = test_problem(c->line);
    generator g = generator_create((uint64_t)c->number);
    layer l = layer_create(&p, &g);
    strategies s;
    if (half_strategies(&p, c->tiles, overlaps[c->way], dilations[c->way], &s))
        check_chunks(&l, &s, c->tiles == 1);
    else
        case_fail("%s: no basis for %d tiles", c->line, (int)c->tiles);
    layer_destroy(&l);
}

static void ways(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_half_ways"};
    way_case cases[PROBLEMS * 2 * CLASSES * WAYS];
    for (int i = 0; i < PROBLEMS * 2 * CLASSES * WAYS; i++) {
        const int number = i / WAYS / CLASSES / 2, tiled = i / WAYS / CLASSES % 2;
        way_case *const c = &cases[list.count];
        if (tiled && problems[number].tiles == 1)
            continue;
        *c = (way_case){.number = number, .way = i % WAYS, .tiles = tiled ? problems[number].tiles : 1};
        snprintf(c->line, sizeof c->line, "%s %s", problems[number].line, classes[i / WAYS % CLASSES]);
        case_list_add(&list, "%s tiles=%d overlap=%s dilation=%s", c->line, (int)c->tiles, overlaps[c->way],
                      dilations[c->way]);
    }
    device_each(&list, check_way, cases);
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

/* What the operands are filled with. */
typedef struct contents {
    const char *name;
    maker x, w, gy;
} contents;

static const contents half_contents[] = {
    {"ordinary", ordinary, ordinary, ordinary},      {"65504 by tiny", largest, tiny, small},
    {"65504 everywhere", all_largest, tiny, tiny},   {"tiny by large", tiny, largest, small},
    {"tiny by ordinary", small, small, tiny},        {"samples of all sizes", sizes, small, small},
    {"gradients of all sizes", small, small, sizes}, {"outliers", outlier, small, small},
};
static const contents float_contents[] = {
    {"ordinary", ordinary, ordinary, ordinary},
    {"2^56 by 2^-56", huge, minute, minute},
    {"2^-56 by 2^56", minute, huge, huge},
    {"samples of all sizes", all_sizes, ordinary, ordinary},
    {"gradients of all sizes", ordinary, ordinary, all_sizes},
    {"spikes", spikes, ordinary, ordinary},
    {"low channels", low_channels, high_channels, ordinary},
};

static void check_limits(const char *line, const contents *with, const strategies *s) {
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create(5);
    layer l = layer_create(&p, &g);
    fill(&l, &l.x, with->x, &g);
    fill(&l, &l.w, with->w, &g);
    fill(&l, &l.gy, with->gy, &g);
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

/* All contents of the layer of LIMITS, with FP16 and with FP32 tensors. */
static void add_all_limits(limit_list *list, const char *layout, const char *basis, int64_t tiles) {
    limit_case c = {.of = LIMITS, .basis = basis, .tiles = tiles};
    snprintf(c.line, sizeof c.line, LIMITS " layout=%s", layout);
    for (size_t i = 0; i < sizeof half_contents / sizeof half_contents[0]; i++)
        add_limit(list, c, &half_contents[i]);
    snprintf(c.line, sizeof c.line, LAYER " math=tf32 layout=%s", layout);
    for (size_t i = 0; i < sizeof float_contents / sizeof float_contents[0]; i++)
        add_limit(list, c, &float_contents[i]);
}

static bool one_tile_strategies(const conv_fft_problem *p, const char *basis, strategies *s);
static bool matrix_strategies(const conv_fft_problem *p, const char *basis, strategies *s);

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

/* Bases whose transforms are matrix products, with one tile. */
static bool matrix_strategies(const conv_fft_problem *p, const char *basis, strategies *s) {
    strategies found;
    if (!half_strategies(p, 1, "save", "step", &found))
        return false;
    for (int pass = 0; pass < 3; pass++)
        edit_strategy(found.line[pass], "basis", basis, s->line[pass], sizeof s->line[pass]);
    return true;
}

typedef struct layer_basis {
    const char *line, *basis;
} layer_basis;

/* The layer with contents of this name. */
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

/* Of any rank, whatever the model would choose. */
static bool one_tile_strategies(const conv_fft_problem *p, const char *basis, strategies *s) {
    static const char *const tiles[] = {"1", "1x1", "1x1x1"};
    const char *const fields[][2] = {{"tiles", tiles[p->rank - 1]},
                                     {"overlap", "save"},
                                     {"product", "tensor"},
                                     {"spectrum", types[p->dtype == CONV_FFT_BF16]},
                                     {"basis", basis}};
    *s = chosen_strategies(device_context(), p);
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
            const strategies before = *s;
            edit_strategy(before.line[pass], fields[i][0], fields[i][1], s->line[pass], sizeof s->line[pass]);
        }
    return true;
}

/* With one tile. extremes: those of FP16, too. */
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

/* Planes and volumes that two kernels transform, between which numbers have 16 bits. */
static void limits_of_two_kernels(void **state) {
    NEED_DEVICE(state);
    static const layer_basis cases[] = {
        {"in=2x8x19x20x18 out=16 kernel=5x5x5 pad=2 dtype=fp16 math=half", "24x24x24"},
        {"in=2x24x19x20x18 out=8 kernel=5x5x5 pad=2 dtype=bf16 math=half layout=last", "24x24x24"},
        {"in=2x16x20x19x30 out=8 kernel=3x2x7 pad=1 groups=2 math=tf32", "24x24x36"},
        {"in=2x5x35x33x40 out=3 kernel=5x4x5 pad=2 mode=reflect stride=2 dtype=fp16 math=half", "20x20x36"},
        {"in=2x24x120x112 out=16 kernel=9x9 dtype=fp16 math=half", "120x120"},
        {"in=2x9x140x100 out=5 kernel=13x13 pad=6 dtype=bf16 math=half", "160x120"},
        {"in=2x16x100x120 out=8 kernel=7x8 pad=3 math=tf32 layout=last wlayout=last", "128x128"}};
    limit_list list = {.names = {.name = "gpu_layers_half_two_kernels"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        add_one_tile(&list, &cases[i], true);
    check_limit_list(&list);
}

/* Samples that a NaN, an infinity or huge numbers stand in: all others keep every bit, forward and backward. */
enum {
    ISOLATIONS = 48
};
static const char *const isolated[ISOLATIONS / 6] = {LIMITS,
                                                     LIMITS,
                                                     LIMITS " layout=last",
                                                     LINE " dtype=fp16 math=half",
                                                     "in=4x24x10x12 out=16 kernel=5x5 dtype=fp16 math=half layout=last",
                                                     VOLUME " dtype=fp16 math=half",
                                                     SHORT_LINE " dtype=fp16 math=half",
                                                     SHORT_LINE " dtype=fp16 math=half layout=last"};
static const double bad[] = {65504, INFINITY, NAN};

/* NULL: as the library finds one, for 1 or 2 tiles. */
static const char *basis_of(int kind, int rank) {
    return kind < 6     ? NULL
           : rank == 3  ? (kind % 2 ? "24x24x24" : "20x36x36")
           : kind >= 36 ? (kind % 2 ? "64" : "128")
           : rank == 1  ? (kind % 2 ? "512" : "1024")
           : kind >= 24 ? "16x16"
           : kind % 2   ? "64x32"
                        : "32x32";
}

/* What a pass computes, forward or the gradient of x, in `values`. False is a failure of the case. */
static bool run_pass(layer *l, const conv_fft_plan *plan, bool data, double *values) {
    result *const out = data ? &l->gx : &l->y;
    guarded ws = layer_workspace(l, plan, data ? CONV_FFT_BACKWARD_DATA : CONV_FFT_FORWARD);
    tensor_poison(&out->tensor);
    const conv_fft_status status =
        data ? conv_fft_backward_data(plan, l->w.tensor.memory.data, l->gy.tensor.memory.data, l->gx.tensor.memory.data,
                                      0, ws.data, ws.bytes, device_stream())
             : conv_fft_forward(plan, l->x.tensor.memory.data, l->w.tensor.memory.data, NULL, l->y.tensor.memory.data,
                                ws.data, ws.bytes, device_stream());
    const bool good = check_status(status, "a call") && check_status(device_wait(), "the GPU");
    tensor_get(&out->tensor, values);
    return release_workspace(&ws, "a call") && good;
}

/* How many values of sample 2 differ, and how many of all others. */
static void check_samples(const result *out, const double *before, const double *after) {
    const int64_t slice = out->tensor.count / out->tensor.extent[0];
    int64_t own = 0, others = 0;
    for (int64_t i = 0; i < out->tensor.count; i++)
        if (!(before[i] == after[i]))
            ++*(i / slice == 2 ? &own : &others);
    if (own == 0 || others > 0)
        case_fail("%s: %d values of the spoiled sample have changed, and %d of others", out->name, (int)own,
                  (int)others);
}

static void check_isolated(int64_t number, void *unused) {
    (void)unused;
    const int kind = (int)number;
    const bool data = kind % 6 >= 3;
    strategies s;
    const conv_fft_problem p = test_problem(isolated[kind / 6]);
    const char *const basis = basis_of(kind, p.rank);
    generator g = generator_create(6);
    layer l = layer_create(&p, &g);
    fill(&l, &l.w, small, &g);
    operand *const in = data ? &l.gy : &l.x;
    const result *const out = data ? &l.gx : &l.y;
    const size_t bytes = (size_t)out->tensor.count * sizeof(double);
    double *const before = test_alloc(bytes), *const after = test_alloc(bytes), *const values = in->values;
    case_begin(isolated[kind / 6], NULL);
    const bool found = !basis        ? half_strategies(&p, 1 + kind % 2, "save", "step", &s)
                       : p.rank != 2 ? one_tile_strategies(&p, basis, &s)
                                     : matrix_strategies(&p, basis, &s);
    conv_fft_plan *const plan = found ? half_plan(&p, &s, CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA) : NULL;
    if (!found)
        case_fail("no basis");
    if (plan && run_pass(&l, plan, data, before)) {
        values[in->tensor.count / in->tensor.extent[0] * 2 + 77] = bad[kind % 3];
        tensor_set(&in->tensor, values);
        if (run_pass(&l, plan, data, after))
            check_samples(out, before, after);
    }
    free(before);
    free(after);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static void isolation(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_half_isolation"};
    for (int kind = 0; kind < ISOLATIONS; kind++) {
        const char *const basis = basis_of(kind, test_problem(isolated[kind / 6]).rank);
        case_list_add(&list, "%s basis=%s tiles=%d %g in %s", isolated[kind / 6], basis ? basis : "any",
                      basis ? 1 : 1 + kind % 2, bad[kind % 3], kind % 6 >= 3 ? "gy" : "x");
    }
    device_each(&list, check_isolated, NULL);
    assert_int_equal(case_failures(), 0);
}

/* The layer in each class and with each kind of transform: one tile, two tiles, matrix products, the same of channels that are side by side, of
 * small planes of such, of lines, volumes by two kernels, short lines, and those of channels that are side by side. */
enum {
    KINDS = 9
};
static const char *line_of(int i, char line[256]) {
    static const char *const layers[KINDS] = {LAYER, LAYER,  LAYER,      LAYER,     "in=4x24x10x12 out=16 kernel=5x5",
                                              LINE,  VOLUME, SHORT_LINE, SHORT_LINE};
    const int kind = i % KINDS;
    snprintf(line, 256, "%s %s layout=%s", layers[kind], classes[i / KINDS],
             kind == 3 || kind == 4 || kind == 8 ? "last" : "first");
    return line;
}

/* False is a failure of the case, which begins here. */
static bool layer_of(int i, conv_fft_problem *p, strategies *s) {
    const int kind = i % KINDS;
    char line[256];
    *p = test_problem(line_of(i, line));
    case_begin(line, NULL);
    return (kind < 2       ? half_strategies(p, 1 + kind, "save", "step", s)
            : p->rank == 1 ? one_tile_strategies(p, kind >= 7 ? "64" : "1024", s)
            : p->rank == 3 ? one_tile_strategies(p, "24x24x24", s)
                           : matrix_strategies(p, kind == 4 ? "16x16" : "32x32", s)) ||
           case_fail("no basis");
}

static void each_layer(const char *name, void (*check)(int64_t, void *)) {
    case_list list = {.name = name};
    char line[256];
    for (int i = 0; i < KINDS * CLASSES; i++)
        case_list_add(&list, "%s%s", line_of(i, line), i % KINDS == 1 ? " tiles=2" : i % KINDS == 2 ? " matrices" : "");
    device_each(&list, check, NULL);
    assert_int_equal(case_failures(), 0);
}

/* Samples apart from one another in the words of support/layer_properties.h, and the same bits again. */
static void check_properties(int64_t i, void *unused) {
    (void)unused;
    strategies s;
    conv_fft_problem p;
    if (!layer_of((int)i, &p, &s))
        return;
    const conv_fft_plan_options options = half_options(&s);
    check_isolation(&p, &options);
    check_determinism(&p, &options);
}

static void properties(void **state) {
    NEED_DEVICE(state);
    each_layer("gpu_layers_half_properties", check_properties);
}

static double nothing(generator *g, int64_t sample, int64_t channel) { return (void)g, (void)sample, (void)channel, 0; }

/* Of zeros come zeros, and no NaN, however small the gradient of the outputs is beside them. */
static void check_zeros(int64_t i, void *unused) {
    (void)unused;
    strategies s;
    conv_fft_problem p;
    if (!layer_of((int)i, &p, &s))
        return;
    generator g = generator_create(7);
    layer l = layer_create(&p, &g);
    fill(&l, &l.x, nothing, &g);
    fill(&l, &l.gy, p.dtype == CONV_FFT_FP16 ? tiny : minute, &g);
    l.y.share = l.gw.share = 0;
    conv_fft_plan *plan = half_plan(&p, &s, CONV_FFT_ALL_PASSES);
    const backward_call both = {.gx = true, .gw = true};
    bool good = plan && layer_check_forward(&l, plan, false) && layer_check_backward(&l, plan, &both);
    for (int64_t k = 0; k < l.gw.tensor.count && good; k++)
        if (tensor_load(&l.gw.tensor, k) != 0)
            good = case_fail("element %d of the gradient of zeros is not zero", (int)k);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static void zeros(void **state) {
    NEED_DEVICE(state);
    each_layer("gpu_layers_half_zeros", check_zeros);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),          cmocka_unit_test(limits_of_matrices),
        cmocka_unit_test(limits_of_lines), cmocka_unit_test(limits_of_two_kernels),
        cmocka_unit_test(isolation),       cmocka_unit_test(properties),
        cmocka_unit_test(zeros),           cmocka_unit_test(ways),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("layers of 16-bit spectra on a GPU", tests, device_gpu_setup, device_teardown));
}
