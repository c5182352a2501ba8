/* SPDX-License-Identifier: Apache-2.0 */
#include "fft/cases.h"

#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define QUICK_ELEMENTS ((int64_t)1 << 22)

typedef struct suite {
    fft_case *cases;
    size_t count;
    bool quick;
} suite;

bool fft_padded(const fft_case *c) {
    return c->data[0] < c->basis[0] || c->data[1] < c->basis[1] || c->data[2] < c->basis[2];
}

bool fft_has_default(const fft_case *c) {
    return c->halves || (c->rank == 1 ? c->basis[2] <= 16384 : c->basis[1] <= 256 && c->basis[2] <= 256);
}

bool fft_has_split(const fft_case *c) {
    bool served = !c->doubles && !c->halves && !fft_padded(c) && !c->frequency_major;
    for (int i = 3 - c->rank; i < 3; i++) {
        const int64_t least = i == 2 && !c->complex_signal ? 512 : 256;
        served = served && c->basis[i] >= least && (c->basis[i] & (c->basis[i] - 1)) == 0;
    }
    return served;
}

bool fft_same_transform(const fft_case *a, const fft_case *b) {
    return a->rank == b->rank && !memcmp(a->basis, b->basis, sizeof a->basis) &&
           !memcmp(a->data, b->data, sizeof a->data) && a->channels == b->channels &&
           a->complex_signal == b->complex_signal && a->frequency_major == b->frequency_major &&
           a->doubles == b->doubles && a->halves == b->halves;
}

const char *fft_pass(const fft_case *c, bool inverse) { return c->complex_signal ? "c2c" : inverse ? "c2r" : "r2c"; }
const char *fft_precision(const fft_case *c) { return c->doubles ? "fp64" : c->halves ? "fp16" : "fp32"; }

static void add_name(const fft_case *c, char *name, size_t bytes) {
    cf_text t = {name, bytes, 0};
    cf_text_add(&t, "%dd-n", c->rank);
    for (int i = 3 - c->rank; i < 3; i++)
        cf_text_add(&t, "%s%" PRId64, i > 3 - c->rank ? "x" : "", c->basis[i]);
    cf_text_add(&t, "-b%" PRId64, c->batch);
    for (int i = 3 - c->rank; i < 3 && fft_padded(c); i++)
        cf_text_add(&t, "%s%" PRId64, i > 3 - c->rank ? "x" : "-from", c->data[i]);
    if (c->frequency_major)
        cf_text_add(&t, "-fm%" PRId64, c->channels);
}

/* The batch for which a basis has 2^bits numbers. Reduced batches can make two cases equal. */
static void add(suite *s, fft_case c, int bits) {
    int64_t elements = (int64_t)1 << bits;
    if (s->quick && elements > QUICK_ELEMENTS)
        elements = QUICK_ELEMENTS;
    c.batch = elements / (fft_points(&c) * c.channels);
    if (c.batch == 0)
        return; /* a reduced suite leaves it out */
    add_name(&c, c.name, sizeof c.name);
    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->cases[i].name, c.name) && fft_same_transform(&s->cases[i], &c))
            return;
    if (s->count < FFT_MAX_CASES)
        s->cases[s->count++] = c;
}

/* Axes of n points, the first `data` of which are not zero. */
static fft_case padded(int rank, int64_t n, int64_t data) {
    fft_case c = {.rank = rank, .channels = 1};
    for (int i = 0; i < 3; i++) {
        c.basis[i] = i < 3 - rank ? 1 : n;
        c.data[i] = i < 3 - rank ? 1 : data;
    }
    return c;
}
static fft_case cube(int rank, int64_t n) { return padded(rank, n, n); }

static void add_others(suite *s) {
    static const int64_t majors[] = {8, 16, 32, 64}, volumes[] = {16, 32, 64};
    static const struct {
        int rank;
        int64_t n;
    } complex_cases[] = {{1, 64}, {1, 256}, {1, 512}, {1, 1024}, {1, 2048}, {1, 4096}, {1, 8192}, {1, 16384}, {2, 64}};
    for (int n = 0; n < 4; n++) {
        fft_case c = cube(2, majors[n]);
        c.frequency_major = true;
        c.channels = 16;
        add(s, c, 28);
    }
    for (int n = 0; n < 3; n++)
        add(s, cube(3, volumes[n]), 28);
    /* A number has twice the bytes, so the batch has half as many numbers. */
    for (size_t n = 0; n < sizeof complex_cases / sizeof complex_cases[0]; n++) {
        fft_case c = cube(complex_cases[n].rank, complex_cases[n].n);
        c.complex_signal = true;
        add(s, c, 27);
    }
    fft_case doubles = cube(2, 64);
    doubles.doubles = true;
    add(s, doubles, 27);
}

/* Axes of 2^log0, .. points; axes that the rank lacks have log 0. */
static void add_powers(suite *s, fft_case c, int log0, int log1, int log2, int bits) {
    const int log[3] = {log0, log1, log2};
    c.rank = log0 > 0 ? 3 : log1 > 0 ? 2 : 1;
    c.channels = 1;
    for (int i = 0; i < 3; i++)
        c.basis[i] = c.data[i] = (int64_t)1 << log[i];
    add(s, c, bits);
}

/* The cases of the tables of tcFFT (arXiv 2104.11471): 512 MB each way, at least one transform. Cases with several
 * passes over memory come first, so that an aborted run has them. */
static void add_halves(suite *s) {
    const fft_case halves = {.complex_signal = true, .halves = true};
    for (int first = 9; first >= 8; first--)
        for (int last = 9; last >= 8; last--)
            add_powers(s, halves, 0, first, last, 27);
    for (int log = 14; log <= 24; log++)
        add_powers(s, halves, 0, 0, log, 27);
    for (int log = 4; log < 14; log++)
        add_powers(s, halves, 0, 0, log, 27);
}

/* Numbers in all as in the tables of the paper on splitting, which does not state its sizes: rows of up to 4,096,
 * planes of up to 256x256 and volumes of up to 256^3 numbers. Then larger planes and rows, and real signals. */
static void add_split(suite *s) {
    const fft_case numbers = {.complex_signal = true}, reals = {.complex_signal = false};
    static const int bits[] = {10, 12, 14, 15, 16, 18, 20, 21, 22, 24, 26};
    for (int i = 0; i < 11; i++) {
        const int all = bits[i], row = all < 12 ? all : 12, plane = all < 16 ? all : 16, cube = all < 24 ? all : 24;
        add_powers(s, numbers, 0, 0, row, all);
        if (all >= 12)
            add_powers(s, numbers, 0, plane / 2, (plane + 1) / 2, all);
        if (all >= 14)
            add_powers(s, numbers, cube / 3, (cube + 1) / 3, (cube + 2) / 3, all);
    }
    for (int log = 9; log <= 12; log++)
        add_powers(s, numbers, 0, log, log, 26);
    add_powers(s, numbers, 0, 0, 15, 26);
    for (int log = 16; log <= 24; log += 2)
        add_powers(s, numbers, 0, 0, log, 26);
    for (int log = 11; log <= 24; log += log < 15 ? 2 : 3)
        add_powers(s, reals, 0, 0, log, 27);
    add_powers(s, reals, 0, 8, 9, 27);
    add_powers(s, reals, 0, 10, 10, 27);
    add_powers(s, reals, 8, 8, 9, 27);
}

size_t fft_suite(bool quick, fft_case cases[FFT_MAX_CASES]) {
    static const int64_t powers[] = {8, 16, 32, 64, 128, 256}, lines[] = {512, 1024, 4096, 16384};
    static const int64_t others[] = {12, 20, 24, 28, 36, 40, 45, 48, 56, 63, 72, 75, 80, 96, 112};
    static const int line_bits[] = {28, 22, 17, 12}, plane_bits[] = {28, 22};
    suite s = {.cases = cases, .quick = quick};
    for (int n = 0; n < 6; n++)
        for (int b = 0; b < 4; b++)
            add(&s, cube(1, powers[n]), line_bits[b]);
    for (int n = 0; n < 4; n++)
        add(&s, cube(1, lines[n]), 28);
    for (int n = 0; n < 6; n++)
        for (int b = 0; b < 2; b++)
            add(&s, cube(2, powers[n]), plane_bits[b]);
    for (int n = 0; n < 15; n++)
        add(&s, cube(2, others[n]), 28);
    add(&s, padded(2, 64, 9), 28);
    add(&s, padded(2, 16, 5), 28);
    add_others(&s);
    add_halves(&s);
    add_split(&s);
    return s.count;
}
