/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer_fp16.h"

#include "support/device.h"

#include <math.h>
#include <stdlib.h>

static const char *const types[] = {"fp16", "bf16"};
const char *const half_classes[HALF_CLASSES] = {"dtype=fp16 math=half", "dtype=bf16 math=half", "math=tf32"};

bool half_strategies(const conv_fft_problem *p, int64_t tiles, const char *overlap, const char *dilation,
                     strategies *s) {
    strategies found;
    if (!find_strategies(device_context(), p, tiles, overlap, dilation, "tensor", &found))
        return false;
    for (int pass = 0; pass < 3; pass++)
        edit_strategy(found.line[pass], "spectrum", types[p->dtype == CONV_FFT_BF16], s->line[pass],
                      sizeof s->line[pass]);
    return true;
}

conv_fft_plan_options half_options(const strategies *s) {
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[pass];
    return options;
}

conv_fft_plan *half_plan(const conv_fft_problem *p, const strategies *s, int passes) {
    conv_fft_plan_options options = half_options(s);
    options.passes = (conv_fft_pass)passes;
    return test_plan(device_context(), p, &options);
}

bool matrix_strategies(const conv_fft_problem *p, const char *basis, strategies *s) {
    strategies found;
    if (!half_strategies(p, 1, "save", "step", &found))
        return false;
    for (int pass = 0; pass < 3; pass++)
        edit_strategy(found.line[pass], "basis", basis, s->line[pass], sizeof s->line[pass]);
    return true;
}

bool column_strategies(const conv_fft_problem *p, const char *basis, const char *tiles, strategies *s) {
    strategies found;
    if (!matrix_strategies(p, basis, &found))
        return false;
    for (int pass = 0; pass < 3; pass++)
        edit_strategy(found.line[pass], "tiles", tiles, s->line[pass], sizeof s->line[pass]);
    return true;
}

bool one_tile_strategies(const conv_fft_problem *p, const char *basis, strategies *s) {
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

double small_number(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * 1e-3;
}
double tiny_number(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, floor(random_value(g) * 4) * 0x1p-24;
}
double minute_number(generator *g, int64_t sample, int64_t channel) {
    return (void)sample, (void)channel, random_value(g) * 0x1p-56;
}

void fill_operand(layer *l, operand *o, number_maker make, generator *g) {
    const int64_t count = o->tensor.count, slice = count / o->tensor.extent[0], channels = o->tensor.extent[1];
    double *const values = test_alloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = make(g, i / slice, i / (slice / channels) % channels);
    layer_set(l, o, values);
    free(values);
}
