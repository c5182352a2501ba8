/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Direct convolution in FP32: loops over rows, with OpenMP over planes. In every pass a tap handles a whole row of
 * the output (gy) and of the input (x) at once.
 */
#include "conv/baselines/direct_loops.h"

#include "common/message.h"

#include <stdlib.h>
#include <string.h>

/* On x86 the row loops are compiled for AVX2 and AVX-512 too, whatever the build targets. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define BENCH_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define BENCH_VECTOR
#endif

/* Columns of the output for which one tap of the last axis reads inside the input: from `lo` on; there the
   input column is `input`. */
typedef struct span {
    int64_t lo, count, input;
} span;

/* to[i * step_to] += factor * from[i * step_from] */
static inline void row_add(float *restrict to, int64_t step_to, const float *restrict from, int64_t step_from,
                           float factor, int64_t count) {
    if (step_to == 1 && step_from == 1)
        for (int64_t i = 0; i < count; i++)
            to[i] += factor * from[i];
    else
        for (int64_t i = 0; i < count; i++)
            to[i * step_to] += factor * from[i * step_from];
}

/* The sum of gy[i] * x[i * step], in sixteen partial sums, so that the compiler uses vectors. */
static inline float row_dot(const float *gy, const float *x, int64_t step, int64_t count) {
    float part[16] = {0}, sum = 0;
    int64_t i = 0;
    if (step == 1)
        for (; i + 16 <= count; i += 16)
            for (int j = 0; j < 16; j++)
                part[j] += gy[i + j] * x[i + j];
    for (; i < count; i++)
        sum += gy[i] * x[i * step];
    for (int j = 0; j < 16; j++)
        sum += part[j];
    return sum;
}

static span tap_span(const bench_shape *s, int64_t k) {
    int64_t stride = s->stride[2], offset = k * s->dilation[2] - s->pad[2];
    int64_t lo = offset < 0 ? (-offset + stride - 1) / stride : 0;
    int64_t hi = s->d[2] - 1 - offset < 0 ? 0 : (s->d[2] - 1 - offset) / stride + 1;
    hi = hi < s->m[2] ? hi : s->m[2];
    return (span){lo, hi > lo ? hi - lo : 0, lo * stride + offset};
}

/* The input index that output o reads with tap k of an axis. -1: outside the input. */
static int64_t input_at(const bench_shape *s, int axis, int64_t o, int64_t k) {
    int64_t i = o * s->stride[axis] + k * s->dilation[axis] - s->pad[axis];
    return i >= 0 && i < s->d[axis] ? i : -1;
}

/* The output index for which tap k of an axis reads input i. -1: none. */
static int64_t output_at(const bench_shape *s, int axis, int64_t i, int64_t k) {
    int64_t o = i + s->pad[axis] - k * s->dilation[axis];
    return o >= 0 && o % s->stride[axis] == 0 && o / s->stride[axis] < s->m[axis] ? o / s->stride[axis] : -1;
}

/* One row of y: x and w point at the plane of the first channel of the group. */
BENCH_VECTOR static void forward_row(const bench_shape *s, const span *spans, const float *x, const float *w,
                                     float *y_row, int64_t oz, int64_t oy) {
    memset(y_row, 0, (size_t)s->m[2] * sizeof *y_row);
    for (int64_t c = 0; c < s->in; c++, x += bench_volume(s->d))
        for (int64_t kz = 0; kz < s->k[0]; kz++)
            for (int64_t ky = 0; ky < s->k[1]; ky++, w += s->k[2]) {
                int64_t iz = input_at(s, 0, oz, kz), iy = input_at(s, 1, oy, ky);
                if (iz < 0 || iy < 0)
                    continue;
                const float *x_row = x + (iz * s->d[1] + iy) * s->d[2];
                for (int64_t k = 0; k < s->k[2]; k++) {
                    span t = spans[k];
                    row_add(y_row + t.lo, 1, x_row + t.input, s->stride[2], w[k], t.count);
                }
            }
}

static void forward(const bench_shape *s, const span *spans, const float *x, const float *w, float *y) {
    int64_t planes = s->groups * s->out;
#pragma omp parallel for collapse(3) schedule(static)
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t o = 0; o < planes; o++)
            for (int64_t row = 0; row < s->m[0] * s->m[1]; row++)
                forward_row(s, spans, x + (n * s->groups + o / s->out) * s->in * bench_volume(s->d),
                            w + o * s->in * bench_volume(s->k),
                            y + ((n * planes + o) * s->m[0] * s->m[1] + row) * s->m[2], row / s->m[1], row % s->m[1]);
}

/* One row of gx: gy and w point at the first output channel of the group, w at the right input channel. */
BENCH_VECTOR static void data_row(const bench_shape *s, const span *spans, const float *gy, const float *w,
                                  float *gx_row, int64_t iz, int64_t iy) {
    memset(gx_row, 0, (size_t)s->d[2] * sizeof *gx_row);
    for (int64_t c = 0; c < s->out; c++, gy += bench_volume(s->m), w += s->in * bench_volume(s->k))
        for (int64_t kz = 0; kz < s->k[0]; kz++)
            for (int64_t ky = 0; ky < s->k[1]; ky++) {
                int64_t oz = output_at(s, 0, iz, kz), oy = output_at(s, 1, iy, ky);
                if (oz < 0 || oy < 0)
                    continue;
                const float *gy_row = gy + (oz * s->m[1] + oy) * s->m[2], *w_row = w + (kz * s->k[1] + ky) * s->k[2];
                for (int64_t k = 0; k < s->k[2]; k++) {
                    span t = spans[k];
                    row_add(gx_row + t.input, s->stride[2], gy_row + t.lo, 1, w_row[k], t.count);
                }
            }
}

static void backward_data(const bench_shape *s, const span *spans, const float *w, const float *gy, float *gx) {
    int64_t planes = s->groups * s->in;
#pragma omp parallel for collapse(3) schedule(static)
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t i = 0; i < planes; i++)
            for (int64_t row = 0; row < s->d[0] * s->d[1]; row++) {
                int64_t group = i / s->in;
                data_row(s, spans, gy + (n * s->groups + group) * s->out * bench_volume(s->m),
                         w + (group * s->out * s->in + i % s->in) * bench_volume(s->k),
                         gx + ((n * planes + i) * s->d[0] * s->d[1] + row) * s->d[2], row / s->d[1], row % s->d[1]);
            }
}

/* Add the part of one sample to the taps of one pair of planes. */
BENCH_VECTOR static void weights_plane(const bench_shape *s, const span *spans, const float *x, const float *gy,
                                       float *gw) {
    for (int64_t row = 0; row < s->m[0] * s->m[1]; row++)
        for (int64_t kz = 0; kz < s->k[0]; kz++)
            for (int64_t ky = 0; ky < s->k[1]; ky++) {
                int64_t iz = input_at(s, 0, row / s->m[1], kz), iy = input_at(s, 1, row % s->m[1], ky);
                if (iz < 0 || iy < 0)
                    continue;
                const float *x_row = x + (iz * s->d[1] + iy) * s->d[2];
                for (int64_t k = 0; k < s->k[2]; k++) {
                    span t = spans[k];
                    gw[(kz * s->k[1] + ky) * s->k[2] + k] +=
                        row_dot(gy + row * s->m[2] + t.lo, x_row + t.input, s->stride[2], t.count);
                }
            }
}

static void backward_weights(const bench_shape *s, const span *spans, const float *x, const float *gy, float *gw) {
    int64_t planes = s->groups * s->out;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t o = 0; o < planes; o++)
        for (int64_t c = 0; c < s->in; c++) {
            float *plane = gw + (o * s->in + c) * bench_volume(s->k);
            memset(plane, 0, (size_t)bench_volume(s->k) * sizeof *plane);
            for (int64_t n = 0; n < s->batch; n++)
                weights_plane(s, spans, x + ((n * s->groups + o / s->out) * s->in + c) * bench_volume(s->d),
                              gy + (n * planes + o) * bench_volume(s->m), plane);
        }
}

static bool run(bench_impl *impl) {
    const bench_shape *s = &impl->job->layer->shape;
    const bench_data *d = impl->job->data;
    const span *spans = impl->state;
    if (impl->job->pass & CONV_FFT_FORWARD)
        forward(s, spans, d->x, d->w, d->y);
    if (impl->job->pass & CONV_FFT_BACKWARD_DATA)
        backward_data(s, spans, d->w, d->gy, d->gx);
    if (impl->job->pass & CONV_FFT_BACKWARD_WEIGHTS)
        backward_weights(s, spans, d->x, d->gy, d->gw);
    return true;
}

static void close_direct(bench_impl *impl) { free(impl->state); }

bool bench_direct_open(bench_impl *impl, const bench_job *job) {
    const bench_shape *s = &job->layer->shape;
    span *spans = malloc((size_t)s->k[2] * sizeof *spans);
    *impl = (bench_impl){
        .name = "direct", .strategy = "loops", .job = job, .state = spans, .run = run, .close = close_direct};
    if (!spans) {
        bench_message("direct: out of memory");
        return false;
    }
    for (int64_t k = 0; k < s->k[2]; k++)
        spans[k] = tap_span(s, k);
    return true;
}
