/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whose signal and spectrum are complex FP16 numbers: powers of two, dense and complete, on tensor cores
 * (fp16_dft.cuh) or on the CPU. */
#ifndef CF_FBFFT_C2C_FP16_H
#define CF_FBFFT_C2C_FP16_H

#include "cuda/driver/properties.h"
#include "cuda/jit/kernel.h"
#include "fbfft/common/desc.h"

enum {
    CF_C2C_FP16_PASSES = 3,
    CF_C2C_FP16_ALIGNMENT = 16 /* bytes, for input and output */
};

/* WARPS is in lines.cuh. The other forms are those of c2c_fp16/tile.cuh, in its order. */
typedef enum cf_c2c_fp16_form {
    CF_C2C_FP16_LINES,
    CF_C2C_FP16_COLUMNS,
    CF_C2C_FP16_ROWS,
    CF_C2C_FP16_WARPS
} cf_c2c_fp16_form;

/* One kernel. Sizes are powers of two, given as exponents. The names are those of the kernel. */
typedef struct cf_c2c_fp16_pass {
    cf_c2c_fp16_form form;
    int log_n;    /* points of a line */
    int log_r[2]; /* points of the steps of a tile; the second is 0 if there is one step */
    int log_w, log_inner, log_twiddle, log_first, log_middle;
    bool ahead;       /* LINES of 2^15 points: a block does one tile after another and prefetches the next */
    int each, rounds; /* WARPS only */
    int threads, blocks;
    float gain[2][2];      /* gains of the first and second product of each step */
    int64_t shared, lines; /* bytes of a block; lines of an entry */
    int64_t block_lines;   /* lines of a tile */
    int64_t max_blocks;    /* blocks of a launch */
} cf_c2c_fp16_pass;

typedef struct cf_c2c_fp16_config {
    bool inverse;
    int64_t points; /* of an entry */
    int count;
    cf_c2c_fp16_pass pass[CF_C2C_FP16_PASSES];
    bool uses_workspace; /* intermediate numbers are in the workspace, not in the output */
    int64_t chunk;       /* entries that go through all kernels before the next entries */
} cf_c2c_fp16_config;

void cf_c2c_fp16_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                           cf_c2c_fp16_config *config);
/* Compute what follows from the other fields: shared memory, blocks, and lines of a block. */
void cf_c2c_fp16_finish(const cf_gpu_properties *properties, cf_c2c_fp16_pass *pass);
/* Divide the powers of two of the scale among the products in proportion to their points. With a scale of 1 / N,
 * nothing overflows then that does not overflow in the result. The last product has the rest. */
void cf_c2c_fp16_set_gains(cf_c2c_fp16_config *config, double scale);
/* The source of a kernel. The caller frees its text. OUT_OF_MEMORY. */
conv_fft_status cf_c2c_fp16_source(const cf_c2c_fp16_config *config, int pass, cf_source *source);
void cf_c2c_fp16_describe(const cf_c2c_fp16_pass *pass, cf_text *text);

typedef struct cf_c2c_fp16_plan {
    cf_c2c_fp16_config config;
    cf_kernel *kernel[CF_C2C_FP16_PASSES];
} cf_c2c_fp16_plan;

conv_fft_status cf_c2c_fp16_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_fp16_plan **plan);
void cf_c2c_fp16_plan_destroy(cf_c2c_fp16_plan *plan); /* NULL is allowed; no run of it may be pending */
size_t cf_c2c_fp16_plan_workspace(const cf_c2c_fp16_plan *plan, int64_t entries);
conv_fft_status cf_c2c_fp16_plan_run(const cf_c2c_fp16_plan *plan, const void *in, void *out, int64_t entries,
                                     void *workspace, struct CUstream_st *stream);

#endif
