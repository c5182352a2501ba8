/* SPDX-License-Identifier: Apache-2.0 */
#include "cpu/fft/line_plan.h"

#include <math.h>

/* Radices of the powers of two: as many eights as leave no two. */
static int next_radix(int64_t rest) {
    int twos = 0;
    while (rest % 2 == 0) {
        rest /= 2;
        ++twos;
    }
    if (twos == 1)
        return 2;
    if (twos == 2 || twos == 4)
        return 4;
    if (twos > 0)
        return 8;
    for (int radix = 3; radix <= 7; radix += 2)
        if (rest % radix == 0)
            return radix;
    return 0;
}

conv_fft_status cf_line_plan_init(cf_line_plan *plan, int64_t length) {
    *plan = (cf_line_plan){.length = length};
    int64_t s = 1;
    while (s < length) {
        const int radix = next_radix(length / s);
        if (radix == 0)
            break;
        const int64_t m = length / s / radix;
        plan->stage[plan->stages++] = (cf_line_stage){.radix = radix, .m = m, .s = s, .twiddle = plan->twiddles};
        plan->twiddles += m * (radix - 1);
        s *= radix;
    }
    CF_REQUIRE(length >= 1 && s == length, "transform length %lld is not a product of 2, 3, 5 and 7",
               (long long)length);
    return CONV_FFT_SUCCESS;
}

void cf_root_of_unity(int64_t k, int64_t n, conv_fft_dtype dtype, void *complex, int64_t index) {
    /* Reduce the angle to [0, pi / 4], where the argument of cos and sin is most exact. */
    const double pi = 3.14159265358979323846264338327950288;
    int64_t numerator = k;
    const int half = 2 * numerator > n;
    if (half)
        numerator = n - numerator;      /* conjugate */
    const int left = 4 * numerator > n; /* beyond a quarter: mirror the real part */
    double quarter = left ? (double)n / 2 - (double)numerator : (double)numerator;
    const int steep = 8 * quarter > (double)n;
    if (steep)
        quarter = (double)n / 4 - quarter;
    const double angle = 2 * pi * quarter / (double)n;
    const double c = steep ? sin(angle) : cos(angle), s = steep ? cos(angle) : sin(angle);
    const double re = left ? -c : c, im = half ? s : -s;
    if (dtype == CONV_FFT_FP64) {
        ((double *)complex)[2 * index] = re;
        ((double *)complex)[2 * index + 1] = im;
    } else {
        ((float *)complex)[2 * index] = (float)re;
        ((float *)complex)[2 * index + 1] = (float)im;
    }
}

void cf_line_plan_twiddles(const cf_line_plan *plan, conv_fft_dtype dtype, void *twiddles) {
    for (int i = 0; i < plan->stages; ++i) {
        const cf_line_stage *stage = &plan->stage[i];
        const int64_t n = stage->m * stage->radix;
        for (int64_t p = 0; p < stage->m; ++p)
            for (int j = 1; j < stage->radix; ++j)
                cf_root_of_unity(p * j, n, dtype, twiddles, stage->twiddle + p * (stage->radix - 1) + j - 1);
    }
}
