/* SPDX-License-Identifier: Apache-2.0 */
#include "core/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    MAX_THREADS = 64
};

/* A status, and after a failure its message. A thread's own last error would be lost when the thread ends. */
typedef struct outcome {
    conv_fft_status status;
    char sentence[1024];
} outcome;

typedef struct work {
    conv_fft_status (*do_one)(void *user, int i);
    void *user;
    outcome *outcomes;
    int count;
    atomic_int next;
} work;

static void *take_turns(void *argument) {
    work *const w = argument;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->count;) {
        outcome *const o = &w->outcomes[i];
        o->status = w->do_one(w->user, i);
        if (o->status != CONV_FFT_SUCCESS)
            snprintf(o->sentence, sizeof o->sentence, "%s", conv_fft_last_error());
    }
    return NULL;
}

/* If a thread cannot be started, the other threads do its work. */
static void run(work *w) {
    pthread_t threads[MAX_THREADS];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = w->count - 1, started = 0;
    if (wanted > processors - 1)
        wanted = (int)processors - 1;
    if (wanted > MAX_THREADS)
        wanted = MAX_THREADS;
    while (started < wanted && pthread_create(&threads[started], NULL, take_turns, w) == 0)
        ++started;
    take_turns(w);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

conv_fft_status cf_workers_run(int count, conv_fft_status (*do_one)(void *user, int i), void *user) {
    if (count <= 0)
        return CONV_FFT_SUCCESS;
    outcome *const outcomes = calloc((size_t)count, sizeof *outcomes);
    if (!outcomes)
        return cf_fail_memory((size_t)count * sizeof *outcomes, "the work of several threads");
    work w = {.do_one = do_one, .user = user, .outcomes = outcomes, .count = count};
    atomic_init(&w.next, 0);
    run(&w);
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < count && status == CONV_FFT_SUCCESS; ++i)
        if (outcomes[i].status != CONV_FFT_SUCCESS)
            status = cf_fail(outcomes[i].status, "%s", outcomes[i].sentence);
    free(outcomes);
    return status;
}
