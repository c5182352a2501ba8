/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the small operations: their texts, how they are built and launched. */
#include "conv/gpu/device.h"

#include "core/arith.h"
#include "cuda/jit/kernel_sources.h"
#include "cuda/jit/launch.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>

/* The entry points, which the device headers define as macros. */
static const char *const entries[CF_KERNEL_COUNT] = {
    [CF_KERNEL_ZERO] = "CF_CLEAR_KERNEL",
    [CF_KERNEL_BIAS] = "CF_BIAS_KERNEL",
    [CF_KERNEL_FOLD] = "CF_FOLD_KERNEL",
    [CF_KERNEL_ABSMAX_FP16] = "CF_ABSMAX_FP16_KERNEL",
    [CF_KERNEL_ABSMAX_FP32] = "CF_ABSMAX_FP32_KERNEL",
    [CF_KERNEL_CGEMM] = "CF_SMALL_GEMM_KERNEL(forward)",
    [CF_KERNEL_CGEMM + 1] = "CF_SMALL_GEMM_KERNEL(data)",
    [CF_KERNEL_CGEMM + 2] = "CF_SMALL_GEMM_KERNEL(weights)",
};

conv_fft_status cf_gpu_small_text(const char *entry, cf_source *source) {
    char tail[128];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(&t, "%s", entry);
    source->pdl_wait = true;
    return cf_fbfft_set_text(source, cf_gpu_kernel_text, &t);
}

conv_fft_status cf_gpu_small_kernel_list(cf_gpu_layers *layers, int kernel, cf_build_list *list) {
    pthread_mutex_lock(&layers->mutex);
    const bool made = layers->kernel[kernel] != NULL;
    pthread_mutex_unlock(&layers->mutex);
    if (made)
        return CONV_FFT_SUCCESS;
    const bool doubles = kernel >= CF_KERNEL_CGEMM + 3;
    cf_source source = {.name = "cf_stage",
                        .options = {"--device-as-default-execution-space", doubles ? "-DCF_REAL=double" : NULL},
                        .dynamic_shared = kernel == CF_KERNEL_BIAS ? cf_gpu_bias_shared(8, CF_GPU_BIAS_MAX_THREADS)
                                          : kernel == CF_KERNEL_ABSMAX_FP16 || kernel == CF_KERNEL_ABSMAX_FP32
                                              ? CF_GPU_ABSMAX_MAX_THREADS / 32 * sizeof(unsigned)
                                              : 0};
    CF_FORWARD(cf_gpu_small_text(entries[doubles ? kernel - 3 : kernel], &source));
    return cf_build_list_add(list, &source, &layers->kernel[kernel], &layers->mutex);
}

conv_fft_status cf_gpu_small_launch(const cf_kernel *kernel, int64_t work, const cf_parameter *types, void *parameter,
                                    void *second, struct CUstream_st *stream) {
    const int64_t max_blocks = kernel->gpu->properties.multiprocessors * 32;
    const int64_t blocks = cf_max(1, cf_min(cf_ceil_div(work, CF_GPU_OP_THREADS), max_blocks));
    const cf_launch shape = {{(unsigned)blocks, 1, 1}, {CF_GPU_OP_THREADS, 1, 1}, 0, types};
    void *parameters[] = {parameter, second};
    return cf_kernel_launch(kernel, &shape, parameters, stream);
}

cf_tensor_view cf_tensor_view_of(const cf_tensor *t, int64_t samples, int64_t groups, int64_t channels,
                                 const int64_t size[3]) {
    return (cf_tensor_view){
        .extent = {samples, groups * channels, size[0], size[1], size[2]},
        .stride = {t->sample_stride, t->channel_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]},
        .group_stride = t->group_stride,
        .channels = channels,
        .type = (int)t->dtype};
}

int64_t cf_view_elements(const cf_tensor_view *s) {
    return s->extent[0] * s->extent[1] * s->extent[2] * s->extent[3] * s->extent[4];
}

conv_fft_status cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream) {
    cf_tensor_view s = cf_tensor_view_of(tensor, extents[0], 1, extents[1], extents + 2);
    static const cf_parameter types[] = {{sizeof s, 0}, {sizeof data, 1}, {0, 0}};
    return cf_gpu_small_launch(cf_gpu_layers_of(device)->kernel[CF_KERNEL_ZERO], cf_view_elements(&s), types, &s, &data,
                               stream);
}
