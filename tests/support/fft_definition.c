/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fft_definition.h"

#include "reference/dft.h"
#include "reference/dtype.h"
#include "support/compare.h"
#include "support/random_problems.h"
#include "support/tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- where elements stand */

static void signal_strides(const fbfft_desc *d, fft_shape *s) {
    int64_t extent[TENSOR_MAX_DIMS] = {1, d->channels}, dense[TENSOR_MAX_DIMS];
    bool given = false;
    for (int a = 0; a < d->rank; ++a)
        extent[2 + a] = s->size[3 - d->rank + a];
    layout_strides(d->layout, 2 + d->rank, extent, dense);
    for (int i = 0; i < 2 + d->rank; ++i)
        given = given || d->stride[i] != 0;
    for (int i = 0; i < 2 + d->rank; ++i)
        s->signal_stride[i < 2 ? i : 3 - d->rank + i] = given ? d->stride[i] : dense[i];
}

static void spectrum_strides(const fbfft_desc *d, fft_shape *s) {
    const int64_t *e = s->bins;
    s->frequency_major = d->order == FBFFT_FREQUENCY_MAJOR;
    s->bin[0] = d->order == FBFFT_TRANSPOSED ? 1 : e[1] * e[2];
    s->bin[1] = d->order == FBFFT_TRANSPOSED ? e[0] : e[2];
    s->bin[2] = d->order == FBFFT_TRANSPOSED ? e[0] * e[1] : 1;
}

fft_shape fft_shape_of(const fbfft_desc *d) {
    fft_shape s = {.channels = d->channels, .signal_type = d->dtype, .padding = d->padding, .scale = d->scale};
    s.inverse = d->kind == FBFFT_C2R || d->kind == FBFFT_C2C_INVERSE;
    s.complex_signal = d->kind == FBFFT_C2C_FORWARD || d->kind == FBFFT_C2C_INVERSE;
    s.split = d->arithmetic == FBFFT_ARITHMETIC_SPLIT;
    s.signal_numbers = s.complex_signal ? 2 : 1;
    s.spectrum_type = d->spectrum == CONV_FFT_FP16 ? CONV_FFT_FP16
                      : d->dtype == CONV_FFT_FP64  ? CONV_FFT_FP64
                                                   : CONV_FFT_FP32;
    for (int i = 0; i < 3; ++i) {
        const int a = i - 3 + d->rank;
        s.basis[i] = a < 0 ? 1 : d->basis[a];
        s.points[i] = a < 0 || !d->extent[a] ? s.basis[i] : d->extent[a];
        s.size[i] = a < 0 || !d->size[a] ? s.points[i] : d->size[a];
        s.offset[i] = a < 0 ? 0 : d->offset[a];
        s.step[i] = a < 0 ? 1 : d->step[a];
        s.bins[i] = i == 2 && !s.complex_signal ? s.basis[i] / 2 + 1 : s.basis[i];
    }
    signal_strides(d, &s);
    spectrum_strides(d, &s);
    return s;
}

static int64_t product(const int64_t extent[3]) { return extent[0] * extent[1] * extent[2]; }

int64_t fft_basis_points(const fft_shape *s) { return product(s->basis); }

/* The digit of an axis in a mixed-radix number whose last digit is the fastest. */
static int64_t digit(int64_t number, const int64_t extent[3], int axis) {
    for (int a = 2; a > axis; --a)
        number /= extent[a];
    return number % extent[axis];
}

static int64_t complex_bytes(const fft_shape *s) { return 2 * (int64_t)ref_dtype_size(s->spectrum_type); }
static int64_t element_bytes(const fft_shape *s) { return s->signal_numbers * (int64_t)ref_dtype_size(s->signal_type); }

int64_t fft_signal_bytes(const fft_shape *s, int64_t batch) {
    if (batch == 0)
        return 0;
    int64_t last = (batch - 1) * s->signal_stride[0] + (s->channels - 1) * s->signal_stride[1];
    for (int a = 0; a < 3; ++a)
        last += (s->size[a] - 1) * s->signal_stride[2 + a];
    return (last + 1) * element_bytes(s);
}

int64_t fft_spectrum_bytes(const fft_shape *s, int64_t batch) {
    return batch * s->channels * product(s->bins) * complex_bytes(s);
}

/* Index of the signal's element at a coordinate, as the header describes conv_fft_padding; -1 if there is none. */
static int64_t index_of(conv_fft_padding padding, int64_t at, int64_t size) {
    if (at >= 0 && at < size)
        return at;
    switch (padding) {
    case CONV_FFT_PAD_ZEROS:
        return -1;
    case CONV_FFT_PAD_CIRCULAR:
        return (at % size + size) % size;
    case CONV_FFT_PAD_REFLECT:
        return at < 0 ? -at : 2 * (size - 1) - at;
    case CONV_FFT_PAD_REPLICATE:
        return at < 0 ? 0 : size - 1;
    }
    return -1;
}

int64_t fft_point_at(const fft_shape *s, int64_t plane, int64_t i) {
    int64_t at = plane / s->channels * s->signal_stride[0] + plane % s->channels * s->signal_stride[1];
    for (int a = 0; a < 3; ++a) {
        const int64_t index = index_of(s->padding, s->offset[a] + digit(i, s->points, a) * s->step[a], s->size[a]);
        if (index < 0)
            return -1;
        at += index * s->signal_stride[2 + a];
    }
    return at * element_bytes(s);
}

int64_t fft_bin_at(const fft_shape *s, int64_t batch, int64_t plane, int64_t i) {
    if (s->frequency_major)
        return (i * batch * s->channels + plane) * complex_bytes(s);
    int64_t at = plane * product(s->bins);
    for (int a = 0; a < 3; ++a)
        at += digit(i, s->bins, a) * s->bin[a];
    return at * complex_bytes(s);
}

int64_t fft_in_count(const fft_shape *s) { return product(s->inverse ? s->bins : s->points); }
int64_t fft_out_count(const fft_shape *s) { return product(s->inverse ? s->points : s->bins); }
int fft_in_numbers(const fft_shape *s) { return s->inverse ? 2 : s->signal_numbers; }
int fft_out_numbers(const fft_shape *s) { return s->inverse ? s->signal_numbers : 2; }

int64_t fft_in_at(const fft_shape *s, int64_t batch, int64_t plane, int64_t i) {
    return s->inverse ? fft_bin_at(s, batch, plane, i) : fft_point_at(s, plane, i);
}

int64_t fft_out_at(const fft_shape *s, int64_t batch, int64_t plane, int64_t i) {
    return s->inverse ? fft_point_at(s, plane, i) : fft_bin_at(s, batch, plane, i);
}

/* ------------------------------------------------------------------------------------------------- bins and mirrors */

/* Whether the mirror image of this bin of the last axis is stored. */
static bool has_stored_mirror(const fft_shape *s, int64_t last) { return last == 0 || 2 * last == s->basis[2]; }

int fft_bin_weight(const fft_shape *s, int64_t i) {
    return s->complex_signal || has_stored_mirror(s, i % s->bins[2]) ? 1 : 2;
}

/* The basis point -k of a bin k. */
static int64_t mirror(const fft_shape *s, int64_t i) {
    int64_t number = 0;
    for (int a = 0; a < 3; ++a)
        number = number * s->basis[a] + (s->basis[a] - digit(i, s->basis, a)) % s->basis[a];
    return number;
}

static int64_t bin_of(const fft_shape *s, int64_t point) {
    return point / s->basis[2] * s->bins[2] + point % s->basis[2];
}
static int64_t point_of(const fft_shape *s, int64_t bin) { return bin / s->bins[2] * s->basis[2] + bin % s->bins[2]; }

static double number_at(conv_fft_dtype type, const void *memory, int64_t at, int part) {
    return ref_load(type, (const char *)memory + at + (int64_t)ref_dtype_size(type) * part);
}
static void set_number(conv_fft_dtype type, void *memory, int64_t at, int part, double value) {
    ref_store(type, (char *)memory + at + (int64_t)ref_dtype_size(type) * part, value);
}

void fft_random_input(const fft_shape *s, uint64_t seed, int64_t batch, void *in) {
    replay_on_failure();
    generator g = generator_create(seed);
    const conv_fft_dtype type = fft_in_type(s);
    memset(in, FFT_POISON, (size_t)fft_in_bytes(s, batch));
    for (int64_t p = 0; p < batch * s->channels; ++p)
        for (int64_t i = 0; i < fft_in_count(s); ++i) {
            const int64_t at = fft_in_at(s, batch, p, i);
            for (int part = 0; part < fft_in_numbers(s) && at >= 0; ++part)
                set_number(type, in, at, part, random_value(&g));
            if (!s->inverse || s->complex_signal || !has_stored_mirror(s, i % s->bins[2]))
                continue;
            const int64_t other = bin_of(s, mirror(s, point_of(s, i)));
            if (other >= i)
                continue;
            const int64_t from = fft_bin_at(s, batch, p, other);
            set_number(type, in, at, 0, number_at(type, in, from, 0));
            set_number(type, in, at, 1, -number_at(type, in, from, 1));
        }
}

/* --------------------------------------------------------------------------------------------------- the definition */

/* The input on the whole basis, as complex numbers. */
static void fill_basis(const fft_shape *s, int64_t batch, int64_t plane, const void *in, double *x) {
    const int64_t count = product(s->basis);
    memset(x, 0, (size_t)count * 2 * sizeof *x);
    for (int64_t i = 0; i < product(s->points) && !s->inverse; ++i) {
        const int64_t at = fft_point_at(s, plane, i);
        int64_t to = 0;
        for (int a = 0; a < 3; ++a)
            to = to * s->basis[a] + digit(i, s->points, a);
        for (int part = 0; part < s->signal_numbers && at >= 0; ++part)
            x[2 * to + part] = number_at(s->signal_type, in, at, part);
    }
    for (int64_t i = 0; i < count && s->inverse; ++i) {
        const bool stored = i % s->basis[2] < s->bins[2];
        const int64_t other = mirror(s, i), at = fft_bin_at(s, batch, plane, bin_of(s, stored ? i : other));
        const double im = number_at(s->spectrum_type, in, at, 1);
        x[2 * i] = number_at(s->spectrum_type, in, at, 0);
        x[2 * i + 1] = s->complex_signal ? im : other == i ? 0 : stored ? im : -im;
    }
}

static bool all_zero(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (values[i] != 0)
            return false;
    return true;
}

/* In place along one axis. */
static void transform_axis(const fft_shape *s, int axis, double *x) {
    const int64_t n = s->basis[axis], count = product(s->basis);
    double *const in = test_alloc((size_t)n * 2 * sizeof *in), *const out = test_alloc((size_t)n * 2 * sizeof *out);
    int64_t inner = 1;
    for (int a = axis + 1; a < 3; ++a)
        inner *= s->basis[a];
    for (int64_t line = 0; line < count / n && n > 1; ++line) {
        double *const first = x + 2 * (line / inner * inner * n + line % inner);
        for (int64_t i = 0; i < n; ++i)
            memcpy(in + 2 * i, first + 2 * i * inner, 2 * sizeof *in);
        if (all_zero(in, 2 * n))
            continue;
        ref_dft(n, s->inverse ? 1 : -1, in, out);
        for (int64_t i = 0; i < n; ++i)
            memcpy(first + 2 * i * inner, out + 2 * i, 2 * sizeof *out);
    }
    free(in);
    free(out);
}

/* Basis point of output i. */
static int64_t point_of_output(const fft_shape *s, int64_t i) {
    const int64_t *const extent = s->inverse ? s->points : s->bins;
    int64_t point = 0;
    for (int a = 0; a < 3; ++a)
        point = point * s->basis[a] + digit(i, extent, a);
    return point;
}

/* Add the error of output i, whose value without the scale is `expected`. Returns whether there is such an output. */
static bool compare_output(const fft_shape *s, const void *out, int64_t at, const double expected[2],
                           fft_errors *errors) {
    const conv_fft_dtype type = fft_out_type(s);
    for (int part = 0; part < fft_out_numbers(s) && at >= 0; ++part) {
        const double exact = s->scale * expected[part];
        double difference = fabs(number_at(type, out, at, part) - exact);
        if (ref_dtype_size(type) == 2)
            difference = fmax(difference - ref_dtype_roundoff(type) * fabs(exact) - ref_dtype_floor(type),
                              0 * difference); /* a NaN stays one */
        errors->error += difference * difference;
    }
    return at >= 0;
}

enum {
    LONG_LINE = 1024,
    LARGE_PLANE = 1 << 18,
    LINES_OF_A_PLANE = 4,
    OUTPUTS_OF_A_LINE = 192, /* of very long ones fewer */
    MIN_OUTPUTS = 24,
    LINE_WORK = 1 << 28
};

/* For lines that are too long to compare all outputs: compare a sample. */
static int64_t compare_long_line(const fft_shape *s, int64_t batch, int64_t plane, const double *x, const void *out,
                                 fft_errors *errors) {
    uint64_t bits; /* of random values, so that other values have other outputs compared */
    memcpy(&bits, &x[2 * (s->basis[2] / 2)], sizeof bits);
    generator g = generator_create(bits + (uint64_t)plane);
    int64_t outputs[OUTPUTS_OF_A_LINE], compared = 0;
    const int64_t quick = LINE_WORK / s->basis[2], count = quick > OUTPUTS_OF_A_LINE ? OUTPUTS_OF_A_LINE
                                                           : quick < MIN_OUTPUTS     ? MIN_OUTPUTS
                                                                                     : quick;
    double *const expected = test_alloc(OUTPUTS_OF_A_LINE * 2 * sizeof *expected);
    for (int i = 0; i < count; ++i)
        outputs[i] = i == 0 ? 0 : i == 1 ? fft_out_count(s) - 1 : random_int(&g, 0, fft_out_count(s) - 1);
    ref_dft_bins(s->basis[2], s->inverse ? 1 : -1, x, count, outputs, expected);
    for (int i = 0; i < count; ++i)
        compared += compare_output(s, out, fft_out_at(s, batch, plane, outputs[i]), expected + 2 * i, errors);
    free(expected);
    return compared;
}

/* Bins (k0, k1) of the first two axes: the line along the last axis whose transform has them. */
static void line_of(const fft_shape *s, const double *x, int64_t k0, int64_t k1, double *line) {
    const int64_t n0 = s->basis[0], n1 = s->basis[1], n2 = s->basis[2];
    const double turn = (s->inverse ? 2 : -2) * acos(-1.0);
    memset(line, 0, (size_t)n2 * 2 * sizeof *line);
    for (int64_t i = 0; i < n0 * n1; ++i) {
        const double angle = turn * ((double)(i / n1 * k0 % n0) / (double)n0 + (double)(i % n1 * k1 % n1) / (double)n1),
                     c = cos(angle), d = sin(angle);
        for (int64_t k = 0; k < n2; ++k, x += 2) {
            line[2 * k] += c * x[0] - d * x[1];
            line[2 * k + 1] += c * x[1] + d * x[0];
        }
    }
}

/* For large planes and volumes: compare a sample of lines along the last axis. */
static int64_t compare_large_plane(const fft_shape *s, int64_t batch, int64_t plane, const double *x, const void *out,
                                   fft_errors *errors) {
    const int64_t *const extent = s->inverse ? s->points : s->bins, n = s->basis[2];
    uint64_t bits; /* as in compare_long_line() */
    memcpy(&bits, &x[2 * (n / 2)], sizeof bits);
    generator g = generator_create(bits + (uint64_t)plane);
    double *const line = test_alloc((size_t)n * 4 * sizeof *line), *const bins = line + 2 * n;
    int64_t compared = 0;
    for (int l = 0; l < LINES_OF_A_PLANE; ++l) {
        const int64_t k0 = random_int(&g, 0, extent[0] - 1), k1 = random_int(&g, 0, extent[1] - 1),
                      first = (k0 * extent[1] + k1) * extent[2];
        line_of(s, x, k0, k1, line);
        ref_dft(n, s->inverse ? 1 : -1, line, bins);
        for (int64_t k = 0; k < extent[2]; ++k)
            compared += compare_output(s, out, fft_out_at(s, batch, plane, first + k), bins + 2 * k, errors);
    }
    free(line);
    return compared;
}

void fft_compare_plane(const fft_shape *s, int64_t batch, int64_t plane, const void *in, const void *out,
                       fft_errors *errors) {
    const int64_t count = product(s->basis);
    double *const x = test_alloc((size_t)count * 2 * sizeof *x), square = 0;
    int64_t compared = 0;
    fill_basis(s, batch, plane, in, x);
    for (int64_t i = 0; i < 2 * count; ++i)
        square += x[i] * x[i]; /* by Parseval, the mean square of the results */
    if (count == s->basis[2] && count > LONG_LINE) {
        compared = compare_long_line(s, batch, plane, x, out, errors);
    } else if (count > LARGE_PLANE) {
        compared = compare_large_plane(s, batch, plane, x, out, errors);
    } else {
        for (int a = 0; a < 3; ++a)
            transform_axis(s, a, x);
        for (int64_t i = 0; i < fft_out_count(s); ++i)
            compared += compare_output(s, out, fft_out_at(s, batch, plane, i), x + 2 * point_of_output(s, i), errors);
    }
    errors->norm += s->scale * s->scale * square * (double)compared;
    free(x);
}

double fft_relative_error(const fft_errors *e) { return e->error == 0 ? 0 : sqrt(e->error / e->norm); }

double fft_tolerance(const fft_shape *s) {
    const bool several_kernels = s->split && product(s->basis) > 16384; /* each of them adds to the error */
    return s->spectrum_type == CONV_FFT_FP64   ? 8e-15
           : s->spectrum_type == CONV_FFT_FP16 ? 1e-3
           : several_kernels                   ? 6e-7
                                               : 4e-7;
}

bool fft_take_outputs(const fft_shape *s, int64_t batch, void *out) {
    const conv_fft_dtype type = fft_out_type(s);
    bool finite = true;
    for (int64_t p = 0; p < batch * s->channels; ++p)
        for (int64_t i = 0; i < fft_out_count(s); ++i) {
            const int64_t at = fft_out_at(s, batch, p, i);
            for (int part = 0; part < fft_out_numbers(s) && at >= 0; ++part)
                finite = finite && isfinite(number_at(type, out, at, part));
            if (at >= 0)
                memset((char *)out + at, FFT_POISON, (size_t)fft_out_numbers(s) * ref_dtype_size(type));
        }
    return finite;
}
