/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whose signal and spectrum are pairs of FP16: powers of two, dense and whole, on tensor cores (fp16_dft.cuh) or the CPU. */
#ifndef CF_FBFFT_C2C_FP16_H
#define CF_FBFFT_C2C_FP16_H

#include "cuda/driver/properties.h"
#include "cuda/jit/kernel.h"
#include "fbfft/common/desc.h"

enum {
    CF_C2C_FP16_PASSES = 3,
    CF_C2C_FP16_ALIGNMENT = 16 /* bytes, of the input and of the output */
};

/* WARPS: lines.cuh; the others are the forms of c2c_fp16/tile.cuh, in its order. */
typedef enum cf_c2c_fp16_form {
    CF_C2C_FP16_LINES,
    CF_C2C_FP16_COLUMNS,
    CF_C2C_FP16_ROWS,
    CF_C2C_FP16_WARPS
} cf_c2c_fp16_form;

/* One kernel. Sizes are powers of two, given as exponents; the names are the kernels'. */
typedef struct cf_c2c_fp16_pass {
    cf_c2c_fp16_form form;
    int log_n;    /* points of a line */
    int log_r[2]; /* of the steps of a tile; the second is 0 if there is none */
    int log_w, log_inner, log_twiddle, log_first, log_middle;
    bool ahead;       /* of LINES and COLUMNS: blocks have one tile after the other */
    int each, rounds; /* of WARPS */
    int threads, blocks;
    float gain[2][2];      /* of the first and of the second product of each step */
    int64_t shared, lines; /* bytes of a block; lines of an entry */
    int64_t block_lines;   /* of a tile */
    int64_t most;          /* blocks of a launch */
} cf_c2c_fp16_pass;

typedef struct cf_c2c_fp16_config {
    bool inverse;
    int64_t points; /* of an entry */
    int count;
    cf_c2c_fp16_pass pass[CF_C2C_FP16_PASSES];
    bool waits;    /* what a pass leaves to the next one is in the workspace, else in the output */
    int64_t chunk; /* entries that go through all passes before the next ones */
} cf_c2c_fp16_config;

void cf_c2c_fp16_configure(const cf_fft_problem *problem, const cf_gpu_properties *properties,
                           cf_c2c_fp16_config *config);
/* What follows from the rest of a pass: its shared memory, blocks and lines of a block. */
void cf_c2c_fp16_finish(const cf_gpu_properties *properties, cf_c2c_fp16_pass *pass);
/* Powers of two of the scale go to the products in proportion to their points, so that with a scale of 1 / N nothing overflows that does not
 * in the result; the last one has the rest. */
void cf_c2c_fp16_set_gains(cf_c2c_fp16_config *config, double scale);
/* The source of a kernel; its text is to be freed. OUT_OF_MEMORY. */
conv_fft_status cf_c2c_fp16_source(const cf_c2c_fp16_config *config, int pass, cf_source *source);
void cf_c2c_fp16_describe(const cf_c2c_fp16_pass *pass, cf_text *text);

typedef struct cf_c2c_fp16_plan {
    cf_c2c_fp16_config config;
    cf_kernel *kernel[CF_C2C_FP16_PASSES];
} cf_c2c_fp16_plan;

conv_fft_status cf_c2c_fp16_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, cf_c2c_fp16_plan **plan);
void cf_c2c_fp16_plan_destroy(cf_c2c_fp16_plan *plan); /* NULL is allowed. No run of it may be pending */
size_t cf_c2c_fp16_plan_workspace(const cf_c2c_fp16_plan *plan, int64_t entries);
conv_fft_status cf_c2c_fp16_plan_run(const cf_c2c_fp16_plan *plan, const void *in, void *out, int64_t entries,
                                     void *workspace, struct CUstream_st *stream);

#endif
