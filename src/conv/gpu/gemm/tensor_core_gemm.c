/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tensor cores: their kernels, and what they are launched with. */
#include "conv/gpu/device.h"
#include "conv/gpu/gemm/call.h"
#include "conv/gpu/gemm/config.h"
#include "conv/gpu/slices.h"
#include "core/arith.h"
#include "cuda/jit/launch.h"

#include <limits.h>
#include <stdlib.h>

struct cf_cgemm {
    cf_cgemm_config config;
    cf_kernel *kernel, *add; /* add: NULL unless blocks share a sum */
};

void cf_gpu_cgemm_destroy(cf_cgemm *product) {
    if (!product)
        return;
    cf_kernel_destroy(product->kernel);
    cf_kernel_destroy(product->add);
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
    CF_FORWARD(cf_build_list_add(list, &source, &product->kernel, NULL));
    if (product->config.row_slices == 1)
        return CONV_FFT_SUCCESS;
    CF_FORWARD(cf_slices_source(product->config.row_slices, CONV_FFT_FP32, &source));
    return cf_build_list_add(list, &source, &product->add, NULL);
}

/* Numbers of the result, which is dense. */
static int64_t weights_of(const cf_cgemm_desc *desc) { return desc->bins * desc->out_columns * desc->in_columns; }

size_t cf_gpu_cgemm_scratch(const cf_device *device, const cf_cgemm_desc *desc) {
    if (desc->variant != CF_CGEMM_TENSOR || desc->kind != CF_CGEMM_BACKWARD_WEIGHTS)
        return 0;
    const cf_cgemm_config c = cf_cgemm_configure(desc, &((const cf_gpu_layers *)device)->gpu->properties);
    return c.row_slices > 1 ? (size_t)(c.row_slices * weights_of(desc)) * 2 * sizeof(float) : 0;
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
        const int64_t together =
            of_launch && c->slices == 1 && c->row_slices == 1 && room > 0 ? cf_min(now, room) : now;
        const cf_launch shape = {{(unsigned)(together * tiles), 1, 1},
                                 {(unsigned)cf_cgemm_threads(c), 1, 1},
                                 (size_t)cf_cgemm_shared(c),
                                 of_launch ? fp16_parameters : product_parameters};
        void *parameters[] = {call};
        CF_FORWARD(cf_kernel_launch(product->kernel, &shape, parameters, stream));
    }
    return CONV_FFT_SUCCESS;
}

static conv_fft_status fp16_cgemm(const cf_cgemm *product, int64_t bins, int64_t rows, int64_t all_rows,
                                  const cf_block *a, const cf_block *b, const cf_block *c, const int64_t columns[3],
                                  bool accumulate, struct CUstream_st *stream) {
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
                               .accumulate = accumulate,
                               .all_rows = (int)all_rows};
    return launch(product, rows, bins * a->groups, &call, &call.first, &call.matrices, stream);
}

static conv_fft_status split_fp16_cgemm(const cf_cgemm *product, int64_t bins, int64_t rows, int64_t all_rows,
                                        const cf_block *a, const cf_block *b, const cf_block *c,
                                        const int64_t columns[3], bool accumulate, struct CUstream_st *stream) {
    cf_cgemm_call call = {.a = a->data,
                          .b = b->data,
                          .c = c->data,
                          .a_bin = a->bin_stride,
                          .b_bin = b->bin_stride,
                          .c_bin = c->bin_stride,
                          .a_group = a->group_stride,
                          .b_group = b->group_stride,
                          .c_group = c->group_stride,
                          .bins = (int)bins,
                          .rows = (int)rows,
                          .wide_a = is_wide(a, columns[0], 2, 8),
                          .wide_b = is_wide(b, columns[1], 2, 8),
                          .wide_c = is_wide(c, columns[2], 2, 8),
                          .accumulate = accumulate,
                          .all_rows = (int)all_rows};
    return launch(product, rows, bins * a->groups, &call, &call.first, NULL, stream);
}

/* The rows of a slice, as a group. */
static cf_block slice_of(const cf_block *block, int64_t slices, int64_t rows, int64_t columns) {
    cf_block slice = *block;
    slice.groups = slices;
    slice.group_stride = rows * columns;
    slice.scale_stride = rows * cf_ceil_div(columns, 8);
    return slice;
}

conv_fft_status cf_gpu_tensor_core_cgemm(const cf_cgemm_desc *desc, const cf_block *x, const cf_block *w,
                                         const cf_block *y, bool accumulate, void *scratch,
                                         struct CUstream_st *stream) {
    const cf_cgemm *const product = desc->compiled;
    const cf_block *const a = desc->kind == CF_CGEMM_FORWARD ? x : y,
                          *const b = desc->kind == CF_CGEMM_BACKWARD_WEIGHTS ? x : w,
                          *const c = desc->kind == CF_CGEMM_FORWARD         ? y
                                     : desc->kind == CF_CGEMM_BACKWARD_DATA ? x
                                                                            : w;
    const int64_t columns[3] = {a == y ? desc->out_columns : desc->in_columns, desc->in_columns,
                                c == y ? desc->out_columns : desc->in_columns},
                  rows = x->rows;
    const bool floats = product->config.dtype == CONV_FFT_FP32;
    if (!product->add || !scratch)
        return (floats ? split_fp16_cgemm : fp16_cgemm)(product, desc->bins, rows, rows, a, b, c, columns, accumulate,
                                                        stream);
    /* No slice is empty. */
    const int64_t own = cf_ceil_div(rows, product->config.row_slices), slices = cf_ceil_div(rows, own),
                  count = weights_of(desc);
    const cf_block of_a = slice_of(a, slices, own, columns[0]), of_b = slice_of(b, slices, own, columns[1]),
                   sums = {.data = scratch,
                           .groups = slices,
                           .rows = c->rows,
                           .bin_stride = count / desc->bins,
                           .group_stride = count};
    CF_FORWARD((floats ? split_fp16_cgemm : fp16_cgemm)(product, desc->bins, own, rows, &of_a, &of_b, &sums, columns,
                                                        false, stream));
    return cf_slices_add(product->add, &(cf_slice_sums){.to = c->data, .sums = scratch, count, slices, accumulate},
                         product->config.row_slices, CONV_FFT_FP32, stream);
}
