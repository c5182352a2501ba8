/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/shared_memory/registers.h"

#include "core/arith.h"
#include "fbfft/shared_memory/layout.h"
#include "fbfft/shared_memory/radices.h"

/* The axis of the last step before the spectrum. */
static int last_axis(const cf_shared_fft_config *c) {
    return cf_shared_fft_points(c->radix[0]) > 1                                                   ? 0
           : cf_shared_fft_points(c->radix[1]) > 1 || c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX ? 1
                                                                                                   : 2;
}

int cf_shared_fft_last_points(const cf_shared_fft_config *c) {
    const int x = last_axis(c), *r = c->radix[x];
    return x == 2 ? 2 : r[2] > 1 ? r[2] : r[1] > 1 ? r[1] : r[0];
}

int64_t cf_shared_fft_register_sums(const cf_shared_fft_config *c) {
    if (!c->sums)
        return 0;
    const int x = last_axis(c), points = cf_shared_fft_last_points(c), n = cf_shared_fft_points(c->radix[2]);
    const int64_t lines = x == 0 ? cf_shared_fft_columns(c) * cf_shared_fft_points(c->radix[1])
                                 : cf_shared_fft_columns(c) * cf_shared_fft_extent(c, 0);
    const int64_t tasks = x == 2 ? n / 2 + 1 : lines * (cf_shared_fft_points(c->radix[x]) / points);
    return cf_ceil_div(c->planes * tasks, c->threads) * points;
}

/* For one step per axis. These are the smallest numbers with which compilers spill nothing. Blocks of a few warps
 * hide each other's barriers, because each warp has tens of loads under way. */
static int frequency_major_registers(int points) {
    return points <= 16 ? 64 : points <= 24 ? 80 : points <= 40 ? 96 : points <= 48 ? 128 : points <= 56 ? 144 : 168;
}

/* For kernels that multiply. A few spills cost less than having fewer blocks. */
static int product_registers(const cf_shared_fft_config *c, int points, int number) {
    const bool lines = last_axis(c) == 2;
    const int sums = (int)cf_shared_fft_register_sums(c) * number, step = points <= 12            ? 64
                                                                          : points <= 18          ? 80
                                                                          : points <= 24 && lines ? 96
                                                                          : points <= 32          ? 128
                                                                                                  : 168;
    if (!c->sums)
        return step;
    if (lines)
        return (int)cf_max(step, (step < 96 ? step : 64) + 2 * sums);
    /* The sums and the factors. Both factors are in registers if they are short. */
    const bool both = cf_shared_fft_last_points(c) <= 16;
    const int last = 2 * sums + ((both ? 4 : 2) * cf_shared_fft_last_points(c) + (both ? 40 : 56)) * number;
    return (int)cf_max(step, last <= 112 && number == 1 ? 80 : last);
}

int cf_shared_fft_registers(const cf_shared_fft_config *c) {
    const int number = (int)cf_shared_fft_number_bytes(c) / 4, points = cf_shared_fft_max_points(c) * number;
    if (!c->packs_nyquist)
        return product_registers(c, points, number);
    const bool major = c->order == CF_SHARED_FFT_BY_PLANE,
               single = c->radix[0][1] * c->radix[1][1] * c->radix[2][1] == 1;
    return major && single         ? frequency_major_registers(points)
           : points <= 8 && !major ? 72
           : points <= 16          ? 80
           : points <= 32          ? 128
           : points <= 48          ? 168
                                   : 192;
}
