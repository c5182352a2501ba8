/* SPDX-License-Identifier: Apache-2.0 */
#include "common/gpu.h"

#include "common/message.h"

#include "cuda/libs/cublas.h"

#include <stdlib.h>

/* Several times any L2. Writing it takes so long that the host has enqueued the run before the device begins it. */
#define MIN_FLUSH_BYTES ((size_t)512 << 20)

bool bench_good(conv_fft_status status, const char *what) {
    if (status != CONV_FFT_SUCCESS)
        bench_message("%s: %s", what, conv_fft_last_error());
    return status == CONV_FFT_SUCCESS;
}

static conv_fft_status open_gpu(bench_gpu *g, int ordinal) {
    const cf_gpu_options options = {
        .ordinal = ordinal, .log_level = CONV_FFT_LOG_WARNING, .search = cf_search_default()};
    CF_FORWARD(cf_gpu_open(&options, &g->gpu));
    const size_t l2 = (size_t)g->gpu->properties.l2_bytes;
    g->flush_bytes = 3 * l2 > MIN_FLUSH_BYTES ? 3 * l2 : MIN_FLUSH_BYTES;
    CF_FORWARD(cf_gpu_stream_create(g->gpu, &g->stream));
    CF_FORWARD(cf_gpu_event_create(g->gpu, &g->start));
    CF_FORWARD(cf_gpu_event_create(g->gpu, &g->end));
    return cf_gpu_allocate(g->gpu, g->flush_bytes, &g->flush);
}

/* This also loads cuBLAS. cuDNN needs that where cuBLAS is not in the loader's default folders. */
static void find_cublas(bench_gpu *g) {
    cf_library library;
    cf_cublas_functions functions;
    const conv_fft_status status = cf_cublas_open(&library, &functions, &g->gpu->search, g->gpu->driver.version);
    bench_copy(g->cublas, sizeof g->cublas, status == CONV_FFT_SUCCESS ? library.version : "none");
}

bool bench_gpu_open(bench_gpu *g, int ordinal) {
    *g = (bench_gpu){0};
    if (!bench_good(open_gpu(g, ordinal), "the GPU does not open"))
        return false;
    find_cublas(g);
    return true;
}

void bench_gpu_close(bench_gpu *g) {
    if (!g->gpu)
        return;
    cf_gpu_free(g->gpu, g->scratch);
    cf_gpu_free(g->gpu, g->flush);
    if (g->start)
        cf_gpu_event_destroy(g->gpu, g->start);
    if (g->end)
        cf_gpu_event_destroy(g->gpu, g->end);
    if (g->stream)
        cf_gpu_stream_destroy(g->gpu, g->stream);
    cf_gpu_close(g->gpu);
    *g = (bench_gpu){0};
}

conv_fft_status bench_gpu_scratch(bench_gpu *g, size_t bytes) {
    if (bytes > 0 && bytes <= g->scratch_bytes)
        return CONV_FFT_SUCCESS;
    cf_gpu_free(g->gpu, g->scratch);
    g->scratch = NULL;
    g->scratch_bytes = 0;
    CF_FORWARD(cf_gpu_allocate(g->gpu, bytes, &g->scratch));
    g->scratch_bytes = bytes;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status start(const bench_gpu *g) {
    CF_FORWARD(cf_gpu_fill(g->gpu, g->flush, 0x5A, g->flush_bytes, g->stream));
    return cf_gpu_event_record(g->gpu, g->start, g->stream);
}

static conv_fft_status end(const bench_gpu *g, float *ms) {
    CF_FORWARD(cf_gpu_event_record(g->gpu, g->end, g->stream));
    return cf_gpu_event_elapsed(g->gpu, g->start, g->end, ms);
}

bool bench_gpu_time(const bench_gpu *g, bool (*run)(void *state), void *state, double *ms) {
    float elapsed = 0;
    if (!bench_good(start(g), "the clock") || !run(state) || !bench_good(end(g, &elapsed), "a run"))
        return false;
    *ms = (double)elapsed;
    return true;
}

void *bench_allocate(const struct bench_gpu *g, size_t bytes, const char *what) {
    void *memory = NULL;
    if (g) {
        bench_good(cf_gpu_allocate(g->gpu, bytes, &memory), what);
        return memory;
    }
    memory = malloc(bytes);
    if (!memory)
        bench_message("%s: out of memory: %zu bytes", what, bytes);
    return memory;
}

void bench_free(const struct bench_gpu *g, void *memory) {
    if (g)
        cf_gpu_free(g->gpu, memory);
    else
        free(memory);
}

struct CUstream_st *bench_stream(const struct bench_gpu *g) {
    return g ? g->stream : NULL;
}
