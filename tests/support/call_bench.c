/* SPDX-License-Identifier: Apache-2.0 */
#include "support/call_bench.h"

#include "core/status.h"
#include "support/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char *const call_lines[CALL_LINES] = {
    "in=5x12x13x14 out=10 kernel=3x4 pad=1",
    "in=3x8x30x31 out=8 kernel=7x7 pad=3 groups=8 layout=last dtype=fp16 gw=fp32",
    "in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=reflect groups=2 stride=2 dtype=bf16",
    "in=2x3x2000 out=4 kernel=300 pad=10:20 mode=circular dtype=fp64",
    "in=2x3x9x10x11 out=4 kernel=3x3x3 pad=1 mode=replicate dilation=2",
};

static guarded spectrum_of(const conv_fft_plan *plan, conv_fft_operand which) {
    size_t bytes;
    assert_success(conv_fft_plan_spectrum(plan, which, &bytes));
    return guarded_create(bytes, 16);
}

call_bench call_bench_create(const char *line, const conv_fft_plan_options *options, unsigned flags) {
    const conv_fft_problem p = test_problem(line);
    generator g = generator_create(7);
    call_bench b = {.layer = layer_create(&p, &g), .plan = test_plan(device_context(), &p, options), .flags = flags};
    assert_non_null(b.plan);
    b.forward = layer_workspace(&b.layer, b.plan, CONV_FFT_FORWARD);
    b.backward = layer_workspace(&b.layer, b.plan, CONV_FFT_BACKWARD);
    b.kept = options && options->keep;
    if (b.kept) {
        b.x_spectrum = spectrum_of(b.plan, CONV_FFT_OPERAND_X);
        b.w_spectrum = spectrum_of(b.plan, CONV_FFT_OPERAND_W);
    }
    return b;
}

void call_bench_destroy(call_bench *b) {
    if (b->kept) {
        assert_true(guarded_canaries_intact(&b->x_spectrum) && guarded_canaries_intact(&b->w_spectrum));
        guarded_destroy(&b->x_spectrum);
        guarded_destroy(&b->w_spectrum);
    }
    assert_true(release_workspace(&b->forward, "conv_fft_forward"));
    assert_true(release_workspace(&b->backward, "conv_fft_backward"));
    conv_fft_plan_destroy(b->plan);
    layer_destroy(&b->layer);
}

result *call_result(layer *l, int r) { return (result *const[CALL_RESULTS]){&l->y, &l->gx, &l->gw, &l->gbias}[r]; }

static bool accumulates(const call_bench *b, int r) {
    static const unsigned flags[CALL_RESULTS] = {0, CONV_FFT_ACCUMULATE_GX, CONV_FFT_ACCUMULATE_GW,
                                                 CONV_FFT_ACCUMULATE_GBIAS};
    return b->flags & flags[r];
}

void call_reset(call_bench *b) {
    for (int r = 0; r < CALL_RESULTS; r++) {
        result *const of = call_result(&b->layer, r);
        if (accumulates(b, r))
            tensor_set(&of->tensor, of->old);
        else
            tensor_poison(&of->tensor);
    }
}

call_places call_places_of(call_bench *b) {
    layer *l = &b->layer;
    return (call_places){l->x.tensor.memory.data,  l->w.tensor.memory.data,     l->bias.tensor.memory.data,
                         l->gy.tensor.memory.data, l->y.tensor.memory.data,     l->gx.tensor.memory.data,
                         l->gw.tensor.memory.data, l->gbias.tensor.memory.data, b->forward.data,
                         b->backward.data};
}

/* Both calls with kept spectra: a call of its own makes the spectrum of w, forward makes that of x, and backward reads
 * both. */
static conv_fft_status enqueue_kept(const call_bench *b, const call_places *p, cf_cu_stream stream) {
    void *const x = b->x_spectrum.data, *const w = b->w_spectrum.data;
    CF_FORWARD(conv_fft_transform_weights(b->plan, p->w, w, p->forward, b->forward.bytes, stream));
    CF_FORWARD(conv_fft_forward_kept(b->plan, p->x, NULL, p->bias, p->y, x, w, p->forward, b->forward.bytes, stream));
    return conv_fft_backward_kept(b->plan, NULL, NULL, p->gy, p->gx, p->gw, p->gbias, b->flags, x, w, p->backward,
                                  b->backward.bytes, stream);
}

conv_fft_status call_enqueue(const call_bench *b, const call_places *p, cf_cu_stream stream) {
    if (b->kept)
        return enqueue_kept(b, p, stream);
    CF_FORWARD(conv_fft_forward(b->plan, p->x, p->w, p->bias, p->y, p->forward, b->forward.bytes, stream));
    return conv_fft_backward(b->plan, p->x, p->w, p->gy, p->gx, p->gw, p->gbias, b->flags, p->backward,
                             b->backward.bytes, stream);
}

void call_check(call_bench *b, const char *call) {
    layer *const l = &b->layer;
    double *bias = test_alloc((size_t)l->y.tensor.count * sizeof *bias);
    memset(bias, 0, (size_t)l->y.tensor.count * sizeof *bias);
    ref_add_bias(&l->shape, l->bias.values, bias);
    for (int r = 0; r < CALL_RESULTS; r++)
        assert_true(check_result(l, call_result(l, r),
                                 r == 0              ? bias
                                 : accumulates(b, r) ? call_result(l, r)->old
                                                     : NULL,
                                 call));
    assert_true(check_inputs(l, call));
    free(bias);
}
