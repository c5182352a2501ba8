/* SPDX-License-Identifier: Apache-2.0 */
/* Operands are random. The error is that of sampled numbers of the result against sums in double. */
#include "gemm/data.h"
#include "cpu/convert.h"

#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_NUMBERS ((size_t)1 << 21)
#define SAMPLED_BINS 3
#define SAMPLED_TERMS 8e6 /* complex products of all sampled numbers */

typedef float complex number;

size_t gemm_suite(gemm_case cases[GEMM_CASES]) {
    /* Layers L2 to L5 with bases that plans choose, wide matrices of few rows, and L1, whose products have three
     * columns. */
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

size_t gemm_most_bytes(const gemm_case *c, int operand) {
    return (size_t)(c->bins * rows_of(c, operand) * columns_of(c, operand)) * sizeof(number);
}

/* Sums over rows stay in FP32. */
static bool is_half(const gemm_job *job, int operand) {
    return gemm_is_half(job) && !(operand == 1 && job->kind == CF_CGEMM_BACKWARD_WEIGHTS);
}

size_t gemm_bytes(const gemm_job *job, int operand) {
    return gemm_most_bytes(job->c, operand) / (is_half(job, operand) ? 2 : 1);
}

/* The right factor is W or X. In 16 bits, it has each number four times. */
size_t gemm_spread_bytes(const gemm_job *job) {
    return gemm_most_bytes(job->c, job->kind == CF_CGEMM_BACKWARD_WEIGHTS ? 0 : 1);
}

int gemm_result(cf_cgemm_kind kind) { return kind == CF_CGEMM_FORWARD ? 2 : kind == CF_CGEMM_BACKWARD_DATA ? 0 : 1; }

static uint16_t half_of(const gemm_job *job, float value) {
    return job->precision == GEMM_FP16 ? cf_float_to_fp16(value) : cf_float_to_bfloat(value);
}

float gemm_number(const gemm_job *job, uint16_t bits) {
    return job->precision == GEMM_FP16 ? cf_fp16_to_float(bits) : cf_bfloat_to_float(bits);
}

/* Fill memory with copies of one block. Each copy begins at another place of the block. */
static conv_fft_status upload(const gemm_job *job, void *to, size_t all, size_t shift, const void *block,
                              size_t bytes) {
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (size_t done = 0; done < all && status == CONV_FFT_SUCCESS; shift = (shift + 37) % 1024) {
        const size_t offset = 64 * shift, step = bytes - offset < all - done ? bytes - offset : all - done;
        status = cf_gpu_upload(job->gpu, (char *)to + done, (const char *)block + offset, step, job->stream);
        done += step;
    }
    return status;
}

size_t gemm_scales(const gemm_case *c, int operand) {
    return (size_t)(rows_of(c, operand) * ((columns_of(c, operand) + CF_SCALE_COLUMNS - 1) / CF_SCALE_COLUMNS));
}

static conv_fft_status fill_scales(const gemm_job *job) {
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int operand = 0; operand < 3 && status == CONV_FFT_SUCCESS; operand++) {
        const size_t count = gemm_scales(job->c, operand), bytes = count * sizeof(float);
        float *const scales = malloc(bytes);
        for (size_t i = 0; scales && i < count; i++)
            scales[i] = gemm_scale(job);
        status = scales ? cf_gpu_upload(job->gpu, job->scales[operand], scales, bytes, job->stream)
                        : cf_fail_memory(bytes, "scales");
        if (status == CONV_FFT_SUCCESS)
            status = cf_gpu_synchronize(job->gpu, job->stream);
        free(scales);
    }
    return status;
}

/* Sums of four uniform numbers. They are about normal, like spectra. */
conv_fft_status gemm_fill(const gemm_job *job) {
    const size_t count = 2 * BLOCK_NUMBERS, bytes = count * sizeof(float), half_bytes = count * sizeof(uint16_t);
    float *const block = malloc(bytes);
    uint16_t *const halves = malloc(half_bytes);
    conv_fft_status status = block && halves ? CONV_FFT_SUCCESS : cf_fail_memory(bytes + half_bytes, "random numbers");
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < count && status == CONV_FFT_SUCCESS; i++) {
        block[i] = 0;
        for (int j = 0; j < 4; j++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            block[i] += (float)(int32_t)(state >> 32) * 0x1p-31f;
        }
        halves[i] = half_of(job, block[i] / gemm_scale(job));
    }
    for (int operand = 0; operand < 3 && status == CONV_FFT_SUCCESS; operand++) {
        const bool half = is_half(job, operand);
        status = upload(job, job->operand[operand], gemm_bytes(job, operand), (size_t)operand,
                        half ? (const void *)halves : block, half ? half_bytes : bytes);
    }
    if (gemm_is_half(job) && status == CONV_FFT_SUCCESS)
        status = upload(job, job->spread, gemm_spread_bytes(job), 3, halves, half_bytes);
    if (status == CONV_FFT_SUCCESS)
        status = fill_scales(job);
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_synchronize(job->gpu, job->stream);
    free(block);
    free(halves);
    return status;
}

conv_fft_status gemm_poison(const gemm_job *job) {
    const int result = gemm_result(job->kind);
    return cf_gpu_fill(job->gpu, job->operand[result], 0xFF, gemm_bytes(job, result), job->stream);
}

static double complex exact(const gemm_job *job, number *const m[3], int64_t row, int64_t column) {
    const gemm_case *const c = job->c;
    double complex sum = 0;
    switch (job->kind) {
    case CF_CGEMM_FORWARD:
        for (int64_t k = 0; k < c->in; k++)
            sum += (double complex)m[0][row * c->in + k] * conj((double complex)m[1][column * c->in + k]);
        break;
    case CF_CGEMM_BACKWARD_DATA:
        for (int64_t k = 0; k < c->out; k++)
            sum += (double complex)m[2][row * c->out + k] * (double complex)m[1][k * c->in + column];
        break;
    case CF_CGEMM_BACKWARD_WEIGHTS:
        for (int64_t k = 0; k < c->rows; k++)
            sum += conj((double complex)m[2][k * c->out + row]) * (double complex)m[0][k * c->in + column];
        break;
    }
    return sum;
}

/* Convert words of two 16-bit numbers to complex numbers in place. The last word comes first, because the results are
 * longer. In FP16, eight columns share a scale. */
static conv_fft_status widen(const gemm_job *job, int operand, number *m) {
    const int64_t rows = rows_of(job->c, operand), columns = columns_of(job->c, operand);
    for (int64_t i = rows * columns - 1; i >= 0; i--) {
        uint16_t parts[2];
        memcpy(parts, (const char *)m + (size_t)i * sizeof parts, sizeof parts);
        m[i] = CMPLXF(gemm_number(job, parts[0]), gemm_number(job, parts[1]));
    }
    const size_t count = gemm_scales(job->c, operand), bytes = count * sizeof(float);
    float *const scales = job->precision == GEMM_FP16 ? malloc(bytes) : NULL;
    if (job->precision != GEMM_FP16)
        return CONV_FFT_SUCCESS;
    conv_fft_status status = scales ? cf_gpu_download(job->gpu, scales, job->scales[operand], bytes, job->stream)
                                    : cf_fail_memory(bytes, "scales");
    if (status == CONV_FFT_SUCCESS)
        status = cf_gpu_synchronize(job->gpu, job->stream);
    for (int64_t i = 0; i < rows * columns && status == CONV_FFT_SUCCESS; i++)
        m[i] *= scales[i / columns * ((int64_t)count / rows) + i % columns / CF_SCALE_COLUMNS];
    free(scales);
    return status;
}

/* The sums of squares of the errors and of the exact numbers, for one bin. */
static conv_fft_status add_bin(const gemm_job *job, int64_t bin, number *const m[3], double sums[2]) {
    const gemm_case *const c = job->c;
    for (int operand = 0; operand < 3; operand++) {
        const size_t bytes = gemm_bytes(job, operand) / (size_t)c->bins;
        CF_FORWARD(cf_gpu_download(job->gpu, m[operand], (const char *)job->operand[operand] + (size_t)bin * bytes,
                                   bytes, job->stream));
    }
    CF_FORWARD(cf_gpu_synchronize(job->gpu, job->stream));
    for (int operand = 0; operand < 3; operand++)
        if (is_half(job, operand))
            CF_FORWARD(widen(job, operand, m[operand]));
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
        const size_t bytes = gemm_most_bytes(job->c, operand) / (size_t)job->c->bins;
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
