/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan/roofline.h"

#include "core/arith.h"
#include "core/dtype.h"

enum {
    SHARED_BYTES_PER_CYCLE = 128,
    MAX_REGISTERS = 255
};

static const double copy_efficiency = 0.87;

/* ------------------------------------------------------------------------------------------------------------ rates */

/* Operations of a multiprocessor per cycle. GPUs of compute capability 8.0, 9.0 and 10.0 are those of servers. */
static int lanes_of(const cf_gpu_properties *properties, conv_fft_dtype compute) {
    const bool of_a_server = properties->compute_minor == 0 && properties->compute_major <= 10;
    if (compute == CONV_FFT_FP64)
        return !of_a_server ? 2 : properties->compute_major == 8 ? 32 : 64;
    return of_a_server && properties->compute_major == 8 ? 64 : 128;
}

cf_fft_rates cf_fft_rates_of(const cf_gpu_properties *properties, conv_fft_dtype compute) {
    const double cycles = (double)properties->multiprocessors * (double)properties->clock_khz * 1e3;
    return (cf_fft_rates){.memory = copy_efficiency * 2e3 * (double)properties->memory_clock_khz *
                                    (double)properties->memory_bus_bits / 8,
                          .shared = SHARED_BYTES_PER_CYCLE * cycles,
                          .arithmetic = lanes_of(properties, compute) * cycles};
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* The same as cf_factor() of register_dft.cuh. */
static int factor_of(int n) {
    static const int primes[] = {2, 3, 5, 7};
    if (n % 8 == 0 && n >= 64)
        return 8;
    if (n % 4 == 0 && n > 4)
        return 4;
    for (int i = 0; i < 4; ++i)
        if (n % primes[i] == 0 && n > primes[i])
            return primes[i];
    return n;
}

enum {
    COMPLEX_ADD = 2,
    COMPLEX_MULTIPLY = 4,
    SPLIT_PAIR = 8 /* Hermitian split or merge of two numbers */
};

/* Operations of n points in registers. */
static double dft_operations(int n) {
    if (n == 1)
        return 0;
    if (n == 2)
        return 2 * COMPLEX_ADD;
    if (n == 4)
        return 8 * COMPLEX_ADD;
    const int a = factor_of(n), b = n / a, half = (n - 1) / 2;
    if (b == 1)
        return half * (3 * COMPLEX_ADD + half * 4 + 2 * COMPLEX_ADD);
    return b * dft_operations(a) + a * dft_operations(b) + (a - 1) * (b - 1) * COMPLEX_MULTIPLY;
}

/* A line in up to three steps, with twiddles between them. */
static double line_operations(const int r[3]) {
    const int n = r[0] * r[1] * r[2];
    double total = 0;
    for (int i = 0; i < 3; ++i)
        total += (double)(n / r[i]) * dft_operations(r[i]);
    for (int i = 0; i < 2; ++i)
        total += r[i + 1] > 1 ? COMPLEX_MULTIPLY * (double)(n - n / r[i]) : 0;
    return total;
}

static int product(const int r[3]) { return r[0] * r[1] * r[2]; }
static int steps(const int r[3]) { return (r[0] > 1) + (r[1] > 1) + (r[2] > 1); }

/* ------------------------------------------------------------------------------------------------- one plane's work */

typedef struct work {
    double shared, operations; /* complex numbers that go through shared memory; operations */
} work;

static int64_t data_points(const cf_shared_fft_problem *p, int x) {
    const cf_axis_window *a = &p->fft.transform.window.axis[x];
    return p->sliced[x] ? cf_min(a->count, 1) : a->count > 0 ? (a->count - 1) * a->spread + 1 : 0;
}

/* Bins of a plane of the kernel. */
static double bins_of(const cf_shared_fft_problem *p) {
    const int64_t *n = p->fft.transform.spectrum.basis;
    const int64_t last = p->fft.complex_signal ? n[2] : n[2] / 2 + 1;
    return (double)(n[0] * n[1] * last);
}

/* The work of shared_memory/kernel.cuh. */
static work tile_work(const cf_shared_fft_config *c) {
    const bool pairs = c->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX;
    const int64_t *n = c->problem.fft.transform.spectrum.basis;
    const double line = product(c->radix[2]), columns = pairs ? (double)((n[2] + 1) / 2) : line;
    const double depth = (double)data_points(&c->problem, 0), rows = (double)data_points(&c->problem, 1);
    const double lines = depth * (pairs ? (double)(((int64_t)rows + 1) / 2) : rows);
    const double axis1 = depth * columns, axis0 = (double)n[1] * columns; /* lines along axis 1 and axis 0 */
    work w = {.shared = lines * line + bins_of(&c->problem) * (c->direct ? -1 : 1)};
    w.shared += 2 * steps(c->radix[2]) * lines * line;
    w.operations = lines * line_operations(c->radix[2]);
    if (pairs) {
        w.operations += lines * columns * SPLIT_PAIR;
        w.shared += steps(c->radix[1]) > 1 ? 2 * lines * line : 0;
    } else if (!c->problem.fft.complex_signal) {
        w.operations += bins_of(&c->problem) * SPLIT_PAIR;
    }
    w.shared += 2 * steps(c->radix[1]) * axis1 * (double)n[1] + 2 * steps(c->radix[0]) * axis0 * (double)n[0];
    w.operations += axis1 * line_operations(c->radix[1]) + axis0 * line_operations(c->radix[0]);
    if (c->in_registers)
        w.shared = 0;
    return w;
}

/* A line on several lanes. Each of the log2(lanes) shuffles moves half of its numbers. */
static work lanes_work(int n, int lanes) {
    const int radix[3] = {lanes, n / lanes, 1};
    double rounds = 0;
    for (int l = lanes; l > 1; l /= 2)
        ++rounds;
    return (work){.shared = rounds * n / 2, .operations = line_operations(radix)};
}

/* real2d.cuh: rows and their transforms, then columns and theirs, through shared memory. */
static work plane_work(const cf_fft_config *c) {
    const double pairs = (c->extent[0] + 1) / 2, w = c->basis[1], h = c->basis[0];
    const work row = lanes_work(c->basis[1], c->lanes), column = lanes_work(c->basis[0], c->lanes);
    return (work){.shared = 2 * (pairs * c->extent[1] + pairs * w + h * (w / 2 + 1)) + pairs * row.shared +
                            w / 2 * column.shared,
                  .operations = pairs * (row.operations + w / 2 * SPLIT_PAIR) + w / 2 * column.operations};
}

/* real1d.cuh and real1d_warp.cuh: a real line as a complex line of half the length. In real1d.cuh it goes through
 * shared memory. */
static work short_line_work(const cf_fft_config *c) {
    const int half = c->basis[1] / 2;
    const double bins = half + 1;
    if (c->pairs) {
        const int radix[3] = {2 * c->lanes, half / (2 * c->lanes), 1};
        return (work){.shared = 2 * half + (c->inverse ? 0 : 2 * bins),
                      .operations = line_operations(radix) + bins * SPLIT_PAIR};
    }
    const work line = lanes_work(half, c->lanes);
    return (work){.shared = c->extent[1] + 2 * half + 2 * bins + line.shared,
                  .operations = line.operations + bins * SPLIT_PAIR};
}

/* ------------------------------------------------------------------------------------------------------- the budget */

/* Points of an axis that lie inside the signal. */
static int64_t inside(const cf_axis_window *a) {
    if (a->mode != CONV_FFT_PAD_ZEROS || a->count == 0)
        return a->count;
    const int64_t first = a->origin < 0 ? cf_ceil_div(-a->origin, a->step) : 0;
    const int64_t behind = a->size > a->origin ? cf_ceil_div(a->size - a->origin, a->step) : 0;
    return cf_max(0, cf_min(a->count, behind) - first);
}

cf_fft_budget cf_fft_budget_of(const cf_fft_passes *passes, int i, const cf_gpu_properties *properties, int64_t rows) {
    const cf_fft_pass *pass = &passes->pass[i];
    const cf_shared_fft_problem *p = &pass->tile[0].problem;
    const cf_transform_desc *t = &p->fft.transform;
    const double planes = (double)rows * (double)p->rows * (double)t->spectrum.columns;
    const double number = (double)cf_dtype_bytes(t->spectrum.dtype);
    double signal = planes * (double)cf_dtype_bytes(t->tensor.dtype) * (p->fft.complex_signal ? 2 : 1);
    for (int x = 0; x < 3; ++x)
        signal *= (double)(p->sliced[x] ? 1 : inside(&t->window.axis[x]));
    const double spectrum = planes * bins_of(p) * 2 * number;
    const work w = !pass->plain             ? tile_work(&pass->tile[0])
                   : pass->real[0].rank > 1 ? plane_work(&pass->real[0])
                                            : short_line_work(&pass->real[0]);
    cf_fft_budget b = {.shared = planes * w.shared * 2 * number, .operations = planes * w.operations};
    *(i == 0 ? t->inverse ? &b.written : &b.read : &b.between) += signal;
    *(i + 1 == passes->count ? t->inverse ? &b.read : &b.written : &b.between) += spectrum;
    const cf_fft_rates rates = cf_fft_rates_of(properties, t->spectrum.dtype);
    int64_t between = 0;
    for (int k = 0; k + 1 < passes->count; ++k)
        between = cf_max(between, passes->between[k]);
    const bool cached = (double)between * (double)cf_min(rows, passes->chunk) <= (double)properties->l2_bytes / 2;
    b.copy_seconds = (b.read + b.written) / rates.memory;
    b.seconds[0] = b.copy_seconds + (cached ? 0 : b.between / rates.memory);
    b.seconds[1] = b.shared / rates.shared;
    b.seconds[2] = b.operations / rates.arithmetic;
    return b;
}

cf_fft_occupancy cf_fft_occupancy_of(const cf_fft_pass *pass, const cf_gpu_properties *properties) {
    const int64_t threads = pass->plain ? pass->real[0].threads : pass->tile[0].threads;
    const int64_t shared = pass->plain ? pass->real[0].shared : pass->tile[0].shared;
    cf_fft_occupancy o = {.threads = threads,
                          .by_registers = pass->plain ? pass->real[0].blocks : pass->tile[0].blocks};
    o.by_shared = properties->shared_per_multiprocessor / (shared + properties->shared_reserved_per_block);
    o.by_threads = cf_min(properties->threads_per_multiprocessor / threads, properties->blocks_per_multiprocessor);
    o.blocks = cf_min(o.by_registers, cf_min(o.by_shared, o.by_threads));
    o.registers = cf_min(MAX_REGISTERS, properties->registers_per_multiprocessor / (threads * o.by_registers) / 8 * 8);
    return o;
}
