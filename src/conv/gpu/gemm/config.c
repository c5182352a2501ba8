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

/* Tiles of eight columns that a warp has: few beyond the result, and many that share what is read of its rows. */
static int column_tiles(int64_t columns) {
    int best = 2;
    double least = 0.0;
    for (int tiles = 2; tiles <= 8; tiles += 2) {
        const double share = (double)columns / (double)(cf_ceil_div(columns, 8 * tiles) * 8 * tiles);
        if (share >= least) {
            least = share;
            best = tiles;
        }
    }
    return best;
}

/* Warps along the rows, sixteen for each: the most, up to four, that have few beyond the result; six where that makes one block. */
static int row_warps(int64_t rows) {
    static const int counts[] = {1, 2, 3, 6, 4};
    int best = 1;
    double least = 0.0;
    for (int i = 0; i < 5; ++i) {
        const int64_t block = 16 * counts[i];
        const double share = (double)rows / (double)(cf_ceil_div(rows, block) * block);
        if (share >= least) {
            least = share;
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

/* Four warps in a group have 64 x 64 numbers. Others have warps of their own, which take longer for split numbers; rounded ones wait for
 * the L2 cache, whose bytes 128 rows share better, where there are blocks enough for several turns. Short sums and narrow results wait
 * for memory, and many small blocks are best. */
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

/* Cycles for eight terms of each sum of all matrices. 40 bytes come to a multiprocessor through the L2 cache in one, and four warps issue an
 * instruction each in one and a half; the one that has most blocks counts. */
static double fp16_cycles(const cf_cgemm_config *c, int64_t rows, int64_t columns, int64_t matrices,
                          const cf_gpu_properties *properties) {
    const int64_t m = cf_cgemm_rows(c), n = cf_cgemm_columns(c),
                  blocks = cf_ceil_div(rows, m) * cf_ceil_div(columns, n) * matrices;
    const int instructions = 2 * c->m_tiles * c->n_tiles + 9 * c->m_tiles + c->n_tiles;
    return (double)cf_ceil_div(blocks, properties->multiprocessors) *
           (0.8 * (double)(m + n) + 0.375 * c->warps_m * c->warps_n * instructions);
}

/* Warps of a block, of 16-bit spectra: with four there are four blocks, of which three go on where one ends its tile or waits at a barrier. Eight
 * of them, two blocks, read fewer bytes, which pays where a tile is long. Measured on an H200: sums of 512 terms gain 4 to 5% in FP16 and
 * nothing in BF16; shorter ones lose, of 128 terms 7% in FP16 and 21 to 28% in BF16. Gradients of weights gain in BF16, where tiles have short
 * ends, 2 to 6% with results of 128 or 512 columns (of 384: 2% less). In FP16 they gain 7% with 512 x 512 results of 64 terms, the only such shape that was
 * measured; with 128 terms they lost 6 to 10%, when blocks of eight warps still waited more often for scales (fp16_find_tops()). Of a tile that stores as
 * many bytes as it reads, memory takes the stores at its own rate, and what is read through the L2 cache is what can become less. */
static int max_warps(const cf_cgemm_config *c, int64_t depth) {
    if (c->kind != CF_CGEMM_BACKWARD_WEIGHTS)
        return depth >= 512 ? 8 : 4;
    /* Of four warps' 64 x 64 numbers. */
    const int64_t side = 64, read = 2 * side * depth * 4, stored = side * side * 8;
    return !cf_spectrum_is_scaled(c->dtype) || stored >= read ? 8 : 4;
}

/* Of 16-bit spectra: warps of up to 32 x 32 numbers, sixteen of which have all registers; of large blocks that cost the same, the one with
 * more columns. */
static void cut_half(cf_cgemm_config *c, int64_t rows, int64_t columns, int64_t depth, int64_t matrices,
                     const cf_gpu_properties *properties) {
    c->chunk = depth > CF_CGEMM_CHUNK ? 2 * CF_CGEMM_CHUNK : CF_CGEMM_CHUNK;
    const int most = max_warps(c, depth);
    double least = HUGE_VAL;
    cf_cgemm_config now = *c;
    for (now.warps_n = 1; now.warps_n <= 4; ++now.warps_n)
        for (now.warps_m = 1; now.warps_m <= 4 && now.warps_m * now.warps_n <= most; ++now.warps_m)
            for (now.m_tiles = 1; now.m_tiles <= 2; ++now.m_tiles)
                for (now.n_tiles = 2; now.n_tiles <= 4; now.n_tiles += 2) {
                    const double cycles = fp16_cycles(&now, rows, columns, matrices, properties);
                    if (cycles < least || (cycles <= least && now.warps_m * now.warps_n == 8)) {
                        least = cycles;
                        *c = now;
                    }
                }
}

/* Where blocks are fewer than multiprocessors: smaller ones. */
static void cut_smaller(cf_cgemm_config *c) {
    c->grouped = false;
    c->m_tiles = c->warps_n = 1;
    c->n_tiles = (int)cf_min(c->n_tiles, 4);
    c->warps_m = (int)cf_min(c->warps_m, 2);
}

/* Groups of warps that share a sum, as many as a multiprocessor would have blocks, if blocks are too few for that and sums are long. */
static int slices_of(const cf_cgemm_config *c, int64_t blocks, int64_t depth, const cf_gpu_properties *properties) {
    const int64_t room = properties->multiprocessors * c->blocks / blocks,
                  most = cf_min(c->blocks, 512 / cf_cgemm_threads(c));
    return (int)cf_max(1, cf_min(cf_min(room, most), depth / (4 * c->chunk)));
}

/* As many as leave room for the blocks, and as there are chunks. */
static void set_stages(cf_cgemm_config *c, int64_t depth, int64_t blocks, const cf_gpu_properties *properties) {
    /* The gradient of the weights with 128 rows has no registers left for a fourth one, in FP32. */
    const int most = c->m_tiles == 2 && c->kind == CF_CGEMM_BACKWARD_WEIGHTS && c->dtype == CONV_FFT_FP32 ? 3 : 4;
    /* Of 16-bit spectra, those that are short are all on their way at once, and those of a block's next matrix. */
    const bool half = c->dtype != CONV_FFT_FP32, more = half && blocks > properties->multiprocessors * c->blocks;
    const int64_t chunks = cf_ceil_div(depth, c->chunk) + half;
    c->stages = more ? most : (int)cf_max(2, cf_min(most, chunks));
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
                         .slices = 1};
    const int64_t rows = cf_max(1, desc->rows), matrices = desc->bins * cf_max(1, desc->groups);
    const int64_t depth = desc->kind == CF_CGEMM_FORWARD         ? desc->in_columns
                          : desc->kind == CF_CGEMM_BACKWARD_DATA ? desc->out_columns
                                                                 : rows;
    if (c.dtype != CONV_FFT_FP32)
        cut_half(&c, result_rows(&c, rows), result_columns(&c), depth, matrices, properties);
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
    return c;
}

/* The kernel's text behind the headers. */
static void emit(const cf_cgemm_config *c, cf_text *t) {
    const bool half = c->dtype != CONV_FFT_FP32;
    cf_text_add(t, "typedef %sCgemmConfig<%d, %lld, %lld, %d, %d, %d, %d, %d, ", half ? "Fp16" : "", (int)c->kind,
                (long long)c->in_columns, (long long)c->out_columns, c->warps_m, c->warps_n, c->m_tiles, c->n_tiles,
                c->stages);
    if (half)
        cf_text_add(t, "%d, %d, %s, %s> Config;\n", c->chunk, c->slices,
                    c->dtype == CONV_FFT_FP16 ? "fp16_bins" : "bf16_bins", c->narrow ? "true" : "false");
    else
        cf_text_add(t, "%d, %d, %s> Config;\n", c->terms, c->slices, c->grouped ? "true" : "false");
    cf_text_add(t, "CF_CGEMM_KERNEL(%s, %d, %d)\n", half ? "fp16_" : "", cf_cgemm_threads(c), c->blocks);
}

conv_fft_status cf_cgemm_source(const cf_cgemm_config *c, cf_source *source) {
    char tail[800], *text;
    cf_text t = {tail, sizeof tail, 0};
    emit(c, &t);
    CF_FORWARD(cf_fbfft_join_emitted(cf_cgemm_kernel_text, &t, &text));
    *source = (cf_source){.name = "cf_cgemm",
                          .text = text,
                          .options = {"--device-as-default-execution-space", NULL},
                          .dynamic_shared = (size_t)cf_cgemm_shared(c),
                          .pdl_wait = true};
    return CONV_FFT_SUCCESS;
}
