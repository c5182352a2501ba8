/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fft_rules.h"

#include "reference/dtype.h"
#include "support/selection.h"
#include "support/tensor.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/driver/memory.h"
#include "support/error_text.h"

#define assert_success(call)                                  \
    do {                                                      \
        if ((call) != CONV_FFT_SUCCESS)                       \
            fail_msg("%s: %s", #call, conv_fft_last_error()); \
    } while (0)

static void fail_case(const fbfft_desc *desc, const char *what) {
    char text[FFT_TEXT_BYTES];
    fft_describe(desc, text, sizeof text);
    fail_msg("%s: %s", text, what);
}

fft_bench fft_bench_create(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc, int64_t batch) {
    fft_bench b = {.shape = fft_shape_of(desc)};
    if (fbfft_plan_create(context, desc, &b.plan) != CONV_FFT_SUCCESS)
        fail_case(desc, conv_fft_last_error());
    b.run = (fft_run){.gpu = gpu,
                      .plan = b.plan,
                      .in_bytes = fft_in_bytes(&b.shape, batch),
                      .out_bytes = fft_out_bytes(&b.shape, batch),
                      .batch = batch};
    b.run.in = b.in = test_alloc((size_t)b.run.in_bytes);
    b.run.out = test_alloc((size_t)b.run.out_bytes);
    fft_random_input(&b.shape, test_seed() + 3, batch, b.in);
    return b;
}

void fft_bench_destroy(fft_bench *b) {
    fbfft_plan_destroy(b->plan);
    free(b->in);
    free(b->run.out);
}

void fft_bench_run(const fft_bench *b) {
    char text[FFT_TEXT_BYTES];
    if (!fft_run_planes(&b->run, text))
        fail_msg("%s", text);
}

/* Number `part` of element i of a plane of the input, or of the output. */
static void *signal_number(const fft_bench *b, int64_t plane, int64_t i, int part) {
    const int64_t at = fft_in_at(&b->shape, b->run.batch, plane, i);
    return (char *)b->in + at + part * (int64_t)ref_dtype_size(fft_in_type(&b->shape));
}
static const void *spectrum_number(const fft_bench *b, int64_t plane, int64_t i, int part) {
    const int64_t at = fft_out_at(&b->shape, b->run.batch, plane, i);
    return (const char *)b->run.out + at + part * (int64_t)ref_dtype_size(fft_out_type(&b->shape));
}

static void set_in(const fft_bench *b, int64_t plane, int64_t i, int part, double value) {
    ref_store(fft_in_type(&b->shape), signal_number(b, plane, i, part), value);
}
static double get_in(const fft_bench *b, int64_t plane, int64_t i, int part) {
    return ref_load(fft_in_type(&b->shape), signal_number(b, plane, i, part));
}
static double get_out(const fft_bench *b, int64_t plane, int64_t i, int part) {
    return ref_load(fft_out_type(&b->shape), spectrum_number(b, plane, i, part));
}

static int64_t planes_of(const fft_bench *b) { return b->run.batch * b->shape.channels; }

static void *copy_of(const void *memory, int64_t bytes) {
    void *const copy = test_alloc((size_t)bytes);
    memcpy(copy, memory, (size_t)bytes);
    return copy;
}

/* ---------------------------------------------------------------------------------------------------- properties */

/* Whether all outputs of a plane are finite, and whether they have the same bits as in `clean`. */
static void look_at_plane(const fft_bench *b, int64_t plane, const char *clean, bool *finite, bool *same) {
    const size_t bytes = ref_dtype_size(fft_out_type(&b->shape));
    *finite = *same = true;
    for (int64_t i = 0; i < fft_out_count(&b->shape); ++i)
        for (int part = 0; part < fft_out_numbers(&b->shape); ++part) {
            const char *const at = spectrum_number(b, plane, i, part);
            *finite = *finite && isfinite(get_out(b, plane, i, part));
            *same = *same && !memcmp(at, clean + (at - (const char *)b->run.out), bytes);
        }
}

void fft_check_isolation(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    const int64_t batch = 67 / desc->channels;
    fft_bench b = fft_bench_create(gpu, context, desc, batch);
    const int64_t planes = planes_of(&b);
    fft_bench_run(&b);
    void *const clean = copy_of(b.run.out, b.run.out_bytes);
    set_in(&b, 0, 0, 0, NAN);
    set_in(&b, planes / 2, 0, 0, INFINITY);
    for (int64_t i = 0; i < fft_in_count(&b.shape); ++i)
        set_in(&b, planes / 3, i, 0, NAN);
    set_in(&b, planes - 1, fft_in_count(&b.shape) - 1, 0, NAN);
    fft_bench_run(&b);
    for (int64_t p = 0; p < planes; ++p) {
        const bool spoiled = p == 0 || p == planes / 2 || p == planes / 3 || p == planes - 1;
        bool finite, same;
        look_at_plane(&b, p, clean, &finite, &same);
        if (finite == spoiled || same == spoiled)
            fail_case(desc, spoiled ? "a NaN does not show" : "another plane's NaN has changed a plane");
    }
    free(clean);
    fft_bench_destroy(&b);
}

/* All numbers of a plane, in one order for all layouts. */
static double *numbers(const fft_bench *b, bool input) {
    const int64_t planes = planes_of(b), count = input ? fft_in_count(&b->shape) : fft_out_count(&b->shape);
    const int parts = input ? fft_in_numbers(&b->shape) : fft_out_numbers(&b->shape);
    double *const values = test_alloc((size_t)(planes * count * parts) * sizeof *values), *to = values;
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t i = 0; i < count; ++i)
            for (int part = 0; part < parts; ++part)
                *to++ = input ? get_in(b, p, i, part) : get_out(b, p, i, part);
    return values;
}

static int64_t count_numbers(const fft_bench *b, bool input) {
    return planes_of(b) * (input ? fft_in_count(&b->shape) * fft_in_numbers(&b->shape)
                                 : fft_out_count(&b->shape) * fft_out_numbers(&b->shape));
}

/* ||a - b|| / ||b|| */
static double distance(const double *a, const double *b, int64_t count) {
    fft_errors errors = {0};
    for (int64_t i = 0; i < count; ++i) {
        errors.error += (a[i] - b[i]) * (a[i] - b[i]);
        errors.norm += b[i] * b[i];
    }
    return fft_relative_error(&errors);
}

void fft_check_linearity(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    fft_bench b = fft_bench_create(gpu, context, desc, 4);
    const int64_t count = count_numbers(&b, false), parts = fft_in_numbers(&b.shape), each = fft_in_count(&b.shape);
    fft_bench_run(&b);
    double *const first_in = numbers(&b, true), *const first = numbers(&b, false);
    fft_random_input(&b.shape, test_seed() + 4, b.run.batch, b.in);
    fft_bench_run(&b);
    double *const combined = numbers(&b, false);
    for (int64_t i = 0; i < count; ++i)
        combined[i] = 0.75 * first[i] - 2 * combined[i];
    for (int64_t i = 0; i < count_numbers(&b, true); ++i) {
        const int64_t plane = i / parts / each, element = i / parts % each;
        const double second = get_in(&b, plane, element, (int)(i % parts));
        set_in(&b, plane, element, (int)(i % parts), 0.75 * first_in[i] - 2 * second);
    }
    fft_bench_run(&b);
    double *const result = numbers(&b, false);
    if (!(distance(result, combined, count) <= 2 * fft_tolerance(&b.shape)))
        fail_case(desc, "not linear");
    free(result);
    free(combined);
    free(first);
    free(first_in);
    fft_bench_destroy(&b);
}

void fft_check_energy_and_impulse(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    fft_bench b = fft_bench_create(gpu, context, desc, 5);
    const fft_shape *const s = &b.shape;
    long double signal = 0, spectrum = 0; /* sums of doubles would be wrong by more than is allowed */
    fft_bench_run(&b);
    for (int64_t p = 0; p < planes_of(&b); ++p) {
        for (int64_t i = 0; i < fft_in_count(s); ++i)
            for (int part = 0; part < fft_in_numbers(s); ++part)
                signal += (long double)get_in(&b, p, i, part) * get_in(&b, p, i, part);
        for (int64_t i = 0; i < fft_out_count(s); ++i)
            for (int part = 0; part < 2; ++part)
                spectrum += (long double)fft_bin_weight(s, i) * get_out(&b, p, i, part) * get_out(&b, p, i, part);
    }
    const double ratio = (double)(spectrum / (fft_basis_points(s) * (long double)s->scale * s->scale * signal));
    if (!(fabs(ratio - 1) <= 2 * fft_tolerance(s)))
        fail_case(desc, "the spectrum has another energy than the signal");

    memset(b.in, 0, (size_t)b.run.in_bytes);
    for (int64_t p = 0; p < planes_of(&b); ++p)
        set_in(&b, p, 0, 0, (double)(p + 1));
    fft_bench_run(&b);
    for (int64_t p = 0; p < planes_of(&b); ++p)
        for (int64_t i = 0; i < fft_out_count(s); ++i)
            for (int part = 0; part < 2; ++part) {
                const double expected = part ? 0 : s->scale * (double)(p + 1);
                if (!(fabs(get_out(&b, p, i, part) - expected) <= 1e-6 * fabs(s->scale) * (double)(p + 1)))
                    fail_case(desc, "the spectrum of an impulse is not flat");
            }
    fft_bench_destroy(&b);
}

void fft_check_there_and_back(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    fft_bench a = fft_bench_create(gpu, context, desc, 6);
    fbfft_desc back = *desc;
    back.kind = a.shape.complex_signal ? FBFFT_C2C_INVERSE : FBFFT_C2R;
    back.scale = 1 / (desc->scale * (double)fft_basis_points(&a.shape));
    fft_bench b = fft_bench_create(gpu, context, &back, 6);
    fft_bench_run(&a);
    memcpy(b.in, a.run.out, (size_t)a.run.out_bytes);
    fft_bench_run(&b);
    double *const before = numbers(&a, true), *const after = numbers(&b, false);
    if (!(distance(after, before, count_numbers(&a, true)) <=
          2 * fft_tolerance(&a.shape) + 2 * ref_dtype_roundoff(desc->dtype)))
        fail_case(desc, "the way back does not lead to the signal");
    free(before);
    free(after);
    fft_bench_destroy(&a);
    fft_bench_destroy(&b);
}

/* ------------------------------------------------------------------------------------------------------- the calls */

enum {
    THREADS = 4,
    ROUNDS = 12
};

/* One thread: its own stream and memory; all threads share the plan. */
typedef struct worker {
    const fft_bench *b;
    char text[FFT_TEXT_BYTES];
    bool good;
} worker;

static void *work(void *argument) {
    worker *const w = argument;
    fft_run r = w->b->run;
    cf_cu_stream stream = NULL;
    w->good = !r.gpu || cf_gpu_stream_create(r.gpu, &stream) == CONV_FFT_SUCCESS;
    r.stream = stream;
    r.out = test_alloc((size_t)r.out_bytes);
    snprintf(w->text, sizeof w->text, "no stream");
    for (int i = 0; i < ROUNDS && w->good; ++i) {
        w->good = fft_run_planes(&r, w->text);
        if (w->good && memcmp(r.out, w->b->run.out, (size_t)r.out_bytes) != 0) {
            snprintf(w->text, sizeof w->text, "the results have other bits than those of one thread");
            w->good = false;
        }
    }
    free(r.out);
    if (r.gpu)
        cf_gpu_stream_destroy(r.gpu, stream);
    return NULL;
}

void fft_check_threads(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    fft_bench b = fft_bench_create(gpu, context, desc, 501);
    fft_bench_run(&b);
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; ++t) {
        workers[t] = (worker){.b = &b};
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; ++t)
        pthread_join(threads[t], NULL);
    for (int t = 0; t < THREADS; ++t)
        if (!workers[t].good)
            fail_case(desc, workers[t].text);
    fft_bench_destroy(&b);
}

/* Host pointers work on either device: arguments are checked before memory is accessed. */
static void check_types(conv_fft_context *context, conv_fft_dtype dtype) {
    _Alignas(16) char in[256], out[256], workspace[256];
    for (int kind = 0; kind < 4; ++kind) {
        const bool complex_signal = kind == FBFFT_C2C_FORWARD || kind == FBFFT_C2C_INVERSE;
        const int signal_number = (complex_signal ? 2 : 1) * (int)ref_dtype_size(dtype),
                  spectrum_number = dtype == CONV_FFT_FP64 ? 16 : 8;
        char words[2][32];
        snprintf(words[0], sizeof words[0], "multiple of %d", signal_number);
        snprintf(words[1], sizeof words[1], "multiple of %d", spectrum_number);
        fbfft_desc d = fft_desc(1, (fbfft_kind)kind, 16, 0);
        const bool inverse = kind == FBFFT_C2R || kind == FBFFT_C2C_INVERSE;
        fbfft_plan *plan = NULL;
        d.dtype = dtype;
        assert_success(fbfft_plan_create(context, &d, &plan));
        size_t bytes = 1;
        assert_success(fbfft_plan_workspace(plan, 0, &bytes));
        assert_int_equal(bytes, 0);
        assert_success(fbfft_plan_workspace(plan, 1, &bytes));
        const int first = inverse ? spectrum_number : signal_number, second = inverse ? signal_number : spectrum_number;
        EXPECT_INVALID(fbfft_execute(plan, in + first / 2, out, 1, workspace, bytes, NULL), "in is", words[inverse]);
        EXPECT_INVALID(fbfft_execute(plan, in, out + second / 2, 1, workspace, bytes, NULL), "out is", words[!inverse]);
        if (bytes > 0) {
            EXPECT_INVALID(fbfft_execute(plan, in, out, 1, NULL, bytes, NULL), "workspace is NULL");
            EXPECT_INVALID(fbfft_execute(plan, in, out, 1, workspace, bytes - 1, NULL), "bytes is", "at least");
        }
        fbfft_plan_destroy(plan);
    }
}

void fft_check_arguments(conv_fft_context *context) {
    const fbfft_desc desc = fft_desc(1, FBFFT_R2C, 16, 0);
    char in[256], out[256];
    fbfft_plan *plan = NULL;
    size_t bytes = 7;
    assert_success(fbfft_plan_create(context, &desc, &plan));
    assert_true(strlen(fbfft_plan_description(plan)) > 0);
    print_message("%s\n", fbfft_plan_description(plan));
    EXPECT_INVALID(fbfft_plan_workspace(NULL, 1, &bytes), "plan", "NULL");
    EXPECT_INVALID(fbfft_plan_workspace(plan, 1, NULL), "bytes", "NULL");
    EXPECT_INVALID(fbfft_plan_workspace(plan, -1, &bytes), "batch is -1");
    EXPECT_INVALID(fbfft_plan_workspace(plan, INT64_MAX, &bytes), "batch is 9223372036854775807");
    assert_int_equal(bytes, 7);
    EXPECT_INVALID(fbfft_execute(NULL, in, out, 1, NULL, 0, NULL), "plan", "NULL");
    EXPECT_INVALID(fbfft_execute(plan, NULL, out, 1, NULL, 0, NULL), "in is NULL");
    EXPECT_INVALID(fbfft_execute(plan, in, NULL, 1, NULL, 0, NULL), "out is NULL");
    EXPECT_INVALID(fbfft_execute(plan, in, out, -1, NULL, 0, NULL), "batch is -1");
    EXPECT_INVALID(fbfft_execute(plan, in, out, INT64_MIN, NULL, 0, NULL), "batch is -9223372036854775808");
    EXPECT_INVALID(fbfft_execute(plan, in, out, INT64_MAX / 16, NULL, 0, NULL), "batch is 576460752303423487");
    /* An empty batch accesses no memory. */
    assert_success(fbfft_execute(plan, NULL, NULL, 0, NULL, 0, NULL));
    assert_success(fbfft_execute(plan, in + 1, out + 1, 0, NULL, 0, NULL));
    fbfft_plan_destroy(plan);
    for (int dtype = CONV_FFT_FP32; dtype <= CONV_FFT_FP64; ++dtype)
        check_types(context, (conv_fft_dtype)dtype);
}

/* ------------------------------------------------------------------------------------------------------------ lists */

void fft_rule_list_add(fft_rule_list *list, const fbfft_desc *desc) {
    char text[FFT_TEXT_BYTES];
    assert_in_range(list->names.count, 0, sizeof list->descs / sizeof list->descs[0] - 1);
    list->descs[list->names.count] = *desc;
    fft_describe(desc, text, sizeof text);
    case_list_add(&list->names, "%s", text);
}

static void check_rule(int64_t i, void *argument) {
    const fft_rule_list *const list = argument;
    list->rule(list->gpu, list->context, &list->descs[i]);
}

void fft_rule_list_check(fft_rule_list *list) { case_list_each(&list->names, check_rule, list); }
