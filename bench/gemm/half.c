/* SPDX-License-Identifier: Apache-2.0 */
#include "gemm/half.h"

#include "cuda/libs/cublas.h"

#include <math.h>
#include <stdlib.h>

#define SAMPLES 2000

/* cuBLAS's enumerators. */
enum {
    CUDA_R_32F = 0,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_GEMM_DEFAULT = -1
};

const char gemm_half_strategy[] = "cublasGemmStridedBatchedEx, real, of the same shape";

/* Row-major: C (m x n) = A (m x k) B (k x n). For gradients of weights, A is stored as k x m, and C is FP32. */
typedef struct shape {
    int64_t m, n, k;
    const void *a;
    void *c;
    bool turned, wide;
} shape;

static shape shape_of(const gemm_job *job) {
    const gemm_case *const c = job->c;
    void *const *const o = job->operand;
    switch (job->kind) {
    case CF_CGEMM_FORWARD:
        return (shape){c->rows, 2 * c->out, 2 * c->in, o[0], o[2], false, false};
    case CF_CGEMM_BACKWARD_DATA:
        return (shape){c->rows, 2 * c->in, 2 * c->out, o[2], o[0], false, false};
    case CF_CGEMM_BACKWARD_WEIGHTS:
        break;
    }
    return (shape){c->out, 2 * c->in, 2 * c->rows, o[2], o[1], true, true};
}

/* cuBLAS is column-major. A row-major matrix is the transpose of a column-major one. */
conv_fft_status gemm_half_cublas(const gemm_job *job) {
    const shape s = shape_of(job);
    const cf_cublas_type half = job->precision == GEMM_FP16 ? CUDA_R_16F : CUDA_R_16BF;
    const float alpha = gemm_scale(job) * gemm_scale(job), zero = 0;
    cf_cublas_guard guard;
    CF_FORWARD(cf_cublas_guard_acquire(job->gpu->cublas, job->stream, CF_CUBLAS_DEFAULT_MATH, NULL, 0, &guard));
    const conv_fft_status status = CF_CUBLAS(
        guard.call, cublasGemmStridedBatchedEx, guard.handle, CF_CUBLAS_OP_N,
        s.turned ? CF_CUBLAS_OP_T : CF_CUBLAS_OP_N, (int)s.n, (int)s.m, (int)s.k, &alpha, job->spread, half, (int)s.n,
        s.n * s.k, s.a, half, (int)(s.turned ? s.m : s.k), s.m * s.k, &zero, s.c, s.wide ? CUDA_R_32F : half, (int)s.n,
        s.m * s.n, (int)job->c->bins, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    cf_cublas_guard_release(job->gpu->cublas, &guard);
    return status;
}

typedef struct matrices {
    uint16_t *a, *b;
    void *c;
} matrices;

static conv_fft_status download(const gemm_job *job, const shape *s, int64_t bin, const matrices *to) {
    const size_t a = (size_t)(s->m * s->k) * 2, b = (size_t)(s->k * s->n) * 2,
                 c = (size_t)(s->m * s->n) * (s->wide ? 4 : 2), index = (size_t)bin;
    CF_FORWARD(cf_gpu_download(job->gpu, to->a, (const char *)s->a + index * a, a, job->stream));
    CF_FORWARD(cf_gpu_download(job->gpu, to->b, (const char *)job->spread + index * b, b, job->stream));
    CF_FORWARD(cf_gpu_download(job->gpu, to->c, (const char *)s->c + index * c, c, job->stream));
    return cf_gpu_synchronize(job->gpu, job->stream);
}

static void add_errors(const gemm_job *job, const shape *s, const matrices *of, double sums[2]) {
    for (int64_t i = 0; i < s->m * s->n; i += 1 + s->m * s->n / SAMPLES) {
        const int64_t row = i / s->n, column = i % s->n;
        double exact = 0;
        for (int64_t k = 0; k < s->k; k++)
            exact += (double)gemm_number(job, of->a[s->turned ? k * s->m + row : row * s->k + k]) *
                     (double)gemm_number(job, of->b[k * s->n + column]);
        exact *= (double)gemm_scale(job) * (double)gemm_scale(job);
        const float got = s->wide ? ((const float *)of->c)[i] : gemm_number(job, ((const uint16_t *)of->c)[i]);
        sums[0] += ((double)got - exact) * ((double)got - exact);
        sums[1] += exact * exact;
    }
}

conv_fft_status gemm_half_error(const gemm_job *job, double *error) {
    const shape s = shape_of(job);
    const matrices of = {malloc((size_t)(s.m * s.k) * 2), malloc((size_t)(s.k * s.n) * 2),
                         malloc((size_t)(s.m * s.n) * 4)};
    double sums[2] = {0, 0};
    conv_fft_status status =
        of.a && of.b && of.c ? CONV_FFT_SUCCESS : cf_fail_memory((size_t)(s.k * s.n) * 2, "a matrix");
    for (int64_t i = 0; i < 2 && status == CONV_FFT_SUCCESS; i++) {
        status = download(job, &s, i * (job->c->bins - 1), &of);
        if (status == CONV_FFT_SUCCESS)
            add_errors(job, &s, &of, sums);
    }
    free(of.a);
    free(of.b);
    free(of.c);
    *error = sqrt(sums[0] / sums[1]);
    return status;
}
