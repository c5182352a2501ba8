/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and timers for measurements on the CPU: the C library's memory, and the steady clock. */
#include "core/clock.h"
#include "cpu/device.h"

#include <stdlib.h>
#include <string.h>

struct cf_timer {
    int capacity;
    double *at; /* when each mark was set */
};

conv_fft_status cf_cpu_allocate(cf_device *device, size_t bytes, void **memory) {
    (void)device;
    *memory = malloc(bytes > 0 ? bytes : 1);
    return *memory ? CONV_FFT_SUCCESS : cf_fail_memory(bytes, "tensors to measure with");
}

conv_fft_status cf_cpu_write(cf_device *device, void *memory, const void *host, size_t bytes) {
    (void)device;
    memcpy(memory, host, bytes);
    return CONV_FFT_SUCCESS;
}

void cf_cpu_release(cf_device *device, void *memory) {
    (void)device;
    free(memory);
}

conv_fft_status cf_cpu_timer_create(cf_device *device, cf_timer **timer) {
    (void)device;
    *timer = calloc(1, sizeof **timer);
    return *timer ? CONV_FFT_SUCCESS : cf_fail_memory(sizeof **timer, "a timer");
}

void cf_cpu_timer_destroy(cf_timer *timer) {
    if (timer)
        free(timer->at);
    free(timer);
}

conv_fft_status cf_cpu_timer_mark(cf_timer *timer, int mark, struct CUstream_st *stream) {
    (void)stream;
    if (mark >= timer->capacity) {
        const int capacity = 2 * mark + 16;
        double *at = realloc(timer->at, (size_t)capacity * sizeof *at);
        if (!at)
            return cf_fail_memory((size_t)capacity * sizeof *at, "the marks of a timer");
        timer->at = at;
        timer->capacity = capacity;
    }
    timer->at[mark] = cf_clock_seconds();
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_cpu_timer_seconds(cf_timer *timer, int mark, double *seconds) {
    *seconds = timer->at[mark] - timer->at[mark - 1];
    return CONV_FFT_SUCCESS;
}
