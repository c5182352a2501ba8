/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of radices.
 *
 * One step      The points of a line fit the registers of a thread. Threads exchange nothing.
 * Two steps     For longer lines. The radices are about equal. The first is a multiple of 8 if possible, so that
 *               neighbouring threads use different banks of shared memory. With one axis only, two steps begin at 33
 *               points: a line has little work, and more threads share it.
 * Three steps   For lines whose two steps would need too many registers.
 * Columns       Columns of pairs of rows. The first radix is small, and the other factor is even, because a thread
 *               holds both rows of its pairs.
 */
#include "fbfft/shared_memory/radices.h"

#include "core/arith.h"

#include <string.h>

cf_two_tasks cf_shared_fft_two_along(const cf_shared_fft_config *c, int x) {
    if (x == 1 && c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX)
        return CF_FIRST_TWO;
    /* Sums of long lines: one block has all threads, and a short last step has tasks for all of them. */
    const bool sums = c->sums && c->problem.fft.transform.spectrum.basis[2] > 12288;
    return x == 2 && c->kind == CF_SHARED_FFT_PACKED_REAL && (c->mirrors || sums) ? CF_LAST_TWO : CF_NEVER_TWO;
}

/* Points that a thread holds in the largest step. */
static int points_of(const int r[3], cf_two_tasks two) {
    int points[3] = {r[0], r[1], r[2]};
    if (two == CF_FIRST_TWO && r[1] > 1 && r[1] * r[2] % 2 == 0)
        points[0] *= 2;
    if (two == CF_LAST_TWO && r[1] > 1)
        points[r[2] > 1 ? 2 : 1] *= 2;
    return (int)cf_max(points[0], cf_max(points[1], points[2]));
}

/* Larger is worse. The points of a thread decide how many registers it needs if they are more than min_points. */
static int badness(const int r[3], int min_points, cf_two_tasks two) {
    const int points = points_of(r, two), order = two == CF_FIRST_TWO ? 40 * (r[1] * r[2] % 2) : r[0] % 8 != 0;
    return 4 * (points > min_points ? points : min_points) + order + 64 * (r[2] > 1);
}

enum {
    MAX_DIVISORS = 1536 /* of a number below 2^31 */
};

/* The divisors of n in ascending order. Returns their number. */
static int divisors_of(int n, int divisors[MAX_DIVISORS]) {
    int count = 0;
    for (int i = 1; i <= n / i; ++i)
        if (n % i == 0)
            divisors[count++] = i;
    const int last = divisors[count - 1];
    for (int i = count - 1; i >= 0; --i)
        if (n / divisors[i] > last)
            divisors[count++] = n / divisors[i];
    return count;
}

void cf_shared_fft_choose_radices(int n, int max_points, cf_two_tasks two, int radix[3]) {
    int best = 1 << 30, divisors[MAX_DIVISORS];
    radix[0] = n;
    radix[1] = radix[2] = 1;
    if (n <= max_points)
        return;
    const int count = divisors_of(n, divisors);
    for (int i = 1; i < count - 1; ++i)
        for (int j = 1; j < count - 1; ++j) {
            const int a = divisors[i], b = divisors[j], r[3] = {a, b, n / a / b};
            if (n / a % b)
                continue;
            const int bad = badness(r, max_points < 16 ? 8 : 16, two);
            /* If two choices are equal: a short last step is better for columns; a long first step is better for
             * lines that fit registers. */
            const bool equal =
                bad == best && (two == CF_FIRST_TWO || (two == CF_LAST_TWO && a > radix[0] && points_of(r, two) <= 16));
            if (bad < best || equal) {
                best = bad;
                memcpy(radix, r, sizeof r);
            }
        }
}

int cf_shared_fft_max_points(const cf_shared_fft_config *c) {
    int max_points = 1;
    for (int x = 0; x < 3; ++x)
        max_points = (int)cf_max(max_points, points_of(c->radix[x], cf_shared_fft_two_along(c, x)));
    return max_points;
}
