/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs on the host, and the same tensors in the type, layout and memory of a run. */
#include "common/tensors.h"

#include "common/gpu.h"
#include "common/message.h"
#include "cpu/convert.h"

#include <stdlib.h>
#include <string.h>

static size_t element_bytes(conv_fft_dtype dtype) { return dtype == CONV_FFT_FP32 ? 4 : 2; }

static uint16_t to_16(conv_fft_dtype dtype, float value) {
    return dtype == CONV_FFT_FP16 ? cf_float_to_fp16(value) : cf_float_to_bfloat(value);
}

static float from_16(conv_fft_dtype dtype, uint16_t value) {
    return dtype == CONV_FFT_FP16 ? cf_fp16_to_float(value) : cf_bfloat_to_float(value);
}

float bench_value(conv_fft_dtype dtype, const void *element) {
    if (dtype == CONV_FFT_FP32) {
        float value;
        memcpy(&value, element, sizeof value);
        return value;
    }
    uint16_t bits;
    memcpy(&bits, element, sizeof bits);
    return from_16(dtype, bits);
}

/* ---- on the host */

#define MULTIPLIER 6364136223846793005u /* the linear congruential generator of Knuth's MMIX */
#define INCREMENT 1442695040888963407u
#define PIECE 65536 /* values that one thread makes at a time */

/* The state after so many steps. 2^k steps of such a generator are one step of another such generator. */
static uint64_t after(uint64_t state, uint64_t steps) {
    uint64_t multiplier = MULTIPLIER, increment = INCREMENT;
    for (; steps; steps >>= 1) {
        if (steps & 1)
            state = state * multiplier + increment;
        increment *= multiplier + 1;
        multiplier *= multiplier;
    }
    return state;
}

/* Seeded numbers, uniform in [-1, 1), rounded to the type. They do not depend on the number of threads. */
static float *random_values(int64_t count, uint64_t seed, conv_fft_dtype dtype) {
    float *values = malloc((size_t)count * sizeof *values);
    if (!values)
        return NULL;
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < count; first += PIECE) {
        uint64_t state = after(seed * 0x9e3779b97f4a7c15u + 1, (uint64_t)first);
        for (int64_t i = first; i < first + PIECE && i < count; i++) {
            state = state * MULTIPLIER + INCREMENT;
            values[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
            if (dtype != CONV_FFT_FP32)
                values[i] = from_16(dtype, to_16(dtype, values[i]));
        }
    }
    return values;
}

bool bench_data_create(const bench_case *layer, const struct bench_gpu *gpu, bench_data *d) {
    const bench_shape *s = &layer->shape;
    const conv_fft_dtype dtype = layer->problem.dtype;
    int64_t x = bench_x_count(s), w = bench_w_count(s), y = bench_y_count(s);
    *d = (bench_data){
        .x = random_values(x, 1, dtype), .w = random_values(w, 2, dtype), .gy = random_values(y, 3, dtype)};
    bool good = d->x && d->w && d->gy;
    if (good && !gpu) {
        d->y = random_values(y, 4, dtype);
        d->gx = random_values(x, 5, dtype);
        d->gw = random_values(w, 6, dtype);
        good = d->y && d->gx && d->gw;
    }
    if (good)
        return true;
    bench_data_free(d);
    bench_message("out of memory: tensors of %.3g GB", (gpu ? 4e-9 : 8e-9) * (double)(x + w + y));
    return false;
}

void bench_data_free(bench_data *d) {
    float *all[] = {d->x, d->w, d->gy, d->y, d->gx, d->gw};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    *d = (bench_data){0};
}

/* ---- on the device */

static int64_t count_of(const bench_tensor *t) { return t->outer * t->channels * t->space; }
static size_t bytes_of(const bench_tensor *t) { return (size_t)count_of(t) * element_bytes(t->dtype); }

/* The position of an element, from its position in channels-first order. */
static int64_t place(const bench_tensor *t, int64_t index) {
    const int64_t plane = index / t->space, at = index % t->space;
    return t->last ? (plane / t->channels * t->space + at) * t->channels + plane % t->channels : index;
}

/* The values in the tensor's type and order. */
static void arrange(const bench_tensor *t, const float *values, void *to) {
    float *const floats = to;
    uint16_t *const shorts = to;
#pragma omp parallel for schedule(static)
    for (int64_t plane = 0; plane < t->outer * t->channels; plane++)
        for (int64_t i = plane * t->space; i < (plane + 1) * t->space; i++) {
            if (t->dtype == CONV_FFT_FP32)
                floats[place(t, i)] = values[i];
            else
                shorts[place(t, i)] = to_16(t->dtype, values[i]);
        }
}

static bool upload(const bench_gpu *g, const bench_tensor *t, const void *arranged) {
    conv_fft_status status = cf_gpu_upload(g->gpu, t->memory, arranged, bytes_of(t), g->stream);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_synchronize(g->gpu, g->stream);
    return bench_good(status, "a tensor");
}

bool bench_tensor_set(const struct bench_gpu *g, const bench_tensor *t, const float *values) {
    if (t->dtype == CONV_FFT_FP32 && !t->last)
        return upload(g, t, values);
    void *arranged = malloc(bytes_of(t));
    if (!arranged) {
        bench_message("out of memory: a tensor of %zu bytes", bytes_of(t));
        return false;
    }
    arrange(t, values, arranged);
    const bool good = upload(g, t, arranged);
    free(arranged);
    return good;
}

/* values NULL: the tensor is an output, and is not written. */
static bool create(const bench_gpu *g, bench_tensor *t, const float *values) {
    t->memory = bench_allocate(g, bytes_of(t), "a tensor");
    return t->memory && (!values || bench_tensor_set(g, t, values));
}

bool bench_tensors_create(const bench_case *layer, const struct bench_gpu *gpu, const bench_data *d, bench_tensors *t) {
    const bench_shape *s = &layer->shape;
    const conv_fft_problem *p = &layer->problem;
    const bool last = p->tensor_layout == CONV_FFT_CHANNELS_LAST;
    const bench_tensor x = {NULL, p->dtype, last, s->batch, s->groups * s->in, bench_volume(s->d)};
    const bench_tensor y = {NULL, p->dtype, last, s->batch, s->groups * s->out, bench_volume(s->m)};
    const bench_tensor w = {NULL, p->dtype, last, s->groups * s->out, s->in, bench_volume(s->k)};
    *t = (bench_tensors){.x = x, .w = w, .gy = y, .y = y, .gx = x, .gw = w};
    if (!gpu) {
        t->x.memory = d->x, t->w.memory = d->w, t->gy.memory = d->gy;
        t->y.memory = d->y, t->gx.memory = d->gx, t->gw.memory = d->gw;
        return true;
    }
    if (create(gpu, &t->x, d->x) && create(gpu, &t->w, d->w) && create(gpu, &t->gy, d->gy) &&
        create(gpu, &t->y, NULL) && create(gpu, &t->gx, NULL) && create(gpu, &t->gw, NULL))
        return true;
    bench_tensors_free(gpu, t);
    return false;
}

void bench_tensors_free(const struct bench_gpu *gpu, bench_tensors *t) {
    bench_tensor *const all[] = {&t->x, &t->w, &t->gy, &t->y, &t->gx, &t->gw};
    for (size_t i = 0; gpu && i < sizeof all / sizeof all[0]; i++)
        bench_free(gpu, all[i]->memory);
    *t = (bench_tensors){0};
}

/* All bits set are a NaN in every type. */
bool bench_tensor_poison(const struct bench_gpu *gpu, const bench_tensor *t) {
    if (gpu)
        return bench_good(cf_gpu_fill(gpu->gpu, t->memory, 0xFF, bytes_of(t), gpu->stream), "an output");
    memset(t->memory, 0xFF, bytes_of(t));
    return true;
}

/* Bytes that take as long to copy as one element does. */
#define BYTES_PER_CALL ((size_t)32 << 10)

static conv_fft_status download_each(const bench_gpu *g, const bench_tensor *t, const int64_t *index, int64_t count,
                                     float *values) {
    const size_t bytes = element_bytes(t->dtype);
    for (int64_t i = 0; i < count; i++)
        CF_FORWARD(cf_gpu_download(g->gpu, &values[i], (const char *)t->memory + (size_t)place(t, index[i]) * bytes,
                                   bytes, g->stream));
    return cf_gpu_synchronize(g->gpu, g->stream);
}

static conv_fft_status download_all(const bench_gpu *g, const bench_tensor *t, char *whole) {
    CF_FORWARD(cf_gpu_download(g->gpu, whole, t->memory, bytes_of(t), g->stream));
    return cf_gpu_synchronize(g->gpu, g->stream);
}

/* Copy element i to the first bytes of values[i]. The whole tensor is copied first if that is less work. */
static conv_fft_status download(const bench_gpu *g, const bench_tensor *t, const int64_t *index, int64_t count,
                                float *values) {
    const size_t bytes = element_bytes(t->dtype);
    char *whole = bytes_of(t) <= (size_t)count * BYTES_PER_CALL ? malloc(bytes_of(t)) : NULL;
    if (!whole)
        return download_each(g, t, index, count, values);
    const conv_fft_status status = download_all(g, t, whole);
    for (int64_t i = 0; status == CONV_FFT_SUCCESS && i < count; i++)
        memcpy(&values[i], whole + (size_t)place(t, index[i]) * bytes, bytes);
    free(whole);
    return status;
}

bool bench_tensor_fetch(const struct bench_gpu *gpu, const bench_tensor *t, const int64_t *index, int64_t count,
                        float *values) {
    if (!gpu) {
        for (int64_t i = 0; i < count; i++)
            values[i] = ((const float *)t->memory)[place(t, index[i])];
        return true;
    }
    if (!bench_good(download(gpu, t, index, count, values), "a result"))
        return false;
    for (int64_t i = 0; i < count; i++)
        values[i] = bench_value(t->dtype, &values[i]);
    return true;
}
