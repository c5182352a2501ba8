/* SPDX-License-Identifier: Apache-2.0 */
/* One axis is transformed after the other. Long lines are split into halves. */
#include "fft/reference.h"

#include "core/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One axis of n points: [outer][used][inner] -> [outer][wanted][inner], complex numbers. */
typedef struct sweep {
    int64_t n, outer, used, wanted, inner;
    int sign;
} sweep;

/* out[o][k][i] = sum over j < used of in[o][j][i] exp(sign 2 pi i j k / n). roots: cos and sin of 2 pi i / n, as
 * pairs. */
static void transform(const sweep *s, const double *roots, const double *in, double *out) {
    memset(out, 0, (size_t)(s->outer * s->wanted * s->inner) * 2 * sizeof *out);
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t k = 0; k < s->wanted; k++) {
            double *const y = out + 2 * (o * s->wanted + k) * s->inner;
            int64_t root = 0; /* j k mod n */
            for (int64_t j = 0; j < s->used; j++) {
                const double *const x = in + 2 * (o * s->used + j) * s->inner;
                const double re = roots[2 * root], im = s->sign * roots[2 * root + 1];
                for (int64_t i = 0; i < s->inner; i++) {
                    y[2 * i] += x[2 * i] * re - x[2 * i + 1] * im;
                    y[2 * i + 1] += x[2 * i + 1] * re + x[2 * i] * im;
                }
                root = root + k < s->n ? root + k : root + k - s->n;
            }
        }
}

enum {
    MIN_HALVED = 16 /* lines of complex numbers with fewer points are not halved */
};

/* out[k] = sum over j < n of in[j * stride] exp(-2 pi i j k / n), from the transforms of even and odd points. roots: of
 * `all` points. scratch: n pairs. */
static void halve(int64_t n, int64_t stride, int64_t all, const double *roots, const double *in, double *out,
                  double *scratch) {
    if (n >= MIN_HALVED) {
        const int64_t half = n / 2;
        halve(half, 2 * stride, all, roots, in, scratch, out);
        halve(half, 2 * stride, all, roots, in + 2 * stride, scratch + 2 * half, out + 2 * half);
        for (int64_t k = 0; k < half; k++) {
            const double *const e = scratch + 2 * k, *const o = e + 2 * half, *const w = roots + 2 * (k * (all / n));
            const double re = o[0] * w[0] + o[1] * w[1], im = o[1] * w[0] - o[0] * w[1];
            out[2 * k] = e[0] + re;
            out[2 * k + 1] = e[1] + im;
            out[2 * (k + half)] = e[0] - re;
            out[2 * (k + half) + 1] = e[1] - im;
        }
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t j = 0; j < n; j++) {
            const double *const x = in + 2 * j * stride, *const w = roots + 2 * (j * k % n * (all / n));
            re += x[0] * w[0] + x[1] * w[1];
            im += x[1] * w[0] - x[0] * w[1];
        }
        out[2 * k] = re;
        out[2 * k + 1] = im;
    }
}

/* Transform axis x. The axes in front of it have `before` points, and the axes behind it `behind`. roots: memory for
 * 3 n pairs. */
static void along(const fft_case *c, int x, bool inverse, int64_t before, int64_t behind, double *roots,
                  const double *in, double *out) {
    const int64_t n = c->basis[x], used = inverse ? n : c->data[x],
                  wanted = inverse  ? c->data[x]
                           : x == 2 ? fft_last_bins(c)
                                    : n;
    const bool halved = n >= MIN_HALVED && (n & (n - 1)) == 0 && !fft_padded(c);
    const double angle = 2 * acos(-1.0) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        roots[2 * i] = cos(angle * (double)i);
        roots[2 * i + 1] = (halved && inverse ? -1 : 1) * sin(angle * (double)i); /* halve() has the sign of forward */
    }
    if (halved) {
        double *const line = roots + 2 * n;
        for (int64_t i = 0; i < before * behind; i++) {
            halve(n, behind, n, roots, in + 2 * (i / behind * n * behind + i % behind), line, line + 2 * n);
            for (int64_t k = 0; k < wanted; k++)
                memcpy(out + 2 * ((i / behind * wanted + k) * behind + i % behind), line + 2 * k, 2 * sizeof *out);
        }
        return;
    }
    const sweep s = {
        .n = n, .outer = before, .used = used, .wanted = wanted, .inner = behind, .sign = inverse ? 1 : -1};
    transform(&s, roots, in, out);
}

static void forward(const fft_case *c, double *roots, double *a, double *b, const float *in, double *out) {
    const int64_t points = c->data[0] * c->data[1] * c->data[2], last = fft_last_bins(c);
    for (int64_t i = 0; i < points; i++) {
        a[2 * i] = (double)in[c->complex_signal ? 2 * i : i];
        a[2 * i + 1] = c->complex_signal ? (double)in[2 * i + 1] : 0;
    }
    along(c, 2, false, c->data[0] * c->data[1], 1, roots, a, b);
    along(c, 1, false, c->data[0], last, roots, b, a);
    along(c, 0, false, 1, c->basis[1] * last, roots, a, out);
}

/* Whole lines along the last axis from their halves, the transforms of real numbers. */
static void mirror_lines(const fft_case *c, const double *half, double *whole) {
    const int64_t n = c->basis[2], bins = fft_last_bins(c);
    for (int64_t line = 0; line < c->data[0] * c->data[1]; line++, half += 2 * bins, whole += 2 * n) {
        memcpy(whole, half, (size_t)bins * 2 * sizeof *whole);
        for (int64_t k = bins; k < n; k++) {
            whole[2 * k] = half[2 * (n - k)];
            whole[2 * k + 1] = -half[2 * (n - k) + 1];
        }
    }
}

static void inverse(const fft_case *c, double *roots, double *a, double *b, const float *in, double *out) {
    const int64_t last = fft_last_bins(c), points = c->data[0] * c->data[1] * c->data[2];
    for (int64_t i = 0; i < fft_spectrum(c); i++)
        a[i] = (double)in[i];
    along(c, 0, true, 1, c->basis[1] * last, roots, a, b);
    along(c, 1, true, c->data[0], last, roots, b, a);
    mirror_lines(c, a, b);
    along(c, 2, true, c->data[0] * c->data[1], 1, roots, b, a);
    for (int64_t i = 0; i < points; i++)
        out[i] = a[2 * i];
}

conv_fft_status fft_reference(const fft_case *c, bool inverse_way, const float *in, double *out) {
    int64_t longest = 1;
    for (int x = 0; x < 3; x++)
        longest = c->basis[x] > longest ? c->basis[x] : longest;
    const size_t plane = (size_t)fft_points(c) * 2, bytes = (2 * plane + (size_t)longest * 6) * sizeof(double);
    double *const memory = malloc(bytes);
    if (!memory)
        return cf_fail_memory(bytes, "the expected results");
    (inverse_way ? inverse : forward)(c, memory + 2 * plane, memory, memory + plane, in, out);
    free(memory);
    return CONV_FFT_SUCCESS;
}

int64_t fft_reference_work(const fft_case *c) { return fft_bins(c) * (c->basis[0] + c->basis[1] + c->basis[2]); }
