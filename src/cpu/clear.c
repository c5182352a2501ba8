/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to write zeros. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <string.h>

typedef struct cleared_memory {
    char *memory;
    int64_t bytes, page;
} cleared_memory;

static void clear_page(const void *user, int64_t i, int thread) {
    const cleared_memory *const m = user;
    (void)thread;
    memset(m->memory + i * m->page, 0, (size_t)cf_min(m->page, m->bytes - i * m->page));
}

conv_fft_status cf_cpu_clear(cf_device *device, void *memory, size_t bytes, struct CUstream_st *stream) {
    (void)stream;
    const cleared_memory m = {memory, (int64_t)bytes, 1 << 20};
    const int64_t pages = cf_ceil_div(m.bytes, m.page);
    cf_parallel_for(cf_cpu_threads(device, pages, (double)bytes), pages, clear_page, &m);
    return CONV_FFT_SUCCESS;
}

typedef struct zeroed_tensor {
    const cf_tensor *tensor;
    const int64_t *extents;
    char *data;
} zeroed_tensor;

static void zero_row(const void *user, int64_t row, int thread) {
    const zeroed_tensor *const z = user;
    const cf_tensor *const tensor = z->tensor;
    const int64_t *const extents = z->extents;
    const int64_t bytes = (int64_t)cf_dtype_bytes(tensor->dtype), length = extents[4];
    (void)thread;
    const int64_t i1 = row % extents[3], i0 = row / extents[3] % extents[2];
    const int64_t channel = row / extents[3] / extents[2] % extents[1],
                  sample = row / extents[3] / extents[2] / extents[1];
    char *const at = z->data + (sample * tensor->sample_stride + channel * tensor->channel_stride +
                                i0 * tensor->axis_stride[0] + i1 * tensor->axis_stride[1]) *
                                   bytes;
    if (tensor->axis_stride[2] == 1)
        memset(at, 0, (size_t)(length * bytes));
    else
        for (int64_t i2 = 0; i2 < length; ++i2)
            memset(at + i2 * tensor->axis_stride[2] * bytes, 0, (size_t)bytes);
}

/* All bits zero is the number zero in every element type. */
conv_fft_status cf_cpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream) {
    (void)stream;
    const zeroed_tensor z = {tensor, extents, data};
    const int64_t rows = extents[0] * extents[1] * extents[2] * extents[3];
    const double bytes = (double)rows * (double)extents[4] * (double)cf_dtype_bytes(tensor->dtype);
    cf_parallel_for(cf_cpu_threads(device, rows, bytes), rows, zero_row, &z);
    return CONV_FFT_SUCCESS;
}
