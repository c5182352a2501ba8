/* SPDX-License-Identifier: Apache-2.0 */
/* A seeded sample of elements is computed by the definition in double. */
#include "common/check.h"

#include "common/gpu.h"
#include "common/message.h"

#include <math.h>
#include <stdlib.h>

#define MAX_SAMPLES 2000
#define MIN_SAMPLES 64
#define MAX_PRODUCTS 5e7 /* of one sample; fewer elements are taken if their sums are long */

typedef struct sample {
    conv_fft_pass pass;
    const bench_tensor *output;
    int64_t count;
    int64_t index[MAX_SAMPLES];
    double exact[MAX_SAMPLES];
} sample;

struct bench_check {
    int count;
    sample sets[3];
};

/* The row-major position within three extents, and the inverse. */
static int64_t at(const int64_t extent[3], const int64_t p[3]) { return (p[0] * extent[1] + p[1]) * extent[2] + p[2]; }

static void split(const int64_t extent[3], int64_t flat, int64_t p[3]) {
    p[2] = flat % extent[2];
    p[1] = flat / extent[2] % extent[1];
    p[0] = flat / extent[2] / extent[1];
}

/* A range of integers along each axis: the first, and the one after the last. */
typedef struct box {
    int64_t from[3], to[3];
} box;

/* The i in [0, extent) of an axis for which base + step * i is in [0, limit). */
static void bound(box *b, int a, int64_t extent, int64_t base, int64_t step, int64_t limit) {
    const int64_t last = limit - 1 - base;
    b->from[a] = base < 0 ? (-base + step - 1) / step : 0;
    b->to[a] = last < 0 ? 0 : last / step + 1 < extent ? last / step + 1 : extent;
}

static double exact_y(const bench_shape *s, const bench_data *t, int64_t index) {
    int64_t o[3], k[3], i[3], plane = index / bench_volume(s->m);
    int64_t channel = plane % (s->groups * s->out), n = plane / (s->groups * s->out);
    const float *x = t->x + (n * s->groups + channel / s->out) * s->in * bench_volume(s->d);
    const float *w = t->w + channel * s->in * bench_volume(s->k);
    double sum = 0;
    box b;
    split(s->m, index % bench_volume(s->m), o);
    for (int a = 0; a < 3; a++) {
        i[a] = o[a] * s->stride[a] - s->pad[a]; /* for the first tap */
        bound(&b, a, s->k[a], i[a], s->dilation[a], s->d[a]);
    }
    for (int64_t c = 0; c < s->in; c++, x += bench_volume(s->d), w += bench_volume(s->k))
        for (k[0] = b.from[0]; k[0] < b.to[0]; k[0]++)
            for (k[1] = b.from[1]; k[1] < b.to[1]; k[1]++) {
                const int64_t in[3] = {i[0] + k[0] * s->dilation[0], i[1] + k[1] * s->dilation[1], 0};
                const int64_t x_row = at(s->d, in) + i[2], w_row = (k[0] * s->k[1] + k[1]) * s->k[2];
                for (k[2] = b.from[2]; k[2] < b.to[2]; k[2]++)
                    sum += (double)x[x_row + k[2] * s->dilation[2]] * (double)w[w_row + k[2]];
            }
    return sum;
}

/* The output for which tap k reads input i along axis a. -1: none. */
static int64_t output_of(const bench_shape *s, int a, int64_t i, int64_t k) {
    const int64_t scaled = i + s->pad[a] - k * s->dilation[a];
    return scaled >= 0 && scaled % s->stride[a] == 0 && scaled / s->stride[a] < s->m[a] ? scaled / s->stride[a] : -1;
}

static double exact_gx(const bench_shape *s, const bench_data *t, int64_t index) {
    int64_t o[3], k[3], i[3], plane = index / bench_volume(s->d);
    int64_t channel = plane % (s->groups * s->in), n = plane / (s->groups * s->in), group = channel / s->in;
    const float *gy = t->gy + (n * s->groups + group) * s->out * bench_volume(s->m);
    const float *w = t->w + (group * s->out * s->in + channel % s->in) * bench_volume(s->k);
    double sum = 0;
    split(s->d, index % bench_volume(s->d), i);
    for (int64_t c = 0; c < s->out; c++, gy += bench_volume(s->m), w += s->in * bench_volume(s->k))
        for (k[0] = 0; k[0] < s->k[0]; k[0]++) {
            o[0] = output_of(s, 0, i[0], k[0]);
            for (k[1] = 0; o[0] >= 0 && k[1] < s->k[1]; k[1]++) {
                o[1] = output_of(s, 1, i[1], k[1]);
                for (k[2] = 0; o[1] >= 0 && k[2] < s->k[2]; k[2]++) {
                    o[2] = output_of(s, 2, i[2], k[2]);
                    if (o[2] >= 0)
                        sum += (double)gy[at(s->m, o)] * (double)w[at(s->k, k)];
                }
            }
        }
    return sum;
}

static double exact_gw(const bench_shape *s, const bench_data *t, int64_t index) {
    int64_t o[3], k[3], i[3], plane = index / bench_volume(s->k), channel = plane / s->in, c = plane % s->in;
    double sum = 0;
    box b;
    split(s->k, index % bench_volume(s->k), k);
    for (int a = 0; a < 3; a++) {
        i[a] = k[a] * s->dilation[a] - s->pad[a]; /* for the first output */
        bound(&b, a, s->m[a], i[a], s->stride[a], s->d[a]);
    }
    for (int64_t n = 0; n < s->batch; n++) {
        const float *x = t->x + ((n * s->groups + channel / s->out) * s->in + c) * bench_volume(s->d);
        const float *gy = t->gy + (n * s->groups * s->out + channel) * bench_volume(s->m);
        for (o[0] = b.from[0]; o[0] < b.to[0]; o[0]++)
            for (o[1] = b.from[1]; o[1] < b.to[1]; o[1]++) {
                const int64_t in[3] = {i[0] + o[0] * s->stride[0], i[1] + o[1] * s->stride[1], 0};
                const int64_t x_row = at(s->d, in) + i[2], y_row = (o[0] * s->m[1] + o[1]) * s->m[2];
                for (o[2] = b.from[2]; o[2] < b.to[2]; o[2]++)
                    sum += (double)x[x_row + o[2] * s->stride[2]] * (double)gy[y_row + o[2]];
            }
    }
    return sum;
}

typedef double exact_element(const bench_shape *s, const bench_data *t, int64_t index);

/* products: the terms of the sum of one element. */
static void draw(bench_check *check, const bench_shape *shape, const bench_data *data, conv_fft_pass pass,
                 const bench_tensor *output, double products, exact_element *element) {
    sample *set = &check->sets[check->count++];
    double wanted = MAX_PRODUCTS / products;
    int64_t elements = output->outer * output->channels * output->space;
    set->pass = pass;
    set->output = output;
    set->count = wanted > MAX_SAMPLES ? MAX_SAMPLES : wanted < MIN_SAMPLES ? MIN_SAMPLES : (int64_t)wanted;
    uint64_t state = 1;
    for (int64_t j = 0; j < set->count; j++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        set->index[j] = (int64_t)((state >> 16) % (uint64_t)elements);
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t j = 0; j < set->count; j++)
        set->exact[j] = element(shape, data, set->index[j]);
}

bench_check *bench_check_create(const bench_case *layer, const bench_data *data, const bench_tensors *t, int passes) {
    const bench_shape *s = &layer->shape;
    const double taps = (double)bench_volume(s->k), outputs = (double)s->batch * (double)bench_volume(s->m);
    bench_check *check = malloc(sizeof *check);
    if (!check)
        return NULL;
    check->count = 0;
    if (passes & CONV_FFT_FORWARD)
        draw(check, s, data, CONV_FFT_FORWARD, &t->y, (double)s->in * taps, exact_y);
    if (passes & CONV_FFT_BACKWARD_DATA)
        draw(check, s, data, CONV_FFT_BACKWARD_DATA, &t->gx, (double)s->out * taps, exact_gx);
    if (passes & CONV_FFT_BACKWARD_WEIGHTS)
        draw(check, s, data, CONV_FFT_BACKWARD_WEIGHTS, &t->gw, outputs, exact_gw);
    return check;
}

void bench_check_destroy(bench_check *check) { free(check); }

bool bench_check_error(const bench_check *check, const struct bench_gpu *gpu, int passes, double *error) {
    float got[MAX_SAMPLES];
    *error = 0;
    for (int i = 0; i < check->count && !isnan(*error); i++) {
        const sample *set = &check->sets[i];
        double difference = 0, norm = 0;
        if (!(set->pass & passes))
            continue;
        if (!bench_tensor_fetch(gpu, set->output, set->index, set->count, got))
            return false;
        for (int64_t j = 0; j < set->count; j++) {
            double delta = (double)got[j] - set->exact[j];
            difference += delta * delta;
            norm += set->exact[j] * set->exact[j];
        }
        double own = sqrt(difference / norm);
        if (!(own <= *error)) /* true for NaN too */
            *error = own;
    }
    return true;
}

bool bench_poison(const bench_tensors *t, const struct bench_gpu *gpu, int passes) {
    return (!(passes & CONV_FFT_FORWARD) || bench_tensor_poison(gpu, &t->y)) &&
           (!(passes & CONV_FFT_BACKWARD_DATA) || bench_tensor_poison(gpu, &t->gx)) &&
           (!(passes & CONV_FFT_BACKWARD_WEIGHTS) || bench_tensor_poison(gpu, &t->gw));
}
