/* SPDX-License-Identifier: Apache-2.0 */
/* The causal operation of family `cudnn` on substitutes of the GPU and of cuDNN, whose causal operations compute on the
 * host: results, which problems it takes, and what the family lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "conv/cudnn/cudnn.h"
#include "support/error_text.h"
#include "support/fake_context.h"
#include "support/layer.h"
#include "support/temp_dirs.h"

#include <stdlib.h>
#include <string.h>

#define FOLDERS FAKES_ALL ":" FAKES "/with_causal"
#define CAUSAL "cudnn algorithm=causal"
#define LINE "in=2x5x40 out=5 kernel=4 pad=3:0 groups=5"

static void results(void **state) {
    static const char *const lines[] = {
        LINE,
        "in=3x2x19 out=2 kernel=2 pad=1:0 groups=2 dtype=fp16",
        "in=1x3x300 out=3 kernel=256 pad=255:0 groups=3 dtype=bf16",
        "in=1x3x7 out=3 kernel=16 pad=15:0 groups=3",
        "in=2x3x30 out=3 kernel=7 pad=6:0 groups=3 dtype=fp64",
        "in=1x1x30 out=1 kernel=5 pad=4:0",
    };
    conv_fft_context *context = fake_context_create(FOLDERS, *state, false);
    generator g = test_generator(1);
    tensor_align(64);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const conv_fft_problem p = test_problem(lines[i]);
        const int launches = fake_launches();
        layer l = layer_create(&p, &g);
        conv_fft_plan *plan = good_forced_plan(context, lines[i], CONV_FFT_FORWARD, CAUSAL);
        assert_true(layer_check_forward(&l, plan, false));
        assert_true(layer_check_forward(&l, plan, true));
        assert_int_equal(fake_launches(), launches); /* no kernel of the library */
        conv_fft_plan_destroy(plan);
        layer_destroy(&l);
    }
    tensor_align(0);
    fake_context_destroy(context);
}

static void refused_problems(void **state) {
    static const struct {
        const char *line;
        conv_fft_pass pass;
        const char *why;
    } cases[] = {
        {LINE, CONV_FFT_BACKWARD_DATA, "computes forward passes"},
        {LINE, CONV_FFT_BACKWARD_WEIGHTS, "computes forward passes"},
        {LINE " dtype=fp16 w=fp32", CONV_FFT_FORWARD, "weights of the type"},
        {"in=2x5x40 out=10 kernel=4 pad=3:0 groups=5", CONV_FFT_FORWARD, "depthwise"},
        {"in=2x4x40 out=4 kernel=4 pad=3:0 groups=2", CONV_FFT_FORWARD, "depthwise"},
        {"in=2x5x40x2 out=5 kernel=4x1 pad=3:0x0 groups=5", CONV_FFT_FORWARD, "signals"},
        {"in=2x5x40 out=5 kernel=5 pad=2 groups=5", CONV_FFT_FORWARD, "before the signal and none after"},
        {"in=2x5x40 out=5 kernel=4 pad=0:3 groups=5", CONV_FFT_FORWARD, "before the signal and none after"},
        {"in=2x5x40 out=5 kernel=4 pad=3:0 groups=5 stride=2", CONV_FFT_FORWARD, "before the signal"},
        {"in=2x5x40 out=5 kernel=4 pad=3:0 groups=5 dilation=2", CONV_FFT_FORWARD, "before the signal"},
        {"in=2x5x40 out=5 kernel=1 groups=5", CONV_FFT_FORWARD, "has 2 to 8 taps"},
        {"in=2x5x40 out=5 kernel=9 pad=8:0 groups=5", CONV_FFT_FORWARD, "has 2 to 8 taps"},
        {"in=2x5x600 out=5 kernel=512 pad=511:0 groups=5", CONV_FFT_FORWARD, "has 2 to 8 taps"},
        {LINE " mode=reflect", CONV_FFT_FORWARD, "pads with zeros only"},
    };
    conv_fft_context *context = fake_context_create(FOLDERS, *state, false);
    conv_fft_plan *plan;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        EXPECT_INVALID(forced_plan(context, cases[i].line, cases[i].pass, CAUSAL, 0, &plan), cases[i].why);
    fake_context_destroy(context);
}

typedef struct list {
    char text[256];
    int count;
} list;

static bool visit(const cf_strategy *strategy, void *user) {
    list *l = user;
    l->count++;
    cf_strategy_format(strategy, 1, l->text, sizeof l->text);
    return true;
}

static list candidates(conv_fft_context *context, const char *line, int pass) {
    const conv_fft_problem p = test_problem(line);
    cf_layer checked;
    list l = {.count = 0};
    assert_int_equal(cf_layer_make(&p, &checked), CONV_FFT_SUCCESS);
    assert_int_equal(cf_cudnn_family.candidates(&checked, context->device, pass, visit, &l), CONV_FFT_SUCCESS);
    return l;
}

static void candidates_are_listed(void **state) {
    conv_fft_context *context = fake_context_create(FOLDERS, *state, false);
    const list forward = candidates(context, LINE, CF_PASS_FORWARD);
    assert_int_equal(forward.count, 1);
    assert_string_equal(forward.text, CAUSAL);
    assert_int_equal(candidates(context, LINE, CF_PASS_DATA).count, 0);
    assert_int_equal(candidates(context, LINE, CF_PASS_WEIGHTS).count, 0);
    fake_context_destroy(context);
}

/* cuDNN before 9.26 lacks the library, or functions of it. */
static void older_cudnn(void **state) {
    static const char *const folders[] = {FAKES_ALL, FAKES_ALL ":" FAKES "/lacking_causal"};
    static const char *const why[] = {"libcudnn_ext.so.9 was not found",
                                      "has no function cudnnFFTCausalConv1dBackward"};
    for (int i = 0; i < 2; i++) {
        conv_fft_context *context = fake_context_create(folders[i], *state, false);
        conv_fft_plan *plan;
        EXPECT(NOT_SUPPORTED, forced_plan(context, LINE, CONV_FFT_FORWARD, CAUSAL, 0, &plan), why[i]);
        assert_int_equal(candidates(context, LINE, CF_PASS_FORWARD).count, 0);
        fake_context_destroy(context);
    }
}

/* A kernel of the library reads tensors that are not aligned. An empty batch runs nothing. */
static void without_a_run(void **state) {
    conv_fft_context *context = fake_context_create(FOLDERS, *state, false);
    conv_fft_plan *plan = good_forced_plan(context, LINE, CONV_FFT_FORWARD, CAUSAL);
    float *memory = test_alloc(1 << 16), *y = memory + (1 << 12);
    int launches = fake_launches();
    assert_int_equal(conv_fft_forward(plan, memory + 1, memory + 512, NULL, y, memory + (2 << 12), 1 << 12, NULL),
                     CONV_FFT_SUCCESS);
    assert_int_equal(fake_launches(), launches + 1);
    assert_int_equal(conv_fft_forward(plan, memory, memory + 512, memory + 1025, y, memory + (2 << 12), 1 << 12, NULL),
                     CONV_FFT_SUCCESS);
    assert_int_equal(fake_launches(), launches + 2);
    conv_fft_plan_destroy(plan);
    plan = good_forced_plan(context, "in=0x5x40 out=5 kernel=4 pad=3:0 groups=5", CONV_FFT_FORWARD, CAUSAL);
    launches = fake_launches();
    assert_int_equal(conv_fft_forward(plan, NULL, memory, NULL, NULL, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(fake_launches(), launches);
    conv_fft_plan_destroy(plan);
    free(memory);
    fake_context_destroy(context);
}

/* The kernels compile if there is a compiler. */
static void kernels(void **state) {
    conv_fft_context *context = fake_context_create(FOLDERS, *state, true);
    conv_fft_plan_destroy(good_forced_plan(context, LINE " layout=last", CONV_FFT_FORWARD, CAUSAL));
    fake_context_destroy(context);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_create, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(results),     IN_SCRATCH(refused_problems), IN_SCRATCH(candidates_are_listed),
        IN_SCRATCH(older_cudnn), IN_SCRATCH(without_a_run),    IN_SCRATCH(kernels),
    };
    return cmocka_run_group_tests_name("causal operation of family cudnn", tests, NULL, NULL);
}
