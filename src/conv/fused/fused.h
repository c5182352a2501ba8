/* SPDX-License-Identifier: Apache-2.0 */
/* Family `fused`: one kernel transforms signals, multiplies, sums and transforms back (shared_memory.cuh). */
#ifndef CF_CONV_FUSED_H
#define CF_CONV_FUSED_H

#include "conv/plan/family.h"
#include "cuda/jit/kernel.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/shared_memory/config.h"

/* The tuner makes its candidates from the bases and tiles of staged ones. */
extern const cf_family cf_fused_family;
void cf_fused_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]);
double cf_fused_saved_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                              const cf_strategy *weights);
conv_fft_status cf_fused_run(const conv_fft_plan *plan, int set, const cf_call *call);

typedef enum cf_fused_form {
    CF_FUSED_SCATTER,
    CF_FUSED_GATHER,
    CF_FUSED_WEIGHTS
} cf_fused_form;

/* A copy of an NHWC tensor as planes (nhwc_transpose.c). */
typedef struct cf_nhwc_transpose {
    int64_t blocks;    /* 0: it is not needed */
    bool x, reads;     /* x: of x or gx, not of y or gy; reads: makes planes of the tensor, not the tensor of planes */
    int vector_width;  /* channels that a thread moves at once if pointers are aligned */
    int64_t extent[5]; /* samples, channels, axes */
    cf_tensor tensor, planes;
    size_t bytes; /* of the planes */
    int64_t shared;
} cf_nhwc_transpose;

/* How a pass is divided into blocks. It depends only on the layer, the strategy and the properties of the GPU. */
typedef struct cf_fused_config {
    cf_fused_form form;
    bool conjugate, rows_first;
    bool sums;             /* backward weights: threads hold the sums, not shared memory */
    bool resident;         /* register_resident.cuh: few planes stay in registers */
    bool bulk, whole_rows; /* of register-resident kernels */
    int prefetch;          /* of register-resident kernels: planes of bins that are loaded ahead */
    /* columns per group of what is read and written (backward weights: of x and gy); outputs of one block */
    int in, out, chunk;
    int64_t in_stride, out_stride; /* distance, in bins, of the weights of two inputs, and of two outputs */
    int64_t rows, groups, slices;
    int64_t bins;                    /* of a plane */
    cf_shared_fft_config tile[2][2]; /* [side][for aligned pointers, for others] */
    double cycles;                   /* of a plane of each side: cf_shared_fft_configure_product() */
    cf_nhwc_transpose transpose;     /* for register_resident.cuh */
    int64_t shared;
    int64_t blocks; /* along the first axis of the grid */
} cf_fused_config;

/* NOT_SUPPORTED: too much for the shared memory of a block, or too many blocks. */
conv_fft_status cf_fused_configure(const cf_layer *layer, int pass, const cf_strategy *strategy,
                                   const cf_gpu_properties *properties, cf_fused_config *config);

/* The same for register-resident kernels, from the form, columns and rows in *config. NOT_SUPPORTED also if these
 * kernels do not take the layer: several groups, one axis, or many channels on both sides. */
conv_fft_status cf_resident_configure(cf_fused_config *config, const cf_shared_fft_problem problems[2],
                                      const cf_gpu_properties *properties, int64_t max_slices);

cf_fused_form cf_fused_form_of(int pass, const cf_spectrum spectrum[CF_OPERAND_COUNT]);

/* The planes that a register-resident kernel streams in place of a tensor, if that is better. */
cf_nhwc_transpose cf_nhwc_transpose_of(const cf_layer *layer, int pass, const cf_strategy *strategy);
/* The kernels of the transpose: for aligned pointers, and for others if vector_width > 1. bias: of a tensor that is
 * written. */
void cf_nhwc_transpose_emit(const cf_nhwc_transpose *transpose, int variant, cf_text *text);
conv_fft_status cf_nhwc_transpose_run(const cf_nhwc_transpose *transpose, cf_kernel *const kernels[2],
                                      const void *tensor, void *planes, const void *bias, bool accumulate,
                                      struct CUstream_st *stream);

/* cf_strategy_window() of an operand of the pass. The windows of x and w get the same alignment shift if rows of x
 * are then better aligned. Their product does not change. */
cf_window cf_fused_window(const cf_layer *layer, int pass, const cf_strategy *strategy, int operand);

/* The text of the kernel cf_fused. It follows the device headers. */
void cf_fused_emit(const cf_fused_config *config, int variant, cf_text *text);

/* The number of different variants of the kernel. */
static inline int cf_fused_variants(const cf_fused_config *c) {
    return c->tile[0][0].vector_width > 1 || c->tile[1][0].vector_width > 1 || c->whole_rows ? 2 : 1;
}
/* The number of kernels: the variants; if there are several slices, one that adds them; and those of the transpose. */
static inline int cf_fused_kernels(const cf_fused_config *c) {
    return cf_fused_variants(c) + (c->slices > 1) +
           (c->transpose.blocks == 0        ? 0
            : c->transpose.vector_width > 1 ? 2
                                            : 1);
}

/* The source of a kernel. The caller frees its text after the source. OUT_OF_MEMORY. */
conv_fft_status cf_fused_source(const cf_fused_config *config, int kernel, cf_source *source);

#endif
