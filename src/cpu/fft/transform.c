/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms between tensors and spectra: plan-time tables, then units of planes in parallel. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/fft/plane_batch.h"
#include "cpu/parallel.h"

#include <math.h>
#include <stdlib.h>

/* The lines being transformed should stay in a core's first-level cache. A whole unit need not stay in a cache: full
 * vectors and long runs of each bin gain more than a smaller unit would. Its limit keeps the workspace small. */
static const size_t batch_bytes = 1 << 14, unit_bytes = 8 << 20;

/* A larger spectrum is written past the caches: its bins are far apart, and the caches would lose it before the product
 * reads it. */
static const int64_t stream_bytes = 8 << 20;

static conv_fft_status check_window(const cf_transform_desc *desc) {
    for (int a = 0; a < 3; ++a) {
        const cf_axis_window *axis = &desc->window.axis[a];
        if (axis->step < 1 || axis->spread < 1 || axis->first < 0 ||
            (axis->count > 0 && axis->first + (axis->count - 1) * axis->spread >= desc->spectrum.basis[a]))
            return cf_fail(CONV_FFT_INTERNAL_ERROR, "the window of axis %d leaves its basis of %lld", a,
                           (long long)desc->spectrum.basis[a]);
    }
    return CONV_FFT_SUCCESS;
}

/* Sizes of a thread's memory for t->lanes lanes. */
static void set_sizes(cf_transform *t) {
    const int64_t *basis = t->desc.spectrum.basis;
    const cf_axis_window *axis = t->desc.window.axis;
    const size_t real = cf_dtype_bytes(t->dtype), lanes = (size_t)t->lanes;
    const size_t point = 2 * lanes * real;
    int64_t longest = cf_max(t->line[2].length, t->row_bins); /* in points of one line */
    for (int a = 0; a < 2; ++a) {
        const int64_t fit = (int64_t)(batch_bytes / point) / t->line[a].length;
        t->batch[a] = cf_max(1, cf_min(fit, t->row_bins));
        longest = cf_max(longest, t->batch[a] * t->line[a].length);
    }
    t->work_bytes = cf_align((size_t)(basis[0] * basis[1] * t->row_bins) * point);
    t->line_bytes = cf_align((size_t)longest * point);
    const bool borders =
        axis[0].mode != CONV_FFT_PAD_ZEROS || axis[1].mode != CONV_FFT_PAD_ZEROS || axis[2].mode != CONV_FFT_PAD_ZEROS;
    t->border_bytes = borders ? cf_align(lanes * (size_t)(axis[0].count + axis[1].count + axis[2].count) * 8) : 0;
    t->thread_bytes = t->work_bytes + 3 * t->line_bytes + t->border_bytes;
}

/* Lanes fill the widest vectors. There are fewer if there are fewer planes, or if a unit would be too large. In that
 * case a unit still has `min_lines` cache lines of each bin, or one lane. */
static void choose_lanes(cf_transform *t, int64_t planes, int min_lines) {
    const int line = (int)(64 / (2 * cf_dtype_bytes(t->dtype)));
    t->lanes = (int)cf_max(1, cf_min(2 * line, planes));
    set_sizes(t);
    for (int lanes = line; lanes >= cf_max(1, min_lines * line) && t->thread_bytes > unit_bytes; lanes /= 2) {
        t->lanes = (int)cf_min(t->lanes, lanes);
        set_sizes(t);
    }
}

static conv_fft_status make_tables(cf_transform *t) {
    const size_t complex_bytes = 2 * cf_dtype_bytes(t->dtype);
    for (int a = 0; a < 3; ++a) {
        const size_t bytes = (size_t)cf_max(1, t->line[a].twiddles) * complex_bytes;
        t->twiddles[a] = malloc(bytes);
        if (!t->twiddles[a])
            return cf_fail_memory(bytes, "the twiddles of a transform");
        cf_line_plan_twiddles(&t->line[a], t->dtype, t->twiddles[a]);
    }
    const int64_t n = t->desc.spectrum.basis[2];
    if (!t->halved)
        return CONV_FFT_SUCCESS;
    const size_t bytes = (size_t)(n / 4 + 1) * complex_bytes;
    t->roots = malloc(bytes);
    if (!t->roots)
        return cf_fail_memory(bytes, "the roots of unity of a transform");
    for (int64_t k = 0; k <= n / 4; ++k)
        cf_root_of_unity(k, n, t->dtype, t->roots, k);
    return CONV_FFT_SUCCESS;
}

/* planes: in all. */
static conv_fft_status create(cf_device *device, const cf_transform_desc *desc, bool complex_signal, int64_t planes,
                              int least, cf_transform **transform) {
    CF_FORWARD(check_window(desc));
    cf_transform *t = calloc(1, sizeof *t);
    if (!t)
        return cf_fail_memory(sizeof *t, "a transform");
    const int64_t *basis = desc->spectrum.basis;
    t->device = device;
    t->desc = *desc;
    t->dtype = desc->spectrum.dtype;
    t->parts = complex_signal ? 2 : 1;
    t->halved = !complex_signal && basis[2] % 2 == 0;
    t->row_bins = complex_signal ? basis[2] : basis[2] / 2 + 1;
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int a = 0; a < 3 && status == CONV_FFT_SUCCESS; ++a)
        status = cf_line_plan_init(&t->line[a], a == 2 && t->halved ? basis[2] / 2 : basis[a]);
    if (status != CONV_FFT_SUCCESS)
        goto done;
    choose_lanes(t, planes, least);
    status = make_tables(t);
    if (status != CONV_FFT_SUCCESS)
        goto done;
    *transform = t;
    return CONV_FFT_SUCCESS;
done:
    cf_cpu_transform_destroy(t);
    return status;
}

conv_fft_status cf_cpu_transform_create(cf_device *device, const cf_transform_desc *desc, cf_transform **transform) {
    const cf_spectrum *s = &desc->spectrum;
    return create(device, desc, false, s->groups * s->rows * s->columns, 1, transform);
}

conv_fft_status cf_cpu_planes_create(cf_device *device, const cf_transform_desc *desc, bool complex_signal,
                                     cf_transform **transform) {
    return create(device, desc, complex_signal, INT64_MAX, 0, transform);
}

void cf_cpu_transform_destroy(cf_transform *transform) {
    if (!transform)
        return;
    for (int a = 0; a < 3; ++a)
        free(transform->twiddles[a]);
    free(transform->roots);
    free(transform);
}

void cf_cpu_planes_destroy(cf_transform *transform) { cf_cpu_transform_destroy(transform); }

size_t cf_cpu_transform_scratch(const cf_transform *transform, int64_t rows) {
    (void)rows; /* each thread has memory for one unit, also if there are fewer units than threads */
    return (size_t)transform->device->threads * transform->thread_bytes + 63;
}

size_t cf_cpu_planes_scratch(const cf_transform *transform, int64_t rows) {
    const int64_t units = cf_ceil_div(rows * transform->desc.spectrum.columns, transform->lanes);
    return (size_t)cf_min(transform->device->threads, units) * transform->thread_bytes + 63;
}

/* Floating-point operations of one plane, by the usual count. */
static double plane_flops(const cf_transform *t) {
    const int64_t *basis = t->desc.spectrum.basis;
    const double points = (double)basis[0] * (double)basis[1] * (double)basis[2];
    return 2.5 * t->parts * points * log2(points + 1);
}

/* All strides of a block of the stage interface. */
static cf_cpu_strides strides_of(const cf_transform *t, const cf_block *block) {
    return (cf_cpu_strides){
        .row = t->desc.spectrum.columns,
        .column = 1,
        .bin = {t->desc.spectrum.basis[1] * t->row_bins * block->bin_stride, t->row_bins * block->bin_stride,
                block->bin_stride},
    };
}

static void count_planes(cf_call *call) {
    const cf_transform *t = call->transform;
    const cf_spectrum *spectrum = &t->desc.spectrum;
    /* An ordered block covers whole samples or a part of one sample's rows. */
    call->rows_per_plane = t->desc.ordered > 1 ? cf_min(spectrum->rows_per_sample, call->block.rows) : 1;
    if (call->block.rows > 0)
        call->planes = call->block.groups * (call->block.rows / call->rows_per_plane) * spectrum->columns;
    call->units = cf_ceil_div(call->planes, t->lanes);
}

static const cf_real_kernels *kernels_of(const cf_transform *t) {
    return cf_real(cf_cpu(t->device)->kernels, t->dtype);
}

static void forward_unit(const void *user, int64_t i, int thread) {
    const cf_call *const call = user;
    cf_unit unit;
    cf_unit_set(&unit, call, i, 0, thread);
    kernels_of(call->transform)->forward(call->transform, &unit);
}

static void run_forward(cf_call call) {
    const cf_transform *t = call.transform;
    count_planes(&call);
    const int64_t complex_bytes = 2 * (int64_t)cf_dtype_bytes(t->dtype);
    call.stream = call.planes * t->desc.spectrum.bins * complex_bytes > stream_bytes;
    const int threads = cf_cpu_threads(t->device, call.units, (double)call.planes * plane_flops(t));
    cf_parallel_for(threads, call.units, forward_unit, &call);
}

/* The bias of each lane, in the computation's type. */
static void load_bias(const cf_transform *t, const cf_real_kernels *kernels, cf_unit *unit, void *lane_bias) {
    const cf_piece piece = {.dtype = cf_tensor_bias_dtype(&t->desc.tensor),
                            .data = (void *)unit->bias,
                            .offset = unit->channel,
                            .elements = 1,
                            .lanes = unit->lanes};
    kernels->load(lane_bias, 0, &piece);
    unit->bias = lane_bias;
}

static void inverse_unit(const void *user, int64_t i, int thread) {
    const cf_call *const call = user;
    const cf_real_kernels *const kernels = kernels_of(call->transform);
    for (int64_t step = 0; step < call->rows_per_plane; ++step) {
        cf_unit unit;
        double lane_bias[CF_MAX_LANES]; /* as floats if the computation is in FP32 */
        cf_unit_set(&unit, call, i, step, thread);
        if (call->bias)
            load_bias(call->transform, kernels, &unit, lane_bias);
        kernels->inverse(call->transform, &unit);
    }
}

static void run_inverse(cf_call call) {
    const cf_transform *t = call.transform;
    count_planes(&call);
    const double flops = (double)call.planes * (double)call.rows_per_plane * plane_flops(t);
    cf_parallel_for(cf_cpu_threads(t->device, call.units, flops), call.units, inverse_unit, &call);
}

conv_fft_status cf_cpu_forward(const cf_transform *transform, const void *tensor, cf_origin origin, cf_block block,
                               void *scratch, struct CUstream_st *stream) {
    (void)stream;
    run_forward((cf_call){.transform = transform,
                          .tensor = tensor,
                          .origin = origin,
                          .block = block,
                          .strides = strides_of(transform, &block),
                          .scratch = scratch});
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_cpu_inverse(const cf_transform *transform, cf_block block, void *tensor, cf_origin origin,
                               const void *bias, bool accumulate, void *scratch, struct CUstream_st *stream) {
    (void)stream;
    run_inverse((cf_call){.transform = transform,
                          .tensor = tensor,
                          .origin = origin,
                          .block = block,
                          .strides = strides_of(transform, &block),
                          .bias = bias,
                          .accumulate = accumulate,
                          .scratch = scratch});
    return CONV_FFT_SUCCESS;
}

void cf_cpu_planes_run(const cf_transform *transform, const void *in, void *out, int64_t rows, cf_cpu_strides strides,
                       void *scratch) {
    const bool inverse = transform->desc.inverse;
    const cf_call call = {.transform = transform,
                          .tensor = inverse ? out : in,
                          .block = {.data = inverse ? (void *)in : out, .groups = 1, .rows = rows},
                          .strides = strides,
                          .scratch = scratch};
    if (inverse)
        run_inverse(call);
    else
        run_forward(call);
}
