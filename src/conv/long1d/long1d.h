/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Family `long1d`, for long signals: depthwise, one axis, one tile of a power of two, FP32 arithmetic (long1d/line.cuh). A basis of 2 H real
 * numbers is a line of H complex ones; lines that no block holds are cut into pieces, and go through memory in between (four_step.cuh).
 */
#ifndef CF_CONV_LONG1D_H
#define CF_CONV_LONG1D_H

#include "conv/plan/family.h"
#include "cuda/jit/kernel.h"

enum {
    CF_LONG1D_MOST_POINTS = 8192 /* of a line that is not cut */
};

/* In place of a pass: both gradients of a call, which then transforms gy once. */
#define CF_LONG1D_BOTH CF_PASS_COUNT

/* What the kernels of a pass do; x is what it reads (weights, both: x), y what it writes (weights, both: gy). */
typedef enum cf_long1d_stage {
    CF_LONG1D_CUT_W, /* cut: signals to pieces */
    CF_LONG1D_CUT_X,
    CF_LONG1D_CUT_Y,
    CF_LONG1D_SPECTRA,   /* of w */
    CF_LONG1D_LINES,     /* of y from those of x and spectra of w */
    CF_LONG1D_SUMS,      /* spectra of gw */
    CF_LONG1D_BOTH_SUMS, /* the same, and lines of gx from those of gy and spectra of w */
    CF_LONG1D_GRADIENT,
    CF_LONG1D_JOIN_Y, /* join: pieces to signals */
    CF_LONG1D_JOIN_W,
    CF_LONG1D_JOIN_GX, /* of both */
    CF_LONG1D_STAGES
} cf_long1d_stage;

/* How a line is transformed: H = radix[0] radix[1] radix[2], by `threads`; blocks that share a multiprocessor. */
typedef struct cf_long1d_steps {
    int radix[3], threads, lines, blocks;
} cf_long1d_steps;

typedef struct cf_long1d_side {
    conv_fft_dtype dtype;
    int64_t count, stride;
} cf_long1d_side;

typedef struct cf_long1d_config {
    bool stage[CF_LONG1D_STAGES];
    cf_long1d_steps one, two; /* of one line to a block's threads; of one to half of them */
    int column[2];            /* radices of columns; 1, 1: lines fit */
    int column_threads;
    cf_long1d_side x, y, w, gw;
    int64_t pad;
    bool conjugate, groups_first; /* neighbouring lines differ in the group */
    int64_t rows, groups, together, slices;
} cf_long1d_config;

extern const cf_family cf_long1d_family;

/* Whether its kernels compute this pass. */
bool cf_long1d_serves(const cf_layer *layer, int pass, const cf_strategy *strategy);
/* Whether they compute both gradients as one. */
bool cf_long1d_serves_both(const cf_layer *layer, const cf_strategy *data, const cf_strategy *weights);
/* pass: or CF_LONG1D_BOTH. NOT_SUPPORTED: the GPU has too little shared memory for a block, or there are too many lines. */
conv_fft_status cf_long1d_configure(const cf_layer *layer, int pass, const cf_strategy *strategy,
                                    const cf_gpu_properties *properties, cf_long1d_config *config);

static inline int64_t cf_long1d_points(const cf_long1d_config *c) { /* of a piece */
    return (int64_t)c->one.radix[0] * c->one.radix[1] * c->one.radix[2];
}
static inline int64_t cf_long1d_pieces(const cf_long1d_config *c) { return (int64_t)c->column[0] * c->column[1]; }

/* A kernel's block, and how many of them `groups` groups take. */
cf_launch cf_long1d_launch(const cf_long1d_config *config, cf_long1d_stage stage, int64_t groups);
/* Its source; the text is to be freed, and outlives it. OUT_OF_MEMORY. */
conv_fft_status cf_long1d_source(const cf_long1d_config *config, cf_long1d_stage stage, cf_source *source);

/* A pass of a plan, or both gradients. */
typedef struct cf_long1d cf_long1d;

conv_fft_status cf_long1d_create(cf_gpu *gpu, const cf_layer *layer, int pass, const cf_strategy *strategy,
                                 cf_long1d **made);
conv_fft_status cf_long1d_build(cf_long1d *l);
void cf_long1d_destroy(cf_long1d *l); /* NULL is allowed */
size_t cf_long1d_bytes(const cf_long1d *l);
/* memory: cf_long1d_bytes(). */
conv_fft_status cf_long1d_run(const conv_fft_plan *plan, int pass, const cf_long1d *l, const cf_call *call,
                              char *memory);

#endif
