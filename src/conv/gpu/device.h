/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the GPU's operations share. */
#ifndef CF_CONV_GPU_STAGES_H
#define CF_CONV_GPU_STAGES_H

#include "conv/gpu/backend.h"
#include "conv/gpu/call.h"
#include "cuda/jit/build_list.h"

#include <pthread.h>

/* Threads of a block. */
enum {
    CF_GPU_OP_THREADS = 256, /* of the simple operations */
    CF_GPU_BIAS_MAX_THREADS = 1024,
    CF_GPU_ABSMAX_MAX_THREADS = 1024
};

/* Bytes of shared memory of bias.cuh: this many sums of each thread, and one more. */
static inline size_t cf_gpu_bias_shared(int64_t sums, int64_t threads) {
    return (size_t)(sums * (threads + 1) + threads) * sizeof(double);
}

/* Kernels of the small operations. */
enum {
    CF_KERNEL_ZERO,
    CF_KERNEL_BIAS,
    CF_KERNEL_FOLD,
    CF_KERNEL_ABSMAX_FP16, /* absmax.cuh */
    CF_KERNEL_ABSMAX_FP32,
    CF_KERNEL_CGEMM, /* + kind; + 3 for FP64 */
    CF_KERNEL_COUNT = CF_KERNEL_CGEMM + 6
};

typedef struct cf_gpu_layers {
    cf_device base;
    cf_gpu *gpu;
    pthread_mutex_t mutex; /* guards what follows */
    bool prepared;
    cf_kernel *kernel[CF_KERNEL_COUNT]; /* shared by all plans; NULL: no plan has needed it. Once set it stays */
} cf_gpu_layers;

static inline cf_gpu_layers *cf_gpu_layers_of(cf_device *device) { return (cf_gpu_layers *)device; }

/* NULL: the device is no GPU. */
cf_gpu *cf_gpu_of_layers(const cf_device *device);

/* List one of them, unless the device has it. */
conv_fft_status cf_gpu_small_kernel_list(cf_gpu_layers *layers, int kernel, cf_build_list *list);

/* Give a source its text: cf_gpu_kernel_text, followed by the macro `entry`. The caller frees source->text.
 * OUT_OF_MEMORY. */
conv_fft_status cf_gpu_small_text(const char *entry, cf_source *source);

/* Launch as many blocks as cover `work` threads, up to a number that fills any GPU; the kernels have grid-stride
 * loops. `second` may be NULL. types: as in cf_launch.parameters. */
conv_fft_status cf_gpu_small_launch(const cf_kernel *kernel, int64_t work, const cf_parameter *types, void *parameter,
                                    void *second, struct CUstream_st *stream);

cf_tensor_view cf_tensor_view_of(const cf_tensor *tensor, int64_t samples, int64_t groups, int64_t channels,
                                 const int64_t size[3]);
int64_t cf_view_elements(const cf_tensor_view *tensor);

conv_fft_status cf_gpu_cgemm(cf_device *device, const cf_cgemm_desc *desc, cf_block x, cf_block w, cf_block y,
                             bool accumulate, void *scratch, struct CUstream_st *stream);
/* Products by the library's own kernels. The bins of all groups must follow one another without gaps. */
conv_fft_status cf_gpu_small_cgemm(cf_gpu_layers *layers, const cf_cgemm_desc *desc, const cf_block *x,
                                   const cf_block *w, const cf_block *y, int64_t bins, bool accumulate,
                                   struct CUstream_st *stream);
/* List the kernel of a product, if it needs one. */
conv_fft_status cf_gpu_cgemm_list(cf_device *device, cf_cgemm_desc *desc, cf_build_list *list);
conv_fft_status cf_gpu_small_cgemm_list(cf_gpu_layers *layers, const cf_cgemm_desc *desc, cf_build_list *list);
conv_fft_status cf_gpu_tensor_core_cgemm_list(cf_device *device, cf_cgemm_desc *desc, cf_build_list *list);
/* Products on tensor cores, by a kernel that was compiled for the description. */
void cf_gpu_cgemm_destroy(cf_cgemm *product);
conv_fft_status cf_gpu_tensor_core_cgemm(const cf_cgemm_desc *desc, const cf_block *x, const cf_block *w,
                                         const cf_block *y, bool accumulate, void *scratch, struct CUstream_st *stream);
size_t cf_gpu_cgemm_scratch(const cf_device *device, const cf_cgemm_desc *desc);
conv_fft_status cf_gpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream);
conv_fft_status cf_gpu_bias_gradient(cf_device *device, const cf_bias_desc *desc, const void *gy, void *gbias,
                                     bool accumulate, void *scratch, struct CUstream_st *stream);
size_t cf_gpu_bias_scratch(const cf_device *device, const cf_bias_desc *desc);
conv_fft_status cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream);

/* Find the largest magnitudes of the elements of each scale, for a transform to FP16 spectra. scratch receives them.
 * signal: element 0 of sample 0 of the block's first group. */
size_t cf_gpu_absmax_scratch(const cf_transform_desc *desc);
int cf_gpu_absmax_kernel(const cf_transform_desc *desc); /* CF_KERNEL_ABSMAX_FP16 or _FP32 */
conv_fft_status cf_gpu_absmax(cf_gpu_layers *layers, const cf_transform_desc *desc, const void *signal,
                              const cf_block *block, void *scratch, cf_row_scales *scales, struct CUstream_st *stream);

conv_fft_status cf_gpu_layers_allocate(cf_device *device, size_t bytes, void **memory);
conv_fft_status cf_gpu_layers_write(cf_device *device, void *memory, const void *host, size_t bytes);
void cf_gpu_layers_release(cf_device *device, void *memory);
bool cf_gpu_layers_may_wait(const cf_device *device, struct CUstream_st *stream);
conv_fft_status cf_gpu_timer_create(cf_device *device, cf_timer **timer);
void cf_gpu_timer_destroy(cf_timer *timer);
conv_fft_status cf_gpu_timer_mark(cf_timer *timer, int mark, struct CUstream_st *stream);
conv_fft_status cf_gpu_timer_seconds(cf_timer *timer, int mark, double *seconds);

#endif
