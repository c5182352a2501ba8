/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CF_FBFFT_PLAN_H
#define CF_FBFFT_PLAN_H

#include "device/kernel.h"
#include "fbfft/config.h"

struct fbfft_plan {
    fbfft_desc desc;
    cf_fft_config config[2]; /* for pointers aligned to 16 bytes, for others */
    cf_kernel *kernel[2];    /* the same one if the first does not ask for alignment */
    char description[256];
};

conv_fft_status cf_fft_plan_create(cf_gpu *gpu, const fbfft_desc *desc, fbfft_plan **plan);
void cf_fft_plan_destroy(fbfft_plan *plan);
conv_fft_status cf_fft_execute(const fbfft_plan *plan, const void *in, void *out, int64_t batch,
                               struct CUstream_st *stream);

#endif
