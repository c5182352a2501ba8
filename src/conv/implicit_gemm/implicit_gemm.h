/* SPDX-License-Identifier: Apache-2.0 */
/* Family `implicit_gemm`: dense planes with few input channels in 16 bits, as products on tensor cores. */
#ifndef CF_CONV_IMPLICIT_GEMM_IMPLICIT_GEMM_H
#define CF_CONV_IMPLICIT_GEMM_IMPLICIT_GEMM_H

#include "conv/implicit_gemm/geometry.h"
#include "conv/plan/family.h"
#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"

extern const cf_family cf_implicit_gemm_family;

/* How a pass is divided into blocks. forward.cuh and weights.cuh explain the constants. */
typedef struct cf_igemm_config {
    int pass;
    conv_fft_dtype dtype, weights, bias; /* weights: the type of w, or of gw */
    int channels, out_channels;          /* of a group */
    int kernel[2], stride[2], pad[2], input[2], output[2];
    bool last;    /* y has channels last */
    int granule;  /* elements of y that one store moves, or one load of gy */
    bool pairs;   /* columns of x are loaded by twos */
    int lead;     /* taps before the kernel, so that pairs are aligned */
    int columns;  /* channels of y that a block computes, or has sums of */
    int teams;    /* of four warps, of a block */
    int tile[2];  /* outputs of a tile */
    int tiles[2]; /* of a plane */
    int resident; /* blocks of a multiprocessor */
    int64_t samples, groups;
    int64_t grid[2]; /* blocks that share the tiles; channels of y, `columns` at a time */
    int threads;
    int64_t shared; /* bytes of a block */
} cf_igemm_config;

/* Whether the family computes the pass; otherwise *why is a clause. */
bool cf_igemm_serves(const cf_layer *layer, int pass, const char **why);

/* Choose. any_alignment: tensors may begin at any address. NOT_SUPPORTED: a block or the grid does not fit the GPU. */
conv_fft_status cf_igemm_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                   bool any_alignment, cf_igemm_config *config);

cf_igemm_geometry cf_igemm_geometry_for(const cf_igemm_config *config);

/* Bytes of the sums of all blocks of a gradient of the weights; otherwise 0. */
size_t cf_igemm_bytes(const cf_igemm_config *config);

/* The cycles of the multiprocessor that has most tiles. */
double cf_igemm_cycles(const cf_igemm_config *config, const cf_gpu_properties *properties);

/* The source of the kernel, or with `adds` of the one that adds the sums of blocks. The caller frees its text after the
 * source. */
conv_fft_status cf_igemm_source(const cf_igemm_config *config, bool adds, cf_source *source);

void cf_igemm_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]);

/* plan->pass[].state */
typedef struct cf_igemm_state {
    cf_igemm_config config;
    struct cf_kernel *kernel, *add; /* add: of a gradient of the weights; or NULL */
} cf_igemm_state;

conv_fft_status cf_igemm_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
