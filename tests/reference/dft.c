/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/dft.h"

#include "support/tensor.h"

#include <math.h>
#include <stdlib.h>

/* cos and sin of 2 pi i / n, as pairs. */
static double *make_roots(int64_t n) {
    double *const roots = test_alloc((size_t)n * 2 * sizeof *roots);
    const double turn = 2 * acos(-1.0) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        roots[2 * i] = cos(turn * (double)i);
        roots[2 * i + 1] = sin(turn * (double)i);
    }
    return roots;
}

void ref_dft_bins(int64_t n, int sign, const double *in, int64_t count, const int64_t *bins, double *out) {
    double *const roots = make_roots(n);
    for (int64_t i = 0; i < count; i++) {
        const int64_t f = bins ? bins[i] : i;
        double re = 0, im = 0;
        for (int64_t t = 0, at = 0; t < n; t++) {
            const double c = roots[2 * at], s = sign * roots[2 * at + 1];
            re += in[2 * t] * c - in[2 * t + 1] * s;
            im += in[2 * t] * s + in[2 * t + 1] * c;
            at += f; /* f * (t + 1) mod n */
            at -= at >= n ? n : 0;
        }
        out[2 * i] = re;
        out[2 * i + 1] = im;
    }
    free(roots);
}

void ref_dft(int64_t n, int sign, const double *in, double *out) { ref_dft_bins(n, sign, in, n, NULL, out); }
