/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/device.h"

static int kernel_of(const cf_cgemm_desc *desc) {
    return CF_KERNEL_CGEMM + (int)desc->kind + (desc->dtype == CONV_FFT_FP64 ? 3 : 0);
}

conv_fft_status cf_gpu_small_cgemm_list(cf_gpu_layers *layers, const cf_cgemm_desc *desc, cf_build_list *list) {
    return cf_gpu_small_kernel_list(layers, kernel_of(desc), list);
}

conv_fft_status cf_gpu_small_cgemm(cf_gpu_layers *layers, const cf_cgemm_desc *desc, const cf_block *x,
                                   const cf_block *w, const cf_block *y, int64_t bins, bool accumulate,
                                   struct CUstream_st *stream) {
    cf_small_gemm_call s = {x->data,       w->data,          y->data,           bins,
                            x->rows,       desc->in_columns, desc->out_columns, x->bin_stride,
                            w->bin_stride, y->bin_stride,    accumulate,        0};
    const int64_t sizes[] = {[CF_CGEMM_FORWARD] = s.rows * s.out,
                             [CF_CGEMM_BACKWARD_DATA] = s.rows * s.in,
                             [CF_CGEMM_BACKWARD_WEIGHTS] = s.in * s.out * 32};
    static const cf_parameter types[] = {{sizeof s, CF_ADDRESS(cf_small_gemm_call, x) |
                                                        CF_ADDRESS(cf_small_gemm_call, w) |
                                                        CF_ADDRESS(cf_small_gemm_call, y)},
                                         {0, 0}};
    return cf_gpu_small_launch(layers->kernel[kernel_of(desc)], bins * sizes[desc->kind], types, &s, NULL, stream);
}
