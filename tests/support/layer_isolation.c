/* SPDX-License-Identifier: Apache-2.0 */
/* What no call may mix, for every strategy: samples, groups, tiles that do not read the same elements, and earlier
 * contents of memory. */
#include "support/layer_properties.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/strategy_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* NULL is a failure of the case, which begins here. */
static conv_fft_plan *plan_of(const conv_fft_problem *p, const conv_fft_plan_options *options) {
    char line[256];
    describe_problem(p, line, sizeof line);
    case_begin(line, NULL);
    return test_plan(device_context(), p, options);
}

/* All outputs of a layer, without checks. Every byte of the workspace starts as `fill`. Returns false after a failure
 * of the case. */
static bool run_all(layer *l, const conv_fft_plan *plan, int fill) {
    guarded forward = layer_workspace(l, plan, CONV_FFT_FORWARD),
            backward = layer_workspace(l, plan, CONV_FFT_BACKWARD);
    memset(forward.data, fill, forward.bytes);
    memset(backward.data, fill, backward.bytes);
    tensor_poison(&l->y.tensor);
    tensor_poison(&l->gx.tensor);
    tensor_poison(&l->gw.tensor);
    tensor_poison(&l->gbias.tensor);
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data, *gy = l->gy.tensor.memory.data;
    bool good = check_status(conv_fft_forward(plan, x, w, l->bias.tensor.memory.data, l->y.tensor.memory.data,
                                              forward.data, forward.bytes, device_stream()),
                             "conv_fft_forward");
    good = good && check_status(conv_fft_backward(plan, x, w, gy, l->gx.tensor.memory.data, l->gw.tensor.memory.data,
                                                  l->gbias.tensor.memory.data, 0, backward.data, backward.bytes,
                                                  device_stream()),
                                "conv_fft_backward");
    return release_workspace(&forward, "conv_fft_forward") && release_workspace(&backward, "conv_fft_backward") && good;
}

/* ---- ways to compute a layer, besides what is chosen */

typedef void (*layer_check)(const conv_fft_problem *p, const conv_fft_plan_options *options);

enum {
    WAYS = 4,
    FUSED = 3
};
static const char *const products[FUSED] = {"blas", "loop", "tensor"};

/* Options that force a strategy on all passes, with lines in `s`. Returns false if it does not compute this layer on
 * this device. */
static bool force_way(const conv_fft_problem *p, int way, strategies *s, conv_fft_plan_options *options) {
    const strategies chosen = chosen_strategies(device_context(), p);
    *s = fused_strategies(&chosen);
    for (int pass = 0; pass < 3 && way < FUSED; pass++)
        edit_strategy(chosen.line[pass], "product", products[way], s->line[pass], sizeof s->line[pass]);
    conv_fft_plan_options_init(options);
    for (int pass = 0; pass < 3; pass++)
        options->strategy[pass] = s->line[pass];
    conv_fft_plan *plan = NULL;
    const conv_fft_status status = conv_fft_plan_create(device_context(), p, options, &plan);
    conv_fft_plan_destroy(plan);
    return status == CONV_FFT_SUCCESS;
}

/* Only a few layers, because each strategy has kernels of its own. */
static const char *const every_way[] = {"in=5x3x9x10 out=4 kernel=3x3 pad=1",
                                        "in=4x6x9x10 out=6 kernel=5x5 pad=2 groups=6 layout=last"};

/* cuBLAS products and plain loops work for every layer on every device. A GPU has the other strategies for these
 * layers. */
static void check_one_way(int64_t i, void *check) {
    const conv_fft_problem p = test_problem(every_way[i / WAYS]);
    const int way = (int)i % WAYS;
    conv_fft_plan_options options;
    strategies s;
    if (force_way(&p, way, &s, &options))
        (*(layer_check *)check)(&p, &options);
    else if (way < 2 || device_gpu())
        case_fail("%s: way %d does not compute it", every_way[i / WAYS], way);
}

/* Check all strategies but the chosen one, on a GPU in parallel, because compiling takes most of the time. */
static void in_all_ways(layer_check check) {
    const int64_t count = WAYS * (int64_t)(sizeof every_way / sizeof every_way[0]);
    if (device_gpu())
        side_by_side(count, check_one_way, &check);
    for (int64_t i = 0; i < count && !device_gpu(); i++)
        check_one_way(i, &check);
}

/* ---- isolation and determinism */

static double spoil(double value, int kind) { return kind == 0 ? NAN : kind == 1 ? INFINITY : value * 1e6; }

/* Sample `bad` of x and gy is spoiled. All other samples of y and gx keep their bits. */
static bool check_one_spoiled(layer *l, const conv_fft_plan *plan, const tensor *y, const tensor *gx, int64_t bad,
                              int kind) {
    const int64_t samples = l->problem.batch, x_size = l->x.tensor.count / samples, y_size = y->count / samples;
    double *x = test_alloc((size_t)l->x.tensor.count * sizeof *x), *gy = test_alloc((size_t)y->count * sizeof *gy);
    for (int64_t i = 0; i < l->x.tensor.count; i++)
        x[i] = i / x_size == bad ? spoil(l->x.values[i], kind) : l->x.values[i];
    for (int64_t i = 0; i < y->count; i++)
        gy[i] = i / y_size == bad ? spoil(l->gy.values[i], kind) : l->gy.values[i];
    tensor_set(&l->x.tensor, x);
    tensor_set(&l->gy.tensor, gy);
    bool good = run_all(l, plan, 0xff);
    for (int64_t n = 0; n < samples && good; n++)
        if (tensor_same_bits(&l->y.tensor, y, n * y_size, y_size) != (n != bad) ||
            tensor_same_bits(&l->gx.tensor, gx, n * x_size, x_size) != (n != bad))
            good = case_fail("sample %d %s, though sample %d was spoiled in way %d", (int)n,
                             n == bad ? "is the same" : "has changed", (int)bad, kind);
    free(x);
    free(gy);
    return good;
}

void check_isolation(const conv_fft_problem *p, const conv_fft_plan_options *options) {
    generator g = test_generator(21);
    layer l = layer_create(p, &g);
    conv_fft_plan *plan = plan_of(p, options);
    if (plan && run_all(&l, plan, 0)) {
        tensor y = tensor_copy(&l.y.tensor), gx = tensor_copy(&l.gx.tensor);
        for (int64_t i = 0; i < 3 * p->batch; i++)
            if (!check_one_spoiled(&l, plan, &y, &gx, i / 3, (int)(i % 3)))
                break;
        tensor_destroy(&y);
        tensor_destroy(&gx);
    }
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

typedef struct isolated {
    const char *const *lines;
    size_t align; /* bytes, of all tensors */
} isolated;

static void check_isolation_of(int64_t i, void *argument) {
    const isolated *const of = argument;
    const char *const line = of->lines[i];
    tensor_align(of->align);
    const conv_fft_problem p = test_problem(line);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    check_isolation(&p, &options);
    options.workspace_limit = smallest_workspace_limit(device_context(), &p, &options);
    check_isolation(&p, &options);
    conv_fft_plan_options_init(&options);
    strategies s;
    if (find_strategies(device_context(), &p, 2, "add", "step", "loop", &s)) {
        for (int pass = 0; pass < 3; pass++)
            options.strategy[pass] = s.line[pass];
        check_isolation(&p, &options);
    } else {
        case_fail("%s: no basis for 2 tiles", line);
    }
    tensor_align(0);
}

void property_isolation(void **state) {
    NEED_DEVICE(state);
    static const char *lines[] = {
        "in=5x3x9x10 out=4 kernel=3x3 pad=1",
        "in=4x1x16x16 out=1 kernel=5x5 pad=2",
        "in=4x6x9x10 out=6 kernel=5x5 pad=2 groups=6 layout=last",
        "in=5x3x40 out=4 kernel=9 pad=4 mode=reflect dtype=fp64",
        "in=4x3x11x12 out=4 kernel=4x3 pad=2 stride=2 mode=circular dtype=fp16",
        "in=4x3x11x12 out=4 kernel=3x3 pad=2 dilation=2 mode=replicate dtype=bf16 layout=last",
        "in=3x2x5x6x7 out=3 kernel=3x3x3 pad=1",
    };
    in_all_ways(check_isolation);
    for (int aligned = 0; aligned <= (device_gpu() ? 1 : 0); aligned++) {
        case_list list = {.name = aligned ? "gpu_layers_isolation_aligned" : "gpu_layers_isolation"};
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            case_list_add(&list, "%s", lines[i]);
        device_each(&list, check_isolation_of, &(isolated){lines, aligned ? 64 : 0}); /* other kernels */
    }
    assert_int_equal(case_failures(), 0);
}

/* A second run gives the same bits, with other old contents of the workspace. */
void check_determinism(const conv_fft_problem *p, const conv_fft_plan_options *options) {
    generator g = test_generator(22);
    layer l = layer_create(p, &g);
    conv_fft_plan *plan = plan_of(p, options);
    if (plan && run_all(&l, plan, 0)) {
        result *results[] = {&l.y, &l.gx, &l.gw, &l.gbias};
        tensor first[4];
        for (int r = 0; r < 4; r++)
            first[r] = tensor_copy(&results[r]->tensor);
        for (int again = 0; again < 3 && run_all(&l, plan, 0xff); again++)
            for (int r = 0; r < 4; r++)
                if (!tensor_same_bits(&results[r]->tensor, &first[r], 0, first[r].count))
                    case_fail("%s differs when it is computed again", results[r]->name);
        for (int r = 0; r < 4; r++)
            tensor_destroy(&first[r]);
    }
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

void property_determinism(void **state) {
    NEED_DEVICE(state);
    static const char *const lines[] = {"in=4x5x13x14 out=6 kernel=5x4 pad=2 mode=reflect",
                                        "in=4x8x30x31 out=8 kernel=7x7 pad=3 groups=8",
                                        "in=3x4x200 out=5 kernel=33 stride=2 dtype=fp16"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        check_determinism(&p, NULL);
    }
    in_all_ways(check_determinism);
    assert_int_equal(case_failures(), 0);
}

/* ---- how far a NaN spreads */

/* One axis with as many outputs as inputs, in tiles of `length`. */
typedef struct tiled_axis {
    int64_t extent, reach, length;
} tiled_axis;

/* Whether the tile of output o reads input e. */
static bool tile_reads(const tiled_axis *a, int64_t o, int64_t e) {
    const int64_t first = o / a->length * a->length;
    return e >= first - a->reach && e < first + a->length + a->reach;
}

/* The input at `spoiled` (sample, group, position) is a NaN. So is every output of the tiles of its sample and group
 * that read it, and no other output has changed. */
static void check_spread(const tensor *now, const tensor *before, const tiled_axis *axes, int64_t channels,
                         int64_t group_channels, const int64_t spoiled[4]) {
    const int64_t plane = axes[0].extent * axes[1].extent;
    for (int64_t i = 0; i < now->count; i++) {
        const int64_t at = i % plane, channel = i / plane % channels, sample = i / plane / channels;
        const bool reads = sample == spoiled[0] && channel / group_channels == spoiled[1] &&
                           tile_reads(&axes[0], at / axes[1].extent, spoiled[2]) &&
                           tile_reads(&axes[1], at % axes[1].extent, spoiled[3]);
        if (reads ? !isnan(tensor_load(now, i)) : !tensor_same_bits(now, before, i, 1))
            fail_msg("a NaN in sample %d, group %d, at %dx%d %s element %d", (int)spoiled[0], (int)spoiled[1],
                     (int)spoiled[2], (int)spoiled[3], reads ? "does not reach" : "has changed", (int)i);
    }
}

/* The description of a plan has the number of tiles. `conv-fft explain` tells from it how far a NaN spreads. */
static void check_tiles(const conv_fft_plan *plan, conv_fft_pass pass, int64_t tiles, const conv_fft_problem *p) {
    conv_fft_description d;
    assert_int_equal(conv_fft_plan_describe(plan, pass, &d), CONV_FFT_SUCCESS);
    for (int a = 0; a < p->rank; a++)
        assert_int_equal(d.tiles[a], tiles);
}

/* A single NaN in x and in gy, at several positions: in the middle of tiles, near their edges, and in the corners. */
static void check_spread_of(const conv_fft_problem *p, const conv_fft_plan_options *options, int64_t tiles) {
    enum {
        POSITIONS = 7
    };
    generator g = test_generator(23);
    layer l = layer_create(p, &g);
    conv_fft_plan *plan = plan_of(p, options);
    assert_non_null(plan);
    check_tiles(plan, CONV_FFT_FORWARD, tiles, p);
    check_tiles(plan, CONV_FFT_BACKWARD_DATA, tiles, p);
    tiled_axis axes[2] = {{.extent = 1, .length = 1}, {.extent = 1, .length = 1}};
    for (int a = 0; a < p->rank; a++) {
        const int64_t extent = p->input[a];
        axes[2 - p->rank + a] = (tiled_axis){extent, p->kernel[a] / 2, (extent + tiles - 1) / tiles};
    }
    assert_true(run_all(&l, plan, 0));
    tensor y = tensor_copy(&l.y.tensor), gx = tensor_copy(&l.gx.tensor);
    double *x = test_alloc((size_t)l.x.tensor.count * sizeof *x), *gy = test_alloc((size_t)y.count * sizeof *gy);
    const int64_t plane = axes[0].extent * axes[1].extent,
                  of_group[2] = {p->in_channels / p->groups, p->out_channels / p->groups};
    for (int64_t i = 0; i < POSITIONS; i++) {
        const int64_t at = i * (plane - 1) / (POSITIONS - 1), group = i % p->groups;
        const int64_t spoiled[4] = {i % p->batch, group, at / axes[1].extent, at % axes[1].extent};
        memcpy(x, l.x.values, (size_t)l.x.tensor.count * sizeof *x);
        memcpy(gy, l.gy.values, (size_t)y.count * sizeof *gy);
        x[(spoiled[0] * p->in_channels + group * of_group[0]) * plane + at] = NAN;
        gy[(spoiled[0] * p->out_channels + group * of_group[1]) * plane + at] = NAN;
        tensor_set(&l.x.tensor, x);
        tensor_set(&l.gy.tensor, gy);
        assert_true(run_all(&l, plan, 0xff));
        check_spread(&l.y.tensor, &y, axes, p->out_channels, of_group[1], spoiled);
        check_spread(&l.gx.tensor, &gx, axes, p->in_channels, of_group[0], spoiled);
    }
    free(x);
    free(gy);
    tensor_destroy(&y);
    tensor_destroy(&gx);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

void property_spread(void **state) {
    NEED_DEVICE(state);
    static const char *const lines[] = {"in=3x4x40 out=6 kernel=7 pad=3 groups=2",
                                        "in=2x6x20x23 out=3 kernel=3x5 pad=1x2 groups=3 layout=last"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (int64_t tiles = 1; tiles <= 3; tiles++) {
            const conv_fft_problem p = test_problem(lines[i]);
            conv_fft_plan_options options;
            strategies s;
            conv_fft_plan_options_init(&options);
            if (!find_strategies(device_context(), &p, tiles, "save", "step", tiles == 2 ? "blas" : "loop", &s))
                fail_msg("%s: no basis for %d tiles", lines[i], (int)tiles);
            for (int pass = 0; pass < 3; pass++)
                options.strategy[pass] = s.line[pass];
            check_spread_of(&p, &options, tiles);
        }
}
