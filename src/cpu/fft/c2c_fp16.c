/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of planes of complex FP16 numbers whose axes are powers of two: radix-2 Stockham stages in FP32. */
#include "core/arith.h"
#include "cpu/convert.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <math.h>
#include <stdlib.h>

enum {
    COARSE_BITS = 12 /* an angle is the sum of a multiple of 2^-12 of a full circle, and of a smaller angle */
};

typedef struct pair {
    float re, im;
} pair;

typedef struct root {
    double re, im;
} root;

struct cf_cpu_c2c_fp16 {
    const cf_device *device;
    int64_t basis[2];
    bool inverse;
    double scale;
    root coarse[1 << COARSE_BITS], fine[1 << COARSE_BITS]; /* steps: 2^-12 and 2^-24 of a full circle */
};

conv_fft_status cf_cpu_c2c_fp16_create(const cf_device *device, const int64_t basis[2], bool inverse, double scale,
                                       cf_cpu_c2c_fp16 **result) {
    cf_cpu_c2c_fp16 *h = malloc(sizeof *h);
    if (!h)
        return cf_fail_memory(sizeof *h, "a plan");
    h->device = device;
    h->basis[0] = basis[0];
    h->basis[1] = basis[1];
    h->inverse = inverse;
    h->scale = scale;
    const double angle = (inverse ? 2 : -2) * 3.14159265358979323846;
    for (int i = 0; i < 1 << COARSE_BITS; ++i) {
        const double coarse = ldexp(angle * i, -COARSE_BITS), fine = ldexp(angle * i, -2 * COARSE_BITS);
        h->coarse[i] = (root){cos(coarse), sin(coarse)};
        h->fine[i] = (root){cos(fine), sin(fine)};
    }
    *result = h;
    return CONV_FFT_SUCCESS;
}

void cf_cpu_c2c_fp16_destroy(cf_cpu_c2c_fp16 *h) { free(h); }

static int64_t points_of(const cf_cpu_c2c_fp16 *h) { return h->basis[0] * h->basis[1]; }

/* The number of planes that are transformed at the same time. If there are fewer planes than threads, all threads share
 * the work on one plane. */
static int planes_at_once(const cf_cpu_c2c_fp16 *h, int64_t planes) {
    return planes >= h->device->threads ? h->device->threads : 1;
}

size_t cf_cpu_c2c_fp16_scratch(const cf_cpu_c2c_fp16 *h, int64_t planes) {
    return 2 * sizeof(pair) * (size_t)(points_of(h) * planes_at_once(h, planes)) + 63;
}

/* exp(-+2 pi i k / n), n a power of two. */
static pair root_of(const cf_cpu_c2c_fp16 *h, int64_t k, int64_t n) {
    const int64_t angle = k * (((int64_t)1 << (2 * COARSE_BITS)) / n);
    const root a = h->coarse[angle >> COARSE_BITS], b = h->fine[angle & ((1 << COARSE_BITS) - 1)];
    return (pair){(float)(a.re * b.re - a.im * b.im), (float)(a.re * b.im + a.im * b.re)};
}

/* One radix-2 stage of `stride` interleaved transforms of n points. The first half of the outputs are sums, the second
 * half are differences times twiddles. */
typedef struct step {
    const cf_cpu_c2c_fp16 *h;
    const pair *from;
    pair *to;
    int64_t n, stride;
} step;

static void do_butterflies(const void *user, int64_t p, int thread) {
    const step *const s = user;
    const pair w = root_of(s->h, p, s->n);
    const pair *const a = s->from + p * s->stride, *const b = a + s->n / 2 * s->stride;
    pair *const sums = s->to + 2 * p * s->stride, *const differences = sums + s->stride;
    (void)thread;
    for (int64_t i = 0; i < s->stride; ++i) {
        const pair d = {a[i].re - b[i].re, a[i].im - b[i].im};
        sums[i] = (pair){a[i].re + b[i].re, a[i].im + b[i].im};
        differences[i] = (pair){d.re * w.re - d.im * w.im, d.re * w.im + d.im * w.re};
    }
}

/* One axis of a plane: `outer` times n points of `inner` interleaved transforms. Returns the buffer that has the
 * result. */
static pair *axis(const cf_cpu_c2c_fp16 *h, pair *data, pair *other, int64_t outer, int64_t n, int64_t inner,
                  int threads) {
    pair *from = data, *to = other;
    for (int64_t left = n, stride = inner; left > 1; left /= 2, stride *= 2) {
        for (int64_t o = 0; o < outer; ++o) {
            const step s = {h, from + o * n * inner, to + o * n * inner, left, stride};
            cf_parallel_for(threads, left / 2, do_butterflies, &s);
        }
        pair *const swap = from;
        from = to;
        to = swap;
    }
    return from;
}

static void run_plane(const cf_cpu_c2c_fp16 *h, const uint16_t *in, uint16_t *out, pair *scratch, int threads) {
    const int64_t points = points_of(h);
    for (int64_t i = 0; i < points; ++i)
        scratch[i] = (pair){cf_fp16_to_float(in[2 * i]), cf_fp16_to_float(in[2 * i + 1])};
    pair *other = scratch + points, *result = axis(h, scratch, other, h->basis[0], h->basis[1], 1, threads);
    other = result == scratch ? other : scratch;
    result = axis(h, result, other, 1, h->basis[0], h->basis[1], threads);
    const float scale = (float)h->scale;
    for (int64_t i = 0; i < points; ++i) {
        out[2 * i] = cf_float_to_fp16(scale * result[i].re);
        out[2 * i + 1] = cf_float_to_fp16(scale * result[i].im);
    }
}

typedef struct planes_call {
    const cf_cpu_c2c_fp16 *h;
    const uint16_t *in;
    uint16_t *out;
    pair *buffers;
    int threads; /* for each plane */
} planes_call;

static void run_one_plane(const void *user, int64_t i, int thread) {
    const planes_call *const c = user;
    const int64_t points = points_of(c->h);
    run_plane(c->h, c->in + 2 * i * points, c->out + 2 * i * points, c->buffers + 2 * points * thread, c->threads);
}

void cf_cpu_c2c_fp16_run(const cf_cpu_c2c_fp16 *h, const void *in, void *out, int64_t planes, void *scratch) {
    const int64_t points = points_of(h);
    const double work = 10.0 * (double)points * log2((double)points);
    const bool alone = planes_at_once(h, planes) == 1;
    const planes_call call = {h, in, out, (pair *)cf_align((size_t)scratch),
                              alone ? cf_cpu_threads(h->device, points / 2, work) : 1};
    cf_parallel_for(alone ? 1 : cf_cpu_threads(h->device, planes, work * (double)planes), planes, run_one_plane, &call);
}
