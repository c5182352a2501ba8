/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on a GPU with 16-bit spectra: every strategy, samples do not mix, calls repeat to the bit, zeros. Inputs near
 * the limits of FP16 are in test_layers_fp16_limits.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_fp16.h"
#include "support/layer_properties.h"
#include "support/strategy_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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
    {"in=3x6x20x23 out=12 kernel=5x4 pad=2 w=fp32", 2},
    {"in=3x16x20x23 out=8 kernel=4x5 pad=2 groups=2 layout=last w=fp32", 2},
    {"in=3x8x120 out=8 kernel=9 pad=4 w=fp32", 2},
    {"in=70x33x9x9 out=66 kernel=3x3 layout=last", 1},
    /* Planes on tensor cores whose rows are odd */
    {"in=3x16x32x32 out=12 kernel=6x6", 1},
    {"in=2x8x64x64 out=6 kernel=10x10", 1},
};

enum {
    PROBLEMS = sizeof problems / sizeof problems[0],
    WAYS = 2
};

/* One layer in one chunk, or in chunks of few rows and groups, or with kept spectra. */
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

/* Each problem in each class, with two strategies, with one tile and with the largest number of tiles. */
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

static void strategies_in_chunks(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_half_ways"};
    way_case cases[PROBLEMS * 2 * HALF_CLASSES * WAYS];
    for (int i = 0; i < PROBLEMS * 2 * HALF_CLASSES * WAYS; i++) {
        const int number = i / WAYS / HALF_CLASSES / 2, tiled = i / WAYS / HALF_CLASSES % 2;
        way_case *const c = &cases[list.count];
        if (tiled && problems[number].tiles == 1)
            continue;
        *c = (way_case){.number = number, .way = i % WAYS, .tiles = tiled ? problems[number].tiles : 1};
        snprintf(c->line, sizeof c->line, "%s %s", problems[number].line, half_classes[i / WAYS % HALF_CLASSES]);
        case_list_add(&list, "%s tiles=%d overlap=%s dilation=%s", c->line, (int)c->tiles, overlaps[c->way],
                      dilations[c->way]);
    }
    device_each(&list, check_way, cases);
    print_worst_ratios("16-bit spectra");
    assert_int_equal(case_failures(), 0);
}

/* ------------------------------------------------------------------------------------------- samples and properties */

#define LINE "in=4x24x400 out=16 kernel=25 pad=12"
#define VOLUME "in=4x8x18x20x20 out=16 kernel=3x3x3 pad=1"
#define SHORT_LINE "in=4x24x56 out=16 kernel=5 pad=2"
#define COLUMNS "in=4x24x60x40 out=16 kernel=9x1 pad=4x0"

/* Some samples have a NaN, an infinity or huge numbers. All other samples keep every bit, forward and backward. */
enum {
    ISOLATIONS = 54
};
static const char *const isolated[ISOLATIONS / 6] = {HALF_LAYER " dtype=fp16 math=half",
                                                     HALF_LAYER " dtype=fp16 math=half",
                                                     HALF_LAYER " dtype=fp16 math=half layout=last",
                                                     LINE " dtype=fp16 math=half",
                                                     "in=4x24x10x12 out=16 kernel=5x5 dtype=fp16 math=half layout=last",
                                                     VOLUME " dtype=fp16 math=half",
                                                     SHORT_LINE " dtype=fp16 math=half",
                                                     SHORT_LINE " dtype=fp16 math=half layout=last",
                                                     COLUMNS " dtype=fp16 math=half"};
static const double bad[] = {65504, INFINITY, NAN};

/* NULL: the library finds a basis, for 1 or 2 tiles. */
static const char *basis_of(int kind, int rank) {
    return kind < 6     ? NULL
           : rank == 3  ? (kind % 2 ? "24x24x24" : "20x36x36")
           : kind >= 48 ? (kind % 2 ? "72x1" : "80x1")
           : kind >= 36 ? (kind % 2 ? "64" : "128")
           : rank == 1  ? (kind % 2 ? "512" : "1024")
           : kind >= 24 ? "16x16"
           : kind % 2   ? "64x32"
                        : "32x32";
}

/* The result of a pass, forward or the gradient of x, in `values`. Returns false after a failure of the case. */
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

/* Count the values of sample 2 that differ, and those of all other samples. */
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
    fill_operand(&l, &l.w, small_number, &g);
    operand *const in = data ? &l.gy : &l.x;
    const result *const out = data ? &l.gx : &l.y;
    const size_t bytes = (size_t)out->tensor.count * sizeof(double);
    double *const before = test_alloc(bytes), *const after = test_alloc(bytes), *const values = in->values;
    case_begin(isolated[kind / 6], NULL);
    const bool found = !basis        ? half_strategies(&p, 1 + kind % 2, "save", "step", &s)
                       : kind >= 48  ? column_strategies(&p, basis, "1x40", &s)
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

/* The layer in each class and with each kind of transform: one tile, two tiles, tensor-core FFTs of planes, small
 * planes and rows in both layouts, volumes by two kernels, short rows, columns. */
enum {
    KINDS = 11
};
static const char *line_of(int i, char line[256]) {
    static const char *const layers[KINDS] = {
        HALF_LAYER, HALF_LAYER, HALF_LAYER, HALF_LAYER, "in=4x24x10x12 out=16 kernel=5x5", LINE, VOLUME,
        SHORT_LINE, SHORT_LINE, COLUMNS,    COLUMNS};
    const int kind = i % KINDS;
    snprintf(line, 256, "%s %s layout=%s", layers[kind], half_classes[i / KINDS],
             kind == 3 || kind == 4 || kind == 8 || kind == 10 ? "last" : "first");
    return line;
}

/* Returns false after a failure of the case, which begins here. */
static bool layer_of(int i, conv_fft_problem *p, strategies *s) {
    const int kind = i % KINDS;
    char line[256];
    *p = test_problem(line_of(i, line));
    case_begin(line, NULL);
    return (kind < 2       ? half_strategies(p, 1 + kind, "save", "step", s)
            : kind >= 9    ? column_strategies(p, "72x1", "1x40", s)
            : p->rank == 1 ? one_tile_strategies(p, kind >= 7 ? "64" : "1024", s)
            : p->rank == 3 ? one_tile_strategies(p, "24x24x24", s)
                           : matrix_strategies(p, kind == 4 ? "16x16" : "32x32", s)) ||
           case_fail("no basis");
}

static void each_layer(const char *name, void (*check)(int64_t, void *)) {
    case_list list = {.name = name};
    char line[256];
    for (int i = 0; i < KINDS * HALF_CLASSES; i++)
        case_list_add(&list, "%s%s", line_of(i, line), i % KINDS == 1 ? " tiles=2" : i % KINDS == 2 ? " matrices" : "");
    device_each(&list, check, NULL);
    assert_int_equal(case_failures(), 0);
}

/* Samples do not mix, and calls repeat to the bit, by the checks of support/layer_properties.h. */
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

/* Zeros give zeros and no NaN, also if the gradient of the outputs is very small. */
static void check_zeros(int64_t i, void *unused) {
    (void)unused;
    strategies s;
    conv_fft_problem p;
    if (!layer_of((int)i, &p, &s))
        return;
    generator g = generator_create(7);
    layer l = layer_create(&p, &g);
    fill_operand(&l, &l.x, nothing, &g);
    fill_operand(&l, &l.gy, p.dtype == CONV_FFT_FP16 ? tiny_number : minute_number, &g);
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
        cmocka_unit_test(isolation),
        cmocka_unit_test(properties),
        cmocka_unit_test(zeros),
        cmocka_unit_test(strategies_in_chunks),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("layers of 16-bit spectra on a GPU", tests, device_gpu_setup, device_teardown));
}
