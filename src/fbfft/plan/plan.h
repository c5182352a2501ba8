/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_FBFFT_PLAN_H
#define CF_FBFFT_PLAN_H

#include "cpu/backend.h"
#include "fbfft/c2c_fp16/plan.h"
#include "fbfft/c2c_split/plan.h"
#include "fbfft/plan/gpu_transform.h"

struct fbfft_plan {
    cf_fft_problem problem;
    bool on_cpu;
    union {
        cf_transform *cpu;
        cf_gpu_transform *gpu;
        cf_cpu_c2c_fp16 *cpu_c2c_fp16; /* for problem.c2c_fp16 */
        cf_c2c_fp16_plan *c2c_fp16;
        cf_c2c_split_plan *c2c_split; /* for problem.c2c_split */
    };
    char description[1024];
};

/* Create a plan on a GPU; cpu.h has the same for the CPU. Arguments have been checked. */
conv_fft_status cf_fft_plan_create(cf_gpu *gpu, const cf_fft_problem *problem, fbfft_plan **plan);
void cf_fft_plan_destroy(fbfft_plan *plan);
size_t cf_fft_plan_workspace(const fbfft_plan *plan, int64_t batch);
conv_fft_status cf_fft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch, void *workspace,
                               struct CUstream_st *stream);

#endif
