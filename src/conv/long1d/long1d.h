/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Family `long1d`, for long signals: depthwise, one axis, one tile of a power of two, FP32 arithmetic
 * (long1d/line.cuh). A basis of 2 H real numbers is a line of H complex numbers. Lines that do not fit a block are
 * divided by the four-step method and go through memory in between (four_step.cuh).
 */
#ifndef CF_CONV_LONG1D_H
#define CF_CONV_LONG1D_H

#include "conv/gpu/slice_adder.h"
#include "conv/plan/family.h"
#include "cuda/jit/kernel.h"

enum {
    CF_LONG1D_MAX_POINTS = 8192 /* of a line that is not divided */
};

/* In place of a pass: both gradients of a call. gy is then transformed once. */
#define CF_LONG1D_BOTH CF_PASS_COUNT

/* The kernels of a pass. x is read (backward weights and both: x), y is written (backward weights and both: gy). */
typedef enum cf_long1d_stage {
    CF_LONG1D_CUT_W, /* CUT: signals to the parts of the four-step method */
    CF_LONG1D_CUT_X,
    CF_LONG1D_CUT_Y,
    CF_LONG1D_SPECTRA,   /* of w */
    CF_LONG1D_LINES,     /* y, from the lines of x and the spectra of w */
    CF_LONG1D_SUMS,      /* spectra of gw */
    CF_LONG1D_BOTH_SUMS, /* the same, and gx, from the lines of gy and the spectra of w */
    CF_LONG1D_GRADIENT,
    CF_LONG1D_JOIN_Y, /* JOIN: parts to signals */
    CF_LONG1D_JOIN_W,
    CF_LONG1D_JOIN_GX, /* of both gradients */
    CF_LONG1D_STAGES
} cf_long1d_stage;

/* How a line is transformed: H = radix[0] radix[1] radix[2], by `threads` threads; blocks that share a
 * multiprocessor. */
typedef struct cf_long1d_steps {
    int radix[3], threads, lines, blocks;
} cf_long1d_steps;

typedef struct cf_long1d_side {
    conv_fft_dtype dtype, bias_dtype;
    int64_t count, stride;
} cf_long1d_side;

typedef struct cf_long1d_config {
    bool stage[CF_LONG1D_STAGES];
    cf_long1d_steps one, two; /* for one line per block; for two lines per block, each by half of its threads */
    int column[2];            /* radices of columns; 1, 1: lines fit a block */
    int column_threads;
    cf_long1d_side x, y, w, gw;
    int64_t pad;
    bool conjugate, groups_first; /* groups_first: neighbouring lines differ in the group */
    int64_t rows, groups, together, slices;
} cf_long1d_config;

extern const cf_family cf_long1d_family;
void cf_long1d_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                       cf_stage_cost cost[CF_STAGE_COUNT]);

/* Whether its kernels compute this pass. */
bool cf_long1d_serves(const cf_layer *layer, int pass, const cf_strategy *strategy);
/* Whether they compute both gradients as one. */
bool cf_long1d_serves_both(const cf_layer *layer, const cf_strategy *data, const cf_strategy *weights);
/* pass: may be CF_LONG1D_BOTH. NOT_SUPPORTED: the GPU has too little shared memory for a block, or there are too many
 * lines. */
conv_fft_status cf_long1d_configure(const cf_layer *layer, int pass, const cf_strategy *strategy,
                                    const cf_gpu_properties *properties, cf_long1d_config *config);

static inline int64_t cf_long1d_points(const cf_long1d_config *c) { /* of a part */
    return (int64_t)c->one.radix[0] * c->one.radix[1] * c->one.radix[2];
}
static inline int64_t cf_long1d_parts(const cf_long1d_config *c) { return (int64_t)c->column[0] * c->column[1]; }

/* Whether another kernel adds the slices of gw before they are transformed back. */
static inline bool cf_long1d_adds(const cf_long1d_config *c) {
    return c->stage[CF_LONG1D_GRADIENT] && c->slices > CF_FEW_SLICES / 2;
}

/* The launch of a kernel for `groups` groups. */
cf_launch cf_long1d_launch(const cf_long1d_config *config, cf_long1d_stage stage, int64_t groups);
/* The source of a kernel. The caller frees its text after the source. OUT_OF_MEMORY. */
conv_fft_status cf_long1d_source(const cf_long1d_config *config, cf_long1d_stage stage, cf_source *source);

/* A pass of a plan, or both gradients. */
typedef struct cf_long1d cf_long1d;

conv_fft_status cf_long1d_create(cf_gpu *gpu, const cf_layer *layer, int pass, const cf_strategy *strategy,
                                 cf_long1d **made);
conv_fft_status cf_long1d_list(cf_long1d *l, cf_build_list *list);
void cf_long1d_destroy(cf_long1d *l); /* NULL is allowed */
size_t cf_long1d_bytes(const cf_long1d *l);
/* memory: of cf_long1d_bytes() bytes. */
conv_fft_status cf_long1d_run(const conv_fft_plan *plan, int pass, const cf_long1d *l, const cf_call *call,
                              char *memory);

#endif
