/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's transforms against the definition: planes are filled by the rules in core/window.h, written down here again, and
 * transformed by the O(n^2) DFT in double. Every set of kernels that this CPU runs is tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "ref/dft.h"
#include "ref/dtype.h"
#include "tensor.h"

#include <math.h>

/* Everything about one transform and the block of the spectrum that a call covers. */
typedef struct setting {
    cf_transform_desc desc;
    int64_t samples, groups;       /* of the tensor */
    int64_t bias_channels, elements; /* of the tensor, in all */
    cf_origin origin;
    cf_block block;
    int64_t planes;
} setting;

/* ---------------------------------------------------------------------------------------- the definition */

static int64_t defined_index(const cf_axis_window *a, int64_t coordinate) {
    if (coordinate < a->lower || coordinate >= a->upper) return -1;
    if (coordinate >= 0 && coordinate < a->size) return coordinate;
    const int64_t n = a->size;
    switch (a->mode) {
    case CONV_FFT_PAD_ZEROS: return -1;
    case CONV_FFT_PAD_CIRCULAR: return (coordinate % n + n) % n;
    case CONV_FFT_PAD_REFLECT: return coordinate < 0 ? -coordinate : 2 * n - 2 - coordinate;
    case CONV_FFT_PAD_REPLICATE: return coordinate < 0 ? 0 : n - 1;
    }
    return -1;
}

static int64_t digit(int64_t number, int axis, int64_t e1, int64_t e2) {
    return axis == 2 ? number % e2 : axis == 1 ? number / e2 % e1 : number / e2 / e1;
}

/* Plane number -> group, row, column of the block; then for each tensor element the basis point that it stands at. */
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
        for (int64_t i = 0; i < f->basis[a]; ++i) p.index[a][i] = -1;
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
    for (int a = 0; a < 3; ++a) free(p->index[a]);
}

/* Tensor element at a basis point, -1 if none. */
static int64_t plane_element(const setting *s, const plane *p, int64_t i0, int64_t i1, int64_t i2) {
    const int64_t *stride = s->desc.tensor.axis_stride;
    if (p->index[0][i0] < 0 || p->index[1][i1] < 0 || p->index[2][i2] < 0) return -1;
    return p->offset + p->index[0][i0] * stride[0] + p->index[1][i1] * stride[1] + p->index[2][i2] * stride[2];
}

static void transform_axis(double *data, int64_t outer, int64_t n, int64_t inner) {
    double *in = test_alloc((size_t)n * 16), *out = test_alloc((size_t)n * 16);
    for (int64_t o = 0; o < outer; ++o)
        for (int64_t i = 0; i < inner; ++i) {
            double *line = data + 2 * (o * n * inner + i);
            for (int64_t k = 0; k < n; ++k) memcpy(in + 2 * k, line + 2 * k * inner, 16);
            ref_dft(n, -1, in, out);
            for (int64_t k = 0; k < n; ++k) memcpy(line + 2 * k * inner, out + 2 * k, 16);
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

/* --------------------------------------------------------------------------------------------- settings */

/* A window of everything, one tile, for a 1-D..3-D basis. */
static setting simple_setting(const int64_t basis[3], conv_fft_dtype dtype, int64_t samples, int64_t channels) {
    setting s = {.samples = samples, .groups = 1};
    cf_transform_desc *d = &s.desc;
    for (int a = 0; a < 3; ++a)
        d->window.axis[a] = (cf_axis_window){.spread = 1, .count = basis[a], .step = 1, .tiles = 1, .shifts = 1, .phases = 1,
                                             .upper = basis[a], .size = basis[a]};
    d->tensor.dtype = dtype;
    memcpy(d->spectrum.basis, basis, sizeof d->spectrum.basis);
    d->spectrum.channels = channels;
    return s;
}

/* Derived fields: strides, spectrum extents, scale. A block of rows [row, row + rows), groups [group, group + groups). */
static void complete(setting *s, conv_fft_layout layout, int64_t row, int64_t rows, int64_t group, int64_t groups) {
    cf_transform_desc *d = &s->desc;
    cf_spectrum *f = &d->spectrum;
    const cf_axis_window *w = d->window.axis;
    const int64_t extent[5] = {s->samples, s->groups * f->channels, w[0].size, w[1].size, w[2].size};
    int64_t stride[5];
    layout_strides(layout, 5, extent, stride);
    d->tensor = (cf_tensor){.dtype = d->tensor.dtype, .sample_stride = stride[0], .channel_stride = stride[1],
                            .group_stride = stride[1] * f->channels, .axis_stride = {stride[2], stride[3], stride[4]}};
    s->elements = extent[0] * extent[1] * extent[2] * extent[3] * extent[4];
    f->dtype = cf_compute_dtype(d->tensor.dtype);
    f->groups = s->groups;
    f->bins = cf_spectrum_bins(f->basis);
    f->rows_per_sample = cf_window_tiles(&d->window) * cf_window_shifts(&d->window);
    f->columns = f->channels * cf_window_phases(&d->window);
    f->rows = s->samples * f->rows_per_sample;
    d->scale = 1.0 / (double)(f->basis[0] * f->basis[1] * f->basis[2]);
    s->bias_channels = s->groups * f->channels;
    s->block = (cf_block){.group = group, .groups = groups, .row = row, .rows = rows, .bin_stride = rows * f->columns,
                          .group_stride = f->bins * rows * f->columns + 3};
    s->planes = groups * rows * f->columns;
}

static void complete_whole(setting *s, conv_fft_layout layout) {
    complete(s, layout, 0, s->samples * cf_window_tiles(&s->desc.window) * cf_window_shifts(&s->desc.window), 0, s->groups);
}

static void random_axis(generator *g, cf_axis_window *a, int64_t basis, bool inverse, bool ordered) {
    a->mode = inverse ? CONV_FFT_PAD_ZEROS : (conv_fft_padding)random_int(g, 0, 3);
    a->size = random_int(g, 1, 12);
    a->spread = random_int(g, 1, 2);
    a->first = random_int(g, 0, basis - 1);
    a->count = random_int(g, 0, (basis - 1 - a->first) / a->spread + 1);
    a->step = random_int(g, 1, 3);
    a->origin = random_int(g, -6, 6);
    a->tiles = random_int(g, 1, 3);
    a->shifts = random_int(g, 1, 2);
    a->phases = random_int(g, 1, 2);
    a->tile_step = random_int(g, 1, 8);
    a->shift_step = random_int(g, 0, 3);
    a->phase_step = random_int(g, 0, 3);
    const int64_t most = a->mode == CONV_FFT_PAD_REFLECT ? a->size - 1 : a->mode == CONV_FFT_PAD_CIRCULAR ? a->size : 9;
    a->lower = -random_int(g, -1, most);
    a->upper = a->size + random_int(g, -1, most);
    if (!inverse) return;
    /* No two tiles, shifts or phases may meet: tiles lie side by side, and there is nothing else. */
    a->shifts = a->phases = 1;
    if (!ordered) a->tile_step = cf_max(1, a->count * a->step);
}

static setting random_setting(generator *g, bool inverse, bool ordered) {
    static const int64_t bases[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24};
    static const conv_fft_dtype dtypes[] = {CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16, CONV_FFT_FP64};
    const int rank = (int)random_int(g, 1, 3);
    int64_t basis[3] = {1, 1, 1};
    for (int a = 3 - rank; a < 3; ++a) basis[a] = bases[random_int(g, 0, rank == 3 ? 10 : 17)];
    setting s = simple_setting(basis, dtypes[random_int(g, 0, 3)], random_int(g, 1, 3), random_int(g, 1, 5));
    for (int a = 3 - rank; a < 3; ++a) random_axis(g, &s.desc.window.axis[a], basis[a], inverse, ordered);
    s.desc.inverse = inverse;
    s.desc.ordered = ordered;
    s.groups = random_int(g, 1, 3);
    complete_whole(&s, (conv_fft_layout)random_int(g, 0, 1));
    const int64_t per_sample = s.desc.spectrum.rows_per_sample, all = s.desc.spectrum.rows;
    int64_t row = random_int(g, 0, all - 1), most = all - row;
    if (ordered && random_once_in(g, 2)) /* a part of one sample */
        most = per_sample - row % per_sample;
    else if (ordered) /* whole samples */
        row -= row % per_sample;
    int64_t rows = random_int(g, 1, most);
    if (ordered && row % per_sample == 0 && rows >= per_sample) rows -= rows % per_sample;
    const int64_t group = random_int(g, 0, s.groups - 1);
    complete(&s, (conv_fft_layout)random_int(g, 0, 1), row, rows, group, random_int(g, 1, s.groups - group));
    s.origin = (cf_origin){.sample = row / per_sample, .group = group};
    return s;
}

/* ------------------------------------------------------------------------------------------------ checks */

static cf_cpu_device *device;

static double tolerance(const setting *s) {
    return s->desc.spectrum.dtype == CONV_FFT_FP64 ? 4e-15 : 3e-7;
}

/* Pointer to the tensor of a call: its first element is that of s->origin. */
static int64_t origin_offset(const setting *s) {
    return s->origin.sample * s->desc.tensor.sample_stride + s->origin.group * s->desc.tensor.group_stride;
}

static cf_transform *create(const setting *s, void **scratch) {
    cf_transform *t = NULL;
    assert_int_equal(device->base.ops->transform_create(&device->base, &s->desc, &t), CONV_FFT_SUCCESS);
    *scratch = test_alloc(device->base.ops->transform_scratch(t) + 1);
    memset(*scratch, 0xA5, device->base.ops->transform_scratch(t) + 1); /* old contents do not matter */
    return t;
}

static void spectrum_element(const setting *s, const plane *p, int64_t bin, const void *spectrum, double value[2]) {
    const cf_block *b = &s->block;
    const int64_t at = p->group * b->group_stride + bin * b->bin_stride + (p->row - b->row) * s->desc.spectrum.columns + p->column;
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
        expected[2 * i] = element < 0 ? 0 : ref_load(dtype, (const char *)elements + element * (int64_t)ref_dtype_size(dtype));
        expected[2 * i + 1] = 0;
    }
    transform_plane(b, expected);
    const int64_t row = b[2] / 2 + 1;
    for (int64_t bin = 0; bin < s->desc.spectrum.bins; ++bin) {
        double value[2];
        spectrum_element(s, &p, bin, spectrum, value);
        const double *e = expected + 2 * (bin / row * b[2] + bin % row);
        difference += (value[0] - e[0]) * (value[0] - e[0]) + (value[1] - e[1]) * (value[1] - e[1]);
        norm += e[0] * e[0] + e[1] * e[1];
    }
    plane_destroy(&p);
    free(expected);
    return norm == 0 ? sqrt(difference) : sqrt(difference / norm);
}

/* Largest relative error over the planes. */
static double check_forward(const setting *s, generator *g) {
    const size_t size = ref_dtype_size(s->desc.tensor.dtype);
    const size_t bytes = (size_t)(s->block.groups * s->block.group_stride) * 2 * cf_dtype_bytes(s->desc.spectrum.dtype);
    char *elements = test_alloc((size_t)s->elements * size);
    void *spectrum = test_alloc(bytes), *scratch;
    memset(spectrum, 0xFF, bytes); /* NaN */
    for (int64_t i = 0; i < s->elements; ++i) ref_store(s->desc.tensor.dtype, elements + (size_t)i * size, random_value(g));
    cf_transform *t = create(s, &scratch);
    cf_block block = s->block;
    block.data = spectrum;
    const char *start = elements + origin_offset(s) * (int64_t)size;
    assert_int_equal(device->base.ops->forward(t, start, s->origin, block, (char *)scratch + 1, NULL), CONV_FFT_SUCCESS);
    double worst = 0;
    for (int64_t i = 0; i < s->planes; ++i) {
        const double error = plane_error(s, i, start, spectrum);
        if (!(error <= worst)) worst = error;
    }
    device->base.ops->transform_destroy(t);
    free(scratch);
    free(spectrum);
    free(elements);
    return worst;
}

/* A random plane's spectrum into the block; and its points, as the inverse has to store them, into the expected tensor. */
static void add_plane(const setting *s, int64_t number, generator *g, void *spectrum, const double *bias, double *expected) {
    const int64_t *b = s->desc.spectrum.basis, points = b[0] * b[1] * b[2], row = b[2] / 2 + 1;
    double *data = test_alloc((size_t)points * 16);
    plane p = plane_create(s, number);
    for (int64_t i = 0; i < points; ++i) {
        data[2 * i] = random_value(g);
        data[2 * i + 1] = 0;
        const int64_t element = plane_element(s, &p, i / b[2] / b[1], i / b[2] % b[1], i % b[2]);
        if (element >= 0) expected[element] += data[2 * i] + bias[p.channel];
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

/* Which elements the windows name. */
static bool *stored_elements(const setting *s) {
    const int64_t *b = s->desc.spectrum.basis;
    bool *stored = test_alloc((size_t)s->elements);
    memset(stored, 0, (size_t)s->elements);
    for (int64_t number = 0; number < s->planes; ++number) {
        plane p = plane_create(s, number);
        for (int64_t i = 0; i < b[0] * b[1] * b[2]; ++i) {
            const int64_t element = plane_element(s, &p, i / b[2] / b[1], i / b[2] % b[1], i % b[2]);
            if (element >= 0) stored[origin_offset(s) + element] = true;
        }
        plane_destroy(&p);
    }
    return stored;
}

/* Whether the inverse stores what the planes say, adds the bias, adds to old contents or never reads them, and writes nothing else. */
static bool check_inverse(const setting *s, generator *g, bool with_bias, bool accumulate) {
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
    for (int64_t i = 0; i < s->planes; ++i) add_plane(s, i, g, spectrum, bias, expected + origin_offset(s));
    cf_transform *t = create(s, &scratch);
    cf_block block = s->block;
    block.data = spectrum;
    assert_int_equal(device->base.ops->inverse(t, block, elements + origin_offset(s) * (int64_t)size, s->origin,
                                               with_bias ? stored_bias : NULL, accumulate, (char *)scratch + 1, NULL),
                     CONV_FFT_SUCCESS);
    for (size_t i = 0; i < count && ok; ++i) {
        const double actual = ref_load(dtype, elements + i * size), error = fabs(actual - expected[i]);
        /* Each of several overlapping tiles may round once more. */
        const double allowed = (8 * ref_dtype_roundoff(dtype) + 2 * tolerance(s)) * (fabs(expected[i]) + 4);
        ok = stored[i] ? error <= allowed : error == 0;
        if (!ok) fprintf(stderr, "element %zu: %g, expected %g\n", i, actual, expected[i]);
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

/* ------------------------------------------------------------------------------------------------- tests */

/* Run a check with each set of kernels. */
static void with_all_kernels(void (*check)(void)) {
    int count;
    const cf_kernels *const *list = cf_cpu_kernels_list(&count), *const best = device->kernels;
    assert_ptr_equal(list[0], best);
    for (int i = 0; i < count; ++i) {
        device->kernels = list[i];
        check();
    }
    device->kernels = best;
}

static bool is_basis(int64_t n) {
    for (int64_t p = 2; p <= 7; ++p)
        while (n % p == 0) n /= p;
    return n == 1;
}

static void check_basis(const int64_t basis[3], conv_fft_dtype dtype, int64_t channels) {
    generator g = generator_create((uint64_t)(basis[0] * 1000003 + basis[1] * 1009 + basis[2]));
    setting s = simple_setting(basis, dtype, 1, channels);
    complete_whole(&s, CONV_FFT_CHANNELS_FIRST);
    const double error = check_forward(&s, &g);
    if (!(error <= tolerance(&s)))
        fail_msg("%s, basis %dx%dx%d: error %g", device->kernels->name, (int)basis[0], (int)basis[1], (int)basis[2], error);
    s.desc.inverse = true;
    if (!check_inverse(&s, &g, false, false))
        fail_msg("%s, inverse of basis %dx%dx%d", device->kernels->name, (int)basis[0], (int)basis[1], (int)basis[2]);
}

static void every_length(void) {
    for (int64_t n = 1; n <= 256; ++n) {
        if (!is_basis(n)) continue;
        check_basis((int64_t[3]){1, 1, n}, CONV_FFT_FP32, 3);
        check_basis((int64_t[3]){1, 1, n}, CONV_FFT_FP64, 2);
    }
}

static void several_axes(void) {
    static const int64_t bases[][3] = {{1, 8, 8},  {1, 5, 3},   {1, 7, 1},  {6, 1, 1},   {4, 1, 6},   {3, 5, 7},
                                       {8, 4, 10}, {1, 64, 64}, {1, 9, 35}, {1, 1, 1000}, {1, 1, 1024}, {1, 1, 2187}};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; ++i) {
        check_basis(bases[i], CONV_FFT_FP32, 18); /* more than one unit, the last one not full */
        check_basis(bases[i], CONV_FFT_FP64, 1);
    }
}

static void random_windows(void) {
    const uint64_t seed = 1;
    for (uint64_t i = 0; i < 400; ++i) {
        generator g = generator_create(seed + i);
        const setting s = random_setting(&g, false, false);
        const double error = check_forward(&s, &g);
        if (!(error <= tolerance(&s))) fail_msg("%s, case %d: error %g", device->kernels->name, (int)i, error);
    }
}

static void random_crops(void) {
    for (uint64_t i = 0; i < 400; ++i) {
        generator g = generator_create(1000 + i);
        const bool ordered = random_once_in(&g, 3);
        const setting s = random_setting(&g, true, ordered);
        if (!check_inverse(&s, &g, !ordered && random_once_in(&g, 2), ordered || random_once_in(&g, 2)))
            fail_msg("%s, case %d", device->kernels->name, (int)i);
    }
}

/* A unit that has fewer lanes because its memory is large. */
static void large_bases(void) {
    check_basis((int64_t[3]){1, 128, 192}, CONV_FFT_FP32, 9);
    check_basis((int64_t[3]){24, 32, 36}, CONV_FFT_FP64, 5);
}

/* A NaN in one plane leaves the bits of every other one. */
static void isolation(void) {
    generator g = generator_create(7);
    setting s = simple_setting((int64_t[3]){1, 12, 10}, CONV_FFT_FP32, 4, 5);
    complete_whole(&s, CONV_FFT_CHANNELS_LAST);
    const size_t count = (size_t)(s.block.group_stride) * 2, bytes = count * sizeof(float);
    float *elements = test_alloc((size_t)s.elements * sizeof(float)), *clean = test_alloc(bytes), *dirty = test_alloc(bytes);
    for (int64_t i = 0; i < s.elements; ++i) elements[i] = (float)random_value(&g);
    void *scratch;
    cf_transform *t = create(&s, &scratch);
    cf_block block = s.block;
    block.data = clean;
    assert_int_equal(device->base.ops->forward(t, elements, s.origin, block, scratch, NULL), CONV_FFT_SUCCESS);
    elements[1 * s.desc.tensor.sample_stride + 2] = NAN; /* row 1, column 2 */
    block.data = dirty;
    assert_int_equal(device->base.ops->forward(t, elements, s.origin, block, scratch, NULL), CONV_FFT_SUCCESS);
    int64_t poisoned = 0;
    for (int64_t bin = 0; bin < s.desc.spectrum.bins; ++bin)
        for (int64_t p = 0; p < s.planes; ++p) {
            const float *a = clean + 2 * (bin * s.block.bin_stride + p), *b = dirty + 2 * (bin * s.block.bin_stride + p);
            if (p == 1 * 5 + 2)
                poisoned += isnan(b[0]) != 0;
            else
                assert_memory_equal(a, b, 2 * sizeof(float));
        }
    assert_int_equal(poisoned, s.desc.spectrum.bins);
    device->base.ops->transform_destroy(t);
    free(scratch);
    free(elements);
    free(clean);
    free(dirty);
}

static void test_every_length(void **state) {
    (void)state;
    with_all_kernels(every_length);
}
static void test_several_axes(void **state) {
    (void)state;
    with_all_kernels(several_axes);
}
static void test_random_windows(void **state) {
    (void)state;
    with_all_kernels(random_windows);
}
static void test_random_crops(void **state) {
    (void)state;
    with_all_kernels(random_crops);
}
static void test_large_bases(void **state) {
    (void)state;
    large_bases();
}
static void test_isolation(void **state) {
    (void)state;
    with_all_kernels(isolation);
}

static void test_bad_length(void **state) {
    (void)state;
    cf_line_plan plan;
    assert_int_equal(cf_line_plan_init(&plan, 22), CONV_FFT_INVALID_ARGUMENT);
    assert_int_equal(cf_line_plan_init(&plan, 0), CONV_FFT_INVALID_ARGUMENT);
    assert_int_equal(cf_line_plan_init(&plan, 2 * 3 * 5 * 7), CONV_FFT_SUCCESS);
}

int main(void) {
    cf_device *base = NULL;
    if (cf_cpu_create(2, CONV_FFT_LOG_WARNING, &base) != CONV_FFT_SUCCESS) return 2;
    device = (cf_cpu_device *)base;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_length),   cmocka_unit_test(test_several_axes), cmocka_unit_test(test_random_windows),
        cmocka_unit_test(test_random_crops),   cmocka_unit_test(test_large_bases),  cmocka_unit_test(test_isolation),
        cmocka_unit_test(test_bad_length),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    cf_cpu_destroy(base);
    return failures;
}
