/* SPDX-License-Identifier: Apache-2.0 */
/* bench_calls measures the time that a call takes on the host. See --help. */
#include "conv_fft.h"
#include "core/clock.h"
#include "cuda/driver/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: bench_calls [LINE...]\n"
    "\n"
    "Prints, for each layer, the time that the host spends in a forward call and in a backward call of the C API, in\n"
    "microseconds. LINE is a problem line, as in the files of networks/. Without LINE some small layers are measured.\n"
    "It needs a GPU. Time is taken around 40 calls, which the stream can hold; then the host waits for the GPU. The\n"
    "tenth percentile of 1001 such measurements is printed, because other work on the host makes many of them "
    "longer.\n";

enum {
    CALLS = 40, /* fewer than the launches that a stream holds before the host must wait */
    REPEATS = 1001
};

static const char *const small_layers[] = {
    "in=8x64x32x32 out=64 kernel=5x5 pad=2",
    "in=8x64x32x32 out=64 kernel=7x7 pad=3 dtype=fp16 math=half",
    "in=8x64x14x14 out=64 groups=64 kernel=7x7 pad=3",
    "in=8x64x1024 out=64 groups=64 kernel=512 pad=511:0",
};

typedef struct layer_memory {
    void *x, *w, *y, *gx, *gw, *workspace[2];
    size_t bytes[2];
} layer_memory;

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static conv_fft_status call(const conv_fft_plan *plan, const layer_memory *m, bool forward, cf_cu_stream stream) {
    return forward
               ? conv_fft_forward(plan, m->x, m->w, NULL, m->y, m->workspace[0], m->bytes[0], stream)
               : conv_fft_backward(plan, m->x, m->w, m->y, m->gx, m->gw, NULL, 0, m->workspace[1], m->bytes[1], stream);
}

static conv_fft_status host_time(const cf_gpu *gpu, const conv_fft_plan *plan, const layer_memory *m, bool forward,
                                 cf_cu_stream stream, double *us) {
    static double times[REPEATS];
    for (int i = -10; i < REPEATS; ++i) { /* negative i: to warm up */
        const double start = cf_clock_seconds();
        for (int k = 0; k < CALLS; ++k)
            CF_FORWARD(call(plan, m, forward, stream));
        if (i >= 0)
            times[i] = 1e6 * (cf_clock_seconds() - start) / CALLS;
        CF_FORWARD(cf_gpu_synchronize(gpu, stream));
    }
    qsort(times, REPEATS, sizeof *times, by_value);
    *us = times[REPEATS / 10];
    return CONV_FFT_SUCCESS;
}

/* Memory enough for every tensor of a small layer. */
#define TENSOR_BYTES ((size_t)64 << 20)

static conv_fft_status allocate(const cf_gpu *gpu, const conv_fft_plan *plan, layer_memory *m) {
    void **const tensors[] = {&m->x, &m->w, &m->y, &m->gx, &m->gw};
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; ++i) {
        CF_FORWARD(cf_gpu_allocate(gpu, TENSOR_BYTES, tensors[i]));
        CF_FORWARD(cf_gpu_fill(gpu, *tensors[i], 0, TENSOR_BYTES, NULL));
    }
    CF_FORWARD(conv_fft_plan_workspace(plan, CONV_FFT_FORWARD, &m->bytes[0]));
    CF_FORWARD(conv_fft_plan_workspace(plan, CONV_FFT_BACKWARD, &m->bytes[1]));
    CF_FORWARD(cf_gpu_allocate(gpu, m->bytes[0], &m->workspace[0]));
    return cf_gpu_allocate(gpu, m->bytes[1], &m->workspace[1]);
}

static conv_fft_status measure(const cf_gpu *gpu, conv_fft_context *context, const char *line, cf_cu_stream stream) {
    conv_fft_problem problem;
    conv_fft_plan *plan = NULL;
    conv_fft_description d;
    layer_memory m = {0};
    CF_FORWARD(conv_fft_problem_parse(line, &problem, NULL, 0));
    CF_FORWARD(conv_fft_plan_create(context, &problem, NULL, &plan));
    double forward = 0, backward = 0;
    conv_fft_status status = allocate(gpu, plan, &m);
    if (status == CONV_FFT_SUCCESS)
        status = host_time(gpu, plan, &m, true, stream, &forward);
    if (status == CONV_FFT_SUCCESS)
        status = host_time(gpu, plan, &m, false, stream, &backward);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_plan_describe(plan, CONV_FFT_FORWARD, &d);
    if (status == CONV_FFT_SUCCESS)
        printf("%s,%.*s,%.2f,%.2f\n", line, (int)strcspn(d.strategy, " "), d.strategy, forward, backward);
    void *const memory[] = {m.x, m.w, m.y, m.gx, m.gw, m.workspace[0], m.workspace[1]};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; ++i)
        cf_gpu_free(gpu, memory[i]);
    conv_fft_plan_destroy(plan);
    return status;
}

static conv_fft_status measure_all(const char *const *lines, int count) {
    const cf_gpu_options gpu_options = {.log_level = CONV_FFT_LOG_WARNING, .search = cf_search_default()};
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    cf_gpu *gpu = NULL;
    cf_cu_stream stream = NULL;
    conv_fft_context_options_init(&options);
    options.device = 0;
    conv_fft_status status = cf_gpu_open(&gpu_options, &gpu);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_stream_create(gpu, &stream);
    if (status == CONV_FFT_SUCCESS)
        status = conv_fft_context_create(&options, &context);
    if (status == CONV_FFT_SUCCESS)
        printf("layer,family,forward_us,backward_us\n");
    for (int i = 0; status == CONV_FFT_SUCCESS && i < count; ++i)
        status = measure(gpu, context, lines[i], stream);
    conv_fft_context_destroy(context);
    if (gpu)
        cf_gpu_stream_destroy(gpu, stream);
    cf_gpu_close(gpu);
    return status;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    const conv_fft_status status = argc > 1
                                       ? measure_all((const char *const *)argv + 1, argc - 1)
                                       : measure_all(small_layers, (int)(sizeof small_layers / sizeof small_layers[0]));
    if (status != CONV_FFT_SUCCESS)
        fprintf(stderr, "bench_calls: %s\n", conv_fft_last_error());
    return status != CONV_FFT_SUCCESS;
}
