/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs, and the error of sampled planes against the definition in double. */
#include "fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_FLOATS ((int64_t)1 << 22)
#define SAMPLES 16

static int64_t in_floats(const fft_job *job) { return job->inverse ? fft_spectrum(job->c) : fft_real(job->c); }
static int64_t out_floats(const fft_job *job) { return job->inverse ? fft_real(job->c) : fft_spectrum(job->c); }

/* First, last, and others in between that do not follow a power of two. */
static int64_t sampled_plane(const fft_job *job, int i) {
    return i == SAMPLES - 1 ? job->c->batch - 1 : (int64_t)i * (job->c->batch - 1) / (SAMPLES - 1);
}

/* ------------------------------------------------------------------------------------------------------- reference */

/* cos and sin of 2 pi i / n, as pairs. */
static void make_roots(int64_t n, double *roots) {
    const double turn = 2 * acos(-1.0) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        roots[2 * i] = cos(turn * (double)i);
        roots[2 * i + 1] = sin(turn * (double)i);
    }
}

/* out[k * step] = sum over j < used of in[j * step] exp(sign 2 pi i j k / n), for k < wanted; pairs. */
static void line(const double *roots, int64_t n, int sign, const double *in, int64_t used, double *out, int64_t wanted,
                 int64_t step) {
    for (int64_t k = 0; k < wanted; k++) {
        double re = 0, im = 0;
        for (int64_t j = 0; j < used; j++) {
            const double *const w = roots + 2 * (j * k % n), *const x = in + 2 * j * step;
            re += x[0] * w[0] - sign * x[1] * w[1];
            im += x[1] * w[0] + sign * x[0] * w[1];
        }
        out[2 * k * step] = re;
        out[2 * k * step + 1] = im;
    }
}

/* Work space of one plane: two half spectra, a line and its transform, the roots of both axes. */
typedef struct space {
    double *a, *b, *line, *made, *row_roots, *column_roots;
} space;

/* Lines of rows with zeros behind the data, then columns; expected[rows][bins] as pairs. */
static void forward(const fft_case *c, const space *s, const float *in, double *expected) {
    const int64_t bins = c->columns / 2 + 1;
    for (int64_t row = 0; row < c->data_rows; row++) {
        for (int64_t i = 0; i < c->data_columns; i++) {
            s->line[2 * i] = (double)in[row * c->data_columns + i];
            s->line[2 * i + 1] = 0;
        }
        line(s->row_roots, c->columns, -1, s->line, c->data_columns, s->a + 2 * row * bins, bins, 1);
    }
    for (int64_t bin = 0; bin < bins; bin++)
        line(s->column_roots, c->rows, -1, s->a + 2 * bin, c->data_rows, expected + 2 * bin, c->rows, bins);
}

/* Columns, then rows, whose missing half mirrors the other one; expected[data_rows][data_columns]. */
static void inverse(const fft_case *c, const space *s, const float *in, double *expected) {
    const int64_t bins = c->columns / 2 + 1;
    for (int64_t i = 0; i < 2 * c->rows * bins; i++)
        s->a[i] = (double)in[i];
    for (int64_t bin = 0; bin < bins; bin++)
        line(s->column_roots, c->rows, 1, s->a + 2 * bin, c->rows, s->b + 2 * bin, c->data_rows, bins);
    for (int64_t row = 0; row < c->data_rows; row++) {
        memcpy(s->line, s->b + 2 * row * bins, (size_t)(2 * bins) * sizeof *s->line);
        for (int64_t k = bins; k < c->columns; k++) {
            s->line[2 * k] = s->line[2 * (c->columns - k)];
            s->line[2 * k + 1] = -s->line[2 * (c->columns - k) + 1];
        }
        line(s->row_roots, c->columns, 1, s->line, c->columns, s->made, c->data_columns, 1);
        for (int64_t i = 0; i < c->data_columns; i++)
            expected[row * c->data_columns + i] = s->made[2 * i];
    }
}

static conv_fft_status expect(fft_job *job) {
    const fft_case *const c = job->c;
    const int64_t half = fft_spectrum(c), length = 2 * c->columns, column = 2 * c->rows;
    const size_t bytes = (size_t)(2 * half + 3 * length + column) * sizeof(double);
    const size_t expected_bytes = (size_t)(SAMPLES * out_floats(job)) * sizeof *job->expected;
    double *const memory = malloc(bytes);
    job->expected = malloc(expected_bytes);
    if (!memory || !job->expected) {
        free(memory);
        return cf_fail_memory(bytes + expected_bytes, "the expected results");
    }
    space s = {.a = memory, .b = memory + half, .line = memory + 2 * half};
    s.made = s.line + length;
    s.row_roots = s.made + length;
    s.column_roots = s.row_roots + length;
    make_roots(c->columns, s.row_roots);
    make_roots(c->rows, s.column_roots);
    for (int i = 0; i < SAMPLES; i++) {
        const float *const in = job->block + sampled_plane(job, i) % job->block_planes * in_floats(job);
        if (job->inverse)
            inverse(c, &s, in, job->expected + i * out_floats(job));
        else
            forward(c, &s, in, job->expected + i * out_floats(job));
    }
    free(memory);
    return CONV_FFT_SUCCESS;
}

conv_fft_status fft_error(const fft_job *job, double *error) {
    const int64_t floats = out_floats(job);
    const size_t bytes = (size_t)floats * sizeof(float);
    double errors = 0, norm = 0;
    float *const out = malloc(bytes);
    if (!out)
        return cf_fail_memory(bytes, "a plane");
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < SAMPLES && status == CONV_FFT_SUCCESS; i++) {
        const char *const from = (const char *)job->out + (size_t)sampled_plane(job, i) * bytes;
        status = cf_gpu_download(job->gpu, out, from, bytes, job->stream);
        if (status == CONV_FFT_SUCCESS)
            status = cf_gpu_synchronize(job->gpu, job->stream);
        for (int64_t k = 0; k < floats && status == CONV_FFT_SUCCESS; k++) {
            const double exact = job->expected[i * floats + k], difference = (double)out[k] - exact;
            errors += difference * difference;
            norm += exact * exact;
        }
    }
    free(out);
    *error = sqrt(errors / norm);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- inputs */

/* Uniform in [-1, 1), seeded. */
static void random_floats(float *values, int64_t count) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
}

/* The spectrum of a real plane: in columns 0 and N / 2, row -k is the conjugate of row k. */
static void make_hermitian(const fft_case *c, float *plane) {
    const int64_t bins = c->columns / 2 + 1;
    for (int64_t bin = 0; bin < bins; bin += c->columns / 2)
        for (int64_t k = 0; 2 * k <= c->rows; k++) {
            float *const a = plane + 2 * (k * bins + bin), *const b =
                                                               plane + 2 * ((c->rows - k) % c->rows * bins + bin);
            a[1] = a == b ? 0 : a[1];
            b[0] = a[0];
            b[1] = -a[1];
        }
}

static conv_fft_status upload(const fft_job *job, size_t block_bytes) {
    char *const in = job->in;
    CF_FORWARD(cf_gpu_upload(job->gpu, in, job->block, block_bytes, job->stream));
    for (size_t done = block_bytes; done < job->in_bytes; done *= 2)
        CF_FORWARD(cf_gpu_copy(job->gpu, in + done, in, done < job->in_bytes - done ? done : job->in_bytes - done,
                               job->stream));
    return cf_gpu_synchronize(job->gpu, job->stream);
}

static conv_fft_status create(fft_job *job) {
    const int64_t floats = in_floats(job), most = BLOCK_FLOATS / floats;
    job->block_planes = job->c->batch < most ? job->c->batch : most;
    const size_t bytes = (size_t)(job->block_planes * floats) * sizeof *job->block;
    job->block = malloc(bytes);
    if (!job->block)
        return cf_fail_memory(bytes, "random numbers");
    random_floats(job->block, job->block_planes * floats);
    for (int64_t p = 0; p < job->block_planes && job->inverse; p++)
        make_hermitian(job->c, job->block + p * floats);
    CF_FORWARD(expect(job));
    job->in_bytes = (size_t)(job->c->batch * floats) * sizeof(float);
    job->out_bytes = (size_t)(job->c->batch * out_floats(job)) * sizeof(float);
    CF_FORWARD(cf_gpu_allocate(job->gpu, job->in_bytes, &job->in));
    CF_FORWARD(cf_gpu_allocate(job->gpu, job->out_bytes, &job->out));
    return upload(job, bytes);
}

conv_fft_status fft_data_create(fft_job *job) {
    const conv_fft_status status = create(job);
    if (status != CONV_FFT_SUCCESS)
        fft_data_destroy(job);
    return status;
}

void fft_data_destroy(fft_job *job) {
    cf_gpu_free(job->gpu, job->in);
    cf_gpu_free(job->gpu, job->out);
    free(job->block);
    free(job->expected);
    job->in = job->out = NULL;
    job->block = NULL;
    job->expected = NULL;
}

conv_fft_status fft_poison(const fft_job *job) {
    return cf_gpu_fill(job->gpu, job->out, 0xFF, job->out_bytes, job->stream);
}
