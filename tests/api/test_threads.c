/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads use one plan at the same time and get the same bits as one thread. Meanwhile plans are made and
 * destroyed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/layer.h"
#include "support/layer_threads.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    THREADS = 4,
    ROUNDS = 20
};

static void test_shared_plan(void **state) {
    (void)state;
    for (int threads = 1; threads <= 2; threads++) { /* inside each call */
        conv_fft_context *context = test_context(threads);
        threads_share_plan(context, "in=4x12x7x21 out=10 kernel=3x3 stride=1x4 dilation=1x2 pad=2", "blas");
        threads_share_plan(context, "in=2x12x100 out=12 kernel=9 stride=2 dtype=fp64 groups=2", "blas");
        threads_share_plan(context, "in=3x6x13x14 out=6 kernel=3x3 pad=1 mode=circular", "loop");
        threads_share_plan(context, "in=2x8x13x14 out=8 kernel=3x3 pad=2 mode=reflect groups=8 layout=last dtype=fp16",
                           "loop");
        conv_fft_context_destroy(context);
    }
}

static void test_plans_meanwhile(void **state) {
    (void)state;
    conv_fft_context *context = test_context(2);
    threads_make_plans(context);
    conv_fft_context_destroy(context);
}

/* cmocka's assertions work in the main thread only, so a thread counts its failures. */
typedef struct job {
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

static void *create_contexts(void *argument) {
    job *j = argument;
    for (int round = 0; round < ROUNDS; round++) {
        conv_fft_context_options options;
        conv_fft_context *context = NULL;
        conv_fft_context_options_init(&options);
        options.device = CONV_FFT_DEVICE_CPU;
        j->failures += conv_fft_context_create(&options, &context) != CONV_FFT_SUCCESS;
        conv_fft_context_destroy(context);
    }
    return NULL;
}

static void test_contexts(void **state) {
    (void)state;
    job jobs[THREADS] = {{0}};
    run_jobs(jobs, create_contexts);
}

/* Each thread fails in its own way and reads its own message. */
static void *misuse(void *argument) {
    job *j = argument;
    char expected[32];
    snprintf(expected, sizeof expected, "%d", 1000 + j->number);
    j->failures += strcmp(conv_fft_last_error(), "") != 0;
    for (int round = 0; round < 100 * ROUNDS; round++) {
        conv_fft_problem p;
        j->failures += conv_fft_problem_init(&p, 1000 + j->number) != CONV_FFT_INVALID_ARGUMENT;
        j->failures += strstr(conv_fft_last_error(), expected) == NULL;
    }
    return NULL;
}

static void test_last_error_of_each_thread(void **state) {
    (void)state;
    conv_fft_problem p;
    assert_int_equal(conv_fft_problem_init(&p, 77), CONV_FFT_INVALID_ARGUMENT);
    job jobs[THREADS] = {{0}};
    for (int t = 0; t < THREADS; t++)
        jobs[t].number = t;
    run_jobs(jobs, misuse);
    assert_non_null(strstr(conv_fft_last_error(), "77"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_plan),
        cmocka_unit_test(test_plans_meanwhile),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_last_error_of_each_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
