/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of layers on a GPU: device memory, streams and threads, empty batches, profiles. Graphs are in
 * test_layers_graphs.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cuda/driver/memory.h"
#include "support/call_bench.h"
#include "support/device.h"
#include "support/gpu.h"
#include "support/layer_threads.h"

#include <stdlib.h>

enum {
    TENSORS = 8
};

/* -------------------------------------------------------------------------------------------- memory of the device */

/* Copy the memory to the device, with its canaries, at the same alignment. */
static void *upload(const guarded *m, void **base) {
    const cf_gpu *const gpu = device_gpu();
    assert_success(cf_gpu_allocate(gpu, m->total, base));
    assert_success(cf_gpu_upload(gpu, *base, m->base, m->total, NULL));
    return (char *)*base + (m->data - m->base);
}

/* A run in device memory gives the same bits as a run in host memory, also in canaries and gaps. */
static void check_device_memory(const char *line) {
    const cf_gpu *const gpu = device_gpu();
    call_bench b = call_bench_create(line, NULL, 0);
    layer *const l = &b.layer;
    const guarded *const memory[TENSORS + 2] = {
        &l->x.tensor.memory,  &l->w.tensor.memory,  &l->bias.tensor.memory,  &l->gy.tensor.memory, &l->y.tensor.memory,
        &l->gx.tensor.memory, &l->gw.tensor.memory, &l->gbias.tensor.memory, &b.forward,           &b.backward};
    void *base[TENSORS + 2], *at[TENSORS + 2];
    call_reset(&b);
    for (int i = 0; i < TENSORS + 2; i++)
        at[i] = upload(memory[i], &base[i]);
    const call_places there = {at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8], at[9]},
                      here = call_places_of(&b);
    assert_success(call_enqueue(&b, &there, NULL));
    assert_success(call_enqueue(&b, &here, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    call_check(&b, "both calls");
    for (int i = 0; i < TENSORS; i++) {
        unsigned char *copy = test_alloc(memory[i]->total);
        assert_success(cf_gpu_download(gpu, copy, base[i], memory[i]->total, NULL));
        assert_success(cf_gpu_synchronize(gpu, NULL));
        assert_memory_equal(copy, memory[i]->base, memory[i]->total);
        free(copy);
    }
    for (int i = 0; i < TENSORS + 2; i++)
        cf_gpu_free(gpu, base[i]);
    call_bench_destroy(&b);
}

static void device_memory_gives_same_bits(void **state) {
    NEED_DEVICE(state);
    for (int i = 0; i < CALL_LINES; i++)
        check_device_memory(call_lines[i]);
    tensor_align(64);
    for (int i = 0; i < CALL_LINES; i++)
        check_device_memory(call_lines[i]);
    tensor_align(0);
}

/* ---------------------------------------------------------------------------------------------- streams and threads */

static void shared_plan(void **state) {
    NEED_DEVICE(state);
    conv_fft_context *const context = device_context();
    threads_share_plan(context, "in=4x12x7x21 out=10 kernel=3x3 stride=1x4 dilation=1x2 pad=2", "blas");
    threads_share_plan(context, "in=2x12x100 out=12 kernel=9 stride=2 dtype=fp64 groups=2", "blas");
    threads_share_plan(context, "in=3x6x13x14 out=6 kernel=3x3 pad=1 mode=circular", "loop");
    threads_share_plan(context, "in=2x8x13x14 out=8 kernel=3x3 pad=2 mode=reflect groups=8 layout=last dtype=fp16",
                       "loop");
}

static void plans_meanwhile(void **state) {
    NEED_DEVICE(state);
    threads_make_plans(device_context());
}

/* ---------------------------------------------------------------------------------------------------- empty batches */

static void empty_batch(void **state) {
    NEED_DEVICE(state);
    const conv_fft_problem p = test_problem("in=0x4x9x10 out=6 kernel=3x4 pad=1 groups=2 mode=reflect");
    generator g = generator_create(9);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    conv_fft_plan *kept = test_plan(device_context(), &p, &options), *plan = test_plan(device_context(), &p, NULL);
    assert_true(plan && kept);
    assert_true(layer_check_all(&l, plan));
    assert_true(layer_check_kept(&l, kept));
    conv_fft_plan_destroy(kept);
    void *const w = l.w.tensor.memory.data, *const gw = l.gw.tensor.memory.data,
                *const gbias = l.gbias.tensor.memory.data;
    assert_success(conv_fft_forward(plan, NULL, w, NULL, NULL, NULL, 0, NULL));
    tensor_poison(&l.gw.tensor);
    tensor_poison(&l.gbias.tensor);
    assert_success(conv_fft_backward(plan, NULL, NULL, NULL, NULL, gw, gbias, 0, NULL, 0, NULL));
    assert_success(device_wait());
    for (int64_t i = 0; i < l.gw.tensor.count; i++)
        assert_true(tensor_load(&l.gw.tensor, i) == 0);
    for (int64_t i = 0; i < l.gbias.tensor.count; i++)
        assert_true(tensor_load(&l.gbias.tensor, i) == 0);
    tensor_set(&l.gw.tensor, l.gw.old);
    tensor_set(&l.gbias.tensor, l.gbias.old);
    assert_success(conv_fft_backward(plan, NULL, NULL, NULL, NULL, gw, gbias,
                                     CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS, NULL, 0, NULL));
    assert_success(device_wait());
    assert_true(tensor_untouched(&l.gw.tensor) && tensor_untouched(&l.gbias.tensor));
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

/* -------------------------------------------------------------------------------------------------------- profiles */

/* This test is the last one: after an illegal access the GPU cannot be used. */
static void profiles(void **state) {
    NEED_DEVICE(state);
    for (int i = 0; i <= CALL_LINES; i++) { /* the last one has tensors that go to the device in several pieces */
        const conv_fft_problem p = test_problem(i < CALL_LINES ? call_lines[i] : "in=2x32x320x320 out=32 kernel=3x3");
        conv_fft_plan *plan = test_plan(device_context(), &p, NULL);
        assert_non_null(plan);
        for (int pass = 1; pass <= CONV_FFT_BACKWARD; pass = pass == 4 ? 6 : 2 * pass) {
            conv_fft_description d;
            assert_success(conv_fft_profile(plan, (conv_fft_pass)pass, 3, &d));
            assert_true(d.stage_count > 0 && d.measured_ms > 0);
            for (int s = 0; s < d.stage_count; s++)
                assert_true(d.stages[s].measured_ms >= 0);
        }
        conv_fft_plan_destroy(plan);
        assert_success(device_wait());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_gives_same_bits),
        cmocka_unit_test(shared_plan),
        cmocka_unit_test(plans_meanwhile),
        cmocka_unit_test(empty_batch),
        cmocka_unit_test(profiles),
    };
    gpu_read_filters();
    return gpu_exit_status(
        cmocka_run_group_tests_name("calls of layers on a GPU", tests, device_gpu_setup, device_teardown));
}
