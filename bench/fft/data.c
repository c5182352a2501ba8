/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs are random, in the order of the case. The error is that of sampled planes. */
#include "fft/data.h"

#include "cpu/convert.h"
#include "fft/reference.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK_FLOATS ((int64_t)1 << 22)
#define MAX_SAMPLES 16
#define MIN_SAMPLES 3
#define LONG_LINE ((int64_t)1 << 20) /* one sample of such lines is enough */
#define REFERENCE_WORK ((int64_t)1 << 28)

static int64_t in_numbers(const fft_job *job) { return job->inverse ? fft_spectrum(job->c) : fft_signal(job->c); }
static int64_t out_numbers(const fft_job *job) { return job->inverse ? fft_signal(job->c) : fft_spectrum(job->c); }

/* ---- samples */

/* The number of samples. It is smaller where the definition takes long. */
static int samples_of(const fft_job *job) {
    const int64_t samples = REFERENCE_WORK / fft_reference_work(job->c);
    if (fft_points(job->c) > LONG_LINE)
        return 1;
    return samples > MAX_SAMPLES ? MAX_SAMPLES : samples < MIN_SAMPLES ? MIN_SAMPLES : (int)samples;
}

/* The first plane, the last, and others whose distance is no power of two. */
static int64_t sampled_plane(const fft_job *job, int i) {
    const int64_t last = fft_planes(job->c) - 1;
    if (samples_of(job) == 1)
        return last;
    return i == samples_of(job) - 1 ? last : i * last / (samples_of(job) - 1);
}

static conv_fft_status expect(fft_job *job) {
    const size_t bytes = (size_t)(samples_of(job) * out_numbers(job)) * sizeof *job->expected;
    job->expected = malloc(bytes);
    if (!job->expected)
        return cf_fail_memory(bytes, "the expected results");
    for (int i = 0; i < samples_of(job); i++) {
        const float *const in = job->block + sampled_plane(job, i) % job->block_planes * in_numbers(job);
        CF_FORWARD(fft_reference(job->c, job->inverse, in, job->expected + i * out_numbers(job)));
    }
    return CONV_FFT_SUCCESS;
}

/* Read one plane of the output, in natural order. */
static conv_fft_status download(const fft_job *job, bool natural, int64_t plane, char *to) {
    const size_t number = fft_number_bytes(job->c), bytes = (size_t)out_numbers(job) * number;
    const char *const from = job->out;
    if (natural || job->inverse)
        return cf_gpu_download(job->gpu, to, from + (size_t)plane * bytes, bytes, job->stream);
    for (int64_t bin = 0; bin < fft_bins(job->c); bin++)
        CF_FORWARD(cf_gpu_download(job->gpu, to + (size_t)bin * 2 * number,
                                   from + (size_t)(bin * fft_planes(job->c) + plane) * 2 * number, 2 * number,
                                   job->stream));
    return CONV_FFT_SUCCESS;
}

static double number_at(const fft_case *c, const void *numbers, int64_t i) {
    return c->doubles  ? ((const double *)numbers)[i]
           : c->halves ? (double)cf_fp16_to_float(((const uint16_t *)numbers)[i])
                       : (double)((const float *)numbers)[i];
}

conv_fft_status fft_error(const fft_job *job, bool natural, double *error) {
    const int64_t numbers = out_numbers(job);
    const size_t bytes = (size_t)numbers * fft_number_bytes(job->c);
    double errors = 0, norm = 0;
    void *const out = malloc(bytes);
    if (!out)
        return cf_fail_memory(bytes, "a plane");
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < samples_of(job) && status == CONV_FFT_SUCCESS; i++) {
        status = download(job, natural || !job->c->frequency_major, sampled_plane(job, i), out);
        if (status == CONV_FFT_SUCCESS)
            status = cf_gpu_synchronize(job->gpu, job->stream);
        for (int64_t k = 0; k < numbers && status == CONV_FFT_SUCCESS; k++) {
            const double exact = job->expected[i * numbers + k];
            const double difference = number_at(job->c, out, k) - exact;
            errors += difference * difference;
            norm += exact * exact;
        }
    }
    free(out);
    *error = sqrt(errors / norm);
    return status;
}

/* ---- inputs */

/* Seeded numbers, uniform in [-1, 1). */
static void random_floats(float *values, int64_t count) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values[i] = (float)(int32_t)(state >> 32) * 0x1p-31f;
    }
}

/* Make the spectrum that of a real signal: in columns 0 and N / 2, bin -k is the conjugate of bin k. */
static void make_hermitian(const fft_case *c, float *plane) {
    const int64_t *const n = c->basis, last = fft_last_bins(c), own[2] = {0, n[2] / 2};
    for (int i = 0; i < (n[2] % 2 ? 1 : 2); i++)
        for (int64_t k0 = 0; k0 < n[0]; k0++)
            for (int64_t k1 = 0; k1 < n[1]; k1++) {
                const int64_t m0 = (n[0] - k0) % n[0], m1 = (n[1] - k1) % n[1];
                float *const a = plane + 2 * ((k0 * n[1] + k1) * last + own[i]);
                const float *const b = plane + 2 * ((m0 * n[1] + m1) * last + own[i]);
                if (b > a)
                    continue;
                a[1] = a == b ? 0 : -b[1];
                a[0] = b[0];
            }
}

/* The block in the type of the case, as planes or, with `major`, as [bin][plane]. */
static void *arranged(const fft_job *job, bool major) {
    const int64_t numbers = in_numbers(job), planes = job->block_planes;
    void *const memory = malloc((size_t)(planes * numbers) * fft_number_bytes(job->c));
    for (int64_t p = 0; p < planes && memory; p++)
        for (int64_t i = 0; i < numbers; i++) {
            const int64_t at = major ? 2 * (i / 2 * planes + p) + i % 2 : p * numbers + i;
            const float value = job->block[p * numbers + i];
            if (job->c->doubles)
                ((double *)memory)[at] = (double)value;
            else if (job->c->halves)
                ((uint16_t *)memory)[at] = cf_float_to_fp16(value);
            else
                ((float *)memory)[at] = value;
        }
    return memory;
}

/* Fill each part of `whole` bytes by repeating its first `bytes` bytes. */
static conv_fft_status repeat(const fft_job *job, const char *from, size_t bytes, char *to, size_t whole,
                              int64_t parts) {
    for (int64_t i = 0; i < parts; i++, from += bytes, to += whole) {
        CF_FORWARD(cf_gpu_upload(job->gpu, to, from, bytes, job->stream));
        for (size_t done = bytes; done < whole; done *= 2)
            CF_FORWARD(cf_gpu_copy(job->gpu, to + done, to, done < whole - done ? done : whole - done, job->stream));
    }
    return cf_gpu_synchronize(job->gpu, job->stream);
}

static conv_fft_status upload(const fft_job *job, bool major, void *to) {
    const int64_t parts = major ? fft_bins(job->c) : 1;
    const size_t bytes = (size_t)(job->block_planes * in_numbers(job)) * fft_number_bytes(job->c);
    void *const from = arranged(job, major);
    if (!from)
        return cf_fail_memory(bytes, "random numbers");
    const conv_fft_status status = repeat(job, from, bytes / (size_t)parts, to, job->in_bytes / (size_t)parts, parts);
    free(from);
    return status;
}

conv_fft_status fft_natural_input(const fft_job *job, void *to) { return upload(job, false, to); }

static conv_fft_status create(fft_job *job) {
    const int64_t numbers = in_numbers(job), fitting = BLOCK_FLOATS / numbers, max_planes = fitting > 1 ? fitting : 1,
                  planes = fft_planes(job->c);
    job->block_planes = planes < max_planes ? planes : max_planes;
    const size_t bytes = (size_t)(job->block_planes * numbers) * sizeof *job->block;
    job->block = malloc(bytes);
    if (!job->block)
        return cf_fail_memory(bytes, "random numbers");
    random_floats(job->block, job->block_planes * numbers);
    for (int64_t i = 0; i < job->block_planes * numbers && job->c->halves; i++)
        job->block[i] = cf_fp16_to_float(cf_float_to_fp16(job->block[i]));
    for (int64_t p = 0; p < job->block_planes && job->inverse; p++)
        make_hermitian(job->c, job->block + p * numbers);
    CF_FORWARD(expect(job));
    job->in_bytes = (size_t)(planes * numbers) * fft_number_bytes(job->c);
    job->out_bytes = (size_t)(planes * out_numbers(job)) * fft_number_bytes(job->c);
    CF_FORWARD(cf_gpu_allocate(job->gpu, job->in_bytes, &job->in));
    CF_FORWARD(cf_gpu_allocate(job->gpu, job->out_bytes, &job->out));
    return upload(job, job->inverse && job->c->frequency_major, job->in);
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
