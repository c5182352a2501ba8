/* SPDX-License-Identifier: Apache-2.0 */
/* What fbfft.h promises beyond accuracy, on a GPU: planes apart from one another, linearity, Parseval, impulses, the way
 * back, empty batches, bad arguments, many streams and threads. */
#include "cases.h"
#include "device/memory.h"
#include "fbfft_check.h"
#include "gpu.h"
#include "tensor.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sentence.h"

#define assert_success(call)                                  \
    do {                                                      \
        if ((call) != CONV_FFT_SUCCESS)                       \
            fail_msg("%s: %s", #call, conv_fft_last_error()); \
    } while (0)

/* Every kind of kernel: one lane a line and several, few lines a block and many, whole and padded. */
static const struct {
    int rank, basis, extent;
} shapes[] = {{1, 8, 0}, {1, 16, 0}, {1, 32, 19}, {1, 64, 0}, {1, 256, 0}, {1, 128, 100},
              {2, 8, 0}, {2, 16, 5}, {2, 32, 0},  {2, 64, 0}, {2, 64, 11}, {2, 128, 0}};
enum {
    SHAPES = sizeof shapes / sizeof shapes[0]
};

static fbfft_desc shape_desc(int i, fbfft_kind kind) {
    return fft_desc(shapes[i].rank, kind, shapes[i].basis, shapes[i].extent);
}

/* A plan with room for a batch on the host. */
typedef struct bench {
    fft_shape shape;
    fft_run run;
    float *in;
    fbfft_plan *plan;
} bench;

static bench bench_create(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc, int64_t batch) {
    bench b = {.shape = fft_shape_of(desc)};
    assert_success(fbfft_plan_create(context, desc, &b.plan));
    b.in = test_alloc((size_t)(batch * b.shape.in) * sizeof *b.in);
    fft_random_planes(&b.shape, 3, batch, b.in);
    b.run = (fft_run){.gpu = gpu, .plan = b.plan, .in = b.in, .batch = batch};
    b.run.in_count = batch * b.shape.in;
    b.run.out_count = batch * b.shape.out;
    b.run.out = test_alloc((size_t)b.run.out_count * sizeof *b.run.out);
    return b;
}

static void bench_destroy(bench *b) {
    fbfft_plan_destroy(b->plan);
    free(b->in);
    free(b->run.out);
}

static void run(const bench *b) {
    char text[FFT_TEXT_BYTES];
    if (!fft_run_planes(&b->run, text))
        fail_msg("%s", text);
}

static float *copy_of(const float *values, int64_t count) {
    float *const copy = test_alloc((size_t)count * sizeof *copy);
    memcpy(copy, values, (size_t)count * sizeof *copy);
    return copy;
}

/* ||a - b|| / ||b|| */
static double distance(const float *a, const float *b, int64_t count) {
    fft_errors errors = {0};
    for (int64_t i = 0; i < count; ++i) {
        const double difference = (double)a[i] - (double)b[i];
        errors.error += difference * difference;
        errors.norm += (double)b[i] * (double)b[i];
    }
    return fft_relative_error(&errors);
}

/* ---------------------------------------------------------------------------------------------------- properties */

/* NaN and Inf in some planes: these show it, and all others keep their bits. */
static void isolate(const cf_gpu *gpu, conv_fft_context *context, const fbfft_desc *desc) {
    enum {
        BATCH = 67
    };
    bench b = bench_create(gpu, context, desc, BATCH);
    const int64_t in = b.shape.in, out = b.shape.out;
    run(&b);
    float *const clean = copy_of(b.run.out, b.run.out_count);
    bool spoiled[BATCH] = {[0] = true, [31] = true, [40] = true, [BATCH - 1] = true};
    b.in[0] = NAN;
    b.in[31 * in] = INFINITY;
    for (int64_t i = 0; i < in; ++i)
        b.in[40 * in + i] = NAN;
    b.in[(BATCH - 1) * in] = NAN;
    run(&b);
    for (int p = 0; p < BATCH; ++p) {
        bool finite = true;
        for (int64_t i = 0; i < out; ++i)
            finite = finite && isfinite(b.run.out[p * out + i]);
        const bool same = !memcmp(b.run.out + p * out, clean + p * out, (size_t)out * sizeof *clean);
        if (finite == spoiled[p] || same == spoiled[p])
            fail_msg("basis %lldx%lld, plane %d: %s", (long long)b.shape.rows, (long long)b.shape.columns, p,
                     spoiled[p] ? "its NaN does not show" : "another plane's NaN has changed it");
    }
    free(clean);
    bench_destroy(&b);
}

static void isolation(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    for (int i = 0; i < SHAPES; ++i) {
        const fbfft_desc there = shape_desc(i, FBFFT_R2C), back = shape_desc(i, FBFFT_C2R);
        isolate(gpu, context, &there);
        isolate(gpu, context, &back);
    }
    conv_fft_context_destroy(context);
}

static void linearity(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const int64_t batch = 9;
    for (int i = 0; i < 2 * SHAPES; ++i) {
        const fbfft_desc desc = shape_desc(i / 2, i % 2 ? FBFFT_C2R : FBFFT_R2C);
        bench b = bench_create(gpu, context, &desc, batch);
        run(&b);
        float *const first_in = copy_of(b.in, b.run.in_count), *const first = copy_of(b.run.out, b.run.out_count);
        fft_random_planes(&b.shape, 4, batch, b.in);
        run(&b);
        float *const combined = copy_of(b.run.out, b.run.out_count);
        for (int64_t k = 0; k < b.run.out_count; ++k)
            combined[k] = 0.75f * first[k] - 2 * combined[k];
        for (int64_t k = 0; k < b.run.in_count; ++k)
            b.in[k] = 0.75f * first_in[k] - 2 * b.in[k];
        run(&b);
        assert_true(distance(b.run.out, combined, b.run.out_count) <= 2 * FFT_TOLERANCE);
        free(first_in);
        free(first);
        free(combined);
        bench_destroy(&b);
    }
    conv_fft_context_destroy(context);
}

/* An impulse at the origin has a spectrum of ones; the energy of a spectrum is N times that of its signal. */
static void impulse_and_parseval(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const int64_t batch = 5;
    for (int i = 0; i < SHAPES; ++i) {
        const fbfft_desc desc = shape_desc(i, FBFFT_R2C);
        bench b = bench_create(gpu, context, &desc, batch);
        const fft_shape *const s = &b.shape;
        double signal = 0, spectrum = 0;
        run(&b);
        for (int64_t k = 0; k < b.run.in_count; ++k)
            signal += (double)b.in[k] * (double)b.in[k];
        for (int64_t k = 0; k < b.run.out_count; ++k) {
            const int64_t bin = k / 2 % s->bins, weight = bin == 0 || 2 * bin == s->columns ? 1 : 2;
            spectrum += (double)weight * (double)b.run.out[k] * (double)b.run.out[k];
        }
        assert_true(fabs(spectrum / ((double)(s->rows * s->columns) * signal) - 1) <= 2 * FFT_TOLERANCE);

        memset(b.in, 0, (size_t)b.run.in_count * sizeof *b.in);
        for (int64_t p = 0; p < batch; ++p)
            b.in[p * s->in] = (float)(p + 1);
        run(&b);
        for (int64_t k = 0; k < b.run.out_count; ++k)
            assert_true(fabs((double)b.run.out[k] - (k % 2 ? 0 : (double)(k / s->out + 1))) <= 1e-6);
        bench_destroy(&b);
    }
    conv_fft_context_destroy(context);
}

/* R2C, then C2R with scale 1 / N, gives the signal again. */
static void there_and_back(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const int64_t batch = 21;
    for (int i = 0; i < SHAPES; ++i) {
        const fbfft_desc there = shape_desc(i, FBFFT_R2C);
        fbfft_desc back = shape_desc(i, FBFFT_C2R);
        bench a = bench_create(gpu, context, &there, batch);
        back.scale = 1.0 / (double)(a.shape.rows * a.shape.columns);
        bench b = bench_create(gpu, context, &back, batch);
        run(&a);
        memcpy(b.in, a.run.out, (size_t)a.run.out_count * sizeof *b.in);
        run(&b);
        assert_true(distance(b.run.out, a.in, a.run.in_count) <= 2 * FFT_TOLERANCE);
        bench_destroy(&a);
        bench_destroy(&b);
    }
    conv_fft_context_destroy(context);
}

/* ----------------------------------------------------------------------------------------------------- the calls */

static void arguments(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    const fbfft_desc desc = shape_desc(1, FBFFT_R2C);
    fbfft_plan *plan;
    void *in, *out;
    unsigned char bytes[1024];
    assert_success(fbfft_plan_create(context, &desc, &plan));
    assert_true(strlen(fbfft_plan_description(plan)) > 0);
    print_message("%s\n", fbfft_plan_description(plan));
    assert_success(cf_gpu_allocate(gpu, sizeof bytes, &in));
    assert_success(cf_gpu_allocate(gpu, sizeof bytes, &out));
    assert_success(cf_gpu_fill(gpu, out, 0xFF, sizeof bytes, NULL));
    char *const odd_in = (char *)in + 2, *const odd_out = (char *)out + 1;
    EXPECT_INVALID(fbfft_execute(NULL, in, out, 1, NULL), "plan", "NULL");
    EXPECT_INVALID(fbfft_execute(plan, NULL, out, 1, NULL), "in is", "NULL");
    EXPECT_INVALID(fbfft_execute(plan, in, NULL, 1, NULL), "out is", "NULL");
    EXPECT_INVALID(fbfft_execute(plan, odd_in, out, 1, NULL), "in is", "multiple of 4");
    EXPECT_INVALID(fbfft_execute(plan, in, odd_out, 1, NULL), "out is", "multiple of 4");
    EXPECT_INVALID(fbfft_execute(plan, in, out, -1, NULL), "batch", "-1");
    assert_success(fbfft_execute(plan, in, out, 0, NULL));
    assert_success(cf_gpu_download(gpu, bytes, out, sizeof bytes, NULL));
    assert_success(cf_gpu_synchronize(gpu, NULL));
    for (size_t i = 0; i < sizeof bytes; ++i)
        assert_int_equal(bytes[i], 0xFF);
    fbfft_plan_destroy(plan);
    cf_gpu_free(gpu, in);
    cf_gpu_free(gpu, out);
    conv_fft_context_destroy(context);
}

enum {
    THREADS = 4,
    ROUNDS = 12
};

/* One thread: its own stream, its own memory, the plan of all. */
typedef struct worker {
    const bench *b;
    const float *expected;
    char text[FFT_TEXT_BYTES];
    bool good;
} worker;

static void *work(void *argument) {
    worker *const w = argument;
    fft_run r = w->b->run;
    cf_cu_stream stream = NULL;
    w->good = cf_gpu_stream_create(r.gpu, &stream) == CONV_FFT_SUCCESS;
    r.stream = stream;
    r.out = test_alloc((size_t)r.out_count * sizeof *r.out);
    snprintf(w->text, sizeof w->text, "no stream");
    for (int i = 0; i < ROUNDS && w->good; ++i) {
        w->good = fft_run_planes(&r, w->text);
        if (w->good && memcmp(r.out, w->expected, (size_t)r.out_count * sizeof *r.out) != 0) {
            snprintf(w->text, sizeof w->text, "the results have other bits than those of one thread");
            w->good = false;
        }
    }
    free(r.out);
    cf_gpu_stream_destroy(r.gpu, stream);
    return NULL;
}

static void streams_and_threads(void **state) {
    NEED_GPU(state);
    NEED_CONTEXT(gpu);
    for (int i = 0; i < SHAPES; ++i) {
        const fbfft_desc desc = shape_desc(i, i % 2 ? FBFFT_C2R : FBFFT_R2C);
        bench b = bench_create(gpu, context, &desc, 501);
        run(&b);
        worker workers[THREADS];
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; ++t) {
            workers[t] = (worker){.b = &b, .expected = b.run.out};
            assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
        }
        for (int t = 0; t < THREADS; ++t)
            pthread_join(threads[t], NULL);
        for (int t = 0; t < THREADS; ++t)
            if (!workers[t].good)
                fail_msg("thread %d: %s", t, workers[t].text);
        bench_destroy(&b);
    }
    conv_fft_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_GPU(isolation),      WITH_GPU(linearity), WITH_GPU(impulse_and_parseval),
        WITH_GPU(there_and_back), WITH_GPU(arguments), WITH_GPU(streams_and_threads),
    };
    return gpu_exit_status(cmocka_run_group_tests_name("fbfft on a GPU, rules", tests, NULL, NULL));
}
