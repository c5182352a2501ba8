/* SPDX-License-Identifier: Apache-2.0 */
/* Cases are measured one after the other: each product on tensor cores, by cuBLAS, and a copy of as many bytes.
 * They take turns. */
#include "gemm/run.h"

#include "common/build_info.h"
#include "common/csv.h"
#include "common/message.h"
#include "gemm/half.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS 31
#define WARM_UPS 3
#define FLUSH_BYTES ((size_t)256 << 20)

enum {
    OURS,
    CUBLAS,
    COPY,
    IMPLS
};

static const char *const impl_names[IMPLS] = {"ours", "cublas", "copy"};
static const char *const strategies[IMPLS] = {"product=tensor", "cublasCgemmStridedBatched",
                                              "(read + written) / 2 bytes"};
static const char *const passes[] = {"fprop", "bprop", "accgrad"};
static const char *const precisions[GEMM_PRECISIONS] = {"fp32", "tf32", "fp16", "bf16"};
static const double max_error[GEMM_PRECISIONS] = {1e-6, 1e-3, 2e-3, 1e-2}; /* a result with a larger error is wrong */

typedef struct session {
    const gemm_options *o;
    conv_fft_context *context;
    cf_gpu *gpu;
    cf_cu_stream stream;
    cf_cu_event start, end;
    void *flush, *copy[2];
    bench_part part;
    bool wrong;
} session;

/* ---- header */

static void write_header(session *run) {
    char commit[64], date[32], driver[64];
    bench_commit(run->o->commit, commit, sizeof commit);
    bench_date(date, sizeof date);
    bench_driver(driver, sizeof driver);
    snprintf(run->part.header, sizeof run->part.header,
             "# suite gemm, commit %s, %s\n"
             "# device: %s, driver %s, CUDA %s\n"
             "# libraries: conv_fft %s, NVRTC %s\n"
             "# cases: bins-rows x columns of x x columns of y; median of %d runs by device events, taking turns, "
             "%zu MiB written before each\n",
             commit, date, run->gpu->properties.name, driver, run->gpu->driver.library.version,
             conv_fft_version_string(), run->gpu->jit.library.usable ? run->gpu->jit.library.version : "none", REPEATS,
             FLUSH_BYTES >> 20);
}

/* ---- one product */

static cf_block block_of(const gemm_job *job, int operand) {
    const gemm_case *const c = job->c;
    const int64_t rows = operand == 1 ? c->out : c->rows, columns = operand == 2 ? c->out : c->in;
    return (cf_block){.data = job->operand[operand],
                      .groups = 1,
                      .rows = rows,
                      .bin_stride = rows * columns,
                      .group_stride = c->bins * rows * columns,
                      .scales = job->precision == GEMM_FP16 ? job->scales[operand] : NULL,
                      .scale_stride = (int64_t)gemm_scales(c, operand)};
}

static conv_fft_status run_once(const session *run, const gemm_job *job, const cf_cgemm_desc *desc, int impl) {
    cf_device *const device = run->context->device;
    if (impl == CUBLAS && gemm_is_half(job))
        return gemm_half_cublas(job);
    if (impl != COPY)
        return device->ops->product(device, &desc[impl], block_of(job, 0), block_of(job, 1), block_of(job, 2), false,
                                    NULL, run->stream);
    const size_t bytes = gemm_bytes(job, 0) + gemm_bytes(job, 1) + gemm_bytes(job, 2);
    return cf_gpu_copy(run->gpu, run->copy[0], run->copy[1], bytes / 2, run->stream);
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static conv_fft_status measure_all(const session *run, const gemm_job *job, const cf_cgemm_desc *desc,
                                   double ms[IMPLS]) {
    double samples[IMPLS][REPEATS];
    for (int r = -WARM_UPS; r < REPEATS; r++)
        for (int i = 0; i < IMPLS; i++) {
            float one;
            CF_FORWARD(cf_gpu_fill(run->gpu, run->flush, 0x5A, FLUSH_BYTES, run->stream));
            CF_FORWARD(cf_gpu_event_record(run->gpu, run->start, run->stream));
            CF_FORWARD(run_once(run, job, desc, i));
            CF_FORWARD(cf_gpu_event_record(run->gpu, run->end, run->stream));
            CF_FORWARD(cf_gpu_event_elapsed(run->gpu, run->start, run->end, &one));
            if (r >= 0)
                samples[i][r] = (double)one;
        }
    for (int i = 0; i < IMPLS; i++) {
        qsort(samples[i], REPEATS, sizeof *samples[i], compare);
        ms[i] = samples[i][REPEATS / 2];
    }
    return CONV_FFT_SUCCESS;
}

static bool add_row(session *run, const gemm_job *job, int impl, double ms, double error) {
    const gemm_precision precision = job->precision;
    bench_row row = {.suite = "gemm", .ms = ms, .rel_l2 = error};
    bench_copy(row.layer, sizeof row.layer, job->c->name);
    bench_copy(row.pass, sizeof row.pass, passes[job->kind]);
    bench_copy(row.precision, sizeof row.precision, precisions[precision]);
    bench_copy(row.impl, sizeof row.impl, impl_names[impl]);
    bench_copy(row.strategy, sizeof row.strategy,
               impl == CUBLAS && gemm_is_half(job) ? gemm_half_strategy : strategies[impl]);
    if (!(error <= max_error[precision])) {
        bench_message("%s %s %s %s: wrong result, relative error %.2e", row.layer, row.pass, row.precision, row.impl,
                      error);
        run->wrong = true;
    }
    fprintf(stderr, " %s %.4f (%.2e)", row.impl, ms, error);
    return bench_part_add(&run->part, &row);
}

static conv_fft_status check(const session *run, const gemm_job *job, const cf_cgemm_desc *desc, int impl,
                             double *error) {
    *error = 0;
    if (impl == COPY)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(gemm_poison(job));
    CF_FORWARD(run_once(run, job, desc, impl));
    return impl == CUBLAS && gemm_is_half(job) ? gemm_half_error(job, error) : gemm_error(job, error);
}

static conv_fft_status measure_job(session *run, const gemm_job *job, const cf_cgemm_desc *desc) {
    double ms[IMPLS], error;
    CF_FORWARD(gemm_fill(job));
    CF_FORWARD(measure_all(run, job, desc, ms));
    fprintf(stderr, "%-20s %-7s %s", job->c->name, passes[job->kind], precisions[job->precision]);
    for (int i = 0; i < IMPLS; i++) {
        CF_FORWARD(check(run, job, desc, i, &error));
        if (!add_row(run, job, i, ms[i], error))
            return CONV_FFT_OUT_OF_MEMORY;
    }
    fputc('\n', stderr);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status run_job(session *run, const gemm_job *job) {
    static const conv_fft_dtype dtypes[GEMM_PRECISIONS] = {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_FP16, CONV_FFT_BF16};
    static const conv_fft_math maths[GEMM_PRECISIONS] = {CONV_FFT_MATH_FP32, CONV_FFT_MATH_TF32, CONV_FFT_MATH_HALF,
                                                         CONV_FFT_MATH_HALF};
    const bool sums_rows = job->kind == CF_CGEMM_BACKWARD_WEIGHTS;
    const gemm_case *const c = job->c;
    cf_device *const device = run->context->device;
    cf_cgemm_desc desc[2];
    for (int i = 0; i < 2; i++)
        desc[i] = (cf_cgemm_desc){.kind = job->kind,
                                  .variant = i == OURS ? CF_CGEMM_TENSOR : CF_CGEMM_BLAS,
                                  .dtype = dtypes[job->precision],
                                  .result_dtype = sums_rows ? CONV_FFT_FP32 : dtypes[job->precision],
                                  .math = maths[job->precision],
                                  .bins = c->bins,
                                  .in_columns = c->in,
                                  .out_columns = c->out,
                                  .rows = c->rows,
                                  .groups = 1};
    cf_cgemm_desc *const ours = &desc[OURS];
    cf_build_list *list = NULL;
    conv_fft_status status = device->ops->build_begin(device, &list);
    if (status == CONV_FFT_SUCCESS)
        status = device->ops->build_end(list, device->ops->products_list(device, &ours, 1, list));
    if (status == CONV_FFT_SUCCESS)
        status = measure_job(run, job, desc);
    device->ops->product_destroy(desc[OURS].compiled);
    return status;
}

/* ---- all cases */

static conv_fft_status allocate(session *run, gemm_job *job) {
    const gemm_case *const c = job->c;
    size_t bytes = 0, spread = 0;
    for (int i = 0; i < 3; i++) {
        bytes += gemm_most_bytes(c, i);
        spread = spread > gemm_most_bytes(c, i) ? spread : gemm_most_bytes(c, i);
        CF_FORWARD(cf_gpu_allocate(run->gpu, gemm_most_bytes(c, i), &job->operand[i]));
        CF_FORWARD(cf_gpu_allocate(run->gpu, gemm_scales(c, i) * sizeof(float), (void **)&job->scales[i]));
    }
    CF_FORWARD(cf_gpu_allocate(run->gpu, spread, &job->spread));
    CF_FORWARD(cf_gpu_allocate(run->gpu, bytes / 2, &run->copy[0]));
    return cf_gpu_allocate(run->gpu, bytes / 2, &run->copy[1]);
}

static conv_fft_status run_case(session *run, const gemm_case *c) {
    gemm_job job = {.c = c, .context = run->context, .gpu = run->gpu, .stream = run->stream};
    conv_fft_status status = allocate(run, &job);
    for (int kind = 0; kind < 3; kind++)
        for (int precision = 0; precision < GEMM_PRECISIONS && status == CONV_FFT_SUCCESS; precision++) {
            job.kind = (cf_cgemm_kind)kind;
            job.precision = (gemm_precision)precision;
            status = run_job(run, &job);
        }
    for (int i = 0; i < 3; i++) {
        cf_gpu_free(run->gpu, job.operand[i]);
        cf_gpu_free(run->gpu, job.scales[i]);
    }
    cf_gpu_free(run->gpu, job.spread);
    for (int i = 0; i < 2; i++) {
        cf_gpu_free(run->gpu, run->copy[i]);
        run->copy[i] = NULL;
    }
    return status;
}

static conv_fft_status open_session(session *run) {
    conv_fft_context_options options;
    conv_fft_context_options_init(&options);
    options.device = 0;
    CF_FORWARD(conv_fft_context_create(&options, &run->context));
    run->gpu = run->context->gpu;
    CF_FORWARD(run->context->device->ops->prepare(run->context->device));
    CF_FORWARD(cf_gpu_stream_create(run->gpu, &run->stream));
    CF_FORWARD(cf_gpu_event_create(run->gpu, &run->start));
    CF_FORWARD(cf_gpu_event_create(run->gpu, &run->end));
    return cf_gpu_allocate(run->gpu, FLUSH_BYTES, &run->flush);
}

static void close_session(session *run) {
    if (run->gpu) {
        cf_gpu_free(run->gpu, run->flush);
        cf_gpu_event_destroy(run->gpu, run->start);
        cf_gpu_event_destroy(run->gpu, run->end);
        cf_gpu_stream_destroy(run->gpu, run->stream);
    }
    conv_fft_context_destroy(run->context);
    free(run->part.rows);
}

bool gemm_bench(const gemm_options *o, const gemm_case *cases, size_t count) {
    session run = {.o = o};
    conv_fft_status status = open_session(&run);
    for (size_t i = 0; i < count && status == CONV_FFT_SUCCESS; i++)
        status = run_case(&run, &cases[i]);
    if (status != CONV_FFT_SUCCESS)
        bench_message("%s", conv_fft_last_error());
    bool good = status == CONV_FFT_SUCCESS && !run.wrong;
    if (run.part.count > 0) {
        write_header(&run);
        good = bench_csv_write(o->out, &run.part) && good;
    }
    close_session(&run);
    return good;
}
