/* SPDX-License-Identifier: Apache-2.0 */
/* One matrix product per bin and group: cuBLAS for all bins of a group at once, or our own kernels. */
#include "conv/gpu/device.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"
#include "cuda/libs/cublas.h"

#include <limits.h>

/* A product in cuBLAS's terms, where matrices are column-major: c (m x n) (+)= op(a) op(b), summed over k. A row-major
 * matrix is its own transpose here. */
typedef struct gemm {
    cf_cublas_operation a_operation, b_operation;
    int64_t m, n, k;
    const cf_block *a, *b, *c;
    int64_t lda, ldb, ldc;
} gemm;

static gemm gemm_of(const cf_cgemm_desc *d, const cf_block *x, const cf_block *w, const cf_block *y) {
    const int64_t in = d->in_columns, out = d->out_columns, rows = x->rows;
    switch (d->kind) {
    case CF_CGEMM_FORWARD: /* Y' = conj(W) X' */
        return (gemm){CF_CUBLAS_OP_C, CF_CUBLAS_OP_N, out, rows, in, w, x, y, in, in, out};
    case CF_CGEMM_BACKWARD_DATA: /* X' = W' Y' */
        return (gemm){CF_CUBLAS_OP_N, CF_CUBLAS_OP_N, in, rows, out, w, y, x, in, out, in};
    case CF_CGEMM_BACKWARD_WEIGHTS: /* W' = X' conj(Y) */
        break;
    }
    return (gemm){CF_CUBLAS_OP_N, CF_CUBLAS_OP_C, in, out, rows, x, y, w, in, out, in};
}

static char *group_of(const cf_block *block, int64_t index, size_t complex_bytes) {
    return (char *)block->data + index * (int64_t)complex_bytes;
}

static conv_fft_status run_gemm(const cf_cublas_guard *guard, conv_fft_dtype dtype, const gemm *g, int64_t first,
                                int64_t bins, int64_t group, bool accumulate) {
    const float one_f[2] = {1, 0}, beta_f[2] = {accumulate ? 1.0f : 0.0f, 0};
    const double one_d[2] = {1, 0}, beta_d[2] = {accumulate ? 1.0 : 0.0, 0};
    const size_t bytes = 2 * cf_dtype_bytes(dtype);
    const void *a = group_of(g->a, group * g->a->group_stride + first * g->a->bin_stride, bytes);
    const void *b = group_of(g->b, group * g->b->group_stride + first * g->b->bin_stride, bytes);
    void *c = group_of(g->c, group * g->c->group_stride + first * g->c->bin_stride, bytes);
    if (dtype == CONV_FFT_FP64)
        return CF_CUBLAS(guard->call, cublasZgemmStridedBatched, guard->handle, g->a_operation, g->b_operation,
                         (int)g->m, (int)g->n, (int)g->k, (const void *)one_d, a, (int)g->lda, g->a->bin_stride, b,
                         (int)g->ldb, g->b->bin_stride, (const void *)beta_d, c, (int)g->ldc, g->c->bin_stride,
                         (int)bins);
    return CF_CUBLAS(guard->call, cublasCgemmStridedBatched, guard->handle, g->a_operation, g->b_operation, (int)g->m,
                     (int)g->n, (int)g->k, (const void *)one_f, a, (int)g->lda, g->a->bin_stride, b, (int)g->ldb,
                     g->b->bin_stride, (const void *)beta_f, c, (int)g->ldc, g->c->bin_stride, (int)bins);
}

/* Groups that follow one another without gaps are further bins. */
static bool gapless(const cf_block *block, int64_t bins) {
    return block->groups == 1 || block->group_stride == bins * block->bin_stride;
}

/* Whether the library's own kernels compute the product, or no library takes its sizes. */
static bool is_small(const cf_cgemm_desc *d, int64_t rows) {
    return d->variant == CF_CGEMM_LOOP || cf_max(rows, cf_max(d->in_columns, d->out_columns)) > INT_MAX;
}

conv_fft_status cf_gpu_cgemm_list(cf_device *device, cf_cgemm_desc *desc, cf_build_list *list) {
    if (desc->variant == CF_CGEMM_TENSOR)
        return cf_gpu_tensor_core_cgemm_list(device, desc, list);
    return is_small(desc, desc->rows) ? cf_gpu_small_cgemm_list(cf_gpu_layers_of(device), desc, list)
                                      : CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_cgemm(cf_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                             bool accumulate, void *scratch, struct CUstream_st *stream) {
    cf_gpu_layers *layers = cf_gpu_layers_of(device);
    const bool one = gapless(&x, desc->bins) && gapless(&w, desc->bins) && gapless(&y, desc->bins);
    const int64_t groups = one ? 1 : x.groups, bins = one ? x.groups * desc->bins : desc->bins;
    const gemm g = gemm_of(desc, &x, &w, &y);
    const size_t bytes = 2 * cf_dtype_bytes(desc->dtype);
    if (bins == 0 || x.rows == 0)
        return CONV_FFT_SUCCESS;
    if (desc->variant == CF_CGEMM_TENSOR)
        return cf_gpu_tensor_core_cgemm(desc, &x, &w, &y, accumulate, scratch, stream);
    if (is_small(desc, x.rows)) {
        for (int64_t group = 0; group < groups; ++group) {
            cf_block bx = x, bw = w, by = y;
            bx.data = group_of(&x, group * x.group_stride, bytes);
            bw.data = group_of(&w, group * w.group_stride, bytes);
            by.data = group_of(&y, group * y.group_stride, bytes);
            CF_FORWARD(cf_gpu_small_cgemm(layers, desc, &bx, &bw, &by, bins, accumulate, stream));
        }
        return CONV_FFT_SUCCESS;
    }
    if (cf_recording_refused())
        return CONV_FFT_SUCCESS;
    cf_cublas_guard guard;
    const cf_cublas_math math = desc->math == CONV_FFT_MATH_TF32 ? CF_CUBLAS_TF32_MATH : CF_CUBLAS_DEFAULT_MATH;
    CF_FORWARD(cf_cublas_guard_acquire(layers->gpu->cublas, stream, math, NULL, 0, &guard));
    conv_fft_status status = CONV_FFT_SUCCESS;
    const int64_t most = 65535; /* matrices of one call: the third axis of a grid */
    for (int64_t group = 0; group < groups && status == CONV_FFT_SUCCESS; ++group)
        for (int64_t first = 0; first < bins && status == CONV_FFT_SUCCESS; first += most)
            status = run_gemm(&guard, desc->dtype, &g, first, cf_min(most, bins - first), group, accumulate);
    cf_cublas_guard_release(layers->gpu->cublas, &guard);
    return status;
}
