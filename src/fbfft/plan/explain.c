/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/plan/explain.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "core/words.h"
#include "fbfft/c2c_fp16/plan.h"
#include "fbfft/c2c_split/plan.h"

enum {
    USUAL_POINTS = 1 << 28, /* of a batch, unless the batch is given */
    WARP = 32
};

/* --------------------------------------------------------------------------------------------------------- headings */

static int first_axis(const cf_fft_problem *p) {
    const int64_t *n = p->transform.spectrum.basis;
    return n[0] > 1 ? 0 : n[1] > 1 ? 1 : 2;
}

static void add_axes(cf_text *t, const cf_fft_problem *p, bool points) {
    for (int x = first_axis(p); x < 3; ++x)
        cf_text_add(t, "%s%lld", x > first_axis(p) ? "x" : "",
                    (long long)(points ? p->transform.window.axis[x].count : p->transform.spectrum.basis[x]));
}

static void add_heading(cf_text *t, const cf_fft_problem *p, const cf_gpu_properties *properties, int64_t batch) {
    static const char *const kinds[] = {"r2c", "c2r", "c2c", "c2c-inverse"};
    const cf_transform_desc *d = &p->transform;
    const cf_fft_rates rates = cf_fft_rates_of(properties, d->spectrum.dtype);
    cf_text_add(t, "%s ", kinds[2 * p->complex_signal + d->inverse]);
    add_axes(t, p, false);
    cf_text_add(t, d->inverse ? " to " : " from ");
    add_axes(t, p, true);
    cf_text_add(t, ", %s, %lld %s, batch %lld%s\n", cf_dtype_words[d->tensor.dtype], (long long)d->spectrum.columns,
                d->spectrum.columns > 1 ? "channels" : "channel", (long long)batch,
                p->layout.frequency_major ? ", frequency-major" : "");
    cf_text_add(t, "arithmetic: %s\n",
                p->c2c_fp16                          ? "FP16 on tensor cores, FP32 sums"
                : p->c2c_split                       ? "FP32 as two FP16 numbers on tensor cores, FP32 sums"
                : d->spectrum.dtype == CONV_FFT_FP64 ? "FP64 units"
                                                     : "FP32 units");
    cf_text_add(t,
                "%s: %lld multiprocessors at %.2f GHz; copies reach %.0f GB/s, shared memory %.1f TB/s, arithmetic "
                "%.1f Tops/s\n",
                properties->name, (long long)properties->multiprocessors, (double)properties->clock_khz / 1e6,
                rates.memory / 1e9, rates.shared / 1e12, rates.arithmetic / 1e12);
}

/* -------------------------------------------------------------------------------------------------- why: the passes */

static double max_between(const cf_fft_passes *passes) {
    return (double)cf_max(passes->between[0], passes->count > 2 ? passes->between[1] : 0);
}

/* Why the transform is not one kernel. A whole plane is tried first. */
static void why_passes(cf_text *t, const cf_fft_problem *p, const cf_gpu_properties *properties,
                       const cf_fft_passes *passes) {
    if (passes->count == 1) {
        cf_text_add(t, "\nOne kernel: a plane fits a block's shared memory, so memory is read and written once.\n");
        return;
    }
    const cf_shared_fft_problem whole = cf_shared_fft_problem_of(p);
    cf_shared_fft_config tile;
    cf_text_add(t, "\n%d kernels, because one axis needs a kernel of its own: ", passes->count);
    if (cf_shared_fft_configure(&whole, properties, &tile) != CONV_FFT_SUCCESS)
        cf_text_add(t, "%s.\n", conv_fft_last_error());
    else
        cf_text_add(t, "%d planes fit a block, and accesses to the spectrum would be smaller than %d bytes.\n",
                    tile.planes, CF_FFT_SECTOR);
    cf_text_add(t, "%lld batch entries at a time go through all kernels, with %.1f MB between two kernels.\n",
                (long long)passes->chunk, (double)passes->chunk * max_between(passes) / 1e6);
}

/* ------------------------------------------------------------------------------------------ why: shared_memory */

/* One line for each axis, the slowest first. */
static void why_radices(cf_text *t, const cf_shared_fft_config *c) {
    for (int x = 0; x < 3; ++x) {
        const int *r = c->radix[x], n = r[0] * r[1] * r[2];
        if (n > 1 && r[1] == 1)
            cf_text_add(
                t,
                "    radices    %d points in one step: a thread's registers hold them, and threads exchange nothing\n",
                n);
        else if (n > 1 && r[2] == 1)
            cf_text_add(t,
                        "    radices    %d points in two steps of %d and %d: too many for a thread; the largest step "
                        "decides on registers,\n               so they are about equal%s\n",
                        n, r[0], r[1],
                        r[0] % 8 == 0 ? "; the first is a multiple of 8, so that neighbours use different banks" : "");
        else if (n > 1)
            cf_text_add(t,
                        "    radices    %d points in three steps of %d, %d and %d: two would take too many registers\n",
                        n, r[0], r[1], r[2]);
    }
}

static void why_tile(cf_text *t, const cf_shared_fft_config *c) {
    const int64_t number = 2 * (int64_t)cf_dtype_bytes(c->problem.fft.transform.spectrum.dtype);
    why_radices(t, c);
    if (c->in_registers) {
        cf_text_add(t, "    planes     %d: one for each thread, which loads and stores its line itself\n", c->planes);
        return;
    }
    if (c->order == CF_SHARED_FFT_BY_PLANE)
        cf_text_add(t,
                    "    planes     %d: accesses to the spectrum have %lld bytes; more planes would make the "
                    "block too large\n",
                    c->planes, (long long)(c->planes * number));
    else
        cf_text_add(t, "    planes     %d: as many as give a block four warps, at least one\n", c->planes);
    cf_text_add(t, "    threads    %d: at most one for each line of the longest step, as registers allow\n",
                c->threads);
    if (c->direct)
        cf_text_add(t,
                    "    spectrum   moves between registers and memory: neighbouring threads hold neighbouring bins\n");
    else
        cf_text_add(t, "    spectrum   moves through shared memory: neighbouring threads of the last step hold no "
                       "neighbouring bins\n");
    if (c->staged && c->vector_width > 1)
        cf_text_add(t,
                    "    rows       are copied unconverted to shared memory, %d bytes at a time: all of them begin "
                    "at multiples of that\n",
                    4 * c->vector_width);
    else if (c->staged)
        cf_text_add(t, "    rows       are copied unconverted to shared memory, number by number\n");
}

/* --------------------------------------------------------------------- why: real1d.cuh, real1d_warp.cuh, real2d.cuh */

static void why_plain(cf_text *t, const cf_fft_config *c) {
    cf_text_add(t, "    kernel     of dense real planes in FP32: %s\n",
                c->pairs       ? "warps that share nothing, one exchange (real1d_warp.cuh)"
                : c->rank == 1 ? "a line of N as a complex one of N / 2 (real1d.cuh)"
                               : "two real rows make one complex line (real2d.cuh)");
    if (c->lanes == 1)
        cf_text_add(t, "    lanes      1: a thread's registers hold a line, and threads exchange nothing\n");
    else
        cf_text_add(t, "    lanes      %d a line: %s\n", c->lanes,
                    c->pairs ? "their square divides it, and one thread a line would be too slow"
                             : "fewer would leave a thread too many points, and registers would spill");
    cf_text_add(t, "    %s     %d a block: %s\n", c->rank == 1 ? "lines " : "planes", c->planes,
                c->rank == 1 && c->pairs ? "in two warps; large batches: in one, which keeps the most loads under way"
                : c->rank == 1           ? "enough that few blocks are idle"
                : c->planes == 1         ? "its lines fill most of their warps"
                                         : "as many as fill the threads of up to four warps");
    cf_text_add(t, "    copies     %s\n",
                c->bulk    ? "TMA bulk copies: those of one block overlap the arithmetic of others"
                : c->quads ? "16 bytes at a time"
                           : "single numbers: rows do not begin at multiples of 16 bytes");
}

/* ------------------------------------------------------------------------------------------------------- one kernel */

static void add_occupancy(cf_text *t, const cf_fft_pass *pass, const cf_gpu_properties *properties, int64_t planes) {
    const cf_fft_occupancy o = cf_fft_occupancy_of(pass, properties);
    const int64_t blocks = cf_ceil_div(planes, pass->plain ? pass->real[0].planes : pass->tile[0].planes);
    cf_text_add(t, "    registers  at most %lld a thread, so that a multiprocessor takes %lld %s\n",
                (long long)o.registers, (long long)o.by_registers, o.by_registers > 1 ? "blocks" : "block");
    cf_text_add(t,
                "    blocks     %lld at a time on a multiprocessor: %lld by registers, %lld by shared memory, %lld by "
                "threads; %lld warps\n",
                (long long)o.blocks, (long long)o.by_registers, (long long)o.by_shared, (long long)o.by_threads,
                (long long)(o.blocks * o.threads / WARP));
    const int64_t most = pass->plain ? 0 : pass->tile[0].grid, launched = most ? cf_min(blocks, most) : blocks;
    cf_text_add(t, "               %lld in a launch, %.1f times what the GPU holds at a time\n", (long long)launched,
                (double)launched / (double)(o.blocks * properties->multiprocessors));
    if (launched < blocks)
        cf_text_add(t, "               each transforms groups of planes one after the other\n");
}

static void add_kernel(cf_text *t, const cf_fft_passes *passes, int i, int number, const cf_gpu_properties *properties,
                       int64_t batch) {
    const cf_fft_pass *pass = &passes->pass[i];
    const cf_shared_fft_problem *p = &pass->tile[0].problem;
    cf_text_add(t, "\nkernel %d: ", number);
    if (pass->plain)
        cf_fft_describe(&pass->real[0], t);
    else
        cf_shared_fft_describe(&pass->tile[0], t);
    cf_text_add(t, "\n");
    if (pass->plain)
        why_plain(t, &pass->real[0]);
    else
        why_tile(t, &pass->tile[0]);
    add_occupancy(t, pass, properties, cf_min(passes->chunk, batch) * p->rows * p->fft.transform.spectrum.columns);
}

/* ------------------------------------------------------------------------------------------------------- the budget */

static int longest_of(const double seconds[3]) {
    int longest = 0;
    for (int k = 1; k < 3; ++k)
        longest = seconds[k] > seconds[longest] ? k : longest;
    return longest;
}

static void add_budget(cf_text *t, const cf_fft_passes *passes, const cf_gpu_properties *properties, int64_t batch) {
    static const char *const limits[] = {"memory", "shared memory", "arithmetic"};
    const bool inverse = passes->pass[0].tile[0].problem.fft.transform.inverse;
    double min_blocks = 0, copy = 0;
    cf_text_add(
        t, "\nbudget        read MB   written MB   between MB    shared MB        Mops    memory ms    shared ms   "
           "arithm. ms\n");
    for (int step = 0; step < passes->count; ++step) {
        const int i = inverse ? passes->count - 1 - step : step;
        const cf_fft_budget b = cf_fft_budget_of(passes, i, properties, batch);
        const int longest = longest_of(b.seconds);
        cf_text_add(t, "kernel %d %12.2f %12.2f %12.2f %12.1f %11.1f %12.4f %12.4f %12.4f   bound by %s\n", step + 1,
                    b.read / 1e6, b.written / 1e6, b.between / 1e6, b.shared / 1e6, b.operations / 1e6,
                    b.seconds[0] * 1e3, b.seconds[1] * 1e3, b.seconds[2] * 1e3, limits[longest]);
        min_blocks += b.seconds[longest];
        copy += b.copy_seconds;
    }
    cf_text_add(t, "at least %.4f ms; a copy of the same bytes takes %.4f ms, %.2f of it\n", min_blocks * 1e3,
                copy * 1e3, copy / min_blocks);
    cf_text_add(t, "memory: elements are read and bins are written (or the reverse) once; between: numbers "
                   "that one kernel writes and the next one reads.\nThe three times overlap: a kernel takes at least "
                   "the longest. Launches, "
                   "latency and the arithmetic of addresses are not counted.\n");
}

/* --------------------------------------------------------------------------- pairs of FP16, and split FP32 numbers */

static void add_c2c_heading(cf_text *t, int kernels) {
    cf_text_add(t, "\n%s\n",
                kernels == 1 ? "One kernel: a block holds whole lines, so memory is read and written once."
                             : "A line or plane is too large for a block: each kernel reads and writes all of it.");
}
/* Only memory is counted. Products on tensor cores are far from their rate. number: bytes of a point. */
static void add_c2c_budget(cf_text *t, const cf_fft_problem *p, const cf_gpu_properties *properties, int64_t batch,
                           int kernels, double number) {
    const int64_t *n = p->transform.spectrum.basis;
    const double points = (double)batch * (double)p->transform.spectrum.columns * (double)(n[0] * n[1] * n[2]),
                 bytes = 2 * number * points,
                 copy = bytes / cf_fft_rates_of(properties, p->transform.spectrum.dtype).memory;
    cf_text_add(t, "\nbudget        %.2f MB read and as many written, by %d %s\n", bytes / 2e6, kernels,
                kernels > 1 ? "kernels each" : "kernel");
    cf_text_add(t, "at least %.4f ms; a copy of the same bytes takes %.4f ms, %.2f of it\n", copy * 1e3 * kernels,
                copy * 1e3, 1.0 / kernels);
}

static void add_c2c_fp16(cf_text *t, const cf_fft_problem *p, const cf_gpu_properties *properties, int64_t batch) {
    cf_c2c_fp16_config c;
    cf_c2c_fp16_configure(p, properties, &c);
    add_c2c_heading(t, c.count);
    for (int i = 0; i < c.count; ++i) {
        cf_text_add(t, "\nkernel %d: ", i + 1);
        cf_c2c_fp16_describe(&c.pass[i], t);
        cf_text_add(t, "\n    blocks     %d at a time on a multiprocessor\n", c.pass[i].blocks);
    }
    add_c2c_budget(t, p, properties, batch, c.count, 4);
}

static void add_c2c_split(cf_text *t, const cf_fft_problem *p, const cf_c2c_split_config *c,
                          const cf_gpu_properties *properties, int64_t batch) {
    add_c2c_heading(t, c->count);
    for (int i = 0; i < c->count; ++i) {
        cf_text_add(t, "\nkernel %d: ", i + 1);
        cf_c2c_split_describe(c, i, t);
        cf_text_add(t, "\n    blocks     %d at a time on a multiprocessor\n", c->pass[i].blocks);
    }
    add_c2c_budget(t, p, properties, batch, c->count, p->complex_signal ? 8 : 4);
}

conv_fft_status cf_fft_explain(const cf_fft_problem *p, const cf_gpu_properties *properties, int64_t batch,
                               cf_text *t) {
    const int64_t *n = p->transform.spectrum.basis;
    cf_fft_passes passes;
    if (batch == 0)
        batch = cf_max(1, USUAL_POINTS / (n[0] * n[1] * n[2] * p->transform.spectrum.columns));
    CF_FORWARD(cf_fft_check_batch(p, batch));
    if (p->c2c_fp16) {
        add_heading(t, p, properties, batch);
        add_c2c_fp16(t, p, properties, batch);
        return CONV_FFT_SUCCESS;
    }
    if (p->c2c_split) {
        cf_c2c_split_config c;
        CF_FORWARD(cf_c2c_split_configure(p, properties, &c));
        add_heading(t, p, properties, batch);
        add_c2c_split(t, p, &c, properties, batch);
        return CONV_FFT_SUCCESS;
    }
    CF_FORWARD(cf_fft_passes_of(p, properties, &passes));
    add_heading(t, p, properties, batch);
    why_passes(t, p, properties, &passes);
    for (int step = 0; step < passes.count; ++step) {
        const int i = p->transform.inverse ? passes.count - 1 - step : step;
        add_kernel(t, &passes, i, step + 1, properties, batch);
    }
    add_budget(t, &passes, properties, batch);
    return CONV_FFT_SUCCESS;
}
