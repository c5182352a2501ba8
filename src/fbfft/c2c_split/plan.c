/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/c2c_split/plan.h"

#include "core/arith.h"
#include "cuda/driver/pointer_check.h"
#include "cuda/jit/build_list.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/launch.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>

enum {
    NUMBER_BYTES = 8, /* of a complex number */
    LOG_MIN = 8,
    LOG_FEW = 4,      /* of a column that FP32 units compute */
    LOG_MAX_ROW = 14, /* of one kernel */
    LOG_MAX_TWO = 24  /* of a row that two kernels transform */
};

/* ---------------------------------------------------------------------------------------------------- configuration */

/* By the logarithm of the points: threads and lines of a block, and the most registers of a thread. With five blocks of
 * 128 threads, a multiprocessor has enough copies under way. From 8,192 points on, 96 registers do not hold what a
 * thread transforms. Columns: at least eight lines, 64 bytes of memory, and four where the tile would be too large. */
typedef struct tile_shape {
    int threads, lines, registers;
} tile_shape;
static const tile_shape rows[] = {{128, 4, 96}, {128, 4, 96},  {128, 2, 96}, {128, 1, 96},
                                  {128, 1, 96}, {128, 1, 168}, {256, 1, 255}},
                        columns[] = {{128, 16, 96}, {128, 8, 96}, {256, 8, 96}, {256, 4, 96}, {512, 4, 96}},
                        units = {128, 256, 96}, reals = {128, 0, 64};

static int log_of(int64_t n) {
    int log = 0;
    while ((int64_t)1 << log < n)
        ++log;
    return log;
}

static cf_c2c_split_pass pass_of(int form, int log_n, int log_inner) {
    return (cf_c2c_split_pass){.form = form, .log_n = log_n, .log_inner = log_inner};
}

static void add(cf_c2c_split_config *c, cf_c2c_split_pass pass) { c->pass[c->count++] = pass; }

/* A row above 2^LOG_MAX_ROW points, as two axes or three. */
static void list_long_row(int log, cf_c2c_split_config *c) {
    const int last = log > LOG_MAX_TWO ? log / 3 : 0, first = log < 2 * LOG_MIN ? log - LOG_FEW
                                                              : last            ? (log - last + 1) / 2
                                                                                : log / 2;
    cf_c2c_split_pass from = pass_of(CF_C2C_SPLIT_FIRST, first, log - first),
                      middle = pass_of(CF_C2C_SPLIT_COLUMNS, log - first - last, first);
    from.log_last = middle.log_last = last;
    add(c, from);
    add(c, middle);
    if (last)
        add(c, pass_of(CF_C2C_SPLIT_COLUMNS, last, log - last));
}

/* The kernels that transform complex points, in their order: the last axis first. */
static void list_axes(const int log[3], cf_c2c_split_config *c) {
    if (log[2] > LOG_MAX_ROW) {
        list_long_row(log[2], c);
        return;
    }
    add(c, pass_of(CF_C2C_SPLIT_ROWS, log[2], 0));
    if (log[1] > 0)
        add(c, pass_of(CF_C2C_SPLIT_COLUMNS, log[1], log[2]));
    if (log[0] > 0)
        add(c, pass_of(CF_C2C_SPLIT_COLUMNS, log[0], log[1] + log[2]));
}

static void list_passes(const int log[3], cf_c2c_split_config *c) {
    cf_c2c_split_pass own = pass_of(CF_C2C_SPLIT_REALS, log[2], 0);
    own.log_rows[0] = log[0];
    own.log_rows[1] = log[1];
    const bool one_more = c->reals && (log[0] + log[1] > 0 || log[2] > LOG_MAX_ROW);
    if (one_more && c->inverse)
        add(c, own);
    list_axes(log, c);
    if (one_more && !c->inverse)
        add(c, own);
    c->pass[0].reals = c->reals && !one_more;
}

static conv_fft_status finish(const cf_gpu_properties *properties, cf_c2c_split_pass *p) {
    const bool in_rows = p->form == CF_C2C_SPLIT_ROWS;
    const tile_shape *const s = p->form == CF_C2C_SPLIT_REALS ? &reals
                                : p->log_n < LOG_MIN          ? &units
                                                              : (in_rows ? rows : columns) + p->log_n - LOG_MIN;
    p->threads = s->threads;
    p->lines = s->lines;
    if (p->form != CF_C2C_SPLIT_REALS && (p->log_n > LOG_MIN || (p->log_n == LOG_MIN && (!in_rows || p->reals))))
        p->shared = (int64_t)16 * p->lines * cf_c2c_split_line(p->log_n, in_rows ? 1 : p->lines);
    if (p->shared > properties->shared_per_block)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "arithmetic is FBFFT_ARITHMETIC_SPLIT (2), and lines of %lld points take %lld bytes of shared "
                       "memory; a block of this GPU has %lld: choose shorter axes, or FBFFT_ARITHMETIC_FP32 (1) if it "
                       "has these sizes",
                       1LL << p->log_n, (long long)p->shared, (long long)properties->shared_per_block);
    const int64_t by_shared =
                      properties->shared_per_multiprocessor / (p->shared + properties->shared_reserved_per_block),
                  by_registers = properties->registers_per_multiprocessor / (p->threads * s->registers);
    p->blocks = (int)cf_max(1, cf_min(by_registers, by_shared));
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_c2c_split_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                       cf_c2c_split_config *config) {
    const int64_t *n = problem->transform.spectrum.basis;
    cf_c2c_split_config c = {
        .inverse = problem->transform.inverse, .reals = !problem->complex_signal, .rows = n[0] * n[1]};
    const int64_t last = c.reals ? n[2] / 2 : n[2];
    c.points = c.rows * last;
    list_passes((const int[3]){log_of(n[0]), log_of(n[1]), log_of(last)}, &c);
    for (int i = 0; i < c.count; ++i)
        CF_FORWARD(finish(properties, &c.pass[i]));
    *config = c;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_c2c_split_source(const cf_c2c_split_config *c, int pass, cf_source *source) {
    const cf_c2c_split_pass *const p = &c->pass[pass];
    char tail[1024];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(&t,
                "struct Config {\nstatic constexpr int LOG_N = %d, THREADS = %d, LINES = %d, FORM = %d, LOG_INNER = "
                "%d, LOG_LAST = "
                "%d,\nLOG_ROWS_0 = %d, LOG_ROWS_1 = %d;\n"
                "static constexpr bool INVERSE = %s, REALS = %s;\n};\nCF_C2C_SPLIT_KERNEL(%d, %d)\n",
                p->log_n, p->threads, p->lines, p->form, p->log_inner, p->log_last, p->log_rows[0], p->log_rows[1],
                c->inverse ? "true" : "false", p->reals ? "true" : "false", p->threads, p->blocks);
    *source = (cf_source){.name = "cf_c2c_split",
                          .options = {"--device-as-default-execution-space"},
                          .pdl_wait = true,
                          .dynamic_shared = (size_t)p->shared};
    return cf_fbfft_set_text(source, cf_c2c_split_kernel_text, &t);
}

void cf_c2c_split_describe(const cf_c2c_split_config *c, int pass, cf_text *t) {
    static const char *const forms[] = {"lines", "columns", "columns to lines"};
    const cf_c2c_split_pass *const p = &c->pass[pass];
    const long long n = 1LL << p->log_n;
    if (p->form == CF_C2C_SPLIT_REALS) {
        cf_text_add(t, "bins of lines of %lld complex numbers %s those of %lld reals, by FP32 units; threads %d", n,
                    c->inverse ? "from" : "to", 2 * n, p->threads);
        return;
    }
    cf_text_add(t, "%s of FP32 by tensor cores, split into two FP16 numbers; %s of %lld",
                !p->reals    ? "c2c"
                : c->inverse ? "c2r"
                             : "r2c",
                forms[p->form], n);
    if (p->log_n < LOG_MIN)
        cf_text_add(t, " by FP32 units");
    if (p->log_n > LOG_MIN)
        cf_text_add(t, " = %d*256", 1 << (p->log_n - LOG_MIN));
    cf_text_add(t, "%s; lines per block %d; threads %d; shared memory %lld bytes", p->reals ? " pairs of reals" : "",
                p->lines, p->threads, (long long)p->shared);
}

/* ------------------------------------------------------------------------------------------------------------ plans */

static conv_fft_status list_kernels(cf_c2c_split_plan *plan, cf_build_list *list) {
    for (int i = 0; i < plan->config.count; ++i) {
        cf_source source;
        CF_FORWARD(cf_c2c_split_source(&plan->config, i, &source));
        CF_FORWARD(cf_build_list_add(list, &source, &plan->kernel[i], NULL));
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status build(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_split_plan *plan) {
    cf_build_list *list = NULL;
    CF_FORWARD(cf_c2c_split_configure(problem, &gpu->properties, &plan->config));
    CF_FORWARD(cf_build_list_create(gpu, &list));
    return cf_build_list_end(list, list_kernels(plan, list));
}

conv_fft_status cf_c2c_split_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_split_plan **result) {
    cf_c2c_split_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cf_fail_memory(sizeof *plan, "a plan");
    plan->scale = (float)problem->transform.scale;
    const conv_fft_status status = build(gpu, problem, plan);
    if (status != CONV_FFT_SUCCESS)
        cf_c2c_split_plan_destroy(plan);
    else
        *result = plan;
    return status;
}

void cf_c2c_split_plan_destroy(cf_c2c_split_plan *plan) {
    if (!plan)
        return;
    for (int i = 0; i < plan->config.count; ++i)
        cf_kernel_destroy(plan->kernel[i]);
    free(plan);
}

size_t cf_c2c_split_plan_workspace(const cf_c2c_split_plan *plan, int64_t entries) {
    const cf_c2c_split_config *c = &plan->config;
    if (!c->reals || c->count == 1 || entries == 0)
        return 0;
    return (size_t)(entries * c->points * NUMBER_BYTES) + CF_C2C_SPLIT_ALIGNMENT - 1;
}

static conv_fft_status launch(const cf_c2c_split_plan *plan, int i, const void *in, void *out, int64_t entries,
                              struct CUstream_st *stream) {
    const cf_c2c_split_config *c = &plan->config;
    const cf_c2c_split_pass *p = &c->pass[i];
    long long lines = entries * (c->points >> p->log_n);
    float scale = i + 1 < c->count ? 1 : plan->scale;
    const int64_t block_points =
        p->form == CF_C2C_SPLIT_REALS ? (int64_t)2 * CF_C2C_SPLIT_PAIRS * p->threads : (int64_t)p->lines << p->log_n;
    const int64_t blocks = cf_ceil_div(lines << p->log_n, block_points);
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch makes %lld blocks; one call takes at most %d",
                       (long long)blocks, INT32_MAX);
    const cf_launch shape = {{(unsigned)blocks, 1, 1}, {(unsigned)p->threads, 1, 1}, (size_t)p->shared, NULL};
    void *parameters[] = {&in, &out, &lines, &scale};
    return cf_kernel_launch(plan->kernel[i], &shape, parameters, stream);
}

conv_fft_status cf_c2c_split_plan_run(const cf_c2c_split_plan *plan, const void *in, void *out, int64_t entries,
                                      void *workspace, struct CUstream_st *stream) {
    const cf_c2c_split_config *c = &plan->config;
    const size_t bytes = (size_t)(entries * c->points * NUMBER_BYTES),
                 bins = bytes + (c->reals ? (size_t)(entries * c->rows * NUMBER_BYTES) : 0);
    const cf_gpu_argument arguments[] = {{"in", in, c->inverse ? bins : bytes},
                                         {"out", out, c->inverse ? bytes : bins},
                                         {"workspace", workspace, cf_c2c_split_plan_workspace(plan, entries)}};
    CF_FORWARD(cf_gpu_check_arguments(plan->kernel[0]->gpu, arguments, 3, stream));
    void *const complex_points =
        (void *)(((uintptr_t)workspace + CF_C2C_SPLIT_ALIGNMENT - 1) / CF_C2C_SPLIT_ALIGNMENT * CF_C2C_SPLIT_ALIGNMENT);
    for (int i = 0; i < c->count; ++i) {
        /* Reals: the output has another pitch of rows, or the first transform would overwrite what it reads. */
        void *const to = c->reals && c->count > 1 && (c->inverse ? i == 0 : i + 1 < c->count) ? complex_points : out;
        CF_FORWARD(launch(plan, i, in, to, entries, stream));
        in = to;
    }
    return CONV_FFT_SUCCESS;
}
