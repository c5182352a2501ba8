/* SPDX-License-Identifier: Apache-2.0 */
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/c2c_fp16/plan.h"
#include "fbfft/common/kernel_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------------------------------------------------------- passes */

enum {
    LOG_SHORTEST_TILE = 10, /* words, of which each warp has a part */
    LOG_LINES_TILE = 12,    /* a tile may have several lines up to this length; longer lines have a tile each */
    LOG_USUAL_TILE = 14,
    /* the longest line in a tile of several blocks per multiprocessor; longer ones need several kernels */
    LOG_LONGEST_LINE = 14,
    LOG_LINE_AHEAD =
        15, /* the longest line if a multiprocessor has one block, which prefetches most of the next line */
    LOG_LONGEST_STEP = 8,
    LOG_LONGEST_OF_TWO = 11, /* points of a kernel if two kernels make a line */
    LOG_SECTOR = 3,          /* words of a sector; memory accesses are not smaller */
    WARP = 32,
    THREADS = 128,
    REGISTERS = 128, /* of a thread */
    ENTRY_BYTES = 4,
    CHUNK_BYTES = 1 << 30
};

static int log_of(int64_t n) {
    int log = 0;
    while (n > 1) {
        n /= 2;
        ++log;
    }
    return log;
}

void cf_c2c_fp16_finish(const cf_gpu_properties *properties, cf_c2c_fp16_pass *p) {
    const int64_t by_registers = properties->registers_per_multiprocessor / (p->threads * REGISTERS);
    p->max_blocks = INT32_MAX;
    if (p->form == CF_C2C_FP16_WARPS) {
        const int64_t warp_lines = (int64_t)p->each * p->rounds * (p->log_n == 4 ? 16 : p->log_n < 8 ? 8 : 1);
        p->block_lines = p->log_n < 4 ? (int64_t)p->threads * p->each : p->threads / 32 * warp_lines;
        p->blocks = (int)cf_max(1, by_registers);
        return;
    }
    p->shared = (int64_t)ENTRY_BYTES << (p->log_n + p->log_w);
    if (p->ahead)
        p->shared += p->shared / 4 * 3;
    p->block_lines = (int64_t)1 << p->log_w;
    const int64_t by_shared =
        properties->shared_per_multiprocessor / (p->shared + properties->shared_reserved_per_block);
    p->blocks = (int)cf_max(1, cf_min(by_registers, by_shared));
    if (p->ahead)
        p->max_blocks = (int64_t)p->blocks * properties->multiprocessors;
}

static bool has_ahead(const cf_gpu_properties *properties, int log_tile) {
    return ((int64_t)ENTRY_BYTES << log_tile) / 4 * 7 <= properties->shared_per_block;
}

/* The kernel for dense lines. */
static cf_c2c_fp16_pass lines_pass(int log_n) {
    static const int each[] = {0, 2, 1, 1, 1, 1, 4, 1, 2, 2};
    if (log_n < 10)
        return (cf_c2c_fp16_pass){.form = CF_C2C_FP16_WARPS, .log_n = log_n, .each = each[log_n], .rounds = 1};
    return (cf_c2c_fp16_pass){.form = CF_C2C_FP16_LINES,
                              .log_n = log_n,
                              .log_w = (int)cf_max(0, LOG_LINES_TILE - log_n),
                              .ahead = log_n == LOG_LINE_AHEAD};
}

/* As many columns as make a tile, at least whole sectors, and at most all columns. */
static int tile_columns(int log_n, int log_columns) {
    return (int)cf_min(log_columns, cf_max(LOG_SECTOR, LOG_USUAL_TILE - log_n));
}

static cf_c2c_fp16_pass columns_pass(int log_n, int log_inner, int log_twiddle) {
    return (cf_c2c_fp16_pass){.form = CF_C2C_FP16_COLUMNS,
                              .log_n = log_n,
                              .log_w = tile_columns(log_n, log_inner),
                              .log_inner = log_inner,
                              .log_twiddle = log_twiddle};
}

static cf_c2c_fp16_pass rows_pass(int log_n, int log_first, int log_middle) {
    return (cf_c2c_fp16_pass){.form = CF_C2C_FP16_ROWS,
                              .log_n = log_n,
                              .log_w = tile_columns(log_n, log_first),
                              .log_first = log_first,
                              .log_middle = log_middle};
}

/* Divide a line of N = N1 N2 (N3) points: columns of N1 points with twiddles, then rows of N2, or columns of N2 and
 * rows of N3. */
static void long_line(int log_n, cf_c2c_fp16_config *c) {
    /* Columns of up to 256 points are the cheapest, because they take one step. Rows may take two, as long as
     * accesses to columns are smaller than a sector. */
    static const int firsts[] = {7, 8, 8, 8, 8, 10, 10, 11};
    c->uses_workspace = true;
    if (log_n <= 2 * LOG_LONGEST_OF_TWO) {
        const int first = firsts[log_n - LOG_LONGEST_LINE - 1];
        c->count = 2;
        c->pass[0] = columns_pass(first, log_n - first, log_n);
        c->pass[1] = rows_pass(log_n - first, first, 0);
        return;
    }
    const int first = log_n / 3, second = (log_n - first) / 2, third = log_n - first - second;
    c->count = 3;
    c->pass[0] = columns_pass(first, log_n - first, log_n);
    c->pass[1] = columns_pass(second, third, log_n - first);
    c->pass[2] = rows_pass(third, first, second);
}

/* A block that has a multiprocessor to itself has twice as many threads as usual. With more, they would have too few
 * registers. */
static int threads_of(const cf_c2c_fp16_pass *p) {
    const int max_threads = p->ahead ? 2 * THREADS : THREADS;
    if (p->form == CF_C2C_FP16_WARPS)
        return THREADS;
    return (int)cf_min(max_threads, cf_max(WARP, WARP << (p->log_n + p->log_w) >> (LOG_SHORTEST_TILE + 1)));
}

static int64_t lines_of(const cf_c2c_fp16_config *c, const cf_c2c_fp16_pass *p) { return c->points >> p->log_n; }

void cf_c2c_fp16_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                           cf_c2c_fp16_config *config) {
    const int64_t *n = problem->transform.spectrum.basis;
    cf_c2c_fp16_config c = {.inverse = problem->transform.inverse, .points = n[1] * n[2], .count = 1};
    if (n[1] > 1) {
        c.count = 2;
        c.pass[0] = lines_pass(log_of(n[2]));
        c.pass[1] = columns_pass(log_of(n[1]), log_of(n[2]), 0);
    } else if (log_of(n[2]) <= LOG_LONGEST_LINE ||
               (log_of(n[2]) == LOG_LINE_AHEAD && has_ahead(properties, LOG_LINE_AHEAD))) {
        c.pass[0] = lines_pass(log_of(n[2]));
    } else {
        long_line(log_of(n[2]), &c);
    }
    c.chunk = c.count > 1 ? cf_max(1, CHUNK_BYTES / (c.points * ENTRY_BYTES)) : INT64_MAX;
    for (int i = 0; i < c.count; ++i) {
        cf_c2c_fp16_pass *p = &c.pass[i];
        p->log_r[0] = (int)cf_min(p->log_n, LOG_LONGEST_STEP);
        p->log_r[1] = p->log_n - p->log_r[0];
        p->threads = threads_of(p);
        p->lines = lines_of(&c, p);
        cf_c2c_fp16_finish(properties, p);
    }
    cf_c2c_fp16_set_gains(&c, problem->transform.scale);
    *config = c;
}

/* ------------------------------------------------------------------------------------------------------------ gains */

/* The products of a kernel in order: their points and the addresses of their gains. */
static int products_of(cf_c2c_fp16_pass *p, int log_points[4], float *gains[4]) {
    int count = 0;
    for (int step = 0; step < 2; ++step) {
        const int log = p->form == CF_C2C_FP16_WARPS ? (step == 0 ? p->log_n : 0) : p->log_r[step];
        const bool two = p->form == CF_C2C_FP16_WARPS ? log >= 8 : log > 4;
        p->gain[step][0] = p->gain[step][1] = 1;
        if (two) {
            log_points[count] = 4;
            gains[count++] = &p->gain[step][0];
        }
        if (log > 0) {
            log_points[count] = two ? log - 4 : log;
            gains[count++] = &p->gain[step][1];
        }
    }
    return count;
}

void cf_c2c_fp16_set_gains(cf_c2c_fp16_config *c, double scale) {
    const int all = log_of(c->points);
    const double size = fabs(scale);
    const int halvings = size >= 1 || size == 0 ? 0 : (int)cf_min(all, (int64_t)ceil(fmin(-log2(size), (double)all)));
    int done = 0, applied = 0;
    float *last = NULL;
    for (int i = 0; i < c->count; ++i) {
        int log_points[4];
        float *gains[4];
        const int products = products_of(&c->pass[i], log_points, gains);
        for (int k = 0; k < products; ++k) {
            done += log_points[k];
            const int now = halvings * done / all;
            *gains[k] = ldexpf(1, applied - now);
            applied = now;
            last = gains[k];
        }
    }
    *last = (float)(ldexp(scale, halvings) * (double)*last);
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void emit(const cf_c2c_fp16_config *c, const cf_c2c_fp16_pass *p, cf_text *t) {
    const bool warps = p->form == CF_C2C_FP16_WARPS;
    const char *const number = warps ? "unsigned" : "uint4";
    cf_text_add(
        t, "struct Config {\nstatic constexpr int LOG_N = %d, THREADS = %d;\nstatic constexpr bool INVERSE = %s;\n",
        p->log_n, p->threads, c->inverse ? "true" : "false");
    if (warps)
        cf_text_add(t, "static constexpr int EACH = %d, ROUNDS = %d;\n", p->each, p->rounds);
    else
        cf_text_add(t,
                    "static constexpr bool AHEAD = %s;\nstatic constexpr int FORM = %d, LOG_R1 = %d, LOG_R2 = %d, "
                    "LOG_W = %d, LOG_INNER = %d, LOG_TWIDDLE = "
                    "%d, LOG_FIRST = %d, LOG_MIDDLE = %d;\n",
                    p->ahead ? "true" : "false", (int)p->form, p->log_r[0], p->log_r[1], p->log_w, p->log_inner,
                    p->log_twiddle, p->log_first, p->log_middle);
    cf_text_add(t,
                "static __host__ __device__ constexpr float gain(int step, int product) {\n"
                "    return step == 0 ? product == 0 ? float(%.9g) : float(%.9g) : product == 0 ? float(%.9g) : "
                "float(%.9g);\n}\n};\n",
                (double)p->gain[0][0], (double)p->gain[0][1], (double)p->gain[1][0], (double)p->gain[1][1]);
    cf_text_add(t, "CF_C2C_FP16_KERNEL(%s, %s, %d, %d)\n", warps ? "fp16_lines" : "fp16_tile", number, p->threads,
                p->blocks);
}

conv_fft_status cf_c2c_fp16_source(const cf_c2c_fp16_config *config, int pass, cf_source *source) {
    char tail[2048];
    cf_text t = {tail, sizeof tail, 0};
    emit(config, &config->pass[pass], &t);
    *source = (cf_source){.name = "cf_c2c_fp16",
                          .options = {"--device-as-default-execution-space"},
                          .pdl_wait = true,
                          .dynamic_shared = (size_t)config->pass[pass].shared};
    return cf_fbfft_set_text(source, cf_c2c_fp16_kernel_text, &t);
}

void cf_c2c_fp16_describe(const cf_c2c_fp16_pass *p, cf_text *t) {
    static const char *const forms[] = {"lines", "columns", "rows to columns", "lines in registers"};
    cf_text_add(t, "c2c of FP16 by tensor cores; %s of %lld", forms[p->form], 1LL << p->log_n);
    if (p->form != CF_C2C_FP16_WARPS && p->log_r[1] > 0)
        cf_text_add(t, " = %d*%d", 1 << p->log_r[0], 1 << p->log_r[1]);
    cf_text_add(t, "; lines per block %lld%s; threads %d; shared memory %lld bytes", (long long)p->block_lines,
                p->ahead ? " at a time" : "", p->threads, (long long)p->shared);
}
