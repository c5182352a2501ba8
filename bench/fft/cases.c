/* SPDX-License-Identifier: Apache-2.0 */
#include "fft.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define QUICK_ELEMENTS ((int64_t)1 << 22)

typedef struct suite {
    fft_case *cases;
    size_t count;
    bool quick;
} suite;

/* extent 0: the basis. Reduced batches can make two cases the same. */
static void add(suite *s, int rank, int64_t basis, int64_t extent, int64_t batch) {
    const int64_t data = extent ? extent : basis;
    fft_case c = {.rank = rank, .rows = 1, .data_rows = 1, .columns = basis, .data_columns = data, .batch = batch};
    if (rank == 2) {
        c.rows = basis;
        c.data_rows = data;
    }
    if (s->quick && c.batch > QUICK_ELEMENTS / fft_full(&c))
        c.batch = QUICK_ELEMENTS / fft_full(&c);
    int used = rank == 1 ? snprintf(c.name, sizeof c.name, "1d-n%" PRId64, basis)
                         : snprintf(c.name, sizeof c.name, "2d-n%" PRId64 "x%" PRId64, basis, basis);
    used += snprintf(c.name + used, sizeof c.name - (size_t)used, "-b%" PRId64, c.batch);
    if (extent)
        snprintf(c.name + used, sizeof c.name - (size_t)used, "-from%" PRId64 "x%" PRId64, extent, extent);
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->cases[i].name, c.name))
            return;
    if (s->count < FFT_MAX_CASES)
        s->cases[s->count++] = c;
}

size_t fft_suite(bool quick, fft_case cases[FFT_MAX_CASES]) {
    static const int64_t powers[] = {8, 16, 32, 64, 128, 256};
    static const int64_t others[] = {12, 20, 24, 28, 36, 40, 48, 56, 72, 80, 96, 112};
    static const int line_bits[] = {28, 22, 17, 12}, plane_bits[] = {28, 22};
    suite s = {.cases = cases, .quick = quick};
    for (int n = 0; n < 6; n++)
        for (int b = 0; b < 4; b++)
            add(&s, 1, powers[n], 0, ((int64_t)1 << line_bits[b]) / powers[n]);
    for (int n = 0; n < 5; n++)
        for (int b = 0; b < 2; b++)
            add(&s, 2, powers[n], 0, ((int64_t)1 << plane_bits[b]) / (powers[n] * powers[n]));
    for (int n = 0; n < 12; n++)
        add(&s, 2, others[n], 0, ((int64_t)1 << 28) / (others[n] * others[n]));
    add(&s, 2, 64, 9, 65536);
    add(&s, 2, 16, 5, 1048576);
    return s.count;
}
