/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cpu_fft_check.h"

#include "core/dtype.h"
#include "reference/dft.h"
#include "reference/dtype.h"
#include "support/tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect_success(conv_fft_status status) {
    if (status == CONV_FFT_SUCCESS)
        return;
    fprintf(stderr, "unexpected status %d: %s\n", (int)status, conv_fft_last_error());
    exit(2);
}

static int64_t defined_index(const cf_axis_window *a, int64_t coordinate) {
    if (coordinate < a->lower || coordinate >= a->upper)
        return -1;
    if (coordinate >= 0 && coordinate < a->size)
        return coordinate;
    const int64_t n = a->size;
    switch (a->mode) {
    case CONV_FFT_PAD_ZEROS:
        return -1;
    case CONV_FFT_PAD_CIRCULAR:
        return (coordinate % n + n) % n;
    case CONV_FFT_PAD_REFLECT:
        return coordinate < 0 ? -coordinate : 2 * n - 2 - coordinate;
    case CONV_FFT_PAD_REPLICATE:
        return coordinate < 0 ? 0 : n - 1;
    }
    return -1;
}

static int64_t digit(int64_t number, int axis, int64_t e1, int64_t e2) {
    return axis == 2 ? number % e2 : axis == 1 ? number / e2 % e1 : number / e2 / e1;
}

/* A plane of the block: its group, row and column, and the tensor index at each basis position. */
typedef struct plane {
    int64_t group, row, column;
    int64_t *index[3]; /* per axis and basis position: tensor index or -1 */
    int64_t offset, channel;
} plane;

static plane plane_create(const setting *s, int64_t number) {
    const cf_spectrum *f = &s->desc.spectrum;
    const cf_axis_window *w = s->desc.window.axis;
    const cf_tensor *t = &s->desc.tensor;
    plane p = {.group = number / f->columns / s->block.rows,
               .row = s->block.row + number / f->columns % s->block.rows,
               .column = number % f->columns};
    const int64_t in_sample = p.row % f->rows_per_sample, phases = p.column / f->channels;
    const int64_t tiles = w[0].tiles * w[1].tiles * w[2].tiles;
    for (int a = 0; a < 3; ++a) {
        p.index[a] = test_alloc((size_t)f->basis[a] * sizeof(int64_t));
        for (int64_t i = 0; i < f->basis[a]; ++i)
            p.index[a][i] = -1;
        const int64_t tile = digit(in_sample % tiles, a, w[1].tiles, w[2].tiles);
        const int64_t shift = digit(in_sample / tiles, a, w[1].shifts, w[2].shifts);
        const int64_t phase = digit(phases, a, w[1].phases, w[2].phases);
        for (int64_t e = 0; e < w[a].count; ++e)
            p.index[a][w[a].first + e * w[a].spread] =
                defined_index(&w[a], w[a].origin + e * w[a].step + tile * w[a].tile_step + shift * w[a].shift_step +
                                         phase * w[a].phase_step);
    }
    const int64_t group = s->block.group + p.group;
    p.channel = group * f->channels + p.column % f->channels;
    p.offset = (p.row / f->rows_per_sample - s->origin.sample) * t->sample_stride +
               (group - s->origin.group) * t->group_stride + p.column % f->channels * t->channel_stride;
    return p;
}

static void plane_destroy(plane *p) {
    for (int a = 0; a < 3; ++a)
        free(p->index[a]);
}

/* The tensor element at a basis point, or -1. */
static int64_t plane_element(const setting *s, const plane *p, int64_t i0, int64_t i1, int64_t i2) {
    const int64_t *stride = s->desc.tensor.axis_stride;
    if (p->index[0][i0] < 0 || p->index[1][i1] < 0 || p->index[2][i2] < 0)
        return -1;
    return p->offset + p->index[0][i0] * stride[0] + p->index[1][i1] * stride[1] + p->index[2][i2] * stride[2];
}

static void transform_axis(double *data, int64_t outer, int64_t n, int64_t inner) {
    double *in = test_alloc((size_t)n * 16), *out = test_alloc((size_t)n * 16);
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
            double *line = data + 2 * (o * n * inner + i);
            for (int64_t k = 0; k < n; ++k)
                memcpy(in + 2 * k, line + 2 * k * inner, 16);
            ref_dft(n, -1, in, out);
            for (int64_t k = 0; k < n; ++k)
                memcpy(line + 2 * k * inner, out + 2 * k, 16);
        }
    free(in);
    free(out);
}

/* In place: complex[b0][b1][b2]. */
static void transform_plane(const int64_t b[3], double *data) {
    transform_axis(data, b[0] * b[1], b[2], 1);
    transform_axis(data, b[0], b[1], b[2]);
    transform_axis(data, 1, b[0], b[1] * b[2]);
}

double spectrum_tolerance(const setting *s) { return s->desc.spectrum.dtype == CONV_FFT_FP64 ? 4e-15 : 3e-7; }

/* Offset of the tensor pointer of a call, which points to the first element of s->origin. */
static int64_t origin_offset(const setting *s) {
    return s->origin.sample * s->desc.tensor.sample_stride + s->origin.group * s->desc.tensor.group_stride;
}

cf_transform *test_transform(cf_cpu_device *device, const setting *s, void **scratch) {
    cf_transform *t = NULL;
    expect_success(device->base.ops->transform_create(&device->base, &s->desc, &t));
    const size_t bytes = device->base.ops->transform_scratch(t, t->desc.spectrum.rows) + 1;
    *scratch = test_alloc(bytes);
    memset(*scratch, 0xA5, bytes); /* old contents do not matter */
    return t;
}

static void spectrum_element(const setting *s, const plane *p, int64_t bin, const void *spectrum, double value[2]) {
    const cf_block *b = &s->block;
    const int64_t at =
        p->group * b->group_stride + bin * b->bin_stride + (p->row - b->row) * s->desc.spectrum.columns + p->column;
    for (int i = 0; i < 2; ++i)
        value[i] = s->desc.spectrum.dtype == CONV_FFT_FP64 ? ((const double *)spectrum)[2 * at + i]
                                                           : (double)((const float *)spectrum)[2 * at + i];
}

/* Relative error of a plane's spectrum against the transform of its window. */
static double plane_error(const setting *s, int64_t number, const void *elements, const void *spectrum) {
    const int64_t *b = s->desc.spectrum.basis;
    const conv_fft_dtype dtype = s->desc.tensor.dtype;
    double *expected = test_alloc((size_t)(b[0] * b[1] * b[2]) * 16), difference = 0, norm = 0;
    plane p = plane_create(s, number);
    for (int64_t i = 0; i < b[0] * b[1] * b[2]; ++i) {
        const int64_t element = plane_element(s, &p, i / b[2] / b[1], i / b[2] % b[1], i % b[2]);
        expected[2 * i] =
            element < 0 ? 0 : ref_load(dtype, (const char *)elements + element * (int64_t)ref_dtype_size(dtype));
        expected[2 * i + 1] = 0;
    }
    transform_plane(b, expected);
    const int64_t row = b[2] / 2 + 1;
    for (int64_t bin = 0; bin < s->desc.spectrum.bins; ++bin) {
        double value[2];
        spectrum_element(s, &p, bin, spectrum, value);
        const double *f = expected + 2 * (bin / row * b[2] + bin % row),
                     e[2] = {s->desc.scale * f[0], s->desc.scale * f[1]};
        difference += (value[0] - e[0]) * (value[0] - e[0]) + (value[1] - e[1]) * (value[1] - e[1]);
        norm += e[0] * e[0] + e[1] * e[1];
    }
    plane_destroy(&p);
    free(expected);
    return norm == 0 ? sqrt(difference) : sqrt(difference / norm);
}

double forward_error(cf_cpu_device *device, const setting *s, generator *g) {
    const size_t size = ref_dtype_size(s->desc.tensor.dtype);
    const size_t bytes = (size_t)(s->block.groups * s->block.group_stride) * 2 * cf_dtype_bytes(s->desc.spectrum.dtype);
    char *elements = test_alloc((size_t)s->elements * size);
    void *spectrum = test_alloc(bytes), *scratch;
    memset(spectrum, 0xFF, bytes); /* NaN */
    for (int64_t i = 0; i < s->elements; ++i)
        ref_store(s->desc.tensor.dtype, elements + (size_t)i * size, random_value(g));
    cf_transform *t = test_transform(device, s, &scratch);
    cf_block block = s->block;
    block.data = spectrum;
    const char *start = elements + origin_offset(s) * (int64_t)size;
    expect_success(device->base.ops->forward(t, start, s->origin, block, (char *)scratch + 1, NULL));
    double worst = 0;
    for (int64_t i = 0; i < s->planes; ++i) {
        const double error = plane_error(s, i, start, spectrum);
        if (!(error <= worst))
            worst = error;
    }
    device->base.ops->transform_destroy(t);
    free(scratch);
    free(spectrum);
    free(elements);
    return worst;
}

/* Write a random plane's spectrum to the block, and its points to the expected tensor as the inverse must store
 * them. */
static void add_plane(const setting *s, int64_t number, generator *g, void *spectrum, const double *bias,
                      double *expected) {
    const int64_t *b = s->desc.spectrum.basis, points = b[0] * b[1] * b[2], row = b[2] / 2 + 1;
    double *data = test_alloc((size_t)points * 16);
    plane p = plane_create(s, number);
    for (int64_t i = 0; i < points; ++i) {
        data[2 * i] = random_value(g);
        data[2 * i + 1] = 0;
        const int64_t element = plane_element(s, &p, i / b[2] / b[1], i / b[2] % b[1], i % b[2]);
        if (element >= 0)
            expected[element] += data[2 * i] + bias[p.channel];
    }
    transform_plane(b, data);
    for (int64_t bin = 0; bin < s->desc.spectrum.bins; ++bin) {
        const int64_t at = p.group * s->block.group_stride + bin * s->block.bin_stride +
                           (p.row - s->block.row) * s->desc.spectrum.columns + p.column;
        for (int i = 0; i < 2; ++i) {
            const double value = data[2 * (bin / row * b[2] + bin % row) + i];
            if (s->desc.spectrum.dtype == CONV_FFT_FP64)
                ((double *)spectrum)[2 * at + i] = value;
            else
                ((float *)spectrum)[2 * at + i] = (float)value;
        }
    }
    plane_destroy(&p);
    free(data);
}

/* The elements that the windows contain. */
static bool *stored_elements(const setting *s) {
    const int64_t *b = s->desc.spectrum.basis;
    bool *stored = test_alloc((size_t)s->elements);
    memset(stored, 0, (size_t)s->elements);
    for (int64_t number = 0; number < s->planes; ++number) {
        plane p = plane_create(s, number);
        for (int64_t i = 0; i < b[0] * b[1] * b[2]; ++i) {
            const int64_t element = plane_element(s, &p, i / b[2] / b[1], i / b[2] % b[1], i % b[2]);
            if (element >= 0)
                stored[origin_offset(s) + element] = true;
        }
        plane_destroy(&p);
    }
    return stored;
}

bool check_inverse(cf_cpu_device *device, const setting *s, generator *g, bool with_bias, bool accumulate) {
    const conv_fft_dtype dtype = s->desc.tensor.dtype;
    const size_t size = ref_dtype_size(dtype), count = (size_t)s->elements;
    void *spectrum = test_alloc((size_t)(s->block.groups * s->block.group_stride) * 16), *scratch;
    double *expected = test_alloc(count * 8), *bias = test_alloc((size_t)s->bias_channels * 8);
    char *elements = test_alloc(count * size), *stored_bias = test_alloc((size_t)s->bias_channels * size);
    bool *stored = stored_elements(s), ok = true;
    for (int64_t c = 0; c < s->bias_channels; ++c) {
        ref_store(dtype, stored_bias + (size_t)c * size, random_value(g));
        bias[c] = with_bias ? ref_load(dtype, stored_bias + (size_t)c * size) : 0;
    }
    for (size_t i = 0; i < count; ++i) {
        ref_store(dtype, elements + i * size, accumulate || !stored[i] ? random_value(g) : NAN);
        expected[i] = accumulate || !stored[i] ? ref_load(dtype, elements + i * size) : 0;
    }
    for (int64_t i = 0; i < s->planes; ++i)
        add_plane(s, i, g, spectrum, bias, expected + origin_offset(s));
    cf_transform *t = test_transform(device, s, &scratch);
    cf_block block = s->block;
    block.data = spectrum;
    expect_success(device->base.ops->inverse(t, block, elements + origin_offset(s) * (int64_t)size, s->origin,
                                             with_bias ? stored_bias : NULL, accumulate, (char *)scratch + 1, NULL));
    for (size_t i = 0; i < count && ok; ++i) {
        const double actual = ref_load(dtype, elements + i * size), error = fabs(actual - expected[i]);
        /* Overlapping tiles may each round once more. */
        const double allowed = (8 * ref_dtype_roundoff(dtype) + 2 * spectrum_tolerance(s)) * (fabs(expected[i]) + 4);
        ok = stored[i] ? error <= allowed : error == 0;
        if (!ok)
            fprintf(stderr, "element %zu: %g, expected %g\n", i, actual, expected[i]);
    }
    device->base.ops->transform_destroy(t);
    free(scratch);
    free(stored);
    free(stored_bias);
    free(elements);
    free(bias);
    free(expected);
    free(spectrum);
    return ok;
}

void with_all_kernels(cf_cpu_device *device, void (*check)(void)) {
    int count;
    const cf_kernels *const *list = cf_cpu_kernels_list(&count), *const best = device->kernels;
    for (int i = 0; i < count; ++i) {
        device->kernels = list[i];
        check();
    }
    device->kernels = best;
}

void *random_elements(generator *g, conv_fft_dtype dtype, int64_t count, double *values) {
    const size_t size = ref_dtype_size(dtype);
    char *data = test_alloc((size_t)count * size + 1);
    for (int64_t i = 0; i < count; ++i) {
        ref_store(dtype, data + (size_t)i * size, random_value(g));
        values[i] = ref_load(dtype, data + (size_t)i * size);
    }
    return data;
}

double *test_doubles(int64_t count) { return test_alloc((size_t)count * sizeof(double) + 1); }
