/* SPDX-License-Identifier: Apache-2.0 */
#include "autotune/search/bench_buffers.h"

#include "core/arith.h"
#include "core/clock.h"
#include "core/dtype.h"
#include "cuda/driver/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Random values of magnitude 0.5 to 1 and either sign. Zeros would take less power and time. */
static void make_random(conv_fft_dtype dtype, void *data, size_t bytes) {
    uint64_t state = 1;
    for (size_t at = 0; at + cf_dtype_bytes(dtype) <= bytes; at += cf_dtype_bytes(dtype)) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const uint64_t bits = state >> 11;
        const uint64_t wide = (bits << 11 & 0x800fffffffffffffu) | 0x3fe0000000000000u;
        const uint32_t single = ((uint32_t)bits & 0x807fffffu) | 0x3f000000u;
        const uint16_t half = (uint16_t)(((uint32_t)bits & 0x83ffu) | 0x3800u),
                       brain = (uint16_t)(((uint32_t)bits & 0x807fu) | 0x3f00u);
        char *to = (char *)data + at;
        switch (dtype) {
        case CONV_FFT_FP64:
            memcpy(to, &wide, sizeof wide);
            break;
        case CONV_FFT_FP16:
            memcpy(to, &half, sizeof half);
            break;
        case CONV_FFT_BF16:
            memcpy(to, &brain, sizeof brain);
            break;
        default:
            memcpy(to, &single, sizeof single);
            break;
        }
    }
}

enum {
    BLOCK = 1 << 24, /* bytes of random values, which repeat */
    GPU_FLUSHES = 5  /* take more than 0.1 ms, in which the host launches the pass: launches are not timed then */
};

static conv_fft_status fill_random(cf_device *device, conv_fft_dtype dtype, void *memory, size_t bytes, char *block) {
    const size_t step = bytes < BLOCK ? bytes : BLOCK;
    make_random(dtype, block, step);
    for (size_t done = 0; done < bytes; done += step)
        CF_FORWARD(device->ops->write(device, (char *)memory + done, block, bytes - done < step ? bytes - done : step));
    return CONV_FFT_SUCCESS;
}

/* Take the next part of the memory. Without memory, only count bytes. *used is at most SIZE_MAX / 16: no memory is so
 * large. */
static cf_part take(const cf_bench_buffers *buffers, size_t *used, size_t bytes) {
    const cf_part part = {buffers->memory ? (char *)buffers->memory + *used : NULL, bytes};
    *used = bytes < SIZE_MAX / 16 - *used ? *used + cf_align(bytes) : SIZE_MAX / 16;
    return part;
}

static size_t lay_out(cf_bench_buffers *buffers, const cf_layer *l, const cf_bench_buffers_sizes *sizes) {
    int64_t ex[5], ey[5], ew[5];
    cf_layer_extents(l, ex, ey, ew);
    const size_t x = cf_tensor_bytes(&l->x, ex), y = cf_tensor_bytes(&l->y, ey), w = cf_tensor_bytes(&l->w, ew);
    const size_t channels = (size_t)ey[1];
    const bool forward = buffers->passes & CONV_FFT_FORWARD, backward = buffers->passes & CONV_FFT_BACKWARD;
    const bool data = buffers->passes & CONV_FFT_BACKWARD_DATA, weights = buffers->passes & CONV_FFT_BACKWARD_WEIGHTS;
    size_t used = 0;
    buffers->x = take(buffers, &used, x);
    buffers->w = take(buffers, &used, w);
    buffers->bias = take(buffers, &used, channels * cf_dtype_bytes(l->w.dtype));
    buffers->y = take(buffers, &used, forward ? y : 0);
    buffers->gy = take(buffers, &used, backward ? y : 0);
    buffers->gx = take(buffers, &used, data ? x : 0);
    buffers->gw = take(buffers, &used, weights ? cf_tensor_bytes(&l->gw, ew) : 0);
    buffers->gbias = take(buffers, &used, weights ? channels * cf_dtype_bytes(l->gw.dtype) : 0);
    buffers->x_spectrum = take(buffers, &used, sizes->x_spectrum);
    buffers->w_spectrum = take(buffers, &used, sizes->w_spectrum);
    buffers->workspace = take(buffers, &used, sizes->workspace);
    buffers->flush = take(buffers, &used, sizes->flush);
    return used;
}

static conv_fft_status fill(const cf_bench_buffers *buffers, const cf_layer *l) {
    char *block = malloc(BLOCK);
    if (!block)
        return cf_fail_memory(BLOCK, "random values");
    conv_fft_status status = fill_random(buffers->device, l->x.dtype, buffers->x.data, buffers->x.bytes, block);
    if (status == CONV_FFT_SUCCESS)
        status = fill_random(buffers->device, l->w.dtype, buffers->w.data, buffers->w.bytes, block);
    if (status == CONV_FFT_SUCCESS)
        status = fill_random(buffers->device, l->w.dtype, buffers->bias.data, buffers->bias.bytes, block);
    if (status == CONV_FFT_SUCCESS)
        status = fill_random(buffers->device, l->y.dtype, buffers->gy.data, buffers->gy.bytes, block);
    free(block);
    return status;
}

conv_fft_status cf_bench_buffers_create(cf_device *device, const cf_gpu *gpu, const cf_layer *layer, int passes,
                                        const cf_bench_buffers_sizes *sizes, cf_bench_buffers *buffers) {
    *buffers = (cf_bench_buffers){.device = device, .gpu = gpu, .passes = passes};
    CF_FORWARD(device->ops->allocate(device, lay_out(buffers, layer, sizes), &buffers->memory));
    lay_out(buffers, layer, sizes);
    conv_fft_status status = device->ops->timer_create(device, &buffers->timer);
    if (status == CONV_FFT_SUCCESS)
        status = fill(buffers, layer);
    if (status != CONV_FFT_SUCCESS)
        cf_bench_buffers_destroy(buffers);
    return status;
}

void cf_bench_buffers_destroy(cf_bench_buffers *buffers) {
    if (!buffers->memory)
        return;
    buffers->device->ops->timer_destroy(buffers->timer);
    buffers->device->ops->release(buffers->device, buffers->memory);
    *buffers = (cf_bench_buffers){0};
}

cf_call cf_bench_buffers_call(const cf_bench_buffers *buffers, int set) {
    cf_call call = {.x = buffers->x.data, .w = buffers->w.data, .workspace = buffers->workspace.data};
    call.x_spectrum = buffers->x_spectrum.bytes ? buffers->x_spectrum.data : NULL;
    call.w_spectrum = buffers->w_spectrum.bytes ? buffers->w_spectrum.data : NULL;
    if (set & CONV_FFT_FORWARD) {
        call.y = buffers->y.data;
        return call;
    }
    call.gy = buffers->gy.data;
    call.gx = set & CONV_FFT_BACKWARD_DATA ? buffers->gx.data : NULL;
    call.gw = set & CONV_FFT_BACKWARD_WEIGHTS ? buffers->gw.data : NULL;
    if (buffers->passes & CONV_FFT_FORWARD) { /* the forward pass has stored the kept spectra */
        call.x = call.x_spectrum ? NULL : call.x;
        call.w = call.w_spectrum ? NULL : call.w;
    }
    return call;
}

conv_fft_status cf_bench_buffers_run(const cf_bench_buffers *buffers, const conv_fft_plan *plan) {
    const int backward = buffers->passes & CONV_FFT_BACKWARD;
    if (buffers->passes & CONV_FFT_FORWARD) {
        const cf_call call = cf_bench_buffers_call(buffers, CONV_FFT_FORWARD);
        CF_FORWARD(cf_run(plan, CONV_FFT_FORWARD, &call));
    }
    if (!backward)
        return CONV_FFT_SUCCESS;
    const cf_call call = cf_bench_buffers_call(buffers, backward);
    return cf_run(plan, backward, &call);
}

conv_fft_status cf_bench_buffers_time(const cf_bench_buffers *buffers, const conv_fft_plan *plan, cf_run_time *time) {
    const cf_device_ops *ops = buffers->device->ops;
    for (int i = 0; buffers->flush.bytes && i < (buffers->gpu ? GPU_FLUSHES : 1); ++i)
        CF_FORWARD(ops->clear(buffers->device, buffers->flush.data, buffers->flush.bytes, NULL));
    const double before = cf_clock_process_seconds();
    CF_FORWARD(ops->timer_mark(buffers->timer, 0, NULL));
    CF_FORWARD(cf_bench_buffers_run(buffers, plan));
    CF_FORWARD(ops->timer_mark(buffers->timer, 1, NULL));
    const double computed = cf_clock_process_seconds() - before;
    CF_FORWARD(ops->timer_seconds(buffers->timer, 1, &time->seconds));
    time->share = buffers->gpu || time->seconds <= 0.0 ? HUGE_VAL : computed / time->seconds;
    return CONV_FFT_SUCCESS;
}

int cf_bench_buffers_results(const cf_bench_buffers *buffers, cf_part results[CF_PASS_COUNT],
                             conv_fft_dtype dtypes[CF_PASS_COUNT], const cf_layer *layer) {
    const cf_part parts[CF_PASS_COUNT] = {buffers->y, buffers->gx, buffers->gw};
    const conv_fft_dtype types[CF_PASS_COUNT] = {layer->y.dtype, layer->x.dtype, layer->gw.dtype};
    int count = 0;
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (!(buffers->passes & 1 << pass))
            continue;
        results[count] = parts[pass];
        dtypes[count++] = types[pass];
    }
    return count;
}

conv_fft_status cf_bench_buffers_clear_results(const cf_bench_buffers *buffers) {
    const cf_part parts[CF_PASS_COUNT] = {buffers->y, buffers->gx, buffers->gw};
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        if (parts[pass].bytes)
            CF_FORWARD(buffers->device->ops->clear(buffers->device, parts[pass].data, parts[pass].bytes, NULL));
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_bench_buffers_read(const cf_bench_buffers *buffers, const void *memory, size_t bytes, void *host) {
    if (!buffers->gpu) {
        memcpy(host, memory, bytes);
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_gpu_download(buffers->gpu, host, memory, bytes, NULL));
    return cf_gpu_synchronize(buffers->gpu, NULL);
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double cf_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}
