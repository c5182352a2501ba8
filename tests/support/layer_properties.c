/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer_properties.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/strategy_lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static conv_fft_plan *plan_of(const conv_fft_problem *p, const conv_fft_plan_options *options) {
    conv_fft_plan *plan = test_plan(device_context(), p, options);
    assert_non_null(plan);
    return plan;
}

/* ---- linearity, impulse, shift */

/* y of layer l for this x, without bias. */
static tensor forward_of(layer *l, const conv_fft_plan *plan, const double *x) {
    tensor_set(&l->x.tensor, x);
    guarded workspace = layer_workspace(l, plan, CONV_FFT_FORWARD);
    tensor_poison(&l->y.tensor);
    assert_true(
        check_status(conv_fft_forward(plan, l->x.tensor.memory.data, l->w.tensor.memory.data, NULL,
                                      l->y.tensor.memory.data, workspace.data, workspace.bytes, device_stream()),
                     "conv_fft_forward"));
    guarded_destroy(&workspace);
    return tensor_copy(&l->y.tensor);
}

void property_linearity(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p =
        test_problem("in=2x4x13x14 out=6 kernel=5x4 pad=2:1 mode=reflect stride=1x2 groups=2 dtype=fp64");
    generator g = test_generator(11);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = plan_of(&p, NULL);
    const int64_t n = l.x.tensor.count, m = l.y.tensor.count;
    double *a = test_alloc((size_t)(3 * n + 2 * m) * sizeof *a), *b = a + n, *sum = b + n, *expected = sum + n,
           *magnitude = expected + m;
    random_values(&g, 2 * n, a);
    for (int64_t i = 0; i < n; i++)
        sum[i] = 3 * a[i] - 0.5 * b[i];
    tensor ya = forward_of(&l, plan, a), yb = forward_of(&l, plan, b), ysum = forward_of(&l, plan, sum);
    for (int64_t i = 0; i < m; i++) {
        expected[i] = 3 * tensor_load(&ya, i) - 0.5 * tensor_load(&yb, i);
        magnitude[i] = 4 * l.y.magnitude[i];
    }
    const comparison c = compare_tensor(&ysum, expected, magnitude, p.math, DEFAULT_SHARE);
    if (!c.ok)
        fail_msg("%s", c.text);
    tensor_destroy(&ya);
    tensor_destroy(&yb);
    tensor_destroy(&ysum);
    free(a);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* By the definition, a single 1 in x gives the reversed kernel of its channel in y. */
static void check_impulse(layer *l, const conv_fft_plan *plan, int64_t sample, int64_t channel, int64_t position) {
    const conv_fft_problem *p = &l->problem;
    const int64_t M = l->shape.output[2], K = p->kernel[0], count = l->y.tensor.count;
    double *x = test_alloc((size_t)l->x.tensor.count * sizeof *x), *y = test_alloc((size_t)count * sizeof *y),
           *magnitude = test_alloc((size_t)count * sizeof *magnitude);
    for (int64_t i = 0; i < l->x.tensor.count; i++)
        x[i] = 0;
    x[(sample * p->in_channels + channel) * p->input[0] + position] = 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = i / M / p->out_channels, o = i / M % p->out_channels, k = position + p->pad_before[0] - i % M;
        y[i] = n == sample && k >= 0 && k < K ? l->w.values[(o * p->in_channels + channel) * K + k] : 0;
        magnitude[i] = 1; /* the transform spreads the error of the impulse over the whole signal */
    }
    tensor got = forward_of(l, plan, x);
    const comparison c = compare_tensor(&got, y, magnitude, p->math, 1e-3);
    if (!c.ok)
        fail_msg("impulse at [%d][%d][%d]: %s", (int)sample, (int)channel, (int)position, c.text);
    tensor_destroy(&got);
    free(x);
    free(y);
    free(magnitude);
}

void property_impulse(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p = test_problem("in=2x3x37 out=4 kernel=6 pad=4:2");
    generator g = test_generator(12);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = plan_of(&p, NULL);
    for (int64_t position = 0; position < p.input[0]; position++)
        check_impulse(&l, plan, position % 2, position % 3, position);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* With circular padding, a shift of x shifts y. */
void property_shift(void **state) {
    NEED_DEVICE(state);
    enum {
        D = 21
    };
    const conv_fft_problem p = test_problem("in=2x3x21 out=4 kernel=6 pad=3:2 mode=circular dtype=fp64");
    generator g = test_generator(13);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = plan_of(&p, NULL);
    double moved[2 * 3 * D], expected[2 * 4 * D];
    tensor y = forward_of(&l, plan, l.x.values);
    for (int64_t by = 1; by < D; by++) {
        for (int64_t i = 0; i < l.x.tensor.count; i++)
            moved[i / D * D + (i % D + by) % D] = l.x.values[i];
        for (int64_t i = 0; i < y.count; i++)
            expected[i / D * D + (i % D + by) % D] = tensor_load(&y, i);
        tensor shifted = forward_of(&l, plan, moved);
        const comparison c = compare_tensor(&shifted, expected, l.y.magnitude, p.math, DEFAULT_SHARE);
        if (!c.ok)
            fail_msg("moved by %d: %s", (int)by, c.text);
        tensor_destroy(&shifted);
    }
    tensor_destroy(&y);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

void property_accumulate(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p =
        test_problem("in=3x4x9x10 out=6 kernel=3x4 pad=1 groups=2 mode=replicate dtype=bf16 gw=fp32");
    generator g = test_generator(4);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = plan_of(&p, NULL);
    for (unsigned flags = 0; flags <= 7; flags++) /* the checks put NaN where nothing is added */
        for (int separate = 0; separate <= 1; separate++) {
            const backward_call call = {.gx = true, .gw = true, .gbias = true, .separate = separate, .flags = flags};
            assert_true(layer_check_backward(&l, plan, &call));
        }
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* Strides of zero repeat an input that is only read. */
void property_repeated_input(void **state) {
    NEED_DEVICE(state);
    conv_fft_problem p = test_problem("in=3x4x12 out=5 kernel=5 pad=2");
    const int64_t x[] = {0, 12, 1}, w[] = {0, 5, 1}, y[] = {60, 12, 1}, gy[] = {60, 0, 1};
    memcpy(p.x_stride, x, sizeof x);
    generator g = test_generator(5);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);

    options.passes = CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS; /* all but gx */
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = plan_of(&p, &options);
    assert_true(layer_check_forward(&l, plan, true));
    assert_true(layer_check_backward(&l, plan, &(backward_call){.gw = true, .gbias = true}));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);

    options.passes = CONV_FFT_FORWARD; /* one filter for all output channels */
    memcpy(p.w_stride, w, sizeof w);
    memcpy(p.y_stride, y, sizeof y);
    l = layer_create(&p, &g);
    plan = plan_of(&p, &options);
    assert_true(layer_check_forward(&l, plan, false));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);

    options.passes = CONV_FFT_BACKWARD_DATA; /* the same gy for all output channels */
    memset(p.x_stride, 0, sizeof p.x_stride);
    memcpy(p.y_stride, gy, sizeof gy);
    l = layer_create(&p, &g);
    plan = plan_of(&p, &options);
    assert_true(layer_check_backward(&l, plan, &(backward_call){.gx = true, .gbias = true}));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}
