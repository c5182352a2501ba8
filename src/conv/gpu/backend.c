/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as a device: its operations, its transforms, and what the cost model may expect of it. */
#include "conv/gpu/backend.h"

#include "conv/gpu/calibration.h"

#include "conv/gpu/device.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/driver/memory.h"
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/launch.h"
#include "cuda/libs/cublas.h"
#include "fbfft/plan/gpu_transform.h"
#include "fbfft/tensor_core/config.h"

#include <stdlib.h>
#include <string.h>

struct cf_transform {
    cf_device *device;
    cf_transform_desc desc;
    cf_gpu_transform *gpu;
};

struct cf_pair {
    const cf_transform *transform[2];
    cf_gpu_pair *gpu;
};

/* Make a handle of cuBLAS, so that no call has to make one. Without cuBLAS the library's own kernels are used. */
static conv_fft_status prepare(cf_device *device) {
    cf_gpu_layers *layers = cf_gpu_layers_of(device);
    pthread_mutex_lock(&layers->mutex);
    if (!layers->prepared) {
        cf_cublas_guard guard;
        if (cf_cublas_guard_acquire(layers->gpu->cublas, NULL, CF_CUBLAS_DEFAULT_MATH, NULL, 0, &guard) ==
            CONV_FFT_SUCCESS) {
            cf_cublas_guard_release(layers->gpu->cublas, &guard);
            layers->base.has_blas = true;
        } else {
            cf_log(layers->gpu->log_level, CONV_FFT_LOG_WARNING, "products of many channels will be slow: %s",
                   conv_fft_last_error());
        }
        layers->prepared = true;
    }
    pthread_mutex_unlock(&layers->mutex);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status transform_create(cf_device *device, const cf_transform_desc *desc, cf_transform **result) {
    cf_gpu_layers *layers = cf_gpu_layers_of(device);
    cf_transform *t = calloc(1, sizeof *t);
    if (!t)
        return cf_fail_memory(sizeof *t, "a transform");
    const int64_t row_bins = desc->spectrum.basis[2] / 2 + 1;
    const cf_fft_problem problem = {
        .transform = *desc,
        .layout = {.frequency_major = true, .axis_stride = {desc->spectrum.basis[1] * row_bins, row_bins, 1}}};
    t->device = device;
    t->desc = *desc;
    const conv_fft_status status = cf_gpu_transform_create(layers->gpu, &problem, &t->gpu);
    if (status != CONV_FFT_SUCCESS)
        free(t);
    else
        *result = t;
    return status;
}

/* Whether another kernel finds the largest magnitudes first. */
static bool finds_absmax_first(const cf_transform *t) {
    return !t->desc.inverse && cf_spectrum_is_scaled(t->desc.spectrum.dtype) && !cf_gpu_transform_finds_scales(t->gpu);
}

/* The descriptions have the same groups. */
static conv_fft_status pair_create(cf_device *device, const cf_transform *first, const cf_transform *second,
                                   cf_pair **result) {
    const int64_t rows[2] = {first->desc.spectrum.rows, second->desc.spectrum.rows};
    cf_gpu_pair *gpu = NULL;
    *result = NULL;
    if (finds_absmax_first(first) || finds_absmax_first(second)) /* each of these needs a kernel before it */
        return CONV_FFT_SUCCESS;
    CF_FORWARD(cf_gpu_pair_create(cf_gpu_layers_of(device)->gpu, first->gpu, second->gpu, rows,
                                  first->desc.spectrum.groups, &gpu));
    if (!gpu)
        return CONV_FFT_SUCCESS;
    cf_pair *pair = malloc(sizeof *pair);
    if (!pair) {
        cf_gpu_pair_destroy(gpu);
        return cf_fail_memory(sizeof *pair, "a pair of transforms");
    }
    *pair = (cf_pair){{first, second}, gpu};
    *result = pair;
    return CONV_FFT_SUCCESS;
}

static void pair_destroy(cf_pair *pair) {
    if (!pair)
        return;
    cf_gpu_pair_destroy(pair->gpu);
    free(pair);
}

static conv_fft_status build_begin(cf_device *device, cf_build_list **list) {
    return cf_build_list_create(cf_gpu_layers_of(device)->gpu, list);
}

static conv_fft_status transforms_list(cf_device *device, cf_transform *const *transforms, int count,
                                       cf_pair *const *pairs, int pair_count, bool aligned, cf_build_list *list) {
    for (int i = 0; i < count; ++i) {
        CF_FORWARD(cf_gpu_transforms_list(&transforms[i]->gpu, 1, NULL, 0, aligned, list));
        if (finds_absmax_first(transforms[i]))
            CF_FORWARD(
                cf_gpu_small_kernel_list(cf_gpu_layers_of(device), cf_gpu_absmax_kernel(&transforms[i]->desc), list));
    }
    for (int i = 0; i < pair_count; ++i)
        CF_FORWARD(cf_gpu_transforms_list(NULL, 0, &pairs[i]->gpu, 1, aligned, list));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status products_list(cf_device *device, cf_cgemm_desc *const *descs, int count, cf_build_list *list) {
    for (int i = 0; i < count; ++i)
        CF_FORWARD(cf_gpu_cgemm_list(device, descs[i], list));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status operations_list(cf_device *device, unsigned operations, cf_build_list *list) {
    cf_gpu_layers *const layers = cf_gpu_layers_of(device);
    if (operations & CF_OPERATION_ZERO)
        CF_FORWARD(cf_gpu_small_kernel_list(layers, CF_KERNEL_ZERO, list));
    if (operations & CF_OPERATION_FOLD)
        CF_FORWARD(cf_gpu_small_kernel_list(layers, CF_KERNEL_FOLD, list));
    if (operations & CF_OPERATION_BIAS_GRADIENT)
        CF_FORWARD(cf_gpu_small_kernel_list(layers, CF_KERNEL_BIAS, list));
    return CONV_FFT_SUCCESS;
}

static void transform_destroy(cf_transform *t) {
    if (!t)
        return;
    cf_gpu_transform_destroy(t->gpu);
    free(t);
}

/* Bytes of what that kernel finds. The transform's own scratch follows. */
static size_t absmax_bytes(const cf_transform *t) {
    return finds_absmax_first(t) ? cf_align(cf_gpu_absmax_scratch(&t->desc)) : 0;
}

static size_t transform_scratch(const cf_transform *t, int64_t rows) {
    return absmax_bytes(t) + cf_gpu_transform_scratch(t->gpu, rows);
}

/* The tensor pointer is that of the origin. Kernels count rows and groups of the whole tensor. */
static cf_gpu_transform_call call_of(const cf_transform *t, const void *tensor, cf_origin origin, const cf_block *block,
                                     void *scratch) {
    const cf_tensor *s = &t->desc.tensor;
    const int64_t offset = (block->group - origin.group) * s->group_stride - origin.sample * s->sample_stride;
    return (cf_gpu_transform_call){
        .signal = (const char *)tensor + offset * (int64_t)cf_dtype_bytes(s->dtype),
        .spectrum = block->data,
        .first = block->row,
        .rows = block->rows,
        .base = block->row,
        .unit = block->bin_stride,
        .groups = block->groups,
        .group_stride = block->group_stride,
        .scratch = scratch,
        .scales = {.scales = block->scales, .rows = t->desc.spectrum.scale_rows, .group_stride = block->scale_stride}};
}

static conv_fft_status forward(const cf_transform *t, const void *tensor, cf_origin origin, cf_block block,
                               void *scratch, struct CUstream_st *stream) {
    cf_gpu_transform_call call = call_of(t, tensor, origin, &block, scratch);
    if (block.rows == 0)
        return CONV_FFT_SUCCESS;
    if (finds_absmax_first(t))
        CF_FORWARD(
            cf_gpu_absmax(cf_gpu_layers_of(t->device), &t->desc, call.signal, &block, scratch, &call.scales, stream));
    call.scratch = (char *)scratch + absmax_bytes(t);
    return cf_gpu_transform_run(t->gpu, &call, stream);
}

static conv_fft_status forward_pair(const cf_pair *pair, const void *const tensor[2], const cf_block block[2],
                                    struct CUstream_st *stream) {
    const cf_origin whole = {0, 0};
    cf_gpu_transform_call call[2];
    for (int i = 0; i < 2; ++i)
        call[i] = call_of(pair->transform[i], tensor[i], whole, &block[i], NULL);
    return cf_gpu_pair_run(pair->gpu, call, stream);
}

static conv_fft_status inverse(const cf_transform *t, cf_block block, void *tensor, cf_origin origin, const void *bias,
                               bool accumulate, void *scratch, struct CUstream_st *stream) {
    cf_gpu_transform_call call = call_of(t, tensor, origin, &block, scratch);
    const int64_t bytes = (int64_t)cf_dtype_bytes(cf_tensor_bias_dtype(&t->desc.tensor));
    call.accumulate = accumulate;
    if (bias)
        call.bias = (const char *)bias + block.group * t->desc.spectrum.channels * bytes;
    return block.rows > 0 ? cf_gpu_transform_run(t->gpu, &call, stream) : CONV_FFT_SUCCESS;
}

static conv_fft_status clear(cf_device *device, void *memory, size_t bytes, struct CUstream_st *stream) {
    return bytes ? cf_clear_launch(cf_gpu_layers_of(device)->gpu, memory, bytes, stream) : CONV_FFT_SUCCESS;
}

/* Whether there are transforms with 16-bit spectra: one kernel, if eight planes fit a block and accesses to spectra
 * are whole sectors; or two kernels, one of which transforms the slowest axis. */
static bool has_short_transforms(const cf_device *device, const int64_t basis[3]) {
    const int64_t capacity = ((const cf_gpu_layers *)device)->gpu->properties.shared_per_block;
    const int64_t inner[3] = {1, basis[0] > 1 ? basis[1] : 1, basis[2]};
    const int64_t *const blocks[2] = {basis, inner};
    for (int i = 0; i < 2; ++i) {
        const int64_t *n = blocks[i];
        const int64_t rows =
            cf_tensor_fft_takes_line(n, false) ? 1 : n[1] + 1; /* even lines are half as many complex numbers */
        const int64_t gaps = n[2] > 64 ? 22 : 6;               /* extra places of a line, also between two steps */
        if (8 * 4 * n[0] * rows * (n[2] + gaps) <= capacity)
            return true;
    }
    return false;
}

/* The same division as in kernel_split.c: long lines get a kernel of their own. */
static bool has_transforms(const cf_device *device, const int64_t basis[3], conv_fft_dtype dtype) {
    const bool line = basis[0] * basis[1] == 1;
    if (cf_dtype_bytes(dtype) == 2 && !has_short_transforms(device, basis))
        return false;
    const int64_t longest = !line ? 256 : dtype == CONV_FFT_FP64 ? 8192 : 16384;
    return basis[0] <= longest && basis[1] <= longest && basis[2] <= longest;
}

static conv_fft_status check_arguments(const cf_device *device, const cf_memory_argument *arguments, int count,
                                       struct CUstream_st *stream) {
    return cf_gpu_check_arguments(((const cf_gpu_layers *)device)->gpu, arguments, count, stream);
}

static void record_begin(cf_device *device) {
    (void)device;
    cf_recording_begin();
}

static cf_recording *record_end(cf_device *device) {
    (void)device;
    return cf_recording_end();
}

static conv_fft_status record_run(const cf_device *device, const cf_recording *recording,
                                  const cf_memory_argument checks[CF_ARGUMENT_COUNT],
                                  const void *const arguments[CF_ARGUMENT_COUNT], struct CUstream_st *stream) {
    const cf_gpu *const gpu = ((const cf_gpu_layers *)device)->gpu;
    CF_FORWARD(cf_gpu_enter(gpu));
    conv_fft_status status =
        checks ? cf_gpu_check_in_context(gpu, checks, CF_ARGUMENT_COUNT, stream) : CONV_FFT_SUCCESS;
    if (status == CONV_FFT_SUCCESS)
        status = cf_recording_launch(recording, arguments, stream);
    return cf_gpu_left(gpu, status);
}

static const cf_device_ops operations = {
    .prepare = prepare,
    .transforms = has_transforms,
    .transform_create = transform_create,
    .build_begin = build_begin,
    .build_end = cf_build_list_end,
    .transforms_list = transforms_list,
    .operations_list = operations_list,
    .transform_destroy = transform_destroy,
    .pair_create = pair_create,
    .pair_destroy = pair_destroy,
    .transform_scratch = transform_scratch,
    .products_list = products_list,
    .product_destroy = cf_gpu_cgemm_destroy,
    .forward = forward,
    .forward_pair = forward_pair,
    .inverse = inverse,
    .product = cf_gpu_cgemm,
    .product_scratch = cf_gpu_cgemm_scratch,
    .fold = cf_gpu_fold,
    .bias_gradient = cf_gpu_bias_gradient,
    .bias_scratch = cf_gpu_bias_scratch,
    .clear = clear,
    .zero = cf_gpu_zero,
    .check_arguments = check_arguments,
    .record_begin = record_begin,
    .record_end = record_end,
    .record_run = record_run,
    .record_destroy = cf_recording_destroy,
    .allocate = cf_gpu_layers_allocate,
    .write = cf_gpu_layers_write,
    .release = cf_gpu_layers_release,
    .timer_create = cf_gpu_timer_create,
    .timer_destroy = cf_gpu_timer_destroy,
    .timer_mark = cf_gpu_timer_mark,
    .timer_seconds = cf_gpu_timer_seconds,
    .may_wait = cf_gpu_layers_may_wait,
};

cf_gpu *cf_gpu_of_layers(const cf_device *device) {
    return device->ops == &operations ? ((const cf_gpu_layers *)device)->gpu : NULL;
}

/* Rates that only rank strategies, as shares of what the GPU's properties promise: a transform's arithmetic,
 * large complex products in FP32, and memory. */
static void set_properties(cf_device *device, const cf_gpu_properties *properties) {
    const double lanes = 128.0 * (double)properties->multiprocessors * (double)properties->clock_khz * 1e3;
    const cf_calibration *c = device->calibration = cf_calibration_of(properties->name);
    device->flops = device->fused_flops = c->transform_rate * lanes;
    device->product_flops = c->product_rate * lanes;
    device->tensor_flops = c->tensor_rate * lanes;
    device->is_gpu = true;
    device->bandwidth =
        c->memory_rate * 2e3 * (double)properties->memory_clock_khz * (double)properties->memory_bus_bits / 8;
    device->stage_seconds = c->stage_seconds;
    device->row_unit = 4;        /* rows that move four numbers at a time */
    device->line_points = 64;    /* longer lines go through shared memory once more */
    device->plane_points = 4096; /* of larger planes, eight do not fit a multiprocessor */
    device->ordered_seconds = c->ordered_seconds;
    device->chunk_bytes = device->group_bytes = c->chunk_bytes;
    device->threads = (int)(properties->multiprocessors * 64);
}

conv_fft_status cf_gpu_layers_create(cf_gpu *gpu, cf_device **device) {
    cf_gpu_layers *layers = calloc(1, sizeof *layers);
    if (!layers)
        return cf_fail_memory(sizeof *layers, "a device of layers");
    layers->base.ops = &operations;
    layers->gpu = gpu;
    set_properties(&layers->base, &gpu->properties);
    pthread_mutex_init(&layers->mutex, NULL);
    *device = &layers->base;
    return CONV_FFT_SUCCESS;
}

void cf_gpu_layers_destroy(cf_device *device) {
    if (!device)
        return;
    cf_gpu_layers *layers = cf_gpu_layers_of(device);
    for (int i = 0; i < CF_KERNEL_COUNT; ++i)
        cf_kernel_destroy(layers->kernel[i]);
    pthread_mutex_destroy(&layers->mutex);
    free(layers);
}
