/* SPDX-License-Identifier: Apache-2.0 */
/* One matrix product per bin and group. */
#include "core/arith.h"
#include "core/dtype.h"
#include "cpu/device.h"
#include "cpu/parallel.h"

#include <limits.h>
#include <string.h>

/* One bin's product in BLAS terms: c (m x n) (+)= op(a) op(b), row major, summed over k. */
typedef struct gemm {
    int transpose_a, transpose_b;
    int64_t m, n, k, lda, ldb, ldc;
    const char *a, *b;
    char *c;
} gemm;

static gemm gemm_of(const cf_cgemm_desc *desc, void *x, void *w, void *y, int64_t rows) {
    const int64_t in = desc->in_columns, out = desc->out_columns;
    const int plain = CF_BLAS_NO_TRANSPOSE, conjugate = CF_BLAS_CONJUGATE_TRANSPOSE;
    switch (desc->kind) {
    case CF_CGEMM_FORWARD:
        return (gemm){plain, conjugate, rows, out, in, in, in, out, x, w, y};
    case CF_CGEMM_BACKWARD_DATA:
        return (gemm){plain, plain, rows, in, out, out, in, in, y, w, x};
    case CF_CGEMM_BACKWARD_WEIGHTS:
        break;
    }
    return (gemm){conjugate, plain, out, in, rows, out, in, in, y, x, w};
}

/* Rows [from, to) of the result. */
static gemm gemm_part(gemm g, int64_t from, int64_t to, size_t complex_bytes) {
    g.a += (g.transpose_a == CF_BLAS_NO_TRANSPOSE ? from * g.lda : from) * (int64_t)complex_bytes;
    g.c += from * g.ldc * (int64_t)complex_bytes;
    g.m = to - from;
    return g;
}

static void run_gemm(const cf_blas *blas, conv_fft_dtype dtype, const gemm *g, bool accumulate) {
    const float one_f[2] = {1, 0}, beta_f[2] = {accumulate ? 1.0f : 0.0f, 0};
    const double one_d[2] = {1, 0}, beta_d[2] = {accumulate ? 1.0 : 0.0, 0};
    if (g->m == 0)
        return;
    if (dtype == CONV_FFT_FP64)
        blas->zgemm(CF_BLAS_ROW_MAJOR, g->transpose_a, g->transpose_b, (int)g->m, (int)g->n, (int)g->k, one_d, g->a,
                    (int)g->lda, g->b, (int)g->ldb, beta_d, g->c, (int)g->ldc);
    else
        blas->cgemm(CF_BLAS_ROW_MAJOR, g->transpose_a, g->transpose_b, (int)g->m, (int)g->n, (int)g->k, one_f, g->a,
                    (int)g->lda, g->b, (int)g->ldb, beta_f, g->c, (int)g->ldc);
}

/* BLAS extents are of type int. */
static bool fits_blas(const cf_cgemm_desc *desc, int64_t rows) {
    return desc->in_columns <= INT_MAX && desc->out_columns <= INT_MAX && rows <= INT_MAX && rows > 0;
}

static char *bin_of(cf_block block, int64_t group, int64_t bin, size_t complex_bytes) {
    return (char *)block.data + (group * block.group_stride + bin * block.bin_stride) * (int64_t)complex_bytes;
}

/* An OpenBLAS with threads of its own uses them for matrix products with more multiplications than this. For smaller
 * products, the threads of this library are faster. */
static const double own_threads_from = 4 * 65536;

typedef struct product_call {
    const cf_cpu_device *device;
    const cf_cgemm_desc *desc;
    cf_block x, w, y;
    bool accumulate;
    int64_t parts; /* of the rows of each result */
} product_call;

static void blas_part(const void *user, int64_t i, int thread) {
    const product_call *const p = user;
    const cf_cgemm_desc *const desc = p->desc;
    const size_t complex_bytes = 2 * cf_dtype_bytes(desc->dtype);
    const int64_t group = i / p->parts / desc->bins, bin = i / p->parts % desc->bins, part = i % p->parts;
    const gemm whole = gemm_of(desc, bin_of(p->x, group, bin, complex_bytes), bin_of(p->w, group, bin, complex_bytes),
                               bin_of(p->y, group, bin, complex_bytes), p->x.rows);
    const int64_t step = cf_ceil_div(whole.m, p->parts), from = cf_min(part * step, whole.m);
    const gemm g = gemm_part(whole, from, cf_min(from + step, whole.m), complex_bytes);
    if (thread > 0 && p->device->blas.set_openmp_threads)
        p->device->blas.set_openmp_threads(1); /* of this thread, which has no other use of OpenMP */
    run_gemm(&p->device->blas, desc->dtype, &g, p->accumulate);
}

/* If there are fewer bins than threads, threads also share the rows of each result. The parts depend on the device
 * alone. */
static void product_blas(const cf_cpu_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                         bool accumulate, int threads) {
    const cf_blas *const blas = &device->blas;
    const int64_t bins = x.groups * desc->bins;
    const double products = (double)x.rows * (double)desc->in_columns * (double)desc->out_columns;
    const bool own_threads = blas->own_threads && products > own_threads_from;
    const int64_t parts = !own_threads && bins < device->base.threads ? cf_ceil_div(device->base.threads, bins) : 1;
    const product_call call = {device, desc, x, w, y, accumulate, parts};
    const int before = blas->set_openmp_threads ? blas->get_openmp_threads() : 0;
    if (blas->set_openmp_threads)
        blas->set_openmp_threads(1);
    cf_parallel_for(own_threads ? 1 : threads, bins * parts, blas_part, &call);
    if (blas->set_openmp_threads)
        blas->set_openmp_threads(before);
}

enum {
    MIN_BINS = 16 /* threads share the rows of a BLAS's results if there are few bins */
};

/* Rows up to which products without packed factors are faster than those of a BLAS, and the bytes of the weights of a
 * bin, which should stay in a core's second-level cache. */
static bool has_few_rows(const cf_cpu_device *device, const cf_cgemm_desc *desc, int64_t rows) {
    const int64_t in = desc->in_columns, out = desc->out_columns, max_bytes = 256 << 10, max_rows = 256;
    return cf_real(device->kernels, desc->dtype)->few_rows && rows > 0 && rows <= max_rows &&
           in % CF_PRODUCT_CHANNELS == 0 && out % CF_PRODUCT_CHANNELS == 0 &&
           in * out * 2 * (int64_t)cf_dtype_bytes(desc->dtype) <= max_bytes;
}

static void few_rows_bin(const void *user, int64_t i, int thread) {
    const product_call *const p = user;
    const size_t complex_bytes = 2 * cf_dtype_bytes(p->desc->dtype);
    const int64_t group = i / p->desc->bins, bin = i % p->desc->bins;
    (void)thread;
    cf_real(p->device->kernels, p->desc->dtype)
        ->few_rows(p->desc, bin_of(p->x, group, bin, complex_bytes), bin_of(p->w, group, bin, complex_bytes),
                   bin_of(p->y, group, bin, complex_bytes), p->x.rows, p->accumulate);
}

static void loop_bin(const void *user, int64_t i, int thread) {
    const product_call *const p = user;
    const size_t complex_bytes = 2 * cf_dtype_bytes(p->desc->dtype);
    const int64_t group = i / p->desc->bins, bin = i % p->desc->bins;
    (void)thread;
    cf_real(p->device->kernels, p->desc->dtype)
        ->product(p->desc, bin_of(p->x, group, bin, complex_bytes), bin_of(p->w, group, bin, complex_bytes),
                  bin_of(p->y, group, bin, complex_bytes), p->x.rows, p->accumulate);
}

static void product_loop(const cf_cpu_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                         bool accumulate, int threads) {
    const product_call call = {device, desc, x, w, y, accumulate, 1};
    cf_parallel_for(threads, x.groups * desc->bins, loop_bin, &call);
}

conv_fft_status cf_cpu_cgemm(cf_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                             bool accumulate, void *scratch, struct CUstream_st *stream) {
    (void)scratch, (void)stream;
    const cf_cpu_device *cpu = cf_cpu(device);
    const int64_t bins = x.groups * desc->bins;
    const double flops = 8.0 * (double)bins * (double)x.rows * (double)desc->in_columns * (double)desc->out_columns;
    if (bins == 0)
        return CONV_FFT_SUCCESS;
    if (desc->variant == CF_CGEMM_BLAS && bins >= MIN_BINS && has_few_rows(cpu, desc, x.rows)) {
        const product_call call = {cpu, desc, x, w, y, accumulate, 1};
        cf_parallel_for(cf_cpu_threads(device, bins, flops), bins, few_rows_bin, &call);
        return CONV_FFT_SUCCESS;
    }
    if (desc->variant == CF_CGEMM_BLAS && cpu->blas.cgemm && fits_blas(desc, x.rows))
        product_blas(cpu, desc, x, w, y, accumulate, cf_cpu_threads(device, device->threads, flops));
    else
        product_loop(cpu, desc, x, w, y, accumulate, cf_cpu_threads(device, bins, flops));
    return CONV_FFT_SUCCESS;
}
