/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer_threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/layer.h"
#include "support/layer_loose_tolerance.h"
#include "support/strategy_lines.h"

#include <pthread.h>
#include <string.h>

enum {
    THREADS = 4,
    ROUNDS = 20
};

/* One set of outputs and workspaces. */
typedef struct outputs {
    tensor y, gx, gw, gbias;
    guarded forward, backward;
} outputs;

static outputs create_outputs(const layer *l, const conv_fft_plan *plan) {
    return (outputs){tensor_copy(&l->y.tensor),
                     tensor_copy(&l->gx.tensor),
                     tensor_copy(&l->gw.tensor),
                     tensor_copy(&l->gbias.tensor),
                     layer_workspace(l, plan, CONV_FFT_FORWARD),
                     layer_workspace(l, plan, CONV_FFT_BACKWARD)};
}

static void destroy_outputs(outputs *o) {
    tensor_destroy(&o->y);
    tensor_destroy(&o->gx);
    tensor_destroy(&o->gw);
    tensor_destroy(&o->gbias);
    guarded_destroy(&o->forward);
    guarded_destroy(&o->backward);
}

static bool run(const layer *l, const conv_fft_plan *plan, outputs *o) {
    const void *x = l->x.tensor.memory.data, *w = l->w.tensor.memory.data;
    tensor_poison(&o->y);
    tensor_poison(&o->gx);
    tensor_poison(&o->gw);
    tensor_poison(&o->gbias);
    return conv_fft_forward(plan, x, w, l->bias.tensor.memory.data, o->y.memory.data, o->forward.data, o->forward.bytes,
                            device_stream()) == CONV_FFT_SUCCESS &&
           conv_fft_backward(plan, x, w, l->gy.tensor.memory.data, o->gx.memory.data, o->gw.memory.data,
                             o->gbias.memory.data, 0, o->backward.data, o->backward.bytes,
                             device_stream()) == CONV_FFT_SUCCESS &&
           device_wait() == CONV_FFT_SUCCESS;
}

static bool same(const outputs *a, const outputs *b) {
    return tensor_same_bits(&a->y, &b->y, 0, a->y.count) && tensor_same_bits(&a->gx, &b->gx, 0, a->gx.count) &&
           tensor_same_bits(&a->gw, &b->gw, 0, a->gw.count) &&
           tensor_same_bits(&a->gbias, &b->gbias, 0, a->gbias.count) && guarded_canaries_intact(&b->forward) &&
           guarded_canaries_intact(&b->backward);
}

/* What a thread works on. cmocka's assertions belong to the main thread, so a thread counts its failures. */
typedef struct job {
    conv_fft_context *context;
    const conv_fft_plan *plan;
    const layer *layer;
    const outputs *expected;
    outputs own;
    int number, failures;
    pthread_t thread;
} job;

static void run_jobs(job jobs[THREADS], void *(*function)(void *)) {
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&jobs[t].thread, NULL, function, &jobs[t]), 0);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(jobs[t].thread, NULL), 0);
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(jobs[t].failures, 0);
}

static void *share_plan(void *argument) {
    job *j = argument;
    for (int round = 0; round < ROUNDS; round++)
        j->failures += !run(j->layer, j->plan, &j->own) || !same(j->expected, &j->own);
    return NULL;
}

void threads_share_plan(conv_fft_context *context, const char *line, const char *product) {
    const conv_fft_problem p = test_problem(line);
    strategies s = chosen_strategies(context, &p);
    for (int pass = 0; pass < 3; pass++) {
        char edited[256];
        edit_strategy(s.line[pass], "product", product, edited, sizeof edited);
        memcpy(s.line[pass], edited, sizeof edited);
    }
    threads_share_forced(context, line, &s);
}

void threads_share_forced(conv_fft_context *context, const char *line, const strategies *s) {
    const conv_fft_problem p = test_problem(line);
    generator g = test_generator(1);
    layer l = layer_create(&p, &g);
    conv_fft_plan_options options;
    conv_fft_plan_options_init(&options);
    for (int pass = 0; pass < 3; pass++)
        options.strategy[pass] = s->line[pass];
    conv_fft_plan *plan = test_plan(context, &p, &options);
    assert_non_null(plan);
    for (int pass = CONV_FFT_FORWARD; pass <= CONV_FFT_BACKWARD_WEIGHTS; pass *= 2)
        assert_true(layer_check_pass_roughly(&l, plan, (conv_fft_pass)pass));
    outputs alone = create_outputs(&l, plan);
    assert_true(run(&l, plan, &alone));
    job jobs[THREADS] = {{0}};
    for (int t = 0; t < THREADS; t++)
        jobs[t] = (job){.plan = plan, .layer = &l, .expected = &alone, .own = create_outputs(&l, plan)};
    run_jobs(jobs, share_plan);
    for (int t = 0; t < THREADS; t++)
        destroy_outputs(&jobs[t].own);
    destroy_outputs(&alone);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}

static void *create_plans(void *argument) {
    static const char *const lines[] = {
        "in=2x3x9x10 out=4 kernel=3x4 pad=1", "in=2x4x30 out=4 kernel=7 groups=4 dtype=fp64",
        "in=1x2x5x6x7 out=3 kernel=2x3x2 mode=circular pad=1", "in=3x2x17 out=5 kernel=3 stride=2 dtype=bf16"};
    job *j = argument;
    for (int round = 0; round < ROUNDS; round++) {
        conv_fft_problem p;
        conv_fft_plan *plan = NULL;
        j->failures += conv_fft_problem_parse(lines[(j->number + round) % 4], &p, NULL, 0) != CONV_FFT_SUCCESS;
        j->failures += conv_fft_plan_create(j->context, &p, NULL, &plan) != CONV_FFT_SUCCESS;
        size_t bytes = 0;
        j->failures += conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD, &bytes) != CONV_FFT_SUCCESS;
        j->failures += !run(j->layer, j->plan, &j->own) || !same(j->expected, &j->own);
        conv_fft_plan_destroy(plan);
    }
    return NULL;
}

void threads_make_plans(conv_fft_context *context) {
    const conv_fft_problem p = test_problem("in=2x6x12x12 out=6 kernel=3x3 pad=1");
    generator g = test_generator(2);
    layer l = layer_create(&p, &g);
    conv_fft_plan *plan = test_plan(context, &p, NULL);
    assert_non_null(plan);
    outputs alone = create_outputs(&l, plan);
    assert_true(run(&l, plan, &alone));
    job jobs[THREADS] = {{0}};
    for (int t = 0; t < THREADS; t++)
        jobs[t] = (job){.context = context,
                        .plan = plan,
                        .layer = &l,
                        .expected = &alone,
                        .own = create_outputs(&l, plan),
                        .number = t};
    run_jobs(jobs, create_plans);
    for (int t = 0; t < THREADS; t++)
        destroy_outputs(&jobs[t].own);
    destroy_outputs(&alone);
    conv_fft_plan_destroy(plan);
    layer_destroy(&l);
}
