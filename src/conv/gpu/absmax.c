/* SPDX-License-Identifier: Apache-2.0 */
/* The largest magnitudes of a tensor. The scales of FP16 spectra follow from them. */
#include "conv/gpu/device.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

enum {
    MAX_PARTS = 32,      /* of a sample; later a warp reads one part per lane */
    PART_ELEMENTS = 8192 /* about so many elements of a part */
};

static int64_t scales_of(const cf_transform_desc *d, int64_t rows) {
    return cf_ceil_div(rows, cf_max(1, d->spectrum.scale_rows)) + 1;
}

static int parts_of(int64_t elements) {
    return (int)cf_max(1, cf_min(MAX_PARTS, cf_ceil_div(elements, PART_ELEMENTS)));
}

size_t cf_gpu_absmax_scratch(const cf_transform_desc *d) {
    const cf_spectrum *s = &d->spectrum;
    return (size_t)(s->groups * scales_of(d, s->rows) * MAX_PARTS) * sizeof(float) + 63;
}

/* Whether elements of these extents are neighbours, in any order of their axes. */
static bool is_dense(const long long extent[5], const long long stride[5]) {
    int64_t elements = 1, next = 1;
    for (int a = 0; a < 5; ++a)
        elements *= extent[a];
    for (int round = 0; round < 5; ++round) {
        int axis = 0;
        while (axis < 5 && (extent[axis] == 1 || stride[axis] != next))
            ++axis;
        next *= axis < 5 ? extent[axis] : 1;
    }
    return next == elements;
}

static const cf_parameter absmax_parameters[] = {
    {sizeof(cf_absmax_call), CF_ADDRESS(cf_absmax_call, data) | CF_ADDRESS(cf_absmax_call, absmax)}, {0, 0}};

int cf_gpu_absmax_kernel(const cf_transform_desc *d) {
    return d->tensor.dtype == CONV_FFT_FP32 ? CF_KERNEL_ABSMAX_FP32 : CF_KERNEL_ABSMAX_FP16;
}

conv_fft_status cf_gpu_absmax(cf_gpu_layers *layers, const cf_transform_desc *d, const void *signal,
                              const cf_block *block, void *scratch, cf_row_scales *scales, struct CUstream_st *stream) {
    const cf_spectrum *s = &d->spectrum;
    const cf_tensor *t = &d->tensor;
    const int64_t first = block->row / s->scale_rows,
                  samples = (block->row + block->rows - 1) / s->scale_rows - first + 1,
                  rows = s->scale_rows / s->rows_per_sample; /* of the tensor */
    cf_absmax_call l = {
        .data = (const char *)signal + first * rows * t->sample_stride * (int64_t)cf_dtype_bytes(t->dtype),
        .absmax = (float *)cf_align((size_t)scratch),
        .samples = samples,
        .sample_stride = rows * t->sample_stride,
        .group_stride = t->group_stride,
        .extent = {rows, s->channels, d->window.axis[0].size, d->window.axis[1].size, d->window.axis[2].size},
        .stride = {t->sample_stride, t->channel_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]},
        .elements = 1};
    for (int a = 0; a < 5; ++a)
        l.elements *= l.extent[a];
    l.parts = parts_of(l.elements);
    l.dense = is_dense(l.extent, l.stride);
    *scales = (cf_row_scales){.scales = block->scales,
                              .absmax = l.absmax,
                              .rows = s->scale_rows,
                              .group_stride = block->scale_stride,
                              .absmax_group_stride = samples * l.parts,
                              .parts = l.parts};
    const int64_t blocks = block->groups * samples * l.parts;
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch has %lld samples; one call takes at most %d",
                       (long long)(block->groups * samples), INT32_MAX / l.parts);
    /* Few blocks need all the threads of a multiprocessor, or they have too few loads under way. */
    const unsigned threads =
        blocks <= 2 * layers->gpu->properties.multiprocessors ? CF_GPU_ABSMAX_MAX_THREADS : CF_GPU_OP_THREADS;
    const cf_launch shape = {
        {(unsigned)blocks, 1, 1}, {threads, 1, 1}, threads / 32 * sizeof(unsigned), absmax_parameters};
    void *parameters[] = {&l};
    return cf_kernel_launch(layers->kernel[cf_gpu_absmax_kernel(d)], &shape, parameters, stream);
}
