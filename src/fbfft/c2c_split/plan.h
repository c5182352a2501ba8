/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of arithmetic SPLIT: dense FP32 rows, planes and volumes on tensor cores. A row of up to 2^14 complex points is
 * one kernel, and so is each other axis. Longer rows take two kernels, above 2^24 points three. Rows of 2 M reals are
 * rows of M complex points. They take one kernel more (reals.cuh), the last one or the first one of the inverse, unless
 * there is only one. */
#ifndef CF_FBFFT_C2C_SPLIT_H
#define CF_FBFFT_C2C_SPLIT_H

#include "cuda/driver/properties.h"
#include "cuda/jit/kernel.h"
#include "fbfft/c2c_split/geometry.h"
#include "fbfft/common/desc.h"

enum {
    CF_C2C_SPLIT_PASSES = 4,
    CF_C2C_SPLIT_ALIGNMENT = 16 /* bytes, for input and output */
};

/* One kernel. Those after the first one work in place. Exceptions with several kernels: the last one of R2C goes from
 * the workspace to the output. The first one of C2R goes to the workspace, and the second from there to the output. */
typedef struct cf_c2c_split_pass {
    int form;        /* CF_C2C_SPLIT_ROWS or another of geometry.h */
    int log_n;       /* 2^log_n points of a line */
    int log_inner;   /* 2^log_inner lines are neighbours in memory */
    int log_last;    /* of the longest rows, see kernel.cuh */
    int log_rows[2]; /* of the form REALS: the axes before the last */
    bool reals;      /* of the form ROWS: the spectrum is that of reals */
    int threads;
    int lines;      /* of a block; 0 for the form REALS */
    int blocks;     /* of a multiprocessor at a time */
    int64_t shared; /* bytes of a block */
} cf_c2c_split_pass;

typedef struct cf_c2c_split_config {
    bool inverse, reals;
    int64_t points; /* of an entry, complex */
    int64_t rows;   /* of the last axis, of an entry */
    int count;
    cf_c2c_split_pass pass[CF_C2C_SPLIT_PASSES];
} cf_c2c_split_config;

/* NOT_SUPPORTED: the GPU has too little shared memory. */
conv_fft_status cf_c2c_split_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                       cf_c2c_split_config *config);
/* The source of a kernel. The caller frees its text. OUT_OF_MEMORY. */
conv_fft_status cf_c2c_split_source(const cf_c2c_split_config *config, int pass, cf_source *source);
void cf_c2c_split_describe(const cf_c2c_split_config *config, int pass, cf_text *text);

typedef struct cf_c2c_split_plan {
    cf_c2c_split_config config;
    float scale;
    cf_kernel *kernel[CF_C2C_SPLIT_PASSES];
} cf_c2c_split_plan;

conv_fft_status cf_c2c_split_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_split_plan **plan);
void cf_c2c_split_plan_destroy(cf_c2c_split_plan *plan); /* NULL is allowed; no run of it may be pending */
size_t cf_c2c_split_plan_workspace(const cf_c2c_split_plan *plan, int64_t entries);
conv_fft_status cf_c2c_split_plan_run(const cf_c2c_split_plan *plan, const void *in, void *out, int64_t entries,
                                      void *workspace, struct CUstream_st *stream);

#endif
