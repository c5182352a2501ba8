/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of family `cudnn` on substitutes of the GPU and of cuDNN: what they pass to cuDNN, and what they do
 * themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/cudnn/cudnn.h"
#include "fakes/fake.h"
#include "support/error_text.h"
#include "support/fake_context.h"
#include "support/fake_gpu.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdlib.h>
#include <string.h>

static const fake_cudnn *cudnn_state(void) {
    return inside_fake(FAKES "/with_cudnn/libcudnn.so.9", "fake_cudnn_state");
}

#define ALGORITHM "cudnn algorithm="
#define DENSE "in=2x8x12x13 out=16 kernel=3x3 pad=1"

/* The effects of a call. */
typedef struct done {
    int runs, launches;
    float beta;
    const void *pointers[3];
} done;

static done during(conv_fft_status (*call)(const conv_fft_plan *plan, layer *l, guarded *ws, unsigned flags),
                   const conv_fft_plan *plan, layer *l, guarded *ws, unsigned flags) {
    const int runs = cudnn_state()->runs, launches = fake_launches(), descriptors = cudnn_state()->descriptors;
    if (call(plan, l, ws, flags) != CONV_FFT_SUCCESS)
        fail_msg("%s", conv_fft_last_error());
    done d = {cudnn_state()->runs - runs, fake_launches() - launches, cudnn_state()->beta, {0}};
    memcpy(d.pointers, cudnn_state()->pointers, sizeof d.pointers);
    assert_int_equal(cudnn_state()->descriptors, descriptors);
    return d;
}

enum {
    BIAS = 1
};
static conv_fft_status forward(const conv_fft_plan *plan, layer *l, guarded *ws, unsigned flags) {
    return conv_fft_forward(plan, l->x.tensor.memory.data, l->w.tensor.memory.data,
                            flags & BIAS ? l->bias.tensor.memory.data : NULL, l->y.tensor.memory.data, ws->data,
                            ws->bytes, NULL);
}
static conv_fft_status data(const conv_fft_plan *plan, layer *l, guarded *ws, unsigned flags) {
    return conv_fft_backward_data(plan, l->w.tensor.memory.data, l->gy.tensor.memory.data, l->gx.tensor.memory.data,
                                  flags, ws->data, ws->bytes, NULL);
}
static conv_fft_status weights(const conv_fft_plan *plan, layer *l, guarded *ws, unsigned flags) {
    return conv_fft_backward_weights(plan, l->x.tensor.memory.data, l->gy.tensor.memory.data, l->gw.tensor.memory.data,
                                     NULL, flags, ws->data, ws->bytes, NULL);
}

/* Biases and old contents are passed by beta if the algorithm supports that. Otherwise a kernel of the library adds
 * them. */
static void check_calls(conv_fft_context *context, const char *algorithm, bool adds) {
    const conv_fft_problem p = test_problem(DENSE);
    generator g = test_generator(1);
    tensor_align(64);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = good_forced_plan(context, DENSE, CONV_FFT_ALL_PASSES, algorithm);
    guarded f = layer_workspace(&l, plan, CONV_FFT_FORWARD), b = layer_workspace(&l, plan, CONV_FFT_BACKWARD);

    done d = during(forward, plan, &l, &f, 0);
    assert_true(d.runs == 1 && d.launches == 0 && d.beta == 0);
    assert_ptr_equal(d.pointers[0], l.x.tensor.memory.data);
    assert_ptr_equal(d.pointers[1], l.w.tensor.memory.data);
    assert_ptr_equal(d.pointers[2], l.y.tensor.memory.data);
    assert_int_equal((uintptr_t)cudnn_state()->workspace % 256, 0);
    d = during(forward, plan, &l, &f, BIAS);
    assert_true(d.runs == 1 && d.launches == 1 && d.beta == (adds ? 1 : 0));

    d = during(data, plan, &l, &b, 0);
    assert_true(d.runs == 1 && d.launches == 0 && d.beta == 0);
    assert_ptr_equal(d.pointers[0], l.gx.tensor.memory.data);
    d = during(data, plan, &l, &b, CONV_FFT_ACCUMULATE_GX);
    assert_true(d.runs == 1 && d.launches == !adds && d.beta == (adds ? 1 : 0));
    assert_int_equal(d.pointers[0] == (void *)l.gx.tensor.memory.data, adds);

    d = during(weights, plan, &l, &b, 0);
    assert_true(d.runs == 1 && d.launches == 0 && d.beta == 0);
    assert_ptr_equal(d.pointers[1], l.gw.tensor.memory.data);
    d = during(weights, plan, &l, &b, CONV_FFT_ACCUMULATE_GW);
    assert_true(d.runs == 1 && d.launches == !adds);
    assert_int_equal(d.pointers[1] == (void *)l.gw.tensor.memory.data, adds);

    assert_true(release_workspace(&f, "forward") && release_workspace(&b, "backward"));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    tensor_align(0);
}

static void calls(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    check_calls(context, ALGORITHM "graph:0", true);
    check_calls(context, ALGORITHM "graph:3", false);
    fake_context_destroy(context);
}

static void old_calls(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    const conv_fft_problem p = test_problem(DENSE);
    generator g = test_generator(1);
    tensor_align(64);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = good_forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "old:FFT_TILING:fma");
    guarded ws = layer_workspace(&l, plan, CONV_FFT_FORWARD);
    assert_int_equal(cudnn_state()->math, CF_CUDNN_FMA_MATH);
    done d = during(forward, plan, &l, &ws, BIAS);
    assert_true(d.runs == 1 && d.launches == 1 && d.beta == 1);
    assert_true(release_workspace(&ws, "forward"));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
    tensor_align(0);
    assert_int_equal(cudnn_state()->descriptors, 0);
    fake_context_destroy(context);
}

/* For tensors that cuDNN might not be able to read, a kernel of the library runs. */
static void unaligned_tensors(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan = good_forced_plan(context, DENSE, CONV_FFT_FORWARD, ALGORITHM "graph:0");
    float *memory = test_alloc(1 << 21), *w = memory + (1 << 16), *bias = memory + (2 << 16), *y = memory + (3 << 16);
    const int runs = cudnn_state()->runs, launches = fake_launches();
    assert_int_equal(conv_fft_forward(plan, memory + 1, w, bias, y, memory + (4 << 16), 1 << 19, NULL),
                     CONV_FFT_SUCCESS);
    assert_int_equal(cudnn_state()->runs, runs);
    assert_int_equal(fake_launches(), launches + 1);
    free(memory);
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

static void empty_batch(void **state) {
    conv_fft_context *context = fake_context_create(FAKES_ALL, *state, false);
    conv_fft_plan *plan =
        good_forced_plan(context, "in=0x8x12x13 out=16 kernel=3x3", CONV_FFT_ALL_PASSES, ALGORITHM "graph:0");
    float *memory = test_alloc(1 << 20);
    const int runs = cudnn_state()->runs, launches = fake_launches();
    assert_int_equal(conv_fft_forward(plan, NULL, memory, NULL, NULL, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_backward_data(plan, memory, NULL, NULL, 0, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_backward_weights(plan, NULL, NULL, memory, NULL, CONV_FFT_ACCUMULATE_GW, NULL, 0, NULL),
                     CONV_FFT_SUCCESS);
    assert_int_equal(fake_launches(), launches);
    assert_int_equal(conv_fft_backward_weights(plan, NULL, NULL, memory, NULL, 0, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(fake_launches(), launches + 1);
    assert_int_equal(cudnn_state()->runs, runs);
    free(memory);
    conv_fft_plan_destroy(plan);
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(calls),
        IN_SCRATCH(old_calls),
        IN_SCRATCH(unaligned_tensors),
        IN_SCRATCH(empty_batch),
    };
    return cmocka_run_group_tests_name("calls of family cudnn", tests, NULL, NULL);
}
