/* SPDX-License-Identifier: Apache-2.0 */
/* Passes and products: test_*_config.c check their launches, and nvrtc/test_*.c compile their kernels. */
#ifndef TEST_KERNEL_CASES_H
#define TEST_KERNEL_CASES_H

#include "conv/plan/strategy.h"
#include "conv/problem/layer.h"
#include "core/device_ops.h"
#include "cuda/driver/properties.h"

typedef struct layer_case {
    const char *problem, *grid; /* the grid: what a strategy line says of basis and tiles */
    int passes;                 /* as bits of conv_fft_pass */
} layer_case;

/* Typical layers of family fused, and one of every kind of its kernels. */
extern const layer_case fused_cases[];
extern const int fused_case_count;

/* A signal of every length that the kernels of family long1d have. */
extern const layer_case long_cases[];
extern const int long_case_count;

/* The layer, and the strategy of the fused family for it. */
void fused_make(const char *problem, const char *grid, cf_layer *layer, cf_strategy *strategy);

/* Products on tensor cores: cases 0 to PRODUCT_CASES - 1 cover all sizes, types and kinds. */
enum {
    PRODUCT_SIZES = 9,
    PRODUCT_TYPES = 5,
    PRODUCT_CASES = PRODUCT_SIZES * PRODUCT_TYPES * 3
};
cf_cgemm_desc product_case(int i);

/* The properties of a GPU from a file. */
cf_gpu_properties gpu_properties_of(const char *file);

#endif
