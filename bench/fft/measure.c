/* SPDX-License-Identifier: Apache-2.0 */
/* Device events around each run give the time. The write that flushes L2 is enqueued before the run, so that the
 * host has enqueued the run before the device begins it. */
#include "fft/measure.h"

#include <stdlib.h>

#define WARM_UPS 3
#define MAX_REPEATS 101

conv_fft_status fft_timer_create(fft_timer *timer, const cf_gpu *gpu, cf_cu_stream stream, int repeats) {
    *timer = (fft_timer){.gpu = gpu, .stream = stream, .repeats = repeats < MAX_REPEATS ? repeats : MAX_REPEATS};
    CF_FORWARD(cf_gpu_event_create(gpu, &timer->start));
    CF_FORWARD(cf_gpu_event_create(gpu, &timer->end));
    return cf_gpu_allocate(gpu, FFT_FLUSH_BYTES, &timer->flush);
}

void fft_timer_destroy(fft_timer *timer) {
    if (!timer->gpu)
        return;
    cf_gpu_event_destroy(timer->gpu, timer->start);
    cf_gpu_event_destroy(timer->gpu, timer->end);
    cf_gpu_free(timer->gpu, timer->flush);
}

static conv_fft_status run_once(const fft_timer *t, fft_impl *impl, float *ms) {
    if (impl->restore)
        CF_FORWARD(impl->restore(impl));
    CF_FORWARD(cf_gpu_fill(t->gpu, t->flush, 0x5A, FFT_FLUSH_BYTES, t->stream));
    CF_FORWARD(cf_gpu_event_record(t->gpu, t->start, t->stream));
    CF_FORWARD(impl->run(impl));
    CF_FORWARD(cf_gpu_event_record(t->gpu, t->end, t->stream));
    return cf_gpu_event_elapsed(t->gpu, t->start, t->end, ms);
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double median(float *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? (double)values[count / 2] : 0.5 * ((double)values[count / 2 - 1] + (double)values[count / 2]);
}

conv_fft_status fft_measure(const fft_timer *timer, fft_impl *impls, size_t count, double *ms) {
    float samples[FFT_MAX_IMPLS][MAX_REPEATS], warm;
    for (int r = -WARM_UPS; r < timer->repeats; r++)
        for (size_t k = 0; k < count; k++) {
            /* The order rotates, so that no implementation always follows the same one. */
            const size_t i = (k + (size_t)(r + WARM_UPS)) % count;
            CF_FORWARD(run_once(timer, &impls[i], r < 0 ? &warm : &samples[i][r]));
        }
    for (size_t i = 0; i < count; i++)
        ms[i] = median(samples[i], timer->repeats);
    return CONV_FFT_SUCCESS;
}
