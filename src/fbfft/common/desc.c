/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/common/desc.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "core/strides.h"
#include "core/words.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    LONGEST_AXIS = 256,
    LONGEST_LINE = 16384, /* of rank 1 */
    SPLIT_MIN_AXIS = 256,
    SPLIT_MAX_AXIS = 4096, /* of axes before the last */
    SPLIT_MAX_LINE = 1 << 27,
    FP16_MAX_LINE = 1 << 24,
    FP16_MIN_AXIS = 32, /* of rank 2 */
    FP16_MAX_AXIS = 2048
};

conv_fft_status cf_fft_check_kind(int rank, int kind) {
    CF_REQUIRE(rank >= 1 && rank <= CONV_FFT_MAX_RANK, "rank is %d; it must be 1 to %d", rank, CONV_FFT_MAX_RANK);
    CF_REQUIRE(kind >= FBFFT_R2C && kind <= FBFFT_C2C_INVERSE,
               "kind is %d; it must be FBFFT_R2C (0), FBFFT_C2R (1), FBFFT_C2C_FORWARD (2) or FBFFT_C2C_INVERSE (3)",
               kind);
    return CONV_FFT_SUCCESS;
}

static bool is_complex(const fbfft_desc *d) { return d->kind == FBFFT_C2C_FORWARD || d->kind == FBFFT_C2C_INVERSE; }
static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* What tensor cores transform: dense and complete numbers. `where` ends the sentences about other fields. */
typedef struct dense_form {
    const char *where;
    conv_fft_dtype dtype;
    const char *dtype_name, *ranks;
    int max_rank;
    bool reals;                     /* real signals are allowed */
    int64_t min_points, max_points; /* of the axes before the last */
    int64_t min_last, max_last;     /* of the last axis */
} dense_form;

static dense_form fp16_form(int rank) {
    return (dense_form){.where = "the spectrum is FP16",
                        .dtype = CONV_FFT_FP16,
                        .dtype_name = "CONV_FFT_FP16",
                        .ranks = "1 or 2",
                        .max_rank = 2,
                        .min_points = FP16_MIN_AXIS,
                        .max_points = FP16_MAX_AXIS,
                        .min_last = rank == 1 ? 2 : FP16_MIN_AXIS,
                        .max_last = rank == 1 ? FP16_MAX_LINE : FP16_MAX_AXIS};
}
/* Two reals count as one complex number. */
static dense_form split_form(int rank, bool reals) {
    return (dense_form){.where = "arithmetic is FBFFT_ARITHMETIC_SPLIT (2)",
                        .dtype = CONV_FFT_FP32,
                        .dtype_name = "CONV_FFT_FP32",
                        .ranks = "1 to 3",
                        .max_rank = CONV_FFT_MAX_RANK,
                        .min_points = SPLIT_MIN_AXIS,
                        .max_points = SPLIT_MAX_AXIS,
                        .reals = true,
                        .min_last = (int64_t)SPLIT_MIN_AXIS << reals,
                        .max_last = (int64_t)(rank == 1 ? SPLIT_MAX_LINE : LONGEST_LINE) << reals};
}

static conv_fft_status check_dense_axis(const fbfft_desc *d, int a, const dense_form *f) {
    const bool last = a + 1 == d->rank;
    const int64_t n = d->basis[a], least = last ? f->min_last : f->min_points,
                  most = last ? f->max_last : f->max_points;
    CF_REQUIRE(is_power_of_two(n) && n >= least && n <= most,
               "basis[%d] is %lld; it must be a power of two in %lld to %lld where %s", a, (long long)n,
               (long long)least, (long long)most, f->where);
    CF_REQUIRE(d->extent[a] == 0 || d->extent[a] == n, "extent[%d] is %lld; it must be 0 or %lld, the basis, where %s",
               a, (long long)d->extent[a], (long long)n, f->where);
    CF_REQUIRE(d->size[a] == 0 || d->size[a] == n, "size[%d] is %lld; it must be 0 or %lld, the basis, where %s", a,
               (long long)d->size[a], (long long)n, f->where);
    CF_REQUIRE(d->offset[a] == 0, "offset[%d] is %lld; it must be 0 where %s", a, (long long)d->offset[a], f->where);
    CF_REQUIRE(d->step[a] == 1, "step[%d] is %lld; it must be 1 where %s", a, (long long)d->step[a], f->where);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_dense(const fbfft_desc *d, const dense_form *f) {
    CF_REQUIRE(f->reals || is_complex(d),
               "kind is %d; it must be FBFFT_C2C_FORWARD (2) or FBFFT_C2C_INVERSE (3) where %s", (int)d->kind,
               f->where);
    CF_REQUIRE(d->rank <= f->max_rank, "rank is %d; it must be %s where %s", d->rank, f->ranks, f->where);
    CF_REQUIRE(d->dtype == f->dtype, "dtype is %d; it must be %s (%d) where %s", (int)d->dtype, f->dtype_name,
               (int)f->dtype, f->where);
    CF_REQUIRE(d->layout == CONV_FFT_CHANNELS_FIRST, "layout is %d; it must be CONV_FFT_CHANNELS_FIRST (0) where %s",
               (int)d->layout, f->where);
    CF_REQUIRE(d->order == FBFFT_NATURAL, "order is %d; it must be FBFFT_NATURAL (0) where %s", (int)d->order,
               f->where);
    CF_REQUIRE(d->padding == CONV_FFT_PAD_ZEROS, "padding is %d; it must be CONV_FFT_PAD_ZEROS (0) where %s",
               (int)d->padding, f->where);
    for (int i = 0; i < 2 + d->rank; ++i)
        CF_REQUIRE(d->stride[i] == 0, "stride[%d] is %lld; it must be 0 where %s", i, (long long)d->stride[i],
                   f->where);
    for (int a = 0; a < d->rank; ++a)
        CF_FORWARD(check_dense_axis(d, a, f));
    return CONV_FFT_SUCCESS;
}

/* Each arithmetic has its types. */
static conv_fft_status check_arithmetic(const fbfft_desc *d) {
    const int arithmetic = (int)d->arithmetic;
    const bool fp16 = d->spectrum == CONV_FFT_FP16;
    CF_REQUIRE(arithmetic >= FBFFT_ARITHMETIC_DEFAULT && arithmetic <= FBFFT_ARITHMETIC_FP16,
               "arithmetic is %d; it must be FBFFT_ARITHMETIC_DEFAULT (0), FBFFT_ARITHMETIC_FP32 (1), "
               "FBFFT_ARITHMETIC_SPLIT (2) or FBFFT_ARITHMETIC_FP16 (3)",
               arithmetic);
    CF_REQUIRE(arithmetic != FBFFT_ARITHMETIC_FP32 || (d->dtype != CONV_FFT_FP64 && !fp16),
               "arithmetic is FBFFT_ARITHMETIC_FP32 (1); it must be FBFFT_ARITHMETIC_DEFAULT (0) where %s",
               fp16 ? "the spectrum is FP16" : "dtype is CONV_FFT_FP64");
    CF_REQUIRE(arithmetic != FBFFT_ARITHMETIC_FP16 || fp16,
               "arithmetic is FBFFT_ARITHMETIC_FP16 (3); spectrum is CONV_FFT_FP32 (0), and it must be CONV_FFT_FP16 "
               "(%d) for that",
               (int)CONV_FFT_FP16);
    CF_REQUIRE(arithmetic != FBFFT_ARITHMETIC_SPLIT || !fp16,
               "arithmetic is FBFFT_ARITHMETIC_SPLIT (2); it must be FBFFT_ARITHMETIC_FP16 (3) or "
               "FBFFT_ARITHMETIC_DEFAULT (0) where the spectrum is FP16");
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_spectrum(const fbfft_desc *d) {
    CF_REQUIRE(d->spectrum == CONV_FFT_FP32 || d->spectrum == CONV_FFT_FP16,
               "spectrum is %d; it must be CONV_FFT_FP32 (0) or CONV_FFT_FP16 (%d)", (int)d->spectrum,
               (int)CONV_FFT_FP16);
    CF_FORWARD(check_arithmetic(d));
    if (d->spectrum != CONV_FFT_FP16 && d->arithmetic != FBFFT_ARITHMETIC_SPLIT)
        return CONV_FFT_SUCCESS;
    const dense_form form = d->spectrum == CONV_FFT_FP16 ? fp16_form(d->rank) : split_form(d->rank, !is_complex(d));
    return check_dense(d, &form);
}

static conv_fft_status check_scalars(const fbfft_desc *d, bool inverse) {
    const double limit = d->dtype == CONV_FFT_FP64 ? DBL_MAX : FLT_MAX;
    CF_REQUIRE(fabs(d->scale) <= limit, "scale is %g; it must be a finite number from %g to %g", d->scale, -limit,
               limit);
    CF_FORWARD(cf_check_range("channels", -1, d->channels, 1, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("dtype", -1, d->dtype, 0, CF_DTYPE_COUNT - 1));
    CF_FORWARD(cf_check_range("layout", -1, d->layout, 0, CF_LAYOUT_COUNT - 1));
    CF_FORWARD(cf_check_range("order", -1, d->order, FBFFT_NATURAL, FBFFT_FREQUENCY_MAJOR));
    CF_FORWARD(cf_check_range("padding", -1, d->padding, 0, CF_PADDING_COUNT - 1));
    CF_REQUIRE(!inverse || d->padding == CONV_FFT_PAD_ZEROS,
               "padding is %d; it must be CONV_FFT_PAD_ZEROS (0) for transforms that write a signal", (int)d->padding);
    CF_FORWARD(check_spectrum(d));
    for (int i = 0; i < 3; ++i)
        CF_FORWARD(cf_check_range("reserved", i, d->reserved[i], 0, 0));
    return CONV_FFT_SUCCESS;
}

static bool is_basis(int64_t n) {
    for (int64_t p = 2; p <= 7; ++p)
        while (n % p == 0)
            n /= p;
    return n == 1;
}

/* A mirror shows the signal once on each side, so the window may not reach further. `reach` is that of the mode. */
static conv_fft_status check_reflection(int a, int64_t size, int64_t reach, int64_t first, int64_t last) {
    CF_REQUIRE(first >= -reach,
               "offset[%d] is %lld; it must be at least %lld where the signal of %lld points is reflected", a,
               (long long)first, (long long)-reach, (long long)size);
    CF_REQUIRE(last <= size - 1 + reach,
               "offset[%d] is %lld, and the last point of the window %lld; it must be at most %lld where the signal of "
               "%lld points is reflected",
               a, (long long)first, (long long)last, (long long)(size - 1 + reach), (long long)size);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status resolve_axis(const fbfft_desc *d, int a, int64_t *basis, cf_axis_window *axis) {
    const bool on_tensor_cores = d->spectrum == CONV_FFT_FP16 || d->arithmetic == FBFFT_ARITHMETIC_SPLIT;
    const int64_t longest = on_tensor_cores ? CF_MAX_ELEMENTS /* check_dense_axis() has more to say */
                            : d->rank == 1  ? LONGEST_LINE
                                            : LONGEST_AXIS,
                  n = d->basis[a];
    CF_REQUIRE(n >= 1 && n <= longest && is_basis(n),
               "basis[%d] is %lld; it must be a product of 2, 3, 5 and 7 in 1 to %lld", a, (long long)n,
               (long long)longest);
    CF_REQUIRE(d->extent[a] >= 0 && d->extent[a] <= n, "extent[%d] is %lld; it must be 0 to %lld, the basis", a,
               (long long)d->extent[a], (long long)n);
    const int64_t count = d->extent[a] ? d->extent[a] : n;
    CF_FORWARD(cf_check_range("size", a, d->size[a], 0, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("offset", a, d->offset[a], -CF_MAX_ELEMENTS, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("step", a, d->step[a], 1, CF_MAX_ELEMENTS));
    const int64_t size = d->size[a] ? d->size[a] : count;
    int64_t last = count - 1; /* element of the window's last point: the offset, then counted from element 0 */
    CF_REQUIRE(cf_multiply(&last, d->step[a]) && last <= CF_MAX_ELEMENTS,
               "step[%d] is %lld for %lld points; (points - 1) * step must be at most %lld", a, (long long)d->step[a],
               (long long)count, (long long)CF_MAX_ELEMENTS);
    last += d->offset[a];
    const int64_t reach = cf_padding_reach(d->padding, size);
    if (reach < CF_MAX_ELEMENTS)
        CF_FORWARD(check_reflection(a, size, reach, d->offset[a], last));
    *basis = n;
    *axis = (cf_axis_window){.spread = 1,
                             .count = count,
                             .origin = d->offset[a],
                             .step = d->step[a],
                             .tiles = 1,
                             .shifts = 1,
                             .phases = 1,
                             .lower = d->offset[a],
                             .upper = last + 1,
                             .size = size,
                             .mode = d->padding};
    return CONV_FFT_SUCCESS;
}

static conv_fft_status resolve_signal(const fbfft_desc *d, const cf_window *window, cf_tensor *tensor) {
    int64_t extents[2 + CONV_FFT_MAX_RANK] = {1, d->channels}, strides[2 + CONV_FFT_MAX_RANK];
    for (int a = 0; a < d->rank; ++a)
        extents[2 + a] = window->axis[3 - d->rank + a].size;
    CF_FORWARD(cf_strides_resolve("stride", "the signal", d->stride, d->rank, extents, d->layout, strides));
    *tensor = (cf_tensor){.dtype = d->dtype, .sample_stride = strides[0], .channel_stride = strides[1]};
    for (int a = 0; a < d->rank; ++a)
        tensor->axis_stride[3 - d->rank + a] = strides[2 + a];
    return CONV_FFT_SUCCESS;
}

static conv_fft_status resolve_spectrum(const fbfft_desc *d, bool complex_signal, cf_spectrum *s,
                                        cf_fft_layout *layout) {
    const int64_t extent[3] = {s->basis[0], s->basis[1], complex_signal ? s->basis[2] : s->basis[2] / 2 + 1};
    s->dtype = d->spectrum == CONV_FFT_FP16 ? CONV_FFT_FP16 : cf_compute_dtype(d->dtype);
    s->groups = s->rows_per_sample = 1;
    s->columns = s->channels = d->channels;
    s->bins = extent[0] * extent[1] * extent[2];
    *layout = (cf_fft_layout){.frequency_major = d->order == FBFFT_FREQUENCY_MAJOR};
    int64_t elements = s->bins;
    CF_REQUIRE(cf_multiply(&elements, d->channels) && elements <= CF_MAX_ELEMENTS,
               "channels is %lld; their bins, %lld each, must be at most %lld", (long long)d->channels,
               (long long)s->bins, (long long)CF_MAX_ELEMENTS);
    int64_t stride = 1;
    for (int i = 0; i < 3; ++i) {
        const int a = d->order == FBFFT_TRANSPOSED ? i : 2 - i;
        layout->axis_stride[a] = stride;
        stride *= extent[a];
    }
    if (layout->frequency_major)
        return CONV_FFT_SUCCESS;
    layout->channel_stride = s->bins;
    layout->sample_stride = elements;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fft_resolve(const fbfft_desc *desc, cf_fft_problem *problem) {
    CF_FORWARD(cf_fft_check_kind(desc->rank, (int)desc->kind));
    cf_fft_problem p;
    memset(&p, 0, sizeof p);
    cf_transform_desc *t = &p.transform;
    t->inverse = desc->kind == FBFFT_C2R || desc->kind == FBFFT_C2C_INVERSE;
    t->scale = desc->scale;
    p.complex_signal = is_complex(desc);
    CF_FORWARD(check_scalars(desc, t->inverse));
    p.c2c_fp16 = desc->spectrum == CONV_FFT_FP16;
    p.c2c_split = desc->arithmetic == FBFFT_ARITHMETIC_SPLIT;
    for (int i = 0; i < 3; ++i) {
        const int a = i - (3 - desc->rank);
        t->spectrum.basis[i] = 1;
        t->window.axis[i] = (cf_axis_window){
            .spread = 1, .count = 1, .step = 1, .tiles = 1, .shifts = 1, .phases = 1, .upper = 1, .size = 1};
        if (a >= 0)
            CF_FORWARD(resolve_axis(desc, a, &t->spectrum.basis[i], &t->window.axis[i]));
    }
    CF_FORWARD(resolve_signal(desc, &t->window, &t->tensor));
    CF_FORWARD(resolve_spectrum(desc, p.complex_signal, &t->spectrum, &p.layout));
    CF_FORWARD(cf_fft_check_batch(&p, 1));
    *problem = p;
    return CONV_FFT_SUCCESS;
}

/* Extents of the signal, and its strides {sample, channel, axes}. */
static void signal_shape(const cf_fft_problem *p, int64_t batch, int64_t extents[5], int64_t strides[5]) {
    const cf_tensor *tensor = &p->transform.tensor;
    extents[0] = batch;
    extents[1] = p->transform.spectrum.channels;
    strides[0] = tensor->sample_stride;
    strides[1] = tensor->channel_stride;
    for (int a = 0; a < 3; ++a) {
        extents[2 + a] = p->transform.window.axis[a].size;
        strides[2 + a] = tensor->axis_stride[a];
    }
}

conv_fft_status cf_fft_signal_elements(const cf_fft_problem *p, int64_t batch, int64_t *elements) {
    int64_t extents[5], strides[5], last = 0;
    signal_shape(p, batch, extents, strides);
    for (int i = 0; i < 5 && batch > 0; ++i) {
        int64_t reach = extents[i] - 1;
        CF_REQUIRE(cf_multiply(&reach, strides[i]) && cf_add(&last, reach) && last < CF_MAX_ELEMENTS,
                   "batch is %lld; the signal must end before element %lld", (long long)batch,
                   (long long)CF_MAX_ELEMENTS);
    }
    *elements = batch > 0 ? last + 1 : 0;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fft_spectrum_elements(const cf_fft_problem *p, int64_t batch, int64_t *elements) {
    int64_t product = p->transform.spectrum.bins * p->transform.spectrum.channels;
    CF_REQUIRE(cf_multiply(&product, batch) && product <= CF_MAX_ELEMENTS,
               "batch is %lld; the spectrum must have at most %lld elements", (long long)batch,
               (long long)CF_MAX_ELEMENTS);
    *elements = product;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fft_check_batch(const cf_fft_problem *p, int64_t batch) {
    int64_t elements, extents[5], strides[5];
    CF_REQUIRE(batch >= 0, "batch is %lld; it must be at least 0", (long long)batch);
    CF_FORWARD(cf_fft_signal_elements(p, batch, &elements));
    CF_FORWARD(cf_fft_spectrum_elements(p, batch, &elements));
    if (!p->transform.inverse)
        return CONV_FFT_SUCCESS;
    signal_shape(p, batch, extents, strides);
    return cf_strides_check_distinct("stride", "the signal", strides, extents);
}
