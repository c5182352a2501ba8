/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to write zeros. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <string.h>

conv_fft_status cf_cpu_clear(cf_device *device, void *memory, size_t bytes, struct CUstream_st *stream) {
    (void)stream;
    const int64_t page = 1 << 20, pages = (int64_t)cf_ceil_div((int64_t)bytes, page);
    CF_PARALLEL_FOR_STATIC(cf_cpu_threads(device, pages, (double)bytes))
    for (int64_t i = 0; i < pages; ++i)
        memset((char *)memory + i * page, 0, (size_t)cf_min(page, (int64_t)bytes - i * page));
    return CONV_FFT_SUCCESS;
}

/* All bits zero is the number zero in every element type. */
conv_fft_status cf_cpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream) {
    (void)stream;
    const int64_t bytes = (int64_t)cf_dtype_bytes(tensor->dtype);
    const int64_t rows = extents[0] * extents[1] * extents[2] * extents[3], length = extents[4];
    CF_PARALLEL_FOR_STATIC(cf_cpu_threads(device, rows, (double)rows * (double)length * (double)bytes))
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t i1 = row % extents[3], i0 = row / extents[3] % extents[2];
        const int64_t channel = row / extents[3] / extents[2] % extents[1],
                      sample = row / extents[3] / extents[2] / extents[1];
        char *const at = (char *)data + (sample * tensor->sample_stride + channel * tensor->channel_stride +
                                         i0 * tensor->axis_stride[0] + i1 * tensor->axis_stride[1]) *
                                            bytes;
        if (tensor->axis_stride[2] == 1)
            memset(at, 0, (size_t)(length * bytes));
        else
            for (int64_t i2 = 0; i2 < length; ++i2)
                memset(at + i2 * tensor->axis_stride[2] * bytes, 0, (size_t)bytes);
    }
    return CONV_FFT_SUCCESS;
}
