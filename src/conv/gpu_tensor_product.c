/* SPDX-License-Identifier: Apache-2.0 */
/* Products on tensor cores: their kernels, and what they are launched with. */
#include "conv/gpu_stages.h"
#include "conv/product_config.h"
#include "core/arith.h"

#include <limits.h>
#include <stdlib.h>

struct cf_product {
    cf_product_config config;
    cf_kernel *kernel;
};

void cf_gpu_product_destroy(cf_product *product) {
    if (!product)
        return;
    cf_kernel_destroy(product->kernel);
    free(product);
}

static conv_fft_status make_sources(const cf_gpu *gpu, cf_product_desc *const *descs, int count, cf_source *sources) {
    for (int i = 0; i < count; ++i) {
        cf_product *const product = calloc(1, sizeof *product);
        if (!product)
            return cf_fail_memory(sizeof *product, "a product");
        descs[i]->compiled = product;
        product->config = cf_product_configure(descs[i], &gpu->facts);
        CF_FORWARD(cf_product_source(&product->config, &sources[i]));
    }
    return CONV_FFT_SUCCESS;
}

/* On failure the descriptions keep what was made, without kernels, to be destroyed. */
conv_fft_status cf_gpu_products_build(cf_device *device, cf_product_desc *const *descs, int count) {
    cf_gpu *const gpu = cf_gpu_layers_of(device)->gpu;
    cf_source *sources = calloc((size_t)count, sizeof *sources);
    cf_kernel **kernels = calloc((size_t)count, sizeof *kernels);
    conv_fft_status status =
        sources && kernels ? CONV_FFT_SUCCESS : cf_fail_memory((size_t)count * sizeof *sources, "kernels");
    if (status == CONV_FFT_SUCCESS)
        status = make_sources(gpu, descs, count, sources);
    if (status == CONV_FFT_SUCCESS)
        status = cf_kernels_build(gpu, sources, count, kernels);
    for (int i = 0; status == CONV_FFT_SUCCESS && i < count; ++i)
        descs[i]->compiled->kernel = kernels[i];
    for (int i = 0; sources && i < count; ++i)
        free((char *)sources[i].text);
    free(sources);
    free(kernels);
    return status;
}

/* ProductCall of product.cuh. */
typedef struct product_call {
    const void *a, *b;
    void *c;
    int64_t a_bin, b_bin, c_bin, a_group, b_group, c_group;
    int bins, rows, first, wide_a, wide_b, wide_c, accumulate;
} product_call;

/* Whether all its rows begin at multiples of 16 bytes. */
static bool is_wide(const cf_block *block, int64_t columns) {
    return ((uintptr_t)block->data % 16 == 0) && columns % 2 == 0 && block->bin_stride % 2 == 0 &&
           (block->groups == 1 || block->group_stride % 2 == 0);
}

conv_fft_status cf_gpu_tensor_product(const cf_product_desc *desc, const cf_block *x, const cf_block *w,
                                      const cf_block *y, bool accumulate, struct CUstream_st *stream) {
    const cf_product *const product = desc->compiled;
    const cf_block *const a = desc->kind == CF_PRODUCT_FORWARD ? x : y,
                          *const b = desc->kind == CF_PRODUCT_BACKWARD_WEIGHTS ? x : w,
                          *const c = desc->kind == CF_PRODUCT_FORWARD         ? y
                                     : desc->kind == CF_PRODUCT_BACKWARD_DATA ? x
                                                                              : w;
    product_call call = {.a = a->data,
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
                         .wide_a = is_wide(a, a == y ? desc->out_columns : desc->in_columns),
                         .wide_b = is_wide(b, desc->in_columns),
                         .wide_c = is_wide(c, c == y ? desc->out_columns : desc->in_columns),
                         .accumulate = accumulate};
    const int64_t tiles = cf_product_tiles(&product->config, x->rows), matrices = desc->bins * x->groups;
    const int64_t most = INT_MAX / tiles; /* matrices of one launch */
    for (int64_t first = 0; first < matrices; first += most) {
        call.first = (int)first;
        const cf_launch shape = {{(unsigned)(cf_min(most, matrices - first) * tiles), 1, 1},
                                 {(unsigned)cf_product_threads(&product->config), 1, 1},
                                 (size_t)cf_product_shared(&product->config)};
        void *parameters[] = {&call};
        CF_FORWARD(cf_kernel_launch(product->kernel, &shape, parameters, stream));
    }
    return CONV_FFT_SUCCESS;
}
