/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/dft.h"

#include "support/tensor.h"

#include <math.h>
#include <stdlib.h>

enum {
    FINE_BITS = 14,
    FINE = 1 << FINE_BITS
};

/* exp(2 pi i step k / n) for k < count, as pairs. */
static double *make_roots(int64_t n, int64_t step, int64_t count) {
    double *const roots = test_alloc((size_t)count * 2 * sizeof *roots);
    const double turn = 2 * acos(-1.0) / (double)n;
    for (int64_t k = 0; k < count; k++) {
        roots[2 * k] = cos(turn * (double)(step * k));
        roots[2 * k + 1] = sin(turn * (double)(step * k));
    }
    return roots;
}

/* One bin of a line whose table of roots would not fit a cache: a root is the product of two, from two short tables. */
static void bin_of_long_line(int64_t n, int sign, const double *in, int64_t f, const double *fine, const double *coarse,
                             double bin[2]) {
    double re = 0, im = 0;
    for (int64_t t = 0, at = 0; t < n; t++) {
        const double *const a = fine + 2 * (at % FINE), *const b = coarse + 2 * (at >> FINE_BITS);
        const double c = a[0] * b[0] - a[1] * b[1], s = sign * (a[0] * b[1] + a[1] * b[0]);
        re += in[2 * t] * c - in[2 * t + 1] * s;
        im += in[2 * t] * s + in[2 * t + 1] * c;
        at += f; /* f * (t + 1) mod n */
        at -= at >= n ? n : 0;
    }
    bin[0] = re;
    bin[1] = im;
}

static void bin_of_line(int64_t n, int sign, const double *in, int64_t f, const double *roots, double bin[2]) {
    double re = 0, im = 0;
    for (int64_t t = 0, at = 0; t < n; t++) {
        const double c = roots[2 * at], s = sign * roots[2 * at + 1];
        re += in[2 * t] * c - in[2 * t + 1] * s;
        im += in[2 * t] * s + in[2 * t + 1] * c;
        at += f;
        at -= at >= n ? n : 0;
    }
    bin[0] = re;
    bin[1] = im;
}

void ref_dft_bins(int64_t n, int sign, const double *in, int64_t count, const int64_t *bins, double *out) {
    const bool is_long = n > 16 * FINE;
    double *const roots = make_roots(n, 1, is_long ? FINE : n), *const coarse =
                                                                    is_long ? make_roots(n, FINE, (n + FINE - 1) / FINE)
                                                                            : NULL;
    for (int64_t i = 0; i < count; i++) {
        const int64_t f = bins ? bins[i] : i;
        if (is_long)
            bin_of_long_line(n, sign, in, f, roots, coarse, out + 2 * i);
        else
            bin_of_line(n, sign, in, f, roots, out + 2 * i);
    }
    free(roots);
    free(coarse);
}

void ref_dft(int64_t n, int sign, const double *in, double *out) { ref_dft_bins(n, sign, in, n, NULL, out); }
