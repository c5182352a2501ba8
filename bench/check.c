/* SPDX-License-Identifier: Apache-2.0 */
/* The error of a result: a seeded sample of its elements, each computed by the definition in double. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

#define MAX_SAMPLES 2000
#define MIN_SAMPLES 64
#define MAX_PRODUCTS 5e7 /* of one sample set: long sums get fewer elements */

typedef struct sample {
    conv_fft_pass pass;
    const bench_tensor *output;
    int64_t count;
    int64_t index[MAX_SAMPLES];
    double exact[MAX_SAMPLES];
} sample;

struct bench_check {
    int count;
    sample sets[2];
};

/* Does tap k of output o read inside the input along axis a? Then at i. */
static bool meets(const bench_shape *s, int a, int64_t o, int64_t k, int64_t *i) {
    *i = o * s->stride[a] + k * s->dilation[a] - s->pad[a];
    return *i >= 0 && *i < s->d[a];
}

/* Row-major position within three extents, and back. */
static int64_t at(const int64_t extent[3], const int64_t p[3]) { return (p[0] * extent[1] + p[1]) * extent[2] + p[2]; }

static void split(const int64_t extent[3], int64_t flat, int64_t p[3]) {
    p[2] = flat % extent[2];
    p[1] = flat / extent[2] % extent[1];
    p[0] = flat / extent[2] / extent[1];
}

static double exact_y(const bench_shape *s, const bench_data *t, int64_t index) {
    int64_t o[3], k[3], i[3], plane = index / bench_volume(s->m);
    int64_t channel = plane % (s->groups * s->out), n = plane / (s->groups * s->out);
    double sum = 0;
    split(s->m, index % bench_volume(s->m), o);
    for (int64_t tap = 0; tap < bench_volume(s->k); tap++) {
        split(s->k, tap, k);
        if (!meets(s, 0, o[0], k[0], &i[0]) || !meets(s, 1, o[1], k[1], &i[1]) || !meets(s, 2, o[2], k[2], &i[2]))
            continue;
        for (int64_t c = 0; c < s->in; c++) {
            int64_t x_plane = (n * s->groups + channel / s->out) * s->in + c;
            sum += (double)t->x[x_plane * bench_volume(s->d) + at(s->d, i)] *
                   (double)t->w[(channel * s->in + c) * bench_volume(s->k) + tap];
        }
    }
    return sum;
}

static double exact_gx(const bench_shape *s, const bench_data *t, int64_t index) {
    int64_t o[3], k[3], i[3], plane = index / bench_volume(s->d);
    int64_t channel = plane % (s->groups * s->in), n = plane / (s->groups * s->in), group = channel / s->in;
    double sum = 0;
    split(s->d, index % bench_volume(s->d), i);
    for (int64_t tap = 0; tap < bench_volume(s->k); tap++) {
        bool hit = true;
        split(s->k, tap, k);
        for (int a = 0; a < 3; a++) {
            int64_t scaled = i[a] + s->pad[a] - k[a] * s->dilation[a];
            o[a] = scaled / s->stride[a];
            hit = hit && scaled >= 0 && scaled % s->stride[a] == 0 && o[a] < s->m[a];
        }
        for (int64_t c = 0; hit && c < s->out; c++) {
            int64_t out = group * s->out + c;
            sum += (double)t->gy[(n * s->groups * s->out + out) * bench_volume(s->m) + at(s->m, o)] *
                   (double)t->w[(out * s->in + channel % s->in) * bench_volume(s->k) + tap];
        }
    }
    return sum;
}

static double exact_gw(const bench_shape *s, const bench_data *t, int64_t index) {
    int64_t o[3], k[3], i[3], plane = index / bench_volume(s->k), channel = plane / s->in, c = plane % s->in;
    double sum = 0;
    split(s->k, index % bench_volume(s->k), k);
    for (int64_t flat = 0; flat < bench_volume(s->m); flat++) {
        split(s->m, flat, o);
        if (!meets(s, 0, o[0], k[0], &i[0]) || !meets(s, 1, o[1], k[1], &i[1]) || !meets(s, 2, o[2], k[2], &i[2]))
            continue;
        for (int64_t n = 0; n < s->batch; n++) {
            int64_t x_plane = (n * s->groups + channel / s->out) * s->in + c,
                    y_plane = n * s->groups * s->out + channel;
            sum += (double)t->x[x_plane * bench_volume(s->d) + at(s->d, i)] *
                   (double)t->gy[y_plane * bench_volume(s->m) + flat];
        }
    }
    return sum;
}

typedef double exact_element(const bench_shape *s, const bench_data *t, int64_t index);

/* products: terms of one element's sum. */
static void draw(bench_check *check, const bench_job *job, conv_fft_pass pass, const bench_tensor *output,
                 double products, exact_element *element) {
    if (!(job->pass & pass))
        return;
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
        set->exact[j] = element(&job->layer->shape, job->data, set->index[j]);
}

bench_check *bench_check_create(const bench_job *job) {
    const bench_shape *s = &job->layer->shape;
    const bench_tensors *t = job->tensors;
    bench_check *check = malloc(sizeof *check);
    if (!check)
        return NULL;
    check->count = 0;
    draw(check, job, CONV_FFT_FORWARD, &t->y, (double)s->in * (double)bench_volume(s->k), exact_y);
    draw(check, job, CONV_FFT_BACKWARD_DATA, &t->gx, (double)s->out * (double)bench_volume(s->k), exact_gx);
    draw(check, job, CONV_FFT_BACKWARD_WEIGHTS, &t->gw, (double)s->batch * (double)bench_volume(s->m), exact_gw);
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
        if (!(own <= *error)) /* also when it is NaN */
            *error = own;
    }
    return true;
}

bool bench_poison(const bench_tensors *t, const struct bench_gpu *gpu, int passes) {
    return (!(passes & CONV_FFT_FORWARD) || bench_tensor_poison(gpu, &t->y)) &&
           (!(passes & CONV_FFT_BACKWARD_DATA) || bench_tensor_poison(gpu, &t->gx)) &&
           (!(passes & CONV_FFT_BACKWARD_WEIGHTS) || bench_tensor_poison(gpu, &t->gw));
}
