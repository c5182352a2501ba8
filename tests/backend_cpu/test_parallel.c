/* SPDX-License-Identifier: Apache-2.0 */
/* Loops on several threads: every task runs once, thread numbers are unique, and callers do not wait for each other. */
#include "cpu/parallel.h"

#include "cpu/device.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MAX_TASKS = 5000,
    MAX_THREADS = 8
};

static void sleep_for(long nanoseconds) { nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL); }

/* What the tasks of one loop have done. The numbers are not atomic: one thread writes each. */
typedef struct trace {
    int runs[MAX_TASKS];
    pthread_t by[MAX_TASKS];
    atomic_int busy[MAX_THREADS]; /* threads that use this number now */
    atomic_int clashes, highest;
    long nanoseconds; /* that each task sleeps */
} trace;

static void note(const void *user, int64_t i, int thread) {
    trace *const t = (trace *)user;
    if (thread < 0 || thread >= MAX_THREADS || atomic_fetch_add(&t->busy[thread], 1) != 0) {
        atomic_fetch_add(&t->clashes, 1);
        return;
    }
    if (t->nanoseconds)
        sleep_for(t->nanoseconds);
    ++t->runs[i];
    t->by[i] = pthread_self();
    for (int before = atomic_load(&t->highest);
         before < thread && !atomic_compare_exchange_weak(&t->highest, &before, thread);)
        ;
    atomic_fetch_sub(&t->busy[thread], 1);
}

static bool is_complete(const trace *t, int64_t count, int threads) {
    bool once = atomic_load(&t->clashes) == 0 && atomic_load(&t->highest) < threads;
    for (int64_t i = 0; i < MAX_TASKS; ++i)
        once = once && t->runs[i] == (i < count);
    return once;
}

static void test_every_task_once(void **state) {
    static const int64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, MAX_TASKS};
    (void)state;
    for (int threads = 1; threads <= MAX_THREADS; ++threads)
        for (int round = 0; round < 20; ++round)
            for (size_t k = 0; k < sizeof counts / sizeof *counts; ++k) {
                static trace t;
                memset(&t, 0, sizeof t);
                cf_parallel_for(threads, counts[k], note, &t);
                assert_true(is_complete(&t, counts[k], threads));
            }
}

/* Tasks that wait overlap, so other threads take part. After a pause the threads sleep, and wake again. */
static void test_others_help(void **state) {
    (void)state;
    for (int round = 0; round < 3; ++round) {
        static trace t;
        memset(&t, 0, sizeof t);
        t.nanoseconds = 5000000;
        cf_parallel_for(4, 16, note, &t);
        assert_true(is_complete(&t, 16, 4));
        assert_true(atomic_load(&t.highest) > 0);
        int own = 0;
        for (int i = 0; i < 16; ++i)
            own += pthread_equal(t.by[i], pthread_self()) != 0;
        assert_in_range(own, 1, 15);
        sleep_for(2000000);
    }
}

typedef struct outer {
    trace inner[4];
} outer;

static void run_inner(const void *user, int64_t i, int thread) {
    outer *const o = (outer *)user;
    (void)thread;
    cf_parallel_for(4, 50, note, &o->inner[i]);
}

static void test_nested_loops_stay_on_their_thread(void **state) {
    static outer o;
    (void)state;
    memset(&o, 0, sizeof o);
    cf_parallel_for(4, 4, run_inner, &o);
    for (int i = 0; i < 4; ++i) {
        assert_true(is_complete(&o.inner[i], 50, 1));
        for (int k = 1; k < 50; ++k)
            assert_true(pthread_equal(o.inner[i].by[0], o.inner[i].by[k]));
    }
}

static void *call_often(void *user) {
    bool *const good = user;
    trace *const t = calloc(1, sizeof *t);
    for (int round = 0; round < 200 && *good; ++round) {
        memset(t, 0, sizeof *t);
        cf_parallel_for(3, 40 + round, note, t);
        *good = is_complete(t, 40 + round, 3);
    }
    free(t);
    return NULL;
}

static void test_callers_share_the_threads(void **state) {
    pthread_t callers[4];
    bool good[4] = {true, true, true, true};
    (void)state;
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_create(&callers[i], NULL, call_often, &good[i]), 0);
    for (int i = 0; i < 4; ++i)
        assert_int_equal(pthread_join(callers[i], NULL), 0);
    for (int i = 0; i < 4; ++i)
        assert_true(good[i]);
}

static void *sleep_in_all_threads(void *user) {
    cf_parallel_for(MAX_THREADS, MAX_THREADS, note, user);
    return NULL;
}

/* A caller whose other threads are all held up computes alone. As on a busy host, it does not wait for them. */
static void test_does_not_wait_for_threads_that_have_not_begun(void **state) {
    static trace held, t;
    pthread_t caller;
    struct timespec begin, end;
    (void)state;
    memset(&held, 0, sizeof held);
    memset(&t, 0, sizeof t);
    held.nanoseconds = 900000000;
    assert_int_equal(pthread_create(&caller, NULL, sleep_in_all_threads, &held), 0);
    sleep_for(100000000);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    cf_parallel_for(MAX_THREADS, 1000, note, &t);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_int_equal(pthread_join(caller, NULL), 0);
    assert_true(is_complete(&t, 1000, MAX_THREADS));
    assert_true((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec) < 0.5);
}

/* The parent has used threads, and another caller may hold the lock at the fork. */
static void test_child_of_a_fork(void **state) {
    static trace t;
    pthread_t caller;
    bool good = true;
    (void)state;
    cf_parallel_for(2, 8, note, &t);
    assert_int_equal(pthread_create(&caller, NULL, call_often, &good), 0);
    for (int round = 0; round < 10; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(20);
            memset(&t, 0, sizeof t);
            cf_parallel_for(4, 100, note, &t);
            bool alone = is_complete(&t, 100, 1);
            for (int i = 0; i < 100; ++i)
                alone = alone && pthread_equal(t.by[i], pthread_self());
            _exit(alone ? 0 : 1);
        }
        int result = -1;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    }
    assert_int_equal(pthread_join(caller, NULL), 0);
    assert_true(good);
}

/* Small work runs on one thread, and large work on all. */
static void test_threads_grow_with_the_work(void **state) {
    cf_device *device = NULL;
    (void)state;
    assert_int_equal(cf_cpu_create(16, CONV_FFT_LOG_SILENT, &device), CONV_FFT_SUCCESS);
    int last = 1, steps = 0;
    for (double work = 0; work < 1e8; work = 1.3 * work + 1000) {
        const int threads = cf_cpu_threads(device, 1000, work);
        assert_in_range(threads, last, 16);
        assert_true(threads == 1 || work / threads > 2e5);
        steps += threads > last;
        last = threads;
    }
    assert_int_equal(last, 16);
    assert_true(steps > 4);
    assert_int_equal(cf_cpu_threads(device, 3, 1e12), 3);
    assert_int_equal(cf_cpu_threads(device, 0, 1e12), 1);
    cf_cpu_destroy(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_once),
        cmocka_unit_test(test_others_help),
        cmocka_unit_test(test_nested_loops_stay_on_their_thread),
        cmocka_unit_test(test_callers_share_the_threads),
        cmocka_unit_test(test_does_not_wait_for_threads_that_have_not_begun),
        cmocka_unit_test(test_child_of_a_fork),
        cmocka_unit_test(test_threads_grow_with_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
