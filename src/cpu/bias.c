/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the bias. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <math.h>

enum {
    CF_BIAS_CHUNK = 64
}; /* elements of axis 2 that are loaded at once */

/* sum += value. The rounding errors are collected in *lost: FP64 elements are as precise as the sum itself. */
static inline void add_exactly(double *sum, double *lost, double value) {
    const double whole = *sum + value, part = whole - *sum;
    *lost += (*sum - (whole - part)) + (value - part);
    *sum = whole;
}

/* sum[lane] += the elements of one row, in double. The row is summed on its own first, so that single elements are not
 * added to a long sum. */
static void add_row(const cf_real_kernels *kernels, conv_fft_dtype dtype, cf_piece piece, int64_t length, double *sum,
                    double *lost) {
    double line[CF_BIAS_CHUNK * CF_MAX_LANES];
    const float *const narrow = (const void *)line;
    double row[CF_MAX_LANES] = {0};
    const int lanes = piece.lanes;
    const int64_t bytes = piece.step * (int64_t)cf_dtype_bytes(piece.dtype);
    for (int64_t first = 0; first < length; first += CF_BIAS_CHUNK) {
        piece.elements = cf_min(CF_BIAS_CHUNK, length - first);
        kernels->load(line, lanes, &piece);
        piece.data = (char *)piece.data + CF_BIAS_CHUNK * bytes;
        for (int64_t e = 0; e < piece.elements; ++e)
            for (int l = 0; l < lanes; ++l) {
                if (dtype == CONV_FFT_FP64)
                    add_exactly(&sum[l], &lost[l], line[e * lanes + l]);
                else
                    row[l] += (double)narrow[e * lanes + l];
            }
    }
    for (int l = 0; l < lanes; ++l)
        sum[l] += row[l];
}

typedef struct bias_loop {
    const cf_device *device;
    const cf_bias_desc *desc;
    const void *gy;
    void *gbias;
    bool accumulate;
} bias_loop;

/* CF_MAX_LANES channels. */
static void sum_block(const void *user, int64_t block, int thread) {
    const bias_loop *const g = user;
    const cf_bias_desc *const desc = g->desc;
    const cf_tensor *const tensor = &desc->tensor;
    const conv_fft_dtype dtype = cf_compute_dtype(tensor->dtype);
    const cf_real_kernels *kernels = cf_real(cf_cpu(g->device)->kernels, dtype);
    (void)thread;
    const int64_t channel = block * CF_MAX_LANES;
    double sum[CF_MAX_LANES] = {0}, lost[CF_MAX_LANES] = {0};
    float narrow[CF_MAX_LANES];
    int64_t offset[CF_MAX_LANES], place[CF_MAX_LANES];
    for (int l = 0; l < CF_MAX_LANES; ++l) {
        offset[l] = (channel + l) * tensor->channel_stride;
        place[l] = channel + l;
    }
    cf_piece piece = {.dtype = tensor->dtype,
                      .offset = offset,
                      .step = tensor->axis_stride[2],
                      .lanes = (int)cf_min(CF_MAX_LANES, desc->channels - channel),
                      .adjacent = tensor->channel_stride == 1};
    for (int64_t sample = 0; sample < desc->samples; ++sample)
        for (int64_t i0 = 0; i0 < desc->size[0]; ++i0)
            for (int64_t i1 = 0; i1 < desc->size[1]; ++i1) {
                const int64_t at =
                    sample * tensor->sample_stride + i0 * tensor->axis_stride[0] + i1 * tensor->axis_stride[1];
                piece.data = (char *)g->gy + at * (int64_t)cf_dtype_bytes(tensor->dtype);
                add_row(kernels, dtype, piece, desc->size[2], sum, lost);
            }
    for (int l = 0; l < CF_MAX_LANES; ++l) {
        if (isfinite(sum[l]))
            sum[l] += lost[l];
        narrow[l] = (float)sum[l];
    }
    piece = (cf_piece){.dtype = desc->result_dtype,
                       .data = g->gbias,
                       .offset = place,
                       .elements = 1,
                       .lanes = piece.lanes,
                       .adjacent = true};
    const bool wide = desc->result_dtype == CONV_FFT_FP64;
    cf_real(cf_cpu(g->device)->kernels, cf_compute_dtype(desc->result_dtype))
        ->store(wide ? (const void *)sum : (const void *)narrow, 0, &piece, g->accumulate);
}

conv_fft_status cf_cpu_bias_gradient(cf_device *device, const cf_bias_desc *desc, const void *gy, void *gbias,
                                     bool accumulate, void *scratch, struct CUstream_st *stream) {
    (void)scratch, (void)stream;
    const bias_loop call = {device, desc, gy, gbias, accumulate};
    const int64_t blocks = cf_ceil_div(desc->channels, CF_MAX_LANES);
    const double work = 8.0 * (double)desc->samples * (double)desc->channels * (double)desc->size[0] *
                        (double)desc->size[1] * (double)desc->size[2];
    cf_parallel_for(cf_cpu_threads(device, blocks, work), blocks, sum_block, &call);
    return CONV_FFT_SUCCESS;
}
