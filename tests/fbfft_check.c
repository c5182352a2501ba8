/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft_check.h"

#include "cases.h"
#include "device/memory.h"
#include "gpu.h"
#include "ref/dft.h"
#include "tensor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------ the definition */

fft_shape fft_shape_of(const fbfft_desc *desc) {
    const int last = desc->rank - 1;
    fft_shape s = {.inverse = desc->kind == FBFFT_C2R, .rows = 1, .data_rows = 1, .scale = desc->scale};
    s.columns = desc->basis[last];
    s.data_columns = desc->extent[last] ? desc->extent[last] : s.columns;
    if (desc->rank == 2) {
        s.rows = desc->basis[0];
        s.data_rows = desc->extent[0] ? desc->extent[0] : s.rows;
    }
    s.bins = s.columns / 2 + 1;
    const int64_t real = s.data_rows * s.data_columns, spectrum = 2 * s.rows * s.bins;
    s.in = s.inverse ? spectrum : real;
    s.out = s.inverse ? real : spectrum;
    return s;
}

/* Column 0 or N / 2, which is its own mirror image. */
static bool own_mirror(int64_t k, int64_t n) { return k == 0 || 2 * k == n; }

void fft_random_planes(const fft_shape *s, uint64_t seed, int64_t planes, float *in) {
    generator g = generator_create(seed);
    for (int64_t i = 0; i < planes * s->in; ++i)
        in[i] = (float)random_value(&g);
    if (!s->inverse)
        return;
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t k = s->rows / 2 + 1; k < s->rows; ++k)
            for (int64_t bin = 0; bin < s->bins; ++bin) {
                if (!own_mirror(bin, s->columns))
                    continue;
                float *const plane = in + p * s->in, *const to = plane + 2 * (k * s->bins + bin);
                const float *const from = plane + 2 * ((s->rows - k) * s->bins + bin);
                to[0] = from[0];
                to[1] = -from[1];
            }
}

static void copy_line(int64_t n, const double *from, int64_t from_step, double *to, int64_t to_step) {
    for (int64_t i = 0; i < n; ++i)
        memcpy(to + 2 * i * to_step, from + 2 * i * from_step, 2 * sizeof *to);
}

/* half[rows][bins] as pairs. `line` and `made` hold two lines of the longer axis. */
static void columns(const fft_shape *s, int sign, double *half, double *line, double *made) {
    for (int64_t bin = 0; bin < s->bins; ++bin) {
        copy_line(s->rows, half + 2 * bin, s->bins, line, 1);
        ref_dft(s->rows, sign, line, made);
        copy_line(s->rows, made, 1, half + 2 * bin, s->bins);
    }
}

static void forward(const fft_shape *s, const float *in, double *half, double *line, double *made) {
    memset(half, 0, (size_t)(2 * s->rows * s->bins) * sizeof *half);
    for (int64_t row = 0; row < s->data_rows; ++row) {
        memset(line, 0, (size_t)(2 * s->columns) * sizeof *line);
        for (int64_t i = 0; i < s->data_columns; ++i)
            line[2 * i] = (double)in[row * s->data_columns + i];
        ref_dft(s->columns, -1, line, made);
        copy_line(s->bins, made, 1, half + 2 * row * s->bins, 1);
    }
    columns(s, -1, half, line, made);
}

/* real[data_rows][data_columns]. Returns the mean square over the whole basis. */
static double inverse(const fft_shape *s, const float *in, double *half, double *real, double *line, double *made) {
    double square = 0;
    for (int64_t i = 0; i < s->rows * s->bins; ++i) {
        const bool once = own_mirror(i % s->bins, s->columns);
        half[2 * i] = (double)in[2 * i];
        half[2 * i + 1] = once && own_mirror(i / s->bins, s->rows) ? 0 : (double)in[2 * i + 1];
        square += (once ? 1 : 2) * (half[2 * i] * half[2 * i] + half[2 * i + 1] * half[2 * i + 1]);
    }
    columns(s, 1, half, line, made);
    for (int64_t row = 0; row < s->data_rows; ++row) {
        copy_line(s->bins, half + 2 * row * s->bins, 1, line, 1);
        for (int64_t k = s->bins; k < s->columns; ++k) {
            line[2 * k] = line[2 * (s->columns - k)];
            line[2 * k + 1] = -line[2 * (s->columns - k) + 1];
        }
        ref_dft(s->columns, 1, line, made);
        for (int64_t i = 0; i < s->data_columns; ++i)
            real[row * s->data_columns + i] = made[2 * i];
    }
    return square;
}

void fft_compare_plane(const fft_shape *s, const float *in, const float *out, fft_errors *errors) {
    const int64_t longer = s->rows > s->columns ? s->rows : s->columns;
    double *const half = test_alloc((size_t)(2 * s->rows * s->bins) * sizeof *half);
    double *const real = test_alloc((size_t)(s->data_rows * s->data_columns) * sizeof *real);
    double *const line = test_alloc((size_t)(4 * longer) * sizeof *line), *const made = line + 2 * longer;
    const double *const expected = s->inverse ? real : half;
    double square = 0;
    if (s->inverse)
        square = inverse(s, in, half, real, line, made) * (double)s->out;
    else
        forward(s, in, half, line, made);
    for (int64_t i = 0; i < s->out; ++i) {
        const double difference = (double)out[i] - s->scale * expected[i];
        errors->error += difference * difference;
        square += s->inverse ? 0 : expected[i] * expected[i];
    }
    errors->norm += s->scale * s->scale * square;
    free(half);
    free(real);
    free(line);
}

double fft_relative_error(const fft_errors *errors) { return sqrt(errors->error / errors->norm); }

/* -------------------------------------------------------------------------------------------------- on the device */

#define GUARD ((size_t)256)

/* NaN as a float, in every byte. */
#define POISON 0xFF

typedef struct guarded_memory {
    unsigned char *base;
    size_t before, bytes, total;
} guarded_memory;

static conv_fft_status allocate(const fft_run *r, int64_t count, int shift, guarded_memory *m) {
    m->before = GUARD + (size_t)shift * sizeof(float);
    m->bytes = (size_t)count * sizeof(float);
    m->total = m->before + m->bytes + GUARD;
    void *memory = NULL;
    CF_FORWARD(cf_gpu_allocate(r->gpu, m->total, &memory));
    m->base = memory;
    return cf_gpu_fill(r->gpu, m->base, POISON, m->total, r->stream);
}

static bool poisoned(const unsigned char *bytes, size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (bytes[i] != POISON)
            return false;
    return true;
}

/* All of it as it is on the device now; to be freed. NULL: the last error says why. */
static unsigned char *fetch(const fft_run *r, const guarded_memory *m) {
    unsigned char *const host = test_alloc(m->total);
    if (cf_gpu_download(r->gpu, host, m->base, m->total, r->stream) == CONV_FFT_SUCCESS &&
        cf_gpu_synchronize(r->gpu, r->stream) == CONV_FFT_SUCCESS)
        return host;
    free(host);
    return NULL;
}

static bool intact(const unsigned char *host, const guarded_memory *m) {
    return poisoned(host, m->before) && poisoned(host + m->before + m->bytes, GUARD);
}

static conv_fft_status execute(const fft_run *r, guarded_memory *in, guarded_memory *out) {
    CF_FORWARD(allocate(r, r->in_count, r->in_shift, in));
    CF_FORWARD(allocate(r, r->out_count, r->out_shift, out));
    CF_FORWARD(cf_gpu_upload(r->gpu, in->base + in->before, r->in, in->bytes, r->stream));
    CF_FORWARD(fbfft_execute(r->plan, in->base + in->before, out->base + out->before, r->batch, r->stream));
    return cf_gpu_synchronize(r->gpu, r->stream);
}

static const char *look_at(const fft_run *r, const guarded_memory *in, const unsigned char *in_now,
                           const guarded_memory *out, const unsigned char *out_now) {
    if (!in_now || !out_now)
        return conv_fft_last_error();
    if (!intact(in_now, in) || memcmp(in_now + in->before, r->in, in->bytes) != 0)
        return "the input has been written to";
    if (!intact(out_now, out))
        return "bytes before or after the output have been written to";
    memcpy(r->out, out_now + out->before, out->bytes);
    return NULL;
}

bool fft_run_planes(const fft_run *r, char text[FFT_TEXT_BYTES]) {
    guarded_memory in = {0}, out = {0};
    unsigned char *in_now = NULL, *out_now = NULL;
    const char *wrong = NULL;
    if (execute(r, &in, &out) != CONV_FFT_SUCCESS) {
        wrong = conv_fft_last_error();
    } else {
        in_now = fetch(r, &in);
        out_now = fetch(r, &out);
        wrong = look_at(r, &in, in_now, &out, out_now);
    }
    if (wrong)
        snprintf(text, FFT_TEXT_BYTES, "%s", wrong);
    free(in_now);
    free(out_now);
    cf_gpu_free(r->gpu, in.base);
    cf_gpu_free(r->gpu, out.base);
    return !wrong;
}

/* ----------------------------------------------------------------------------------------------------- whole cases */

static void name_case(const fft_case *c, const fft_shape *s, char *text, size_t bytes) {
    snprintf(text, bytes,
             "%s %dd basis %lldx%lld data %lldx%lld batch %lld shifts %d, %d scale %g: ", s->inverse ? "c2r" : "r2c",
             c->desc.rank, (long long)s->rows, (long long)s->columns, (long long)s->data_rows,
             (long long)s->data_columns, (long long)c->batch, c->in_shift, c->out_shift, s->scale);
}

/* First, last and random planes, as many as a second allows. */
static double sample(const fft_shape *s, const float *in, const float *out, int64_t batch, uint64_t seed) {
    const int64_t cost = s->rows * s->columns * (s->rows + s->columns), most = ((int64_t)1 << 21) / cost;
    const int64_t count = most < 2 ? 2 : most > 16 ? 16 : most;
    generator g = generator_create(seed);
    fft_errors errors = {0};
    for (int64_t i = 0; i < count && i < batch; ++i) {
        const int64_t p = batch <= count ? i : i == 0 ? 0 : i == 1 ? batch - 1 : random_int(&g, 0, batch - 1);
        fft_compare_plane(s, in + p * s->in, out + p * s->out, &errors);
    }
    return fft_relative_error(&errors);
}

static bool all_finite(const float *values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (!isfinite(values[i]))
            return false;
    return true;
}

void fft_check_case(const cf_gpu *gpu, conv_fft_context *context, const fft_case *c, fft_outcome *outcome) {
    const fft_shape s = fft_shape_of(&c->desc);
    const uint64_t seed = (uint64_t)(s.rows * 1000003 + s.columns * 1009 + s.data_rows * 31 + s.in + c->batch);
    char name[128], text[FFT_TEXT_BYTES] = "";
    fbfft_plan *plan = NULL;
    name_case(c, &s, name, sizeof name);
    *outcome = (fft_outcome){0};
    const conv_fft_status status = fbfft_plan_create(context, &c->desc, &plan);
    outcome->supported = status != CONV_FFT_NOT_SUPPORTED;
    if (status != CONV_FFT_SUCCESS) {
        outcome->ok = !outcome->supported && !c->must;
        snprintf(outcome->text, sizeof outcome->text, "%s%s", name, conv_fft_last_error());
        return;
    }
    fft_run run = {.gpu = gpu, .plan = plan, .batch = c->batch, .in_shift = c->in_shift, .out_shift = c->out_shift};
    run.in_count = c->batch * s.in;
    run.out_count = c->batch * s.out;
    float *const in = test_alloc((size_t)run.in_count * sizeof *in);
    fft_random_planes(&s, seed, c->batch, in);
    run.in = in;
    run.out = test_alloc((size_t)run.out_count * sizeof *run.out);
    if (fft_run_planes(&run, text)) {
        outcome->error = sample(&s, in, run.out, c->batch, seed);
        outcome->ok = outcome->error <= FFT_TOLERANCE && all_finite(run.out, run.out_count);
        snprintf(text, sizeof text, "relative error %.2e, %s", outcome->error,
                 all_finite(run.out, run.out_count) ? "all outputs finite" : "outputs that are not finite");
    }
    snprintf(outcome->text, sizeof outcome->text, "%s%s", name, text);
    free(in);
    free(run.out);
    fbfft_plan_destroy(plan);
}

fbfft_desc fft_desc(int rank, fbfft_kind kind, int64_t basis, int64_t extent) {
    fbfft_desc d;
    fbfft_desc_init(&d, rank, kind);
    for (int a = 0; a < rank; ++a) {
        d.basis[a] = basis;
        d.extent[a] = extent;
    }
    return d;
}

conv_fft_context *fft_gpu_context(void) {
    conv_fft_context_options options;
    conv_fft_context *context = NULL;
    conv_fft_context_options_init(&options);
    options.device = 0;
    options.cache_directory = gpu_cache_directory();
    conv_fft_context_create(&options, &context);
    return context;
}
