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

/* Along axis 2: sum[element + j * element_step] += row[position + j * position_step], j < count. */
typedef struct fold_run {
    int64_t element, position, count, element_step, position_step;
} fold_run;

/* Elements [low, high), clipped to the chunk; element i is at position base + sign * i. */
static fold_run run_of(int64_t low, int64_t high, int64_t base, int64_t sign, int64_t first, int64_t count) {
    low = cf_max(low, first);
    high = cf_min(high, first + count);
    return (fold_run){low - first, base + sign * low, cf_max(0, high - low), 1, sign};
}

/* The positions [low, high), all filled from one element. There are none if the element is outside the chunk. */
static fold_run repeated(int64_t element, int64_t low, int64_t high, int64_t first, int64_t count) {
    const bool inside = element >= first && element < first + count;
    return (fold_run){element - first, low, inside ? high - low : 0, 0, 1};
}

/* Three runs: the padding before, the elements themselves, the padding after. The padding is at most one period or
 * mirror image. */
static void set_runs(const cf_fold_desc *desc, int64_t first, int64_t count, fold_run run[3]) {
    const int64_t size = desc->size[2], pad = desc->pad[2], padded = desc->padded[2];
    const int64_t after = padded - pad - size;
    run[0] = run[2] = (fold_run){0};
    run[1] = run_of(0, size, pad, 1, first, count);
    switch (desc->mode) {
    case CONV_FFT_PAD_ZEROS:
        break;
    case CONV_FFT_PAD_CIRCULAR:
        run[0] = run_of(size - pad, size, pad - size, 1, first, count);
        run[2] = run_of(0, after, pad + size, 1, first, count);
        break;
    case CONV_FFT_PAD_REFLECT:
        run[0] = run_of(1, pad + 1, pad, -1, first, count);
        run[2] = run_of(size - 1 - after, size - 1, pad + 2 * (size - 1), -1, first, count);
        break;
    case CONV_FFT_PAD_REPLICATE:
        run[0] = repeated(0, 0, pad, first, count);
        run[2] = repeated(size - 1, pad + size, padded, first, count);
        break;
    }
}

/* The smallest position > last of an outer axis that was filled from the element, or the axis's extent. */
static int64_t next_position(const cf_fold_desc *desc, int axis, int64_t element, int64_t last) {
    const int64_t size = desc->size[axis], pad = desc->pad[axis], padded = desc->padded[axis];
    const int64_t own = element + pad, mirrored = pad + 2 * (size - 1) - element;
    int64_t next = padded;
    switch (desc->mode) {
    case CONV_FFT_PAD_ZEROS:
        next = last < own ? own : padded;
        break;
    case CONV_FFT_PAD_CIRCULAR:
        next = last < 0 ? own % size : last + size;
        break;
    case CONV_FFT_PAD_REFLECT:
        next = last < pad - element ? pad - element : last < own ? own : last < mirrored ? mirrored : padded;
        break;
    case CONV_FFT_PAD_REPLICATE:
        next = cf_max(last + 1, element == 0 ? 0 : own);
        if (next > own && element < size - 1)
            next = padded;
        break;
    }
    return cf_min(next, padded);
}

#define CF_ADD_RUN(name, type)                                                                             \
    static void name(const fold_run *run, const type *row, double *sum) {                                  \
        const int64_t e = run->element, q = run->position;                                                 \
        if (run->element_step == 1 && run->position_step == 1) {                                           \
            _Pragma("omp simd") for (int64_t j = 0; j < run->count; ++j) sum[e + j] += (double)row[q + j]; \
        } else {                                                                                           \
            for (int64_t j = 0; j < run->count; ++j)                                                       \
                sum[e + j * run->element_step] += (double)row[q + j * run->position_step];                 \
        }                                                                                                  \
    }
CF_ADD_RUN(add_run_float, float)
CF_ADD_RUN(add_run_double, double)

/* sum[j] = the padded positions of one row of the result, in the chunk of the runs. */
static void sum_row(const cf_fold_desc *desc, const fold_run run[3], const char *scratch, int64_t i0, int64_t i1,
                    double *sum) {
    for (int64_t q0 = next_position(desc, 0, i0, -1); q0 < desc->padded[0]; q0 = next_position(desc, 0, i0, q0))
        for (int64_t q1 = next_position(desc, 1, i1, -1); q1 < desc->padded[1]; q1 = next_position(desc, 1, i1, q1)) {
            const int64_t row = (q0 * desc->padded[1] + q1) * desc->padded[2];
            for (int r = 0; r < 3; ++r)
                if (desc->scratch_dtype == CONV_FFT_FP64)
                    add_run_double(&run[r], (const double *)(const void *)scratch + row, sum);
                else
                    add_run_float(&run[r], (const float *)(const void *)scratch + row, sum);
        }
}

/* One sample and channel. */
static void fold_plane(const cf_cpu_device *device, const cf_fold_desc *desc, const char *scratch, char *tensor,
                       bool accumulate) {
    const cf_real_kernels *kernels = cf_real(device->kernels, desc->scratch_dtype);
    const int64_t *stride = desc->tensor.axis_stride, bytes = (int64_t)cf_dtype_bytes(desc->tensor.dtype), start = 0;
    const bool wide = desc->scratch_dtype == CONV_FFT_FP64;
    cf_piece piece = {.dtype = desc->tensor.dtype, .offset = &start, .step = stride[2], .lanes = 1};
    for (int64_t first = 0; first < desc->size[2]; first += CF_FOLD_CHUNK) {
        fold_run run[3];
        piece.elements = cf_min(CF_FOLD_CHUNK, desc->size[2] - first);
        set_runs(desc, first, piece.elements, run);
        for (int64_t i0 = 0; i0 < desc->size[0]; ++i0)
            for (int64_t i1 = 0; i1 < desc->size[1]; ++i1) {
                double sum[CF_FOLD_CHUNK];
                float narrow[CF_FOLD_CHUNK];
                memset(sum, 0, (size_t)piece.elements * sizeof *sum);
                sum_row(desc, run, scratch, i0, i1, sum);
                for (int64_t j = 0; !wide && j < piece.elements; ++j)
                    narrow[j] = (float)sum[j];
                piece.data = tensor + (i0 * stride[0] + i1 * stride[1] + first * stride[2]) * bytes;
                kernels->store(wide ? (const void *)sum : (const void *)narrow, 1, &piece, accumulate);
            }
    }
}

typedef struct fold_loop {
    const cf_cpu_device *device;
    const cf_fold_desc *desc;
    const char *scratch;
    char *tensor;
    int64_t groups, plane; /* bytes of a plane */
    bool accumulate;
} fold_loop;

static void fold_one(const void *user, int64_t i, int thread) {
    const fold_loop *const f = user;
    const cf_tensor *const t = &f->desc->tensor;
    const int64_t channel = i % f->desc->channels, group = i / f->desc->channels % f->groups,
                  sample = i / f->desc->channels / f->groups;
    const int64_t offset = sample * t->sample_stride + group * t->group_stride + channel * t->channel_stride;
    (void)thread;
    fold_plane(f->device, f->desc, f->scratch + i * f->plane, f->tensor + offset * (int64_t)cf_dtype_bytes(t->dtype),
               f->accumulate);
}

conv_fft_status cf_cpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream) {
    (void)stream;
    const int64_t planes = samples * groups * desc->channels;
    const int64_t plane =
        desc->padded[0] * desc->padded[1] * desc->padded[2] * (int64_t)cf_dtype_bytes(desc->scratch_dtype);
    const fold_loop call = {cf_cpu(device), desc, scratch, tensor, groups, plane, accumulate};
    cf_parallel_for(cf_cpu_threads(device, planes, (double)planes * (double)plane), planes, fold_one, &call);
    return CONV_FFT_SUCCESS;
}
