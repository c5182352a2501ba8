/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/gpu/device.h"

#include <string.h>

conv_fft_status cf_gpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream) {
    cf_fold_call f = {.gx = cf_tensor_view_of(&desc->tensor, samples, groups, desc->channels, desc->size),
                      .scratch = scratch,
                      .data = tensor,
                      .mode = (int)desc->mode,
                      .type = (int)desc->scratch_dtype,
                      .accumulate = accumulate,
                      .last = desc->last};
    static const cf_parameter types[] = {{sizeof f, CF_ADDRESS(cf_fold_call, scratch) | CF_ADDRESS(cf_fold_call, data)},
                                         {0, 0}};
    memcpy(f.pad, desc->pad, sizeof f.pad);
    memcpy(f.padded, desc->padded, sizeof f.padded);
    return cf_gpu_small_launch(cf_gpu_layers_of(device)->kernel[CF_KERNEL_FOLD], cf_view_elements(&f.gx), types, &f,
                               NULL, stream);
}
