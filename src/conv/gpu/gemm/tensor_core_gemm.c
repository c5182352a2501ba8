/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tensor cores: their kernels, and what they are launched with. */
#include "conv/gpu/device.h"
#include "conv/gpu/gemm/call.h"
#include "conv/gpu/gemm/config.h"
#include "core/arith.h"
#include "cuda/jit/launch.h"

#include <limits.h>
#include <stdlib.h>

struct cf_cgemm {
    cf_cgemm_config config;
    cf_kernel *kernel;
};

void cf_gpu_cgemm_destroy(cf_cgemm *product) {
    if (!product)
        return;
    cf_kernel_destroy(product->kernel);
    free(product);
}

conv_fft_status cf_gpu_tensor_core_cgemm_list(cf_device *device, cf_cgemm_desc *desc, cf_build_list *list) {
    const cf_gpu *const gpu = cf_gpu_layers_of(device)->gpu;
    cf_source source;
    cf_cgemm *const product = calloc(1, sizeof *product);
    if (!product)
        return cf_fail_memory(sizeof *product, "a product");
    desc->compiled = product;
    product->config = cf_cgemm_configure(desc, &gpu->properties);
    CF_FORWARD(cf_cgemm_source(&product->config, &source));
    return cf_build_list_add(list, &source, &product->kernel, NULL);
}

static const cf_parameter product_parameters[] = {
    {sizeof(cf_cgemm_call), CF_ADDRESS(cf_cgemm_call, a) | CF_ADDRESS(cf_cgemm_call, b) | CF_ADDRESS(cf_cgemm_call, c)},
    {0, 0}};
static const cf_parameter fp16_parameters[] = {
    {sizeof(cf_fp16_cgemm_call), CF_ADDRESS(cf_fp16_cgemm_call, a) | CF_ADDRESS(cf_fp16_cgemm_call, b) |
                                     CF_ADDRESS(cf_fp16_cgemm_call, c) | CF_ADDRESS(cf_fp16_cgemm_call, a_scales) |
                                     CF_ADDRESS(cf_fp16_cgemm_call, b_scales) |
                                     CF_ADDRESS(cf_fp16_cgemm_call, c_scales)},
    {0, 0}};

/* Whether all its rows begin at multiples of so many numbers of so many bytes. */
static bool is_wide(const cf_block *block, int64_t columns, int numbers, int bytes) {
    return ((uintptr_t)block->data % (unsigned)(numbers * bytes) == 0) && columns % numbers == 0 &&
           block->bin_stride % numbers == 0 && (block->groups == 1 || block->group_stride % numbers == 0);
}

/* Launch for all matrices. first, of_launch: the members of the call that depend on the launch, its first matrix and
 * the number of its matrices. of_launch is NULL where a block has one matrix. */
static conv_fft_status launch(const cf_cgemm *product, int64_t rows, int64_t matrices, void *call, int *first,
                              int *of_launch, struct CUstream_st *stream) {
    const cf_cgemm_config *const c = &product->config;
    const int64_t tiles = cf_cgemm_tiles(c, rows), most = INT_MAX / tiles; /* matrices of one launch */
    /* As many blocks as there is room for, if they are whole matrices. */
    const int64_t room = product->kernel->gpu->properties.multiprocessors * (int64_t)c->blocks / tiles;
    for (int64_t done = 0; done < matrices; done += most) {
        const int64_t now = cf_min(most, matrices - done);
        *first = (int)done;
        if (of_launch)
            *of_launch = (int)now;
        const int64_t together = of_launch && c->slices == 1 && room > 0 ? cf_min(now, room) : now;
        const cf_launch shape = {{(unsigned)(together * tiles), 1, 1},
                                 {(unsigned)cf_cgemm_threads(c), 1, 1},
                                 (size_t)cf_cgemm_shared(c),
                                 of_launch ? fp16_parameters : product_parameters};
        void *parameters[] = {call};
        CF_FORWARD(cf_kernel_launch(product->kernel, &shape, parameters, stream));
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status fp16_cgemm(const cf_cgemm *product, int64_t bins, int64_t rows, const cf_block *a,
                                  const cf_block *b, const cf_block *c, const int64_t columns[3], bool accumulate,
                                  struct CUstream_st *stream) {
    const bool narrow = product->config.narrow;
    cf_fp16_cgemm_call call = {.a = a->data,
                               .b = b->data,
                               .c = c->data,
                               .a_scales = a->scales,
                               .b_scales = b->scales,
                               .c_scales = c->scales,
                               .a_bin = a->bin_stride,
                               .b_bin = b->bin_stride,
                               .c_bin = c->bin_stride,
                               .a_group = a->group_stride,
                               .b_group = b->group_stride,
                               .c_group = c->group_stride,
                               .a_scale_group = a->scale_stride,
                               .b_scale_group = b->scale_stride,
                               .c_scale_group = c->scale_stride,
                               .bins = (int)bins,
                               .rows = (int)rows,
                               .wide_a = is_wide(a, columns[0], 4, 4),
                               .wide_b = is_wide(b, columns[1], 4, 4),
                               .wide_c = narrow ? is_wide(c, columns[2], 2, 4) : is_wide(c, columns[2], 2, 8),
                               .accumulate = accumulate};
    return launch(product, rows, bins * a->groups, &call, &call.first, &call.matrices, stream);
}

conv_fft_status cf_gpu_tensor_core_cgemm(const cf_cgemm_desc *desc, const cf_block *x, const cf_block *w,
                                         const cf_block *y, bool accumulate, struct CUstream_st *stream) {
    const cf_cgemm *const product = desc->compiled;
    const cf_block *const a = desc->kind == CF_CGEMM_FORWARD ? x : y,
                          *const b = desc->kind == CF_CGEMM_BACKWARD_WEIGHTS ? x : w,
                          *const c = desc->kind == CF_CGEMM_FORWARD         ? y
                                     : desc->kind == CF_CGEMM_BACKWARD_DATA ? x
                                                                            : w;
    const int64_t columns[3] = {a == y ? desc->out_columns : desc->in_columns, desc->in_columns,
                                c == y ? desc->out_columns : desc->in_columns};
    if (product->config.dtype != CONV_FFT_FP32)
        return fp16_cgemm(product, desc->bins, x->rows, a, b, c, columns, accumulate, stream);
    cf_cgemm_call call = {.a = a->data,
                          .b = b->data,
                          .c = c->data,
                          .a_bin = a->bin_stride,
                          .b_bin = b->bin_stride,
                          .c_bin = c->bin_stride,
                          .a_group = a->group_stride,
                          .b_group = b->group_stride,
                          .c_group = c->group_stride,
                          .bins = (int)desc->bins,
                          .rows = (int)x->rows,
                          .wide_a = is_wide(a, columns[0], 2, 8),
                          .wide_b = is_wide(b, columns[1], 2, 8),
                          .wide_c = is_wide(c, columns[2], 2, 8),
                          .accumulate = accumulate};
    return launch(product, x->rows, desc->bins * x->groups, &call, &call.first, NULL, stream);
}
