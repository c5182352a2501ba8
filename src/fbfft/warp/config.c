/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choices and their reasons. The figures were measured on an H200.
 *
 * lanes     A line is one 1-D transform. A line of up to 64 points has one thread. It exchanges nothing, and it has so
 *           few instructions that memory limits the speed. Planes of 56 x 56 and more have two threads a line where
 *           each thread then has whole pairs of rows. Longer lines have the fewest lanes that leave at most 36 points
 *           to a thread (rank 1: 16). With more points, registers spill.
 * planes    Blocks have at most four warps, and few of their threads are idle. A block has one plane if the lines of
 *           one plane fill most of its warps.
 * blocks    As many as the registers of a thread allow. With these numbers the compiler spills little or nothing:
 *           tests/fbfft/test_config.c has the bounds.
 * bulk      TMA bulk copies for planes of 20 x 20 and more (forward: 34 x 34). Copies of one block then overlap the
 *           arithmetic of other blocks.
 * pairs     The kernel of real1d_warp.cuh, for rank 1, where the lanes divide a line evenly and one thread a line would
 *           be too slow. Blocks of one warp keep the most loads under way. Small batches have few blocks; blocks of two
 *           warps start faster there.
 */
#include "fbfft/warp/config.h"

#include "core/arith.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/warp/geometry.h"

/* The number of lanes of a line of n points: a power of two whose square divides n and `other`. 0: there is none. */
static int choose_lanes(int n, int other, int longest, int preferred, int max_points) {
    const int limits[2] = {preferred, max_points};
    if (n <= longest && other <= longest)
        return 1;
    for (int i = 0; i < 2; ++i) {
        for (int lanes = 2; lanes <= 16; lanes *= 2) {
            const int square = lanes * lanes;
            if (n % square == 0 && other % square == 0 && n / lanes <= limits[i] && other / lanes <= limits[i])
                return lanes;
        }
    }
    return 0;
}

static int registers_of(int points, int lanes) {
    static const struct {
        int points, registers;
    } tables[3][8] = {{{8, 48}, {12, 64}, {16, 80}, {24, 112}, {32, 128}, {36, 96}, {48, 128}, {64, 168}},
                      {{16, 80}, {24, 96}, {28, 96}, {32, 128}, {36, 96}, {64, 128}},
                      {{16, 80}, {24, 96}, {64, 128}}};
    const int table = lanes < 3 ? lanes - 1 : 2;
    int i = 0;
    while (tables[table][i].points < points)
        ++i;
    return tables[table][i].registers;
}

static void finish(cf_fft_config *c, const cf_gpu_properties *properties, int points) {
    const int64_t by_registers =
        properties->registers_per_multiprocessor / (c->threads * registers_of(points, c->lanes));
    const int64_t by_threads = properties->threads_per_multiprocessor / c->threads;
    c->blocks = (int)cf_max(1, cf_min(cf_min(by_registers, by_threads), properties->blocks_per_multiprocessor));
}

static int choose_planes(int lines, int lanes) {
    int best = 1;
    if (lines * lanes > 16) {
        /* Four fifths of the threads must have work. */
        for (int planes = 1; planes <= 3; ++planes) {
            if (5 * planes * lines * lanes >= 4 * cf_fft_threads_2d(planes, lines, lanes))
                return planes;
        }
        return 1;
    }
    for (int planes = 2; planes <= 8; ++planes) {
        /* Threads for each line that has work. A larger block must be better, not equal. */
        const int64_t waste = cf_fft_threads_2d(planes, lines, lanes) * (int64_t)best,
                      best_waste = cf_fft_threads_2d(best, lines, lanes) * (int64_t)planes;
        if (waste < best_waste)
            best = planes;
    }
    return best;
}

static int64_t shared_2d(const cf_fft_config *c) {
    const cf_fft_layout_2d l = cf_fft_layout_2d_of(c->basis[0], c->basis[1], c->extent[0], c->extent[1], c->lanes);
    return cf_fft_shared_2d(c->planes, c->inverse ? l.inverse_bytes : l.bytes, c->bulk);
}

static conv_fft_status configure_2d(cf_fft_config *c, const cf_gpu_properties *properties) {
    const int h = c->basis[0], w = c->basis[1], lines = h > w ? h / 2 : w / 2, longest = h > w ? h : w;
    c->lanes = longest <= 128 ? choose_lanes(h, w, h % 8 || w % 8 ? 64 : 48, 36, 64) : 0;
    if (c->lanes == 0)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "basis is %dx%d; this version has no kernel for lines of this length", h,
                       w);
    c->planes = choose_planes(lines, c->lanes);
    c->threads = cf_fft_threads_2d(c->planes, lines, c->lanes);
    c->quads = c->extent[0] % 2 == 0 && c->extent[1] % 2 == 0;
    c->bulk = (c->inverse || c->quads) && longest >= (c->inverse ? 20 : 34) && properties->compute_major >= 9;
    c->shared = shared_2d(c);
    finish(c, properties, longest / c->lanes);
    return CONV_FFT_SUCCESS;
}

/* The kernel of real1d_warp.cuh. */
static void configure_pairs(cf_fft_config *c, const cf_gpu_properties *properties) {
    const int half = c->basis[1] / 2, warps = 2;
    c->lanes = half < 128 ? 4 : 8;
    c->threads = 32 * warps;
    c->planes = c->threads / c->lanes;
    c->shared = cf_fft_pair_bytes(c->planes, c->basis[1], c->lanes);
    c->blocks = (half < 64 ? 32 : 20) / warps;
    c->small_batch = (int64_t)4 * properties->multiprocessors * (32 / c->lanes);
}

static conv_fft_status configure_1d(cf_fft_config *c, const cf_gpu_properties *properties) {
    const int n = c->basis[1], half = n / 2, extent = c->extent[1];
    c->quads = extent % 4 == 0;
    c->pairs = n == 64 || n == 128 || n == 256;
    if (c->pairs) {
        configure_pairs(c, properties);
        return CONV_FFT_SUCCESS;
    }
    c->lanes = choose_lanes(half, half, 32, 16, 32);
    if (c->lanes == 0)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "basis is %d; this version has no kernel for lines of this length", n);
    c->planes = n < 32 ? 128 : 32;
    c->threads = c->planes * c->lanes;
    c->shared = cf_fft_shared_1d(c->planes, n, extent);
    finish(c, properties, 2 * half / c->lanes);
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_fft_configure(const fbfft_desc *desc, const cf_gpu_properties *properties, cf_fft_config *config) {
    cf_fft_config c = {.inverse = desc->kind == FBFFT_C2R, .rank = desc->rank, .basis = {1, 1}, .extent = {1, 1}};
    c.scaled = c.inverse || desc->scale != 1.0;
    c.aligned = true;
    if (desc->rank > 2)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "rank is %d; this version has kernels for 1 and 2", desc->rank);
    for (int a = 0; a < desc->rank; ++a) {
        if (desc->basis[a] % 2 || desc->basis[a] > 256)
            return cf_fail(CONV_FFT_NOT_SUPPORTED,
                           "basis[%d] is %lld; this version has kernels for even bases up to 256", a,
                           (long long)desc->basis[a]);
        c.basis[2 - desc->rank + a] = (int)desc->basis[a];
        c.extent[2 - desc->rank + a] = (int)(desc->extent[a] ? desc->extent[a] : desc->basis[a]);
    }
    CF_FORWARD(desc->rank == 2 ? configure_2d(&c, properties) : configure_1d(&c, properties));
    if (c.shared > properties->shared_per_block)
        return cf_fail(CONV_FFT_NOT_SUPPORTED,
                       "a plane of this basis needs %lld bytes of shared memory; %s has %lld for a block",
                       (long long)c.shared, properties->name, (long long)properties->shared_per_block);
    *config = c;
    return CONV_FFT_SUCCESS;
}

cf_fft_config cf_fft_unaligned(const cf_fft_config *config) {
    cf_fft_config c = *config;
    c.aligned = c.quads = c.bulk = false;
    if (c.rank == 2)
        c.shared = shared_2d(&c);
    return c;
}

cf_fft_config cf_fft_for_batch(const cf_fft_config *config, int64_t batch) {
    cf_fft_config c = *config;
    if (c.pairs && batch > c.small_batch) {
        c.threads /= 2;
        c.planes /= 2;
        c.shared /= 2;
    }
    return c;
}

static const char *word(bool value) { return value ? "true" : "false"; }

void cf_fft_emit(const cf_fft_config *c, cf_text *t) {
    const char *const body = c->rank == 1 ? "real1d" : "real2d";
    cf_text_add(t, "struct Config {\n");
    if (c->rank == 2)
        cf_text_add(t, "static constexpr int H = %d, W = %d, IH = %d, IW = %d, PLANES = %d;\n", c->basis[0],
                    c->basis[1], c->extent[0], c->extent[1], c->planes);
    else
        cf_text_add(t, "static constexpr int N = %d, IN = %d, LINES = %d;\n", c->basis[1], c->extent[1], c->planes);
    cf_text_add(
        t,
        "static constexpr int L = %d;\nstatic constexpr bool ALIGNED = %s, QUADS = %s, BULK = %s, SCALED = %s;\n};\n",
        c->lanes, word(c->aligned), word(c->quads), word(c->bulk), word(c->scaled));
    cf_text_add(t, "CF_WARP_FFT_KERNEL(%s_%s%s, %s, %s, %d, %d)\n", body, c->inverse ? "inverse" : "forward",
                c->pairs ? "_pairs" : "", c->inverse ? "cplx" : "real", c->inverse ? "real" : "cplx", c->threads,
                c->blocks);
}

void cf_fft_describe(const cf_fft_config *c, cf_text *t) {
    cf_text_add(t, "%s %dx%d from %dx%d, lanes per line %d, %s per block %d, threads %d, shared memory %lld bytes, %s",
                c->inverse ? "c2r" : "r2c", c->basis[0], c->basis[1], c->extent[0], c->extent[1], c->lanes,
                c->rank == 1 ? "lines" : "planes", c->planes, c->threads, (long long)c->shared,
                c->bulk    ? "bulk copies"
                : c->quads ? "16-byte copies"
                           : "single copies");
}
