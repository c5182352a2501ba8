/* SPDX-License-Identifier: Apache-2.0 */
/* Random operands, and the error of sampled numbers of the result against sums in double. */
#include "gemm.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK_NUMBERS ((size_t)1 << 21)
#define SAMPLED_BINS 3
#define SAMPLED_TERMS 8e6 /* complex products of the definition */

typedef float complex number;

size_t gemm_suite(gemm_case cases[GEMM_CASES]) {
    /* Layers L2 to L5 with bases that plans choose, wide matrices of few rows, and L1, whose products have three columns. */
    static const int64_t extents[][4] = {{2112, 128, 64, 64},  {544, 128, 128, 128}, {144, 128, 128, 128},
                                         {144, 128, 384, 384}, {544, 64, 512, 512},  {1450, 1152, 3, 96}};
    const size_t count = sizeof extents / sizeof *extents;
    for (size_t i = 0; i < count; i++) {
        const int64_t *const e = extents[i];
        cases[i] = (gemm_case){.bins = e[0], .rows = e[1], .in = e[2], .out = e[3]};
        snprintf(cases[i].name, sizeof cases[i].name, "%" PRId64 "-%" PRId64 "x%" PRId64 "x%" PRId64, e[0], e[1], e[2],
                 e[3]);
    }
    return count;
}

static int64_t rows_of(const gemm_case *c, int operand) { return operand == 1 ? c->out : c->rows; }
static int64_t columns_of(const gemm_case *c, int operand) { return operand == 2 ? c->out : c->in; }

size_t gemm_bytes(const gemm_case *c, int operand) {
    return (size_t)(c->bins * rows_of(c, operand) * columns_of(c, operand)) * sizeof(number);
}

int gemm_result(cf_product_kind kind) {
    return kind == CF_PRODUCT_FORWARD ? 2 : kind == CF_PRODUCT_BACKWARD_DATA ? 0 : 1;
}

/* Sums of four uniform numbers, about normal as spectra are; one block again and again, its start shifted. */
conv_fft_status gemm_fill(const gemm_job *job) {
    const size_t bytes = BLOCK_NUMBERS * sizeof(number);
    float *const block = malloc(bytes);
    if (!block)
        return cf_fail_memory(bytes, "random numbers");
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < 2 * BLOCK_NUMBERS; i++) {
        block[i] = 0;
        for (int j = 0; j < 4; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            block[i] += (float)(int32_t)(state >> 32) * 0x1p-31f;
        }
    }
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int operand = 0; operand < 3; operand++) {
        const size_t all = gemm_bytes(job->c, operand);
        size_t shift = (size_t)operand;
        for (size_t done = 0; done < all && status == CONV_FFT_SUCCESS; shift = (shift + 37) % 1024) {
            const size_t offset = 64 * shift, piece = bytes - offset < all - done ? bytes - offset : all - done;
            status = cf_gpu_upload(job->gpu, (char *)job->operand[operand] + done, (char *)block + offset, piece,
                                   job->stream);
            done += piece;
        }
    }
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_synchronize(job->gpu, job->stream);
    free(block);
    return status;
}

conv_fft_status gemm_poison(const gemm_job *job) {
    const int result = gemm_result(job->kind);
    return cf_gpu_fill(job->gpu, job->operand[result], 0xFF, gemm_bytes(job->c, result), job->stream);
}

static double complex exact(const gemm_job *job, number *const m[3], int64_t row, int64_t column) {
    const gemm_case *const c = job->c;
    double complex sum = 0;
    switch (job->kind) {
    case CF_PRODUCT_FORWARD:
        for (int64_t k = 0; k < c->in; k++)
            sum += (double complex)m[0][row * c->in + k] * conj((double complex)m[1][column * c->in + k]);
        break;
    case CF_PRODUCT_BACKWARD_DATA:
        for (int64_t k = 0; k < c->out; k++)
            sum += (double complex)m[2][row * c->out + k] * (double complex)m[1][k * c->in + column];
        break;
    case CF_PRODUCT_BACKWARD_WEIGHTS:
        for (int64_t k = 0; k < c->rows; k++)
            sum += conj((double complex)m[2][k * c->out + row]) * (double complex)m[0][k * c->in + column];
        break;
    }
    return sum;
}

/* Of one bin: the sums of squares of errors and of exact numbers. */
static conv_fft_status add_bin(const gemm_job *job, int64_t bin, number *const m[3], double sums[2]) {
    const gemm_case *const c = job->c;
    for (int operand = 0; operand < 3; operand++) {
        const size_t bytes = gemm_bytes(c, operand) / (size_t)c->bins;
        CF_FORWARD(cf_gpu_download(job->gpu, m[operand], (const char *)job->operand[operand] + (size_t)bin * bytes,
                                   bytes, job->stream));
    }
    CF_FORWARD(cf_gpu_synchronize(job->gpu, job->stream));
    const int result = gemm_result(job->kind);
    const int64_t columns = columns_of(c, result), count = rows_of(c, result) * columns;
    const int64_t step = 1 + (int64_t)((double)c->rows * (double)c->in * (double)c->out / SAMPLED_TERMS);
    for (int64_t i = 0; i < count; i += step) {
        const double complex sum = exact(job, m, i / columns, i % columns);
        const double difference = cabs((double complex)m[result][i] - sum), size = cabs(sum);
        sums[0] += difference * difference;
        sums[1] += size * size;
    }
    return CONV_FFT_SUCCESS;
}

conv_fft_status gemm_error(const gemm_job *job, double *error) {
    number *m[3];
    double sums[2] = {0, 0};
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int operand = 0; operand < 3; operand++) {
        const size_t bytes = gemm_bytes(job->c, operand) / (size_t)job->c->bins;
        m[operand] = malloc(bytes);
        if (!m[operand])
            status = cf_fail_memory(bytes, "a matrix");
    }
    for (int i = 0; i < SAMPLED_BINS && status == CONV_FFT_SUCCESS; i++)
        status = add_bin(job, i * (job->c->bins - 1) / (SAMPLED_BINS - 1), m, sums);
    for (int operand = 0; operand < 3; operand++)
        free(m[operand]);
    *error = sqrt(sums[0] / sums[1]);
    return status;
}
