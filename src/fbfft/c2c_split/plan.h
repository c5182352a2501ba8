/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of arithmetic SPLIT: dense complex FP32 rows of 256 to 16,384 points on tensor cores, one kernel. */
#ifndef CF_FBFFT_C2C_SPLIT_H
#define CF_FBFFT_C2C_SPLIT_H

#include "cuda/driver/properties.h"
#include "cuda/jit/kernel.h"
#include "fbfft/common/desc.h"

enum {
    CF_C2C_SPLIT_ALIGNMENT = 16 /* bytes, for input and output */
};

typedef struct cf_c2c_split_config {
    bool inverse;
    int log_n; /* 2^log_n points of a row */
    int threads;
    int lines;      /* rows of a block */
    int blocks;     /* of a multiprocessor at a time */
    int64_t shared; /* bytes of a block */
} cf_c2c_split_config;

/* NOT_SUPPORTED: the GPU has too little shared memory. */
conv_fft_status cf_c2c_split_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                                       cf_c2c_split_config *config);
/* The source of the kernel. The caller frees its text. OUT_OF_MEMORY. */
conv_fft_status cf_c2c_split_source(const cf_c2c_split_config *config, cf_source *source);
void cf_c2c_split_describe(const cf_c2c_split_config *config, cf_text *text);

typedef struct cf_c2c_split_plan {
    cf_c2c_split_config config;
    float scale;
    cf_kernel *kernel;
} cf_c2c_split_plan;

conv_fft_status cf_c2c_split_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_split_plan **plan);
void cf_c2c_split_plan_destroy(cf_c2c_split_plan *plan); /* NULL is allowed; no run of it may be pending */
conv_fft_status cf_c2c_split_plan_run(const cf_c2c_split_plan *plan, const void *in, void *out, int64_t lines,
                                      struct CUstream_st *stream);

#endif
