/* SPDX-License-Identifier: Apache-2.0 */
#include "support/virtual_clock.h"

#include "support/random_problems.h"

#include <stdatomic.h>

static atomic_llong nanoseconds, lost;

double __wrap_cf_clock_seconds(void) { return 1e-9 * (double)atomic_fetch_add(&nanoseconds, 1000); }

double __wrap_cf_clock_process_seconds(void) { return 1e-9 * (double)(atomic_load(&nanoseconds) - atomic_load(&lost)); }

conv_fft_status __real_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers);
conv_fft_status __wrap_cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                               const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers) {
    cf_bench_buffers_sizes small = *sizes;
    small.flush = small.flush ? 4096 : 0;
    return __real_cf_bench_buffers_create(device, gpu, layer, passes, &small, buffers);
}

void clock_advance(double seconds) { atomic_fetch_add(&nanoseconds, (long long)(1e9 * seconds)); }

void clock_lose(double seconds) {
    clock_advance(seconds);
    atomic_fetch_add(&lost, (long long)(1e9 * seconds));
}

static uint64_t number_of(const char *text) {
    uint64_t number = 0;
    for (; *text; ++text)
        number = 31 * number + (unsigned char)*text;
    return number;
}

double clock_seconds_of(const conv_fft_plan *plan, int passes) {
    double seconds = 0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        char line[256];
        if (!(passes & 1 << pass))
            continue;
        const cf_strategy *const s = &plan->pass[pass].strategy;
        cf_strategy_format(s, plan->layer.problem.rank, line, sizeof line);
        generator g = test_generator(number_of(line));
        seconds += (1e-3 + 1e-6 * (double)(s->basis[0] * s->basis[1] * s->basis[2])) * (4.5 + 3.5 * random_value(&g));
    }
    return seconds;
}
