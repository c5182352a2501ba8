/* SPDX-License-Identifier: Apache-2.0 */
/* The transforms that are measured. */
#ifndef BENCH_FFT_CASES_H
#define BENCH_FFT_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Planes of a basis, and the part of each plane that holds data (forward) or is wanted (inverse). There are always
 * three axes. Axes that the rank lacks come first and have one point. */
typedef struct fft_case {
    char name[80];
    int rank;
    int64_t basis[3], data[3], channels, batch;
    bool complex_signal;  /* C2C, forward only; else R2C and C2R */
    bool frequency_major; /* the spectrum is [bin][batch][channel]; else planes, as signals always are */
    bool doubles;
    bool halves; /* C2C from FP16 to FP16 */
} fft_case;

#define FFT_MAX_CASES 180

/* Write the cases and return how many there are. A name is unique among the cases of one type. quick: batches have
 * at most 2^22 elements. */
size_t fft_suite(bool quick, fft_case cases[FFT_MAX_CASES]);

bool fft_padded(const fft_case *c);
bool fft_has_default(const fft_case *c);                       /* arithmetic DEFAULT of fbfft.h serves the case */
bool fft_has_split(const fft_case *c);                         /* arithmetic SPLIT does */
bool fft_same_transform(const fft_case *a, const fft_case *b); /* the batches may differ */
const char *fft_pass(const fft_case *c, bool inverse);         /* as in the results */
const char *fft_precision(const fft_case *c);

static inline int64_t fft_planes(const fft_case *c) { return c->batch * c->channels; }
static inline int64_t fft_points(const fft_case *c) { return c->basis[0] * c->basis[1] * c->basis[2]; }
static inline int64_t fft_last_bins(const fft_case *c) { return c->complex_signal ? c->basis[2] : c->basis[2] / 2 + 1; }
static inline int64_t fft_bins(const fft_case *c) { return c->basis[0] * c->basis[1] * fft_last_bins(c); }
static inline size_t fft_number_bytes(const fft_case *c) {
    return c->doubles ? sizeof(double) : c->halves ? sizeof(uint16_t) : sizeof(float);
}
/* Real numbers of one plane. A complex number counts two. */
static inline int64_t fft_signal(const fft_case *c) {
    return c->data[0] * c->data[1] * c->data[2] * (c->complex_signal ? 2 : 1);
}
static inline int64_t fft_spectrum(const fft_case *c) { return 2 * fft_bins(c); }

#endif
