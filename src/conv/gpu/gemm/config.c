/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/gemm/config.h"

#include "core/arith.h"
#include "core/status.h"
#include "core/text.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ROW_SLICES = 64
};

int cf_cgemm_threads(const cf_cgemm_config *c) { return cf_cgemm_tile_threads(c->warps_m, c->warps_n) * c->slices; }

int64_t cf_cgemm_shared(const cf_cgemm_config *c) {
    const int m = cf_cgemm_rows(c), n = cf_cgemm_columns(c);
    if (c->dtype == CONV_FFT_FP32)
        return cf_cgemm_layout_of(m, n, c->stages, c->terms, c->slices).shared;
    const int64_t a_row = c->kind == CF_CGEMM_FORWARD ? c->in_columns : c->out_columns;
    return cf_fp16_cgemm_layout_of((int)c->kind, m, n, cf_cgemm_threads(c) / 32, c->chunk, c->stages, c->slices, a_row,
                                   cf_spectrum_is_scaled(c->dtype))
        .shared;
}

/* Extents of the result. */
static int64_t result_rows(const cf_cgemm_config *c, int64_t rows) {
    return c->kind == CF_CGEMM_BACKWARD_WEIGHTS ? c->out_columns : rows;
}

static int64_t result_columns(const cf_cgemm_config *c) {
    return c->kind == CF_CGEMM_FORWARD ? c->out_columns : c->in_columns;
}

int64_t cf_cgemm_tiles(const cf_cgemm_config *c, int64_t rows) {
    return cf_ceil_div(result_rows(c, rows), cf_cgemm_rows(c)) * cf_ceil_div(result_columns(c), cf_cgemm_columns(c));
}

/* The tiles of eight columns of a warp. The largest share of their columns lies in the result. Of equal shares, more
 * tiles are better: they share the numbers that are read of a row. */
static int column_tiles(int64_t columns) {
    int best = 2;
    double max_share = 0.0;
    for (int tiles = 2; tiles <= 8; tiles += 2) {
        const double share = (double)columns / (double)(cf_ceil_div(columns, 8 * tiles) * 8 * tiles);
        if (share >= max_share) {
            max_share = share;
            best = tiles;
        }
    }
    return best;
}

/* The warps along the rows, with sixteen rows each. The largest share of their rows lies in the result. Of equal
 * shares, more warps are better, up to four. Six warps are taken where they make one block. */
static int row_warps(int64_t rows) {
    static const int counts[] = {1, 2, 3, 6, 4};
    int best = 1;
    double max_share = 0.0;
    for (int i = 0; i < 5; ++i) {
        const int64_t block = 16 * counts[i];
        const double share = (double)rows / (double)(cf_ceil_div(rows, block) * block);
        if (share >= max_share) {
            max_share = share;
            best = counts[i];
        }
    }
    return best;
}

static void set_blocks(cf_cgemm_config *c, int64_t depth, const cf_gpu_properties *properties) {
    const int kept = c->dtype != CONV_FFT_FP32    ? 64
                     : depth > 2 * CF_CGEMM_CHUNK ? 104
                                                  : 80,
              registers = c->grouped ? 168 : kept + 8 * c->m_tiles * c->n_tiles;
    c->blocks =
        (int)cf_max(1, cf_min(16, properties->registers_per_multiprocessor / (registers * cf_cgemm_threads(c))));
}

/* A group of four warps has 64 x 64 numbers and multiplies with wgmma. Other warps multiply alone, which takes longer
 * for split numbers. Rounded numbers are limited by the L2 cache. There a block of 128 rows shares more of what is
 * read, where each multiprocessor gets several blocks. Short sums and narrow results are limited by memory, so many
 * small blocks are best for them. */
static void cut_result(cf_cgemm_config *c, int64_t rows, int64_t columns, int64_t depth, int64_t matrices,
                       const cf_gpu_properties *properties) {
    const int64_t halves = cf_ceil_div(rows, 64), blocks = halves / 2 * cf_ceil_div(columns, 64) * matrices;
    c->warps_n = 1;
    c->n_tiles = column_tiles(columns);
    const bool large =
        halves % 2 == 0 && depth > 2 * CF_CGEMM_CHUNK && c->n_tiles > 4 && blocks > 6 * properties->multiprocessors;
    c->grouped = properties->compute_major == 9 && rows > 32 && c->n_tiles == 8 && !(large && c->terms == 1);
    c->m_tiles = large && !c->grouped ? 2 : 1;
    c->warps_m = c->grouped || c->m_tiles == 2 ? 4 : row_warps(rows);
}

/* Cycles for eight terms of each sum of all matrices, on the multiprocessor with most blocks. In one cycle 40 bytes
 * come to it through the L2 cache. In one and a half cycles each of four warps issues an instruction. */
static double fp16_cycles(const cf_cgemm_config *c, int64_t rows, int64_t columns, int64_t matrices,
                          const cf_gpu_properties *properties) {
    const int64_t m = cf_cgemm_rows(c), n = cf_cgemm_columns(c),
                  blocks = cf_ceil_div(rows, m) * cf_ceil_div(columns, n) * matrices;
    const int instructions = 2 * c->m_tiles * c->n_tiles + 9 * c->m_tiles + c->n_tiles;
    return (double)cf_ceil_div(blocks, properties->multiprocessors) *
           (0.8 * (double)(m + n) + 0.375 * c->warps_m * c->warps_n * instructions);
}

/*
 * The most warps of a block, for 16-bit spectra. With four warps, a multiprocessor has four blocks. Three of them go on
 * while one ends its tile or waits at a barrier. With eight warps it has two blocks, which read fewer bytes. That is
 * faster where sums are long. Measured on an H200, eight warps against four:
 *
 *     forward, backward data     512 terms: FP16 4 to 5 % faster, BF16 the same
 *                                128 terms: FP16 7 % slower, BF16 21 to 28 % slower
 *     backward weights, BF16     128 or 512 columns: 2 to 6 % faster. 384 columns: 2 % slower
 *     backward weights, FP16     512 x 512 results of 64 terms: 7 % faster. 128 terms: 6 to 10 % slower
 *
 * Where a tile stores as many bytes as it reads, memory limits the stores, and only the reads can become fewer.
 */
static int max_warps(const cf_cgemm_config *c, int64_t depth) {
    if (c->kind != CF_CGEMM_BACKWARD_WEIGHTS)
        return depth >= 512 ? 8 : 4;
    /* The bytes of a block of four warps, which has 64 x 64 numbers. */
    const int64_t side = 64, read = 2 * side * depth * 4, stored = side * side * 8;
    return !cf_spectrum_is_scaled(c->dtype) || stored >= read ? 8 : 4;
}

/* The blocks of 16-bit spectra. A warp has up to 32 x 32 numbers; sixteen such warps take all registers. Of blocks of
 * eight warps that cost the same, the one with more columns is taken. */
static void cut_fp16(cf_cgemm_config *c, int64_t rows, int64_t columns, int64_t depth, int64_t matrices,
                     const cf_gpu_properties *properties) {
    c->chunk = depth > CF_CGEMM_CHUNK ? 2 * CF_CGEMM_CHUNK : CF_CGEMM_CHUNK;
    const int warps = max_warps(c, depth);
    double min_cycles = HUGE_VAL;
    cf_cgemm_config now = *c;
    for (now.warps_n = 1; now.warps_n <= 4; ++now.warps_n)
        for (now.warps_m = 1; now.warps_m <= 4 && now.warps_m * now.warps_n <= warps; ++now.warps_m)
            for (now.m_tiles = 1; now.m_tiles <= 2; ++now.m_tiles)
                for (now.n_tiles = 2; now.n_tiles <= 4; now.n_tiles += 2) {
                    const double cycles = fp16_cycles(&now, rows, columns, matrices, properties);
                    if (cycles < min_cycles || (cycles <= min_cycles && now.warps_m * now.warps_n == 8)) {
                        min_cycles = cycles;
                        *c = now;
                    }
                }
}

/* Smaller blocks, for results that have fewer blocks than the GPU has multiprocessors. */
static void cut_smaller(cf_cgemm_config *c) {
    c->grouped = false;
    c->m_tiles = c->warps_n = 1;
    c->n_tiles = (int)cf_min(c->n_tiles, 4);
    c->warps_m = (int)cf_min(c->warps_m, 2);
}

/* The groups of warps that share a sum. If there are too few blocks and sums are long, there are as many groups as a
 * multiprocessor could have blocks. */
static int slices_of(const cf_cgemm_config *c, int64_t blocks, int64_t depth, const cf_gpu_properties *properties) {
    const int64_t free_blocks = properties->multiprocessors * c->blocks / blocks,
                  max_slices = cf_min(c->blocks, 512 / cf_cgemm_threads(c));
    return (int)cf_max(1, cf_min(cf_min(free_blocks, max_slices), depth / (4 * c->chunk)));
}

/* The blocks that share a sum: so many that the GPU is full, but at most MAX_ROW_SLICES. Each group of warps has at
 * least eight chunks, because the kernel that adds the slices takes as long as some hundred terms. */
static int row_slices_of(const cf_cgemm_config *c, int64_t blocks, int64_t depth, const cf_gpu_properties *properties) {
    const int64_t free_blocks = properties->multiprocessors * c->blocks / blocks,
                  terms = 8 * (int64_t)c->chunk * c->slices;
    return (int)cf_max(1, cf_min(cf_min(free_blocks, MAX_ROW_SLICES), depth / terms));
}

/* The stages of the pipeline: at most one for each chunk, and so many that all blocks of a multiprocessor fit. */
static void set_stages(cf_cgemm_config *c, int64_t depth, int64_t blocks, const cf_gpu_properties *properties) {
    /* In FP32, the gradient of the weights with 128 rows has no registers left for a fourth stage. */
    const int max_stages = c->m_tiles == 2 && c->kind == CF_CGEMM_BACKWARD_WEIGHTS && c->dtype == CONV_FFT_FP32 ? 3 : 4;
    /* Short sums of 16-bit spectra: all chunks are copied at once, and those of the block's next matrix, too. */
    const bool half = c->dtype != CONV_FFT_FP32, more = half && blocks > properties->multiprocessors * c->blocks;
    const int64_t chunks = cf_ceil_div(depth, c->chunk) + half;
    c->stages = more ? max_stages : (int)cf_max(2, cf_min(max_stages, chunks));
    while (c->stages > 2 && (cf_cgemm_shared(c) > properties->shared_per_block ||
                             c->blocks * (cf_cgemm_shared(c) + properties->shared_reserved_per_block) >
                                 properties->shared_per_multiprocessor))
        --c->stages;
}

cf_cgemm_config cf_cgemm_configure(const cf_cgemm_desc *desc, const cf_gpu_properties *properties) {
    cf_cgemm_config c = {.kind = desc->kind,
                         .in_columns = desc->in_columns,
                         .out_columns = desc->out_columns,
                         .dtype = desc->dtype,
                         .narrow = desc->dtype != CONV_FFT_FP32 && desc->result_dtype == desc->dtype,
                         .chunk = CF_CGEMM_CHUNK,
                         .terms = desc->math == CONV_FFT_MATH_TF32 || desc->math == CONV_FFT_MATH_HALF ? 1 : 2,
                         .warps_m = 1,
                         .warps_n = 1,
                         .slices = 1,
                         .row_slices = 1};
    const int64_t rows = cf_max(1, desc->rows), matrices = desc->bins * cf_max(1, desc->groups);
    const int64_t depth = desc->kind == CF_CGEMM_FORWARD         ? desc->in_columns
                          : desc->kind == CF_CGEMM_BACKWARD_DATA ? desc->out_columns
                                                                 : rows;
    if (c.dtype != CONV_FFT_FP32)
        cut_fp16(&c, result_rows(&c, rows), result_columns(&c), depth, matrices, properties);
    else
        cut_result(&c, result_rows(&c, rows), result_columns(&c), depth, matrices, properties);
    if (cf_cgemm_tiles(&c, rows) * matrices < properties->multiprocessors)
        cut_smaller(&c);
    set_blocks(&c, depth, properties);
    const int64_t blocks = cf_cgemm_tiles(&c, rows) * matrices;
    c.slices = slices_of(&c, blocks, depth, properties);
    c.blocks = (int)cf_max(1, c.blocks / c.slices);
    set_stages(&c, depth, blocks, properties);
    /* Rather fewer blocks than one chunk on its way, if there are more. */
    while (c.dtype != CONV_FFT_FP32 && c.stages < 3 && c.blocks > 3 &&
           (depth > c.chunk || blocks > properties->multiprocessors * c.blocks)) {
        --c.blocks;
        set_stages(&c, depth, blocks, properties);
    }
    while (c.slices > 1 && cf_cgemm_shared(&c) > properties->shared_per_block)
        --c.slices;
    if (desc->kind == CF_CGEMM_BACKWARD_WEIGHTS && desc->groups == 1)
        c.row_slices = row_slices_of(&c, blocks, depth, properties);
    return c;
}

/* The kernel's text behind the headers. */
static void emit(const cf_cgemm_config *c, cf_text *t) {
    const bool half = c->dtype != CONV_FFT_FP32;
    cf_text_add(t, "typedef %sCgemmConfig<%d, %lld, %lld, %d, %d, %d, %d, %d, ", half ? "Fp16" : "", (int)c->kind,
                (long long)c->in_columns, (long long)c->out_columns, c->warps_m, c->warps_n, c->m_tiles, c->n_tiles,
                c->stages);
    if (half)
        cf_text_add(t, "%d, %d, %s, %s, %s> Config;\n", c->chunk, c->slices,
                    c->dtype == CONV_FFT_FP16 ? "fp16_bins" : "bf16_bins", c->narrow ? "true" : "false",
                    c->row_slices > 1 ? "true" : "false");
    else
        cf_text_add(t, "%d, %d, %s, %s> Config;\n", c->terms, c->slices, c->grouped ? "true" : "false",
                    c->row_slices > 1 ? "true" : "false");
    cf_text_add(t, "CF_CGEMM_KERNEL(%s, %d, %d)\n", half ? "fp16_" : "", cf_cgemm_threads(c), c->blocks);
}

conv_fft_status cf_cgemm_source(const cf_cgemm_config *c, cf_source *source) {
    char tail[800];
    cf_text t = {tail, sizeof tail, 0};
    emit(c, &t);
    *source = (cf_source){.name = "cf_cgemm",
                          .options = {"--device-as-default-execution-space", NULL},
                          .dynamic_shared = (size_t)cf_cgemm_shared(c),
                          .pdl_wait = true};
    return cf_fbfft_set_text(source, cf_cgemm_kernel_text, &t);
}
