/* SPDX-License-Identifier: Apache-2.0 */
/* The adjoint of padding: each element gathers the padded positions that were filled from it, in increasing order. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <string.h>

enum {
    CF_FOLD_CHUNK = 128
}; /* elements of axis 2 that are summed on the stack */

/* Tensor index of a padded position of an axis. */
static int64_t index_of(const cf_fold_desc *desc, int axis, int64_t position) {
    const cf_axis_window a = {.lower = -desc->pad[axis],
                              .upper = desc->padded[axis] - desc->pad[axis],
                              .size = desc->size[axis],
                              .mode = desc->mode};
    return cf_window_index(&a, position - desc->pad[axis]);
}

/* The first position >= from that maps to the element, or the extent if there is none. Only the element's own position and
 * the padding can. */
static int64_t next_position(const cf_fold_desc *desc, int axis, int64_t element, int64_t from) {
    const int64_t own = element + desc->pad[axis], padded = desc->padded[axis];
    const int64_t after = desc->pad[axis] + desc->size[axis];
    const bool maps = desc->mode != CONV_FFT_PAD_ZEROS;
    if (!maps && from < own)
        from = own;
    for (; from < desc->pad[axis] && from < padded; ++from)
        if (index_of(desc, axis, from) == element)
            return from;
    if (from <= own && own < padded)
        return own;
    if (!maps)
        return padded;
    for (from = cf_max(from, after); from < padded; ++from)
        if (index_of(desc, axis, from) == element)
            return from;
    return padded;
}

/* sum[j] += the positions of one padded row that map to element first + j, j < count. */
static void add_row(const cf_fold_desc *desc, const char *row, int64_t first, int64_t count, double *sum) {
    const bool wide = desc->scratch_dtype == CONV_FFT_FP64;
    const double *const row_d = (const void *)row;
    const float *const row_f = (const void *)row;
    const int64_t pad = desc->pad[2], padded = desc->padded[2];
    const int64_t inside = cf_min(count, padded - pad - first);
    for (int64_t j = 0; j < inside; ++j)
        sum[j] += wide ? row_d[first + j + pad] : (double)row_f[first + j + pad];
    if (desc->mode == CONV_FFT_PAD_ZEROS)
        return;
    for (int64_t q = 0; q < padded; ++q) {
        if (q == pad)
            q += desc->size[2];
        if (q >= padded)
            break;
        const int64_t j = index_of(desc, 2, q) - first;
        if (j >= 0 && j < count)
            sum[j] += wide ? row_d[q] : (double)row_f[q];
    }
}

/* One sample and channel. */
static void fold_plane(const cf_cpu_device *device, const cf_fold_desc *desc, const char *scratch, char *tensor,
                       bool accumulate) {
    const cf_real_kernels *kernels = cf_real(device->kernels, desc->scratch_dtype);
    const int64_t *stride = desc->tensor.axis_stride;
    const int64_t real = (int64_t)cf_dtype_bytes(desc->scratch_dtype),
                  bytes = (int64_t)cf_dtype_bytes(desc->tensor.dtype);
    const int64_t start = 0;
    cf_piece piece = {.dtype = desc->tensor.dtype, .offset = &start, .step = stride[2], .lanes = 1};
    for (int64_t i0 = 0; i0 < desc->size[0]; ++i0)
        for (int64_t i1 = 0; i1 < desc->size[1]; ++i1)
            for (int64_t first = 0; first < desc->size[2]; first += CF_FOLD_CHUNK) {
                double sum[CF_FOLD_CHUNK] = {0};
                float narrow[CF_FOLD_CHUNK];
                piece.elements = cf_min(CF_FOLD_CHUNK, desc->size[2] - first);
                piece.data = tensor + (i0 * stride[0] + i1 * stride[1] + first * stride[2]) * bytes;
                for (int64_t q0 = next_position(desc, 0, i0, 0); q0 < desc->padded[0];
                     q0 = next_position(desc, 0, i0, q0 + 1))
                    for (int64_t q1 = next_position(desc, 1, i1, 0); q1 < desc->padded[1];
                         q1 = next_position(desc, 1, i1, q1 + 1))
                        add_row(desc, scratch + (q0 * desc->padded[1] + q1) * desc->padded[2] * real, first,
                                piece.elements, sum);
                for (int j = 0; j < CF_FOLD_CHUNK; ++j)
                    narrow[j] = (float)sum[j];
                kernels->store(desc->scratch_dtype == CONV_FFT_FP64 ? (const void *)sum : (const void *)narrow, 1,
                               &piece, accumulate);
            }
}

conv_fft_status cf_cpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream) {
    (void)stream;
    const int64_t planes = samples * groups * desc->channels;
    const int64_t plane =
        desc->padded[0] * desc->padded[1] * desc->padded[2] * (int64_t)cf_dtype_bytes(desc->scratch_dtype);
    const int64_t bytes = (int64_t)cf_dtype_bytes(desc->tensor.dtype);
    CF_PARALLEL_FOR_STATIC(cf_cpu_threads(device, planes, (double)planes * (double)plane))
    for (int64_t i = 0; i < planes; ++i) {
        const int64_t channel = i % desc->channels, group = i / desc->channels % groups,
                      sample = i / desc->channels / groups;
        const int64_t offset = sample * desc->tensor.sample_stride + group * desc->tensor.group_stride +
                               channel * desc->tensor.channel_stride;
        fold_plane(cf_cpu(device), desc, (const char *)scratch + i * plane, (char *)tensor + offset * bytes,
                   accumulate);
    }
    return CONV_FFT_SUCCESS;
}
