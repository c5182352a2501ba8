/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/parallel.h"

#include "core/arith.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum {
    SPIN_NANOSECONDS = 50000, /* between the stages of a layer; longer would take time from others */
    SPINS = 32,               /* between two looks at the clock */
    CHUNKS = 8                /* that a thread takes of a loop if all threads are equally fast */
};

/* A loop that runs. It lives on its caller's stack. The pool's lock protects `joined`, `next_job` and changes of
 * `inside`. */
typedef struct job {
    cf_task task;
    const void *user;
    int64_t count, chunk;
    int threads, joined; /* the caller is thread 0 */
    atomic_llong next;   /* the first task that nobody has taken */
    atomic_int inside;   /* threads of the pool that work on it */
    struct job *next_job;
} job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted_now, left_now;
    job *jobs;
    int workers, asleep;
    atomic_uint posted; /* jobs since the start */
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .posted_now = PTHREAD_COND_INITIALIZER, .left_now = PTHREAD_COND_INITIALIZER};

/* ---- forks: the threads do not survive one, and the lock may be held */

static atomic_bool has_threads, forked;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void child_begins(void) {
    if (atomic_load_explicit(&has_threads, memory_order_relaxed))
        atomic_store_explicit(&forked, true, memory_order_relaxed);
}

static void watch_forks(void) { pthread_atfork(NULL, NULL, child_begins); }

/* ---- waiting */

static int64_t nanoseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool spins_on(int64_t *end) {
    if (*end == 0)
        *end = nanoseconds_now() + SPIN_NANOSECONDS;
    for (int i = 0; i < SPINS; ++i)
        pause_briefly();
    return nanoseconds_now() < *end;
}

/* Wait until a job was posted that this thread has not seen. The lock is held before and after. */
static void wait_for_job(void) {
    const unsigned seen = atomic_load(&pool.posted);
    int64_t end = 0;
    pthread_mutex_unlock(&pool.lock);
    while (atomic_load_explicit(&pool.posted, memory_order_relaxed) == seen && spins_on(&end))
        ;
    pthread_mutex_lock(&pool.lock);
    ++pool.asleep;
    while (atomic_load(&pool.posted) == seen)
        pthread_cond_wait(&pool.posted_now, &pool.lock);
    --pool.asleep;
}

/* The same for the end of the tasks that other threads have begun. */
static void wait_for_others(job *j) {
    int64_t end = 0;
    if (atomic_load(&j->inside) == 0)
        return;
    pthread_mutex_unlock(&pool.lock);
    while (atomic_load_explicit(&j->inside, memory_order_relaxed) > 0 && spins_on(&end))
        ;
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&j->inside) > 0)
        pthread_cond_wait(&pool.left_now, &pool.lock);
}

/* ---- working */

static void do_tasks(job *j, int thread) {
    for (int64_t first; (first = atomic_fetch_add_explicit(&j->next, j->chunk, memory_order_relaxed)) < j->count;)
        for (int64_t i = first; i < cf_min(first + j->chunk, j->count); ++i)
            j->task(j->user, i, thread);
}

static job *job_to_join(void) {
    for (job *j = pool.jobs; j; j = j->next_job)
        if (j->joined < j->threads && atomic_load_explicit(&j->next, memory_order_relaxed) < j->count)
            return j;
    return NULL;
}

static _Thread_local bool in_task;

static void *work(void *unused) {
    in_task = true;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        job *j = job_to_join();
        if (!j) {
            wait_for_job();
            continue;
        }
        const int thread = j->joined++;
        atomic_fetch_add(&j->inside, 1);
        pthread_mutex_unlock(&pool.lock);
        do_tasks(j, thread);
        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&j->inside, 1) == 1)
            pthread_cond_broadcast(&pool.left_now);
    }
    return unused;
}

/* If a thread cannot be started, the others do its work. Signals go to the program's own threads. */
static void start_workers(int wanted) {
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pool.workers >= wanted || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t started;
    while (pool.workers < wanted && pthread_create(&started, &attributes, work, NULL) == 0)
        ++pool.workers;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static void post(job *j) {
    start_workers(j->threads - 1);
    j->next_job = pool.jobs;
    pool.jobs = j;
    atomic_fetch_add(&pool.posted, 1);
    if (j->threads - 1 >= pool.asleep)
        pthread_cond_broadcast(&pool.posted_now);
    else
        for (int i = 1; i < j->threads; ++i)
            pthread_cond_signal(&pool.posted_now);
}

static void withdraw(job *j) {
    job **at = &pool.jobs;
    while (*at != j)
        at = &(*at)->next_job;
    *at = j->next_job;
}

void cf_parallel_for(int threads, int64_t count, cf_task task, const void *user) {
    threads = (int)cf_min(threads, count);
    if (threads <= 1 || in_task || atomic_load_explicit(&forked, memory_order_relaxed)) {
        for (int64_t i = 0; i < count; ++i)
            task(user, i, 0);
        return;
    }
    pthread_once(&watched, watch_forks);
    atomic_store_explicit(&has_threads, true, memory_order_relaxed);
    job j = {.task = task,
             .user = user,
             .count = count,
             .chunk = cf_max(1, count / ((int64_t)CHUNKS * threads)),
             .threads = threads,
             .joined = 1};
    pthread_mutex_lock(&pool.lock);
    post(&j);
    pthread_mutex_unlock(&pool.lock);
    in_task = true;
    do_tasks(&j, 0);
    in_task = false;
    pthread_mutex_lock(&pool.lock);
    withdraw(&j);
    wait_for_others(&j);
    pthread_mutex_unlock(&pool.lock);
}
