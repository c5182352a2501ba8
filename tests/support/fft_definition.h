/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of fbfft.h on a transform, written a second time: the places of elements, and their transform. All
 * by the definition in double, and nothing shared with the library. Nothing here calls cmocka, so any thread may
 * call it. */
#ifndef TEST_FBFFT_SHAPE_H
#define TEST_FBFFT_SHAPE_H

#include "fbfft.h"

#include <stdbool.h>

/* A description with every default filled in. Axes are aligned to the right: the axes of rank 2 are axes 1 and 2. */
typedef struct fft_shape {
    bool inverse, complex_signal;
    bool split;                                /* arithmetic SPLIT */
    conv_fft_dtype signal_type, spectrum_type; /* of one number */
    int signal_numbers;                        /* of an element: 1, or 2 if complex */
    int64_t channels;
    int64_t basis[3], bins[3];                      /* bins: E, extents of the spectrum */
    int64_t points[3], size[3], offset[3], step[3]; /* points: D */
    int64_t signal_stride[5];                       /* {batch, channel, axes} in elements */
    int64_t bin[3];                                 /* strides of a spectrum that is not frequency-major */
    bool frequency_major;                           /* entries and channels are innermost */
    conv_fft_padding padding;
    double scale;
} fft_shape;

fft_shape fft_shape_of(const fbfft_desc *desc);
int64_t fft_basis_points(const fft_shape *s);

/* Bytes that `batch` entries span. */
int64_t fft_signal_bytes(const fft_shape *s, int64_t batch);
int64_t fft_spectrum_bytes(const fft_shape *s, int64_t batch);
static inline int64_t fft_in_bytes(const fft_shape *s, int64_t batch) {
    return s->inverse ? fft_spectrum_bytes(s, batch) : fft_signal_bytes(s, batch);
}
static inline int64_t fft_out_bytes(const fft_shape *s, int64_t batch) {
    return s->inverse ? fft_signal_bytes(s, batch) : fft_spectrum_bytes(s, batch);
}
static inline conv_fft_dtype fft_in_type(const fft_shape *s) { return s->inverse ? s->spectrum_type : s->signal_type; }
static inline conv_fft_dtype fft_out_type(const fft_shape *s) { return s->inverse ? s->signal_type : s->spectrum_type; }

/* Planes are numbered entry * channels + channel. Offsets in bytes: of point i of the window, last axis fastest, or -1
 * if there is no such element; and of a bin of a natural spectrum, numbered the same way. */
int64_t fft_point_at(const fft_shape *s, int64_t plane, int64_t i);
int64_t fft_bin_at(const fft_shape *s, int64_t batch, int64_t plane, int64_t bin);
/* The number of elements that are read or written, and of numbers in each. */
int64_t fft_in_count(const fft_shape *s);
int64_t fft_in_at(const fft_shape *s, int64_t batch, int64_t plane, int64_t i);
int fft_in_numbers(const fft_shape *s);
int64_t fft_out_count(const fft_shape *s);
int64_t fft_out_at(const fft_shape *s, int64_t batch, int64_t plane, int64_t i);
int fft_out_numbers(const fft_shape *s);

/* The weight of bin i in a sum over all bins: 2 if it is stored and its mirror image is not, else 1. */
int fft_bin_weight(const fft_shape *s, int64_t i);

/* NaN in every byte, for memory that must not be read or must be written. */
#define FFT_POISON 0xFF

/* Uniform numbers in -1..1 in all elements that are read, NaN in the others. Spectra of real signals are Hermitian,
 * except for imaginary parts that do not count. */
void fft_random_input(const fft_shape *s, uint64_t seed, int64_t batch, void *in);

/* Sums of squares: of errors, and of the values that they are relative to. Those are the mean square of the results
 * over the whole basis, because a few clipped outputs may all be small by chance. For a 16-bit number, one rounding is
 * not counted as error. */
typedef struct fft_errors {
    double error, norm;
} fft_errors;
/* For long lines, a sample of the outputs is compared. */
void fft_compare_plane(const fft_shape *s, int64_t batch, int64_t plane, const void *in, const void *out,
                       fft_errors *errors);
/* NaN if an output was NaN. */
double fft_relative_error(const fft_errors *errors);
/* The largest allowed relative error. */
double fft_tolerance(const fft_shape *s);

/* Whether every output is a finite number. All outputs become NaN. */
bool fft_take_outputs(const fft_shape *s, int64_t batch, void *out);

#endif
