/* SPDX-License-Identifier: Apache-2.0 */
#include "dft.h"

#include <math.h>

void ref_dft(int64_t n, int sign, const double *in, double *out) {
    const double turn = sign * 2 * acos(-1.0) / (double)n;
    for (int64_t f = 0; f < n; f++) {
        double re = 0, im = 0;
        for (int64_t t = 0; t < n; t++) {
            const double angle = turn * (double)(f * t % n), c = cos(angle), s = sin(angle);
            re += in[2 * t] * c - in[2 * t + 1] * s;
            im += in[2 * t] * s + in[2 * t + 1] * c;
        }
        out[2 * f] = re;
        out[2 * f + 1] = im;
    }
}
