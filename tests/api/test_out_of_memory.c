/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation fails in turn. Names below that begin with __wrap_ replace the functions that the library and the
 * test call (linker option --wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fbfft.h"
#include "support/layer.h"
#include "support/selection.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **memory, size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
void __real_free(void *memory);

/* While `armed`, allocations are numbered from 0; number `fail_at` fails, and all after it if `persistent`. */
static atomic_bool armed;
static atomic_int calls, failed, balance;
static int fail_at;
static bool persistent;

static bool allowed(void) {
    if (!armed)
        return true;
    const int number = atomic_fetch_add(&calls, 1);
    const bool fails = persistent ? number >= fail_at : number == fail_at;
    failed += fails;
    return !fails;
}

static void *counted(void *memory) {
    if (armed && memory)
        balance++;
    return memory;
}

void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return allowed() ? counted(__real_malloc(bytes)) : NULL; }

void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes) { return allowed() ? counted(__real_calloc(count, bytes)) : NULL; }

/* A block that moves still counts as one block. */
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes) {
    if (!allowed())
        return NULL;
    return memory ? __real_realloc(memory, bytes) : counted(__real_realloc(NULL, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
    return allowed() ? counted(__real_aligned_alloc(alignment, bytes)) : NULL;
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t bytes) {
    if (!allowed())
        return ENOMEM;
    const int error = __real_posix_memalign(memory, alignment, bytes);
    if (!error)
        counted(*memory);
    return error;
}

char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) { return allowed() ? counted(__real_strdup(text)) : NULL; }

void __wrap_free(void *memory);
void __wrap_free(void *memory) {
    if (armed && memory)
        balance--;
    __real_free(memory);
}

static void arm(int number, bool persistently) {
    calls = failed = balance = 0;
    fail_at = number;
    persistent = persistently;
    armed = true;
}

static void disarm(void) { armed = false; }

/* ---- the calls under test: make something, then undo it; the status of the making */

typedef conv_fft_status (*make_and_undo)(void *argument);

static conv_fft_status make_context(void *argument) {
    (void)argument;
    conv_fft_context_options options;
    conv_fft_context_options_init(&options);
    options.device = CONV_FFT_DEVICE_CPU;
    options.threads = 2;
    conv_fft_context *context = NULL;
    const conv_fft_status status = conv_fft_context_create(&options, &context);
    if (status != CONV_FFT_SUCCESS && context)
        return CONV_FFT_INTERNAL_ERROR; /* a failed call leaves the handle as it was */
    conv_fft_context_destroy(context);
    return status;
}

typedef struct subject {
    conv_fft_context *context;
    conv_fft_problem problem;
    conv_fft_plan_options options;
    conv_fft_plan *plan;
} subject;

static conv_fft_status make_plan(void *argument) {
    subject *s = argument;
    conv_fft_plan *plan = NULL;
    const conv_fft_status status = conv_fft_plan_create(s->context, &s->problem, &s->options, &plan);
    if (status != CONV_FFT_SUCCESS && plan)
        return CONV_FFT_INTERNAL_ERROR;
    conv_fft_plan_destroy(plan);
    return status;
}

static conv_fft_status profile_plan(void *argument) {
    subject *s = argument;
    conv_fft_description description;
    return conv_fft_profile(s->plan, CONV_FFT_BACKWARD, 1, &description);
}

typedef struct transform {
    conv_fft_context *context;
    fbfft_desc desc;
} transform;

static conv_fft_status make_transform(void *argument) {
    const transform *t = argument;
    fbfft_plan *plan = NULL;
    const conv_fft_status status = fbfft_plan_create(t->context, &t->desc, &plan);
    if (status != CONV_FFT_SUCCESS && plan)
        return CONV_FFT_INTERNAL_ERROR;
    fbfft_plan_destroy(plan);
    return status;
}

/* Each allocation fails once. Under sanitizers only every seventh fails, and every third in searches, which allocate
 * alike for each candidate; the seed chooses them. With a share of 100 % all of them fail. */
static int step_of_failures(int count) {
    if (test_share() == 100)
        return 1;
    return TEST_AMOUNT(1, 7) * (count > 100 ? 3 : 1);
}

/* The number of allocations of a call. */
static int count_allocations(make_and_undo call, void *argument) {
    arm(INT_MAX, false);
    const conv_fft_status status = call(argument);
    disarm();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(balance, 0);
    assert_in_range(calls, 1, 10000);
    return calls;
}

/* Let allocation 0, 1, 2, ... of the call fail. */
static void fail_each(make_and_undo call, void *argument, bool persistently) {
    const int count = count_allocations(call, argument), step = step_of_failures(count);
    replay_on_failure();
    for (int number = (int)(test_seed() % (uint64_t)step); number < count; number += step) {
        arm(number, persistently);
        const conv_fft_status status = call(argument);
        disarm();
        if (!failed)
            fail_msg("of %d allocations, number %d was not made", count, number);
        if (status != CONV_FFT_OUT_OF_MEMORY)
            fail_msg("allocation %d failed: status is %s", number, conv_fft_status_string(status));
        assert_non_null(strstr(conv_fft_last_error(), "memory"));
        if (balance != 0)
            fail_msg("allocation %d failed: %d blocks are left", number, balance);
        if (number % (4 * step) < step)
            assert_int_equal(call(argument), CONV_FFT_SUCCESS); /* the next try */
    }
    assert_int_equal(count_allocations(call, argument), count);
}

static void test_context_create(void **state) {
    (void)state;
    make_context(NULL); /* what is opened once per process is open now */
    fail_each(make_context, NULL, false);
    fail_each(make_context, NULL, true);
}

static const char *const lines[] = {
    "in=2x4x12x13 out=6 kernel=3x4 pad=1 groups=2",
    "in=2x3x11x10 out=4 kernel=4x3 pad=2 stride=2 mode=reflect dtype=fp16 gw=fp32 layout=last",
    "in=1x2x300 out=3 kernel=7 dilation=3 dtype=fp64",
    "in=2x2x6x7x5 out=2 kernel=3x3x2 mode=circular pad=1",
};

static subject create_subject(const char *line) {
    subject s = {.context = test_context(2)};
    assert_int_equal(conv_fft_problem_parse(line, &s.problem, NULL, 0), CONV_FFT_SUCCESS);
    conv_fft_plan_options_init(&s.options);
    case_begin(line, NULL);
    return s;
}

static void check_plan(subject *s) {
    assert_int_equal(make_plan(s), CONV_FFT_SUCCESS);
    fail_each(make_plan, s, false);
    fail_each(make_plan, s, true);
}

static void test_plan_create(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        subject s = create_subject(lines[i]);
        check_plan(&s);
        s.options.keep = CONV_FFT_OPERAND_X | CONV_FFT_OPERAND_W;
        check_plan(&s);
        s.options.workspace_limit = smallest_workspace_limit(s.context, &s.problem, &s.options);
        check_plan(&s);
        conv_fft_context_destroy(s.context);
    }
}

/* Plans of fbfft.h. One of them is run while the first allocation would fail. */
static void test_transform(void **state) {
    (void)state;
    transform t = {.context = test_context(2)};
    float in[8 * 12] = {0}, out[8 * 14];
    size_t bytes = 0;
    fbfft_plan *plan = NULL;
    fbfft_desc_init(&t.desc, 1, FBFFT_R2C);
    t.desc.basis[0] = 12;
    fail_each(make_transform, &t, false);
    fail_each(make_transform, &t, true);
    assert_int_equal(fbfft_plan_create(t.context, &t.desc, &plan), CONV_FFT_SUCCESS);
    assert_int_equal(fbfft_plan_workspace(plan, 8, &bytes), CONV_FFT_SUCCESS);
    void *const workspace = test_alloc(bytes);
    arm(0, true);
    const conv_fft_status status = fbfft_execute(plan, in, out, 8, workspace, bytes, NULL);
    disarm();
    assert_int_equal(status, CONV_FFT_SUCCESS);
    assert_int_equal(calls, 0);
    free(workspace);
    fbfft_plan_destroy(plan);
    conv_fft_context_destroy(t.context);
}

static void test_profile(void **state) {
    (void)state;
    subject s = create_subject(lines[0]);
    s.plan = test_plan(s.context, &s.problem, &s.options);
    assert_non_null(s.plan);
    assert_int_equal(profile_plan(&s), CONV_FFT_SUCCESS);
    fail_each(profile_plan, &s, false);
    fail_each(profile_plan, &s, true);
    conv_fft_plan_destroy(s.plan);
    conv_fft_context_destroy(s.context);
}

/* A call of a layer allocates nothing: the first allocation would fail. */
static void test_calls_allocate_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        subject s = create_subject(lines[i]);
        generator g = test_generator(i);
        layer l = layer_create(&s.problem, &g);
        s.plan = test_plan(s.context, &s.problem, NULL);
        guarded forward = layer_workspace(&l, s.plan, CONV_FFT_FORWARD);
        guarded backward = layer_workspace(&l, s.plan, CONV_FFT_BACKWARD);
        const void *x = l.x.tensor.memory.data, *w = l.w.tensor.memory.data;
        arm(0, true);
        const conv_fft_status first = conv_fft_forward(s.plan, x, w, l.bias.tensor.memory.data, l.y.tensor.memory.data,
                                                       forward.data, forward.bytes, NULL);
        const conv_fft_status second =
            conv_fft_backward(s.plan, x, w, l.gy.tensor.memory.data, l.gx.tensor.memory.data, l.gw.tensor.memory.data,
                              l.gbias.tensor.memory.data, 0, backward.data, backward.bytes, NULL);
        disarm();
        assert_int_equal(first, CONV_FFT_SUCCESS);
        assert_int_equal(second, CONV_FFT_SUCCESS);
        assert_int_equal(calls, 0);
        assert_int_equal(balance, 0);
        guarded_destroy(&forward);
        guarded_destroy(&backward);
        layer_destroy(&l);
        conv_fft_plan_destroy(s.plan);
        conv_fft_context_destroy(s.context);
    }
}

/* The replaced functions are called. */
static void test_allocations_are_intercepted(void **state) {
    (void)state;
    arm(1, false);
    void *volatile first = malloc(1);
    void *volatile second = malloc(1);
    void *volatile third = calloc(1, 1);
    disarm();
    assert_true(first && !second && third);
    assert_int_equal(calls, 3);
    assert_int_equal(balance, 2);
    free(first);
    free(third);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations_are_intercepted),
        cmocka_unit_test(test_context_create),
        cmocka_unit_test(test_plan_create),
        cmocka_unit_test(test_transform),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_calls_allocate_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
