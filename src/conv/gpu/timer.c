/* SPDX-License-Identifier: Apache-2.0 */
/* What measuring needs on a GPU: memory, and events in streams. */
#include "conv/gpu/device.h"
#include "cuda/driver/memory.h"

#include <stdlib.h>

struct cf_timer {
    const cf_gpu *gpu;
    int count, capacity;
    cf_cu_event *event; /* of each mark that was ever set */
};

conv_fft_status cf_gpu_layers_allocate(cf_device *device, size_t bytes, void **memory) {
    return cf_gpu_allocate(cf_gpu_layers_of(device)->gpu, bytes, memory);
}

conv_fft_status cf_gpu_layers_write(cf_device *device, void *memory, const void *host, size_t bytes) {
    const cf_gpu *gpu = cf_gpu_layers_of(device)->gpu;
    if (bytes == 0)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(cf_gpu_upload(gpu, memory, host, bytes, NULL));
    return cf_gpu_synchronize(gpu, NULL);
}

void cf_gpu_layers_release(cf_device *device, void *memory) { cf_gpu_free(cf_gpu_layers_of(device)->gpu, memory); }

bool cf_gpu_layers_may_wait(const cf_device *device, struct CUstream_st *stream) {
    return !cf_gpu_is_capturing(cf_gpu_layers_of((cf_device *)device)->gpu, stream);
}

conv_fft_status cf_gpu_timer_create(cf_device *device, cf_timer **timer) {
    cf_timer *made = calloc(1, sizeof *made);
    if (!made)
        return cf_fail_memory(sizeof *made, "a timer");
    made->gpu = cf_gpu_layers_of(device)->gpu;
    *timer = made;
    return CONV_FFT_SUCCESS;
}

void cf_gpu_timer_destroy(cf_timer *timer) {
    if (!timer)
        return;
    for (int i = 0; i < timer->count; ++i)
        cf_gpu_event_destroy(timer->gpu, timer->event[i]);
    free(timer->event);
    free(timer);
}

static conv_fft_status make_events(cf_timer *timer, int count) {
    if (count > timer->capacity) {
        const int capacity = 2 * count + 16;
        cf_cu_event *event = realloc(timer->event, (size_t)capacity * sizeof *event);
        if (!event)
            return cf_fail_memory((size_t)capacity * sizeof *event, "the marks of a timer");
        timer->event = event;
        timer->capacity = capacity;
    }
    for (; timer->count < count; ++timer->count)
        CF_FORWARD(cf_gpu_event_create(timer->gpu, &timer->event[timer->count]));
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_timer_mark(cf_timer *timer, int mark, struct CUstream_st *stream) {
    CF_FORWARD(make_events(timer, mark + 1));
    return cf_gpu_event_record(timer->gpu, timer->event[mark], stream);
}

conv_fft_status cf_gpu_timer_seconds(cf_timer *timer, int mark, double *seconds) {
    float ms;
    CF_FORWARD(cf_gpu_event_elapsed(timer->gpu, timer->event[mark - 1], timer->event[mark], &ms));
    *seconds = 1e-3 * (double)ms;
    return CONV_FFT_SUCCESS;
}
