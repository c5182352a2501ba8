/* SPDX-License-Identifier: Apache-2.0 */
/* Bad arguments of the layer's calls, one at a time. A refused call writes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/error_text.h"
#include "support/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static conv_fft_context *context;
static layer the_layer;
static conv_fft_plan *plan;       /* all passes, spectra kept */
static conv_fft_plan *plan_of[8]; /* by its passes */

/* Every argument of every call, with good values. */
typedef struct arguments {
    const conv_fft_plan *plan;
    const void *x, *w, *bias, *gy;
    void *y, *gx, *gw, *gbias, *x_spectrum, *w_spectrum, *workspace;
    unsigned flags;
    size_t bytes;
} arguments;

static guarded workspace, spectra[2];

static arguments good(void) {
    return (arguments){.plan = plan,
                       .x = the_layer.x.tensor.memory.data,
                       .w = the_layer.w.tensor.memory.data,
                       .bias = the_layer.bias.tensor.memory.data,
                       .gy = the_layer.gy.tensor.memory.data,
                       .y = the_layer.y.tensor.memory.data,
                       .gx = the_layer.gx.tensor.memory.data,
                       .gw = the_layer.gw.tensor.memory.data,
                       .gbias = the_layer.gbias.tensor.memory.data,
                       .x_spectrum = spectra[0].data,
                       .w_spectrum = spectra[1].data,
                       .workspace = workspace.data,
                       .bytes = workspace.bytes};
}

typedef conv_fft_status (*layer_call)(const arguments *a);

static conv_fft_status forward(const arguments *a) {
    return conv_fft_forward(a->plan, a->x, a->w, a->bias, a->y, a->workspace, a->bytes, NULL);
}

static conv_fft_status forward_kept(const arguments *a) {
    return conv_fft_forward_kept(a->plan, a->x, a->w, a->bias, a->y, a->x_spectrum, a->w_spectrum, a->workspace,
                                 a->bytes, NULL);
}

static conv_fft_status backward(const arguments *a) {
    return conv_fft_backward(a->plan, a->x, a->w, a->gy, a->gx, a->gw, a->gbias, a->flags, a->workspace, a->bytes,
                             NULL);
}

static conv_fft_status backward_kept(const arguments *a) {
    return conv_fft_backward_kept(a->plan, a->x, a->w, a->gy, a->gx, a->gw, a->gbias, a->flags, a->x_spectrum,
                                  a->w_spectrum, a->workspace, a->bytes, NULL);
}

static conv_fft_status backward_data(const arguments *a) {
    return conv_fft_backward_data(a->plan, a->w, a->gy, a->gx, a->flags, a->workspace, a->bytes, NULL);
}

static conv_fft_status backward_weights(const arguments *a) {
    return conv_fft_backward_weights(a->plan, a->x, a->gy, a->gw, a->gbias, a->flags, a->workspace, a->bytes, NULL);
}

static conv_fft_status transform_weights(const arguments *a) {
    return conv_fft_transform_weights(a->plan, a->w, a->w_spectrum, a->workspace, a->bytes, NULL);
}

static void remember_all(void) {
    result *results[] = {&the_layer.y, &the_layer.gx, &the_layer.gw, &the_layer.gbias};
    for (int r = 0; r < 4; r++)
        tensor_poison(&results[r]->tensor);
    guarded_remember(&workspace);
    guarded_remember(&spectra[0]);
    guarded_remember(&spectra[1]);
}

static void assert_nothing_written(void) {
    assert_true(tensor_untouched(&the_layer.y.tensor) && tensor_untouched(&the_layer.gx.tensor) &&
                tensor_untouched(&the_layer.gw.tensor) && tensor_untouched(&the_layer.gbias.tensor));
    assert_true(guarded_untouched(&workspace) && guarded_untouched(&spectra[0]) && guarded_untouched(&spectra[1]));
}

#define BAD_CALL(call, assignment, ...)        \
    do {                                       \
        arguments a = good();                  \
        remember_all();                        \
        a.assignment;                          \
        EXPECT_INVALID(call(&a), __VA_ARGS__); \
        assert_nothing_written();              \
    } while (0)

/* b overlaps a, at an address of 8 bytes' alignment. Both orders of their names are right. */
#define OVERLAP(call, a_, b_, shift)                                      \
    do {                                                                  \
        arguments a = good();                                             \
        remember_all();                                                   \
        a.b_ = (void *)(((uintptr_t)a.a_ + 7 + (shift)) & ~(uintptr_t)7); \
        assert_int_equal(call(&a), CONV_FFT_INVALID_ARGUMENT);            \
        assert_overlap_names(#a_, #b_);                                   \
        assert_nothing_written();                                         \
    } while (0)

static void assert_overlap_names(const char *a, const char *b) {
    char one[64], other[64];
    const char *said = conv_fft_last_error();
    snprintf(one, sizeof one, "%s (", a);
    snprintf(other, sizeof other, "overlaps %s (", b);
    const bool first = strncmp(said, one, strlen(one)) == 0 && strstr(said, other);
    snprintf(one, sizeof one, "%s (", b);
    snprintf(other, sizeof other, "overlaps %s (", a);
    if (!first && !(strncmp(said, one, strlen(one)) == 0 && strstr(said, other)))
        fail_msg("%s and %s: %s", a, b, said);
}

/* The next address. Only an element of one byte may be there. */
#define ODD(pointer) ((void *)((uintptr_t)(pointer) + 1))
#define HALF(pointer) ((void *)((char *)(pointer) + 4)) /* into a complex number */

/* Each output overlaps each other argument, at its beginning and at its last element. */
static void test_overlaps(void **state) {
    (void)state;
    OVERLAP(forward, x, y, 0);
    OVERLAP(forward, w, y, 0);
    OVERLAP(forward, bias, y, 0);
    OVERLAP(forward, x, y, (ptrdiff_t)the_layer.x.tensor.memory.bytes - 64);
    OVERLAP(forward, y, x, (ptrdiff_t)the_layer.y.tensor.memory.bytes - 64);
    /* The smaller one moves into the larger one, so that it overlaps nothing else. */
    OVERLAP(forward, workspace, y, 0);
    OVERLAP(forward, workspace, x, 0);
    OVERLAP(forward, workspace, w, 16);
    OVERLAP(forward, workspace, bias, 16);
    OVERLAP(forward_kept, x_spectrum, x, 0);
    OVERLAP(forward_kept, x_spectrum, bias, 0);
    OVERLAP(forward_kept, w_spectrum, w, 0);
    OVERLAP(backward, gy, gx, 0);
    OVERLAP(backward, w, gw, 0);
    OVERLAP(backward, gx, gw, 0);
    OVERLAP(backward, x, gx, 0);
    OVERLAP(backward, gw, gbias, 0);
    OVERLAP(backward, workspace, gbias, 0);
    OVERLAP(backward, workspace, gy, 0);
    OVERLAP(backward_data, gy, gx, 0);
    OVERLAP(backward_weights, x, gw, 0);
    OVERLAP(transform_weights, w_spectrum, w, 0);
    OVERLAP(transform_weights, workspace, w, 0);
    /* What a call does not touch does not count. */
    arguments a = good();
    a.bytes = workspace.bytes;
    a.gbias = NULL;
    assert_int_equal(backward_data(&a), CONV_FFT_SUCCESS);
}

/* Channels of one buffer: x and y lie in each other's gaps. The same channels are refused. */
static void test_tensors_in_gaps(void **state) {
    (void)state;
    enum {
        CHANNELS = 3,
        SIZE = 12
    };
    conv_fft_problem p;
    conv_fft_plan *made;
    size_t bytes;
    static float buffer[2][2 * CHANNELS][SIZE], w[CHANNELS][CHANNELS][3];
    conv_fft_problem_init(&p, 1);
    p.batch = 2;
    p.in_channels = p.out_channels = CHANNELS;
    p.input[0] = SIZE;
    p.kernel[0] = 3;
    p.pad_before[0] = p.pad_after[0] = 1;
    p.x_stride[0] = p.y_stride[0] = (int64_t)2 * CHANNELS * SIZE;
    p.x_stride[1] = p.y_stride[1] = SIZE;
    p.x_stride[2] = p.y_stride[2] = 1;
    conv_fft_context_options options;
    conv_fft_context *cpu;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    assert_int_equal(conv_fft_context_create(&options, &cpu), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_create(cpu, &p, NULL, &made), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_plan_workspace(made, CONV_FFT_FORWARD, &bytes), CONV_FFT_SUCCESS);
    void *memory = malloc(bytes + 1);
    assert_int_equal(conv_fft_forward(made, buffer[0][0], w, NULL, buffer[0][CHANNELS], memory, bytes, NULL),
                     CONV_FFT_SUCCESS);
    EXPECT_INVALID(conv_fft_forward(made, buffer[0][0], w, NULL, buffer[0][0], memory, bytes, NULL), "y (",
                   "overlaps x", "must not overlap");
    free(memory);
    conv_fft_plan_destroy(made);
    conv_fft_context_destroy(cpu);
}

static void test_good_calls(void **state) {
    (void)state;
    static const layer_call calls[] = {forward,       forward_kept,     backward,         backward_kept,
                                       backward_data, backward_weights, transform_weights};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const arguments a = good();
        assert_int_equal(calls[i](&a), CONV_FFT_SUCCESS);
    }
}

static void test_null_arguments(void **state) {
    (void)state;
    BAD_CALL(forward, plan = NULL, "plan", "NULL");
    BAD_CALL(forward, x = NULL, "x is NULL");
    BAD_CALL(forward, w = NULL, "w is NULL");
    BAD_CALL(forward, y = NULL, "y is NULL");
    BAD_CALL(forward, workspace = NULL, "workspace is NULL");
    BAD_CALL(forward_kept, plan = NULL, "plan", "NULL");
    BAD_CALL(forward_kept, x = a.x_spectrum = NULL, "x is NULL");
    BAD_CALL(forward_kept, w = a.w_spectrum = NULL, "w is NULL");
    BAD_CALL(forward_kept, y = NULL, "y is NULL");
    BAD_CALL(backward, plan = NULL, "plan", "NULL");
    BAD_CALL(backward, x = NULL, "x is NULL");
    BAD_CALL(backward, w = NULL, "w is NULL");
    BAD_CALL(backward, gy = NULL, "gy is NULL");
    BAD_CALL(backward, workspace = NULL, "workspace is NULL");
    BAD_CALL(backward_kept, plan = NULL, "plan", "NULL");
    BAD_CALL(backward_kept, x = a.x_spectrum = NULL, "x is NULL");
    BAD_CALL(backward_kept, w = a.w_spectrum = NULL, "w is NULL");
    BAD_CALL(backward_kept, gy = NULL, "gy is NULL");
    BAD_CALL(backward_data, plan = NULL, "plan", "NULL");
    BAD_CALL(backward_data, w = NULL, "w is NULL");
    BAD_CALL(backward_data, gy = NULL, "gy is NULL");
    BAD_CALL(backward_data, gx = NULL, "gx is NULL");
    BAD_CALL(backward_weights, plan = NULL, "plan", "NULL");
    BAD_CALL(backward_weights, x = NULL, "x is NULL");
    BAD_CALL(backward_weights, gy = NULL, "gy is NULL");
    BAD_CALL(backward_weights, gw = NULL, "gw is NULL");
    BAD_CALL(transform_weights, plan = NULL, "plan", "NULL");
    BAD_CALL(transform_weights, w = NULL, "w is NULL");
    BAD_CALL(transform_weights, w_spectrum = NULL, "w_spectrum", "NULL");
    BAD_CALL(transform_weights, workspace = NULL, "workspace is NULL");
}

static void test_misaligned(void **state) {
    (void)state;
    BAD_CALL(forward, x = ODD(a.x), "x is", "multiple of 4");
    BAD_CALL(forward, w = ODD(a.w), "w is", "multiple of 4");
    BAD_CALL(forward, bias = ODD(a.bias), "bias is", "multiple of 4");
    BAD_CALL(forward, y = ODD(a.y), "y is", "multiple of 4");
    BAD_CALL(backward, x = ODD(a.x), "x is", "multiple of 4");
    BAD_CALL(backward, w = ODD(a.w), "w is", "multiple of 4");
    BAD_CALL(backward, gy = ODD(a.gy), "gy is", "multiple of 4");
    BAD_CALL(backward, gx = ODD(a.gx), "gx is", "multiple of 4");
    BAD_CALL(backward, gw = ODD(a.gw), "gw is", "multiple of 4");
    BAD_CALL(backward, gbias = ODD(a.gbias), "gbias is", "multiple of 4");
    BAD_CALL(transform_weights, w = ODD(a.w), "w is", "multiple of 4");
    BAD_CALL(forward_kept, x_spectrum = HALF(a.x_spectrum), "x_spectrum is", "multiple of 8");
    BAD_CALL(forward_kept, w_spectrum = HALF(a.w_spectrum), "w_spectrum is", "multiple of 8");
    BAD_CALL(backward_kept, x_spectrum = HALF(a.x_spectrum), "x_spectrum is", "multiple of 8");
    BAD_CALL(backward_kept, w_spectrum = HALF(a.w_spectrum), "w_spectrum is", "multiple of 8");
    BAD_CALL(transform_weights, w_spectrum = HALF(a.w_spectrum), "w_spectrum is", "multiple of 8");
}

/* One byte less than a pass needs is refused with a message that has both sizes. */
static void test_small_workspace(void **state) {
    (void)state;
    static const struct {
        layer_call call;
        conv_fft_pass pass;
    } cases[] = {{forward, CONV_FFT_FORWARD},
                 {forward_kept, CONV_FFT_FORWARD},
                 {backward, CONV_FFT_BACKWARD},
                 {backward_kept, CONV_FFT_BACKWARD},
                 {backward_data, CONV_FFT_BACKWARD_DATA},
                 {backward_weights, CONV_FFT_BACKWARD_WEIGHTS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t bytes;
        char needed[32], given[32];
        assert_int_equal(conv_fft_plan_workspace(plan, cases[i].pass, &bytes), CONV_FFT_SUCCESS);
        assert_true(bytes > 1);
        snprintf(needed, sizeof needed, "%zu", bytes);
        snprintf(given, sizeof given, "%zu", bytes - 1);
        BAD_CALL(cases[i].call, bytes = bytes - 1, "workspace_bytes", given, needed);
        BAD_CALL(cases[i].call, bytes = 0, "workspace_bytes is 0", needed);
    }
    BAD_CALL(transform_weights, bytes = 0, "workspace_bytes is 0");
}

static void test_wrong_plan(void **state) {
    (void)state;
    const conv_fft_plan *of_forward = plan_of[CONV_FFT_FORWARD], *of_data = plan_of[CONV_FFT_BACKWARD_DATA],
                        *of_weights = plan_of[CONV_FFT_BACKWARD_WEIGHTS];
    BAD_CALL(forward, plan = of_data, "plan was made for", "2");
    BAD_CALL(forward, plan = plan_of[CONV_FFT_BACKWARD], "plan was made for", "6");
    BAD_CALL(backward_data, plan = of_forward, "plan was made for", "1");
    BAD_CALL(backward_data, plan = of_weights, "plan was made for", "4");
    BAD_CALL(backward_weights, plan = of_forward, "plan was made for", "1");
    BAD_CALL(backward_weights, plan = of_data, "plan was made for", "2");
    BAD_CALL(backward, plan = of_data, "plan was made for", "2");
    BAD_CALL(backward, plan = of_weights, "plan was made for", "4");
    BAD_CALL(backward, plan = of_forward; a.gx = a.gw = NULL, "plan was made for", "1"); /* gbias alone */
    BAD_CALL(transform_weights, plan = of_weights, "operand", "w");
    size_t bytes = 12345;
    EXPECT_INVALID(conv_fft_plan_workspace(of_forward, CONV_FFT_BACKWARD_DATA, &bytes), "plan was made for", "1");
    EXPECT_INVALID(conv_fft_plan_workspace(of_data, CONV_FFT_BACKWARD, &bytes), "plan was made for", "2");
    assert_int_equal(bytes, 12345);
}

static void test_flags(void **state) {
    (void)state;
    BAD_CALL(backward, flags = 8, "flags", "8", "1");
    BAD_CALL(backward_kept, flags = 9, "flags", "9", "1");
    BAD_CALL(backward_data, flags = 1u << 31, "flags", "2147483648", "1");
    BAD_CALL(backward_weights, flags = 16, "flags", "16", "1");
}

/* For an empty batch, only the tensors that are set to zero are needed. */
static void test_empty_batch(void **state) {
    (void)state;
    conv_fft_problem p;
    float gx[1] = {1}, gw[6 * 2 * 3 * 4], gbias[6];
    assert_int_equal(conv_fft_problem_parse("in=0x4x9x10 out=6 kernel=3x4 pad=1 groups=2", &p, NULL, 0),
                     CONV_FFT_SUCCESS);
    conv_fft_plan *empty = test_plan(context, &p, NULL);
    memset(gw, 0x3f, sizeof gw);
    memset(gbias, 0x3f, sizeof gbias);
    assert_int_equal(conv_fft_backward(empty, NULL, NULL, NULL, gx, gw, gbias, 0, NULL, 0, NULL), CONV_FFT_SUCCESS);
    assert_int_equal(conv_fft_backward_data(empty, NULL, NULL, gx, 0, NULL, 0, NULL), CONV_FFT_SUCCESS);
    for (size_t i = 0; i < sizeof gw / sizeof gw[0]; i++)
        assert_true(gw[i] == 0);
    for (size_t i = 0; i < sizeof gbias / sizeof gbias[0]; i++)
        assert_true(gbias[i] == 0);
    assert_true(gx[0] == 1);
    conv_fft_plan_destroy(empty);
}

/* After a plan has run on several threads, a child process computes the same results with its parent's plan and with a
 * plan of its own. */
static int run_child(const conv_fft_problem *p, layer *l, const conv_fft_plan *parents, const guarded *ws) {
    const tensor *y = &l->y.tensor;
    const size_t bytes = (size_t)y->count * sizeof(float);
    conv_fft_context *own = test_context(2);
    conv_fft_plan *const plans[] = {NULL, test_plan(own, p, NULL)};
    float *const expected = test_alloc(bytes);
    memcpy(expected, y->memory.data, bytes);
    for (int i = 0; i < 2; i++) {
        memset(y->memory.data, 0x3f, bytes);
        if (conv_fft_forward(i ? plans[1] : parents, l->x.tensor.memory.data, l->w.tensor.memory.data, NULL,
                             y->memory.data, ws->data, ws->bytes, NULL) != CONV_FFT_SUCCESS)
            return 2;
        if (memcmp(expected, y->memory.data, bytes) != 0)
            return 3;
    }
    return 0;
}

static void test_forked_child(void **state) {
    (void)state;
    conv_fft_problem p;
    generator g = test_generator(1);
    size_t bytes = 0;
    assert_int_equal(conv_fft_problem_parse("in=4x16x32x32 out=32 kernel=9x9", &p, NULL, 0), CONV_FFT_SUCCESS);
    layer l = layer_create(&p, &g);
    conv_fft_context *own = test_context(2);
    conv_fft_plan *made = test_plan(own, &p, NULL);
    assert_int_equal(conv_fft_plan_workspace(made, CONV_FFT_FORWARD, &bytes), CONV_FFT_SUCCESS);
    guarded ws = guarded_create(bytes, 1);
    assert_int_equal(conv_fft_forward(made, l.x.tensor.memory.data, l.w.tensor.memory.data, NULL,
                                      l.y.tensor.memory.data, ws.data, ws.bytes, NULL),
                     CONV_FFT_SUCCESS);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(run_child(&p, &l, made, &ws));
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    guarded_destroy(&ws);
    conv_fft_plan_destroy(made);
    conv_fft_context_destroy(own);
    layer_destroy(&l);
}

static int create_all(void **state) {
    (void)state;
    conv_fft_problem p;
    conv_fft_plan_options options;
    generator g = test_generator(1);
    context = test_context(0);
    if (conv_fft_problem_parse("in=3x4x9x10 out=6 kernel=3x4 pad=1 groups=2", &p, NULL, 0) != CONV_FFT_SUCCESS)
        return -1;
    case_begin("in=3x4x9x10 out=6 kernel=3x4 pad=1 groups=2", NULL);
    the_layer = layer_create(&p, &g);
    conv_fft_plan_options_init(&options);
    for (int passes = 1; passes <= CONV_FFT_ALL_PASSES; passes++) {
        options.passes = passes;
        plan_of[passes] = test_plan(context, &p, &options);
    }
    options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
    plan = test_plan(context, &p, &options);
    size_t forward_bytes = 0, backward_bytes = 0, x_bytes = 0, w_bytes = 0;
    conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &forward_bytes);
    conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD, &backward_bytes);
    conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_X, &x_bytes);
    conv_fft_plan_spectrum(plan, CONV_FFT_OPERAND_W, &w_bytes);
    workspace = guarded_create(forward_bytes > backward_bytes ? forward_bytes : backward_bytes, 1);
    spectra[0] = guarded_create(x_bytes, 8);
    spectra[1] = guarded_create(w_bytes, 8);
    return case_failures();
}

static int destroy_all(void **state) {
    (void)state;
    guarded_destroy(&workspace);
    guarded_destroy(&spectra[0]);
    guarded_destroy(&spectra[1]);
    for (int passes = 1; passes <= CONV_FFT_ALL_PASSES; passes++)
        conv_fft_plan_destroy(plan_of[passes]);
    conv_fft_plan_destroy(plan);
    layer_destroy(&the_layer);
    conv_fft_context_destroy(context);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_calls),  cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_misaligned),  cmocka_unit_test(test_small_workspace),
        cmocka_unit_test(test_wrong_plan),  cmocka_unit_test(test_flags),
        cmocka_unit_test(test_empty_batch), cmocka_unit_test(test_forked_child),
        cmocka_unit_test(test_overlaps),    cmocka_unit_test(test_tensors_in_gaps),
    };
    return cmocka_run_group_tests(tests, create_all, destroy_all);
}
