/* SPDX-License-Identifier: Apache-2.0 */
/* Family `fused`: transform, product, sum over channels and inverse in one kernel (shared_memory.cuh). */
#ifndef CF_CONV_FUSED_H
#define CF_CONV_FUSED_H

#include "conv/plan/family.h"
#include "cuda/jit/kernel.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/shared_memory/config.h"

/* Its candidates are the tuner's, with the bases and tiles of staged ones. */
extern const cf_family cf_fused_family;
conv_fft_status cf_fused_run(const conv_fft_plan *plan, int set, const cf_call *call);

typedef enum cf_fused_form {
    CF_FUSED_SCATTER,
    CF_FUSED_GATHER,
    CF_FUSED_WEIGHTS
} cf_fused_form;

/* Planes in place of a tensor whose channels stand side by side (nhwc_transpose.c). */
typedef struct cf_nhwc_transpose {
    int64_t blocks;    /* 0: there is no need for them */
    bool x, reads;     /* of x or gx, or else of y or gy; it makes planes, or else the tensor of these */
    int vector_width;  /* channels that a thread moves at once, if pointers are aligned */
    int64_t extent[5]; /* samples, channels, axes */
    cf_tensor tensor, planes;
    size_t bytes; /* of the planes */
    int64_t shared;
} cf_nhwc_transpose;

/* How a pass is cut: a pure function of the layer, the strategy and the GPU's facts. */
typedef struct cf_fused_config {
    cf_fused_form form;
    bool conjugate, rows_first;
    bool sums;          /* weights: threads keep them, or else shared memory */
    bool keeps;         /* register_resident.cuh: few planes stay in registers */
    bool bulk, whole;   /* of such kernels */
    int prefetch;       /* of such kernels: planes of bins that come while others are in use */
    int in, out, chunk; /* columns per group of what is read and written (weights: of x and gy); outputs of one block */
    int64_t in_stride, out_stride; /* bins from the weights of an input to those of the next one; of an output */
    int64_t rows, groups, slices;
    int64_t bins;                    /* of a plane */
    cf_shared_fft_config tile[2][2]; /* of the two sides; for aligned pointers, for others */
    double cycles;                   /* of a plane of each side: cf_shared_fft_configure_product() */
    cf_nhwc_transpose transpose;     /* for register_resident.cuh */
    int64_t shared;
    int64_t blocks; /* along the first axis of the grid */
} cf_fused_config;

/* NOT_SUPPORTED: too much for the shared memory of a block, or too many blocks. */
conv_fft_status cf_fused_configure(const cf_layer *layer, int pass, const cf_strategy *strategy,
                                   const cf_gpu_properties *properties, cf_fused_config *config);

/* The same for kernels whose few planes stay in registers, from the form, columns and rows in *config. NOT_SUPPORTED also where that does
 * not serve. */
conv_fft_status cf_resident_configure(cf_fused_config *config, const cf_shared_fft_problem problems[2],
                                      const cf_gpu_properties *properties, int64_t max_slices);

cf_fused_form cf_fused_form_of(int pass, const cf_spectrum spectrum[CF_OPERAND_COUNT]);

/* What passes by kernels whose few planes stay in registers, as planes, if that is better. */
cf_nhwc_transpose cf_nhwc_transpose_of(const cf_layer *layer, int pass, const cf_strategy *strategy);
/* Its kernels, for aligned pointers and for others, where wide > 1. bias: of a tensor that is made. */
void cf_nhwc_transpose_emit(const cf_nhwc_transpose *transpose, int variant, cf_text *text);
conv_fft_status cf_nhwc_transpose_run(const cf_nhwc_transpose *transpose, cf_kernel *const kernels[2],
                                      const void *tensor, void *planes, const void *bias, bool accumulate,
                                      struct CUstream_st *stream);

/* cf_strategy_window() of one of the pass's operands. Those of x and of w are moved up together where rows of x then begin at places that
 * kernels like better: what they make of each other stays where it was. */
cf_window cf_fused_window(const cf_layer *layer, int pass, const cf_strategy *strategy, int operand);

/* The kernel's text behind the device headers; its name is cf_fused. */
void cf_fused_emit(const cf_fused_config *config, int variant, cf_text *text);

/* Variants of the kernel that differ. */
static inline int cf_fused_variants(const cf_fused_config *c) {
    return c->tile[0][0].vector_width > 1 || c->tile[1][0].vector_width > 1 || c->whole ? 2 : 1;
}
/* Behind them, if there are several slices, one that adds them; and those of `turn`. */
static inline int cf_fused_kernels(const cf_fused_config *c) {
    return cf_fused_variants(c) + (c->slices > 1) +
           (c->transpose.blocks == 0        ? 0
            : c->transpose.vector_width > 1 ? 2
                                            : 1);
}

/* The source of a kernel; its text is to be freed, and outlives it. OUT_OF_MEMORY. */
conv_fft_status cf_fused_source(const cf_fused_config *config, int kernel, cf_source *source);

#endif
