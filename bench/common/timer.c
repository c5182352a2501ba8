/* SPDX-License-Identifier: Apache-2.0 */
/* Implementations take turns. The caches are flushed before every run. The median counts. On a GPU, device events
 * give the time, and the first runs do not count. */
#include "common/timer.h"

#include "common/gpu.h"
#include "common/message.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MIN_REPEATS 3
#define GPU_MIN_REPEATS 7
#define GPU_WARM_UPS 2
#define MAX_REPEATS 101
#define MIN_FLUSH_BYTES ((size_t)64 << 20)
#define CACHE_LINE 64

struct bench_timer {
    bench_gpu *gpu;
    size_t bytes;
    unsigned char *buffer;
};

/* Larger than the last-level cache as the C library reports it. */
static size_t flush_bytes(void) {
    long cache = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    size_t bytes = cache > 0 ? (size_t)cache / 4 * 5 : 0;
    return bytes > MIN_FLUSH_BYTES ? bytes : MIN_FLUSH_BYTES;
}

bench_timer *bench_timer_create(struct bench_gpu *gpu) {
    bench_timer *timer = malloc(sizeof *timer);
    if (!timer)
        return NULL;
    *timer = (bench_timer){.gpu = gpu, .bytes = gpu ? gpu->flush_bytes : flush_bytes()};
    if (gpu)
        return timer;
    timer->buffer = calloc(timer->bytes, 1);
    if (!timer->buffer) {
        free(timer);
        return NULL;
    }
    return timer;
}

void bench_timer_destroy(bench_timer *timer) {
    if (timer)
        free(timer->buffer);
    free(timer);
}

size_t bench_timer_flush_bytes(const bench_timer *timer) { return timer->bytes; }

int bench_timer_least_runs(const bench_timer *timer) { return timer->gpu ? GPU_MIN_REPEATS : MIN_REPEATS; }

double bench_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* Write to every cache line, so that nothing older stays cached. OpenMP's threads spin for milliseconds after a loop,
 * and would take processors from a library that has threads of its own. So they get the time to fall asleep. */
static void flush(bench_timer *timer) {
    const struct timespec until_asleep = {.tv_nsec = 20000000};
    unsigned char *buffer = timer->buffer;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < timer->bytes; i += CACHE_LINE)
        buffer[i]++;
    nanosleep(&until_asleep, NULL);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

typedef struct record {
    double ms[MAX_REPEATS], used; /* used: flushes included */
    int warm_ups, count;
} record;

static bool finished(const bench_timer *timer, const record *r, double seconds) {
    return r->count == MAX_REPEATS || (r->count >= bench_timer_least_runs(timer) && r->used >= 1e3 * seconds);
}

static bool run_impl(void *state) {
    bench_impl *impl = state;
    return impl->run(impl);
}

static bool run_once(bench_timer *timer, bench_impl *impl, double *ms) {
    if (timer->gpu)
        return bench_gpu_time(timer->gpu, run_impl, impl, ms);
    flush(timer);
    double start = bench_now_ms();
    bool good = impl->run(impl);
    *ms = bench_now_ms() - start;
    return good;
}

static bool record_once(bench_timer *timer, bench_impl *impl, record *r) {
    double ms, begin = bench_now_ms();
    if (!run_once(timer, impl, &ms))
        return false;
    r->used += bench_now_ms() - begin;
    if (timer->gpu && r->warm_ups < GPU_WARM_UPS)
        r->warm_ups++;
    else
        r->ms[r->count++] = ms;
    return true;
}

bool bench_measure(bench_timer *timer, bench_impl *impls, size_t count, double seconds, double *ms) {
    record *records = calloc(count, sizeof *records);
    bool good = records != NULL;
    for (bool busy = good; busy && good;) {
        busy = false;
        for (size_t i = 0; i < count && good; i++) {
            if (finished(timer, &records[i], seconds))
                continue;
            busy = true;
            good = record_once(timer, &impls[i], &records[i]);
        }
    }
    for (size_t i = 0; i < count && good; i++)
        ms[i] = bench_median(records[i].ms, records[i].count);
    free(records);
    return good;
}
