/* SPDX-License-Identifier: Apache-2.0 */
/* How the kernels of products on tensor cores (cgemm_split_fp16.cuh, cgemm_fp16.cuh) are cut for a product and a
 * GPU. */
#ifndef CF_CONV_CGEMM_CONFIG_H
#define CF_CONV_CGEMM_CONFIG_H

#include "conv/gpu/gemm/geometry.h"
#include "core/device_ops.h"
#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"

/* CgemmConfig of the kernel, or Fp16CgemmConfig. */
typedef struct cf_cgemm_config {
    cf_cgemm_kind kind;
    conv_fft_dtype dtype; /* of the operands: FP32, FP16, BF16 */
    bool narrow;          /* the result has their type; else it is FP32 */
    int64_t in_columns, out_columns;
    int warps_m, warps_n; /* of a block, along rows and columns of the result */
    int m_tiles, n_tiles; /* of 16 rows, of 8 columns: what a warp has */
    int stages;           /* chunks in shared memory */
    int chunk;            /* numbers of a sum that are on their way at a time */
    int terms;            /* FP32: 2: numbers are split, 1: rounded */
    int slices;           /* groups of warps that share a sum */
    int row_slices;       /* backward weights: blocks that share a sum; another kernel adds what they have */
    bool grouped;         /* four warps multiply as one, as compute capability 9.0 can */
    int blocks;           /* at once on a multiprocessor, for the compiler */
} cf_cgemm_config;

/* Of a block. */
static inline int cf_cgemm_rows(const cf_cgemm_config *c) { return cf_cgemm_tile_rows(c->m_tiles, c->warps_m); }
static inline int cf_cgemm_columns(const cf_cgemm_config *c) { return cf_cgemm_tile_columns(c->n_tiles, c->warps_n); }

cf_cgemm_config cf_cgemm_configure(const cf_cgemm_desc *desc, const cf_gpu_properties *properties);

int cf_cgemm_threads(const cf_cgemm_config *config);
int64_t cf_cgemm_shared(const cf_cgemm_config *config);              /* bytes of a block */
int64_t cf_cgemm_tiles(const cf_cgemm_config *config, int64_t rows); /* blocks of a matrix */

/* The source of the kernel; its text is to be freed. OUT_OF_MEMORY. */
conv_fft_status cf_cgemm_source(const cf_cgemm_config *config, cf_source *source);

#endif
