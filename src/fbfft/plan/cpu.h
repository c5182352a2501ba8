/* SPDX-License-Identifier: Apache-2.0 */
/* Plans on the CPU. plan.h has the same for a GPU. */
#ifndef CF_FBFFT_CPU_H
#define CF_FBFFT_CPU_H

#include "fbfft/plan/plan.h"

/* Arguments have been checked. */
conv_fft_status cf_fft_cpu_create(cf_device *cpu, const cf_fft_problem *problem, fbfft_plan **plan);
void cf_fft_cpu_destroy(fbfft_plan *plan);
size_t cf_fft_cpu_workspace(const fbfft_plan *plan, int64_t batch);
void cf_fft_cpu_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch, void *workspace);

#endif
