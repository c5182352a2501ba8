/* SPDX-License-Identifier: Apache-2.0 */
#include "support/kernel_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum {
    ALL = CONV_FFT_ALL_PASSES,
    ONE_WAY = CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS /* backward data has much the same kernel as forward */
};

const layer_case fused_cases[] = {
    /* Networks of depthwise layers. */
    {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15", "basis=72x72 tiles=1x1", ONE_WAY},
    {"in=64x256x28x28 out=256 groups=256 kernel=29x29 pad=14", "basis=42x42 tiles=1x1", ALL},
    {"in=64x512x14x14 out=512 groups=512 kernel=27x27 pad=13", "basis=27x28 tiles=1x1", ONE_WAY},
    {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6", "basis=14x14 tiles=1x1", ALL},
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3", "basis=32x32 tiles=3x3", ONE_WAY},
    {"in=64x384x14x14 out=384 groups=384 kernel=7x7 pad=3 layout=last", "basis=18x20 tiles=1x1", ALL},
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last dtype=fp16", "basis=60x60 tiles=1x1", ONE_WAY},
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last", "basis=25x25 tiles=3x3", ONE_WAY},
    {"in=8x32x64x64x64 out=32 groups=32 kernel=7x7x7 pad=3", "basis=16x16x16 tiles=7x7x7", ONE_WAY},
    {"in=16x768x8192 out=768 groups=768 kernel=1023 pad=511", "basis=4096 tiles=3", ALL},
    {"in=16x768x2048 out=768 groups=768 kernel=2048 pad=2047:0", "basis=4096 tiles=1", ONE_WAY},
    /* Few channels on one side. */
    {"in=128x3x128x128 out=96 kernel=11x11", "basis=64x64 tiles=3x3", CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA},
    {"in=32x3x64x64 out=16 kernel=5x5 pad=2", "basis=36x36 tiles=2x2", CONV_FFT_BACKWARD_WEIGHTS},
    {"in=128x3x128x128 out=96 kernel=11x11 layout=last dtype=fp16", "basis=42x128 tiles=4x1", ALL},
    {"in=16x32x96 out=4 kernel=9 pad=4", "basis=105 tiles=1", ALL},
    {"in=32x64x30x30 out=128 groups=32 kernel=5x5 pad=2 stride=2", "basis=18x18 tiles=1x1", ALL},
    /* Types and bases. */
    {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16", "basis=72x72 tiles=1x1", CONV_FFT_FORWARD},
    {"in=64x1024x7x7 out=1024 groups=1024 kernel=13x13 pad=6 dtype=fp16", "basis=14x14 tiles=1x1",
     CONV_FFT_BACKWARD_WEIGHTS},
    {"in=64x64x24x24 out=64 groups=64 kernel=5x5 pad=2 dtype=bf16", "basis=27x35 tiles=1x1", ONE_WAY},
    {"in=16x64x40x40 out=64 groups=64 kernel=9x9 pad=4 dtype=fp64", "basis=45x48 tiles=1x1", ONE_WAY},
    {"in=16x16x90x90 out=16 groups=16 kernel=9x9 pad=4", "basis=96x128 tiles=1x1", ONE_WAY},
    /* FP32 weights and biases. */
    {"in=64x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last dtype=bf16 w=fp32", "basis=60x60 tiles=1x1",
     CONV_FFT_FORWARD},
    {"in=64x128x56x56 out=128 groups=128 kernel=31x31 pad=15 dtype=fp16 w=fp32", "basis=72x72 tiles=1x1",
     CONV_FFT_FORWARD},
};
const int fused_case_count = sizeof fused_cases / sizeof fused_cases[0];

const layer_case long_cases[] = {
    {"in=16x768x1024 out=768 groups=768 kernel=1024 pad=1023:0", "basis=2048 tiles=1", ONE_WAY},
    {"in=16x768x2048 out=768 groups=768 kernel=2048 pad=2047:0", "basis=4096 tiles=1", ONE_WAY},
    {"in=16x768x4096 out=768 groups=768 kernel=4096 pad=4095:0 dtype=bf16", "basis=8192 tiles=1", ONE_WAY},
    {"in=16x768x8192 out=768 groups=768 kernel=8192 pad=8191:0", "basis=16384 tiles=1", ONE_WAY},
    {"in=8x768x10000 out=768 groups=768 kernel=1023 pad=511 layout=last", "basis=32768 tiles=1", ONE_WAY},
    {"in=8x768x32768 out=768 groups=768 kernel=32768 pad=32767:0", "basis=65536 tiles=1", ONE_WAY},
    {"in=8x768x65536 out=768 groups=768 kernel=65536 pad=65535:0", "basis=131072 tiles=1", ONE_WAY},
    {"in=2x768x100000 out=768 groups=768 kernel=100000 pad=99999:0 dtype=fp16", "basis=262144 tiles=1", ONE_WAY},
    {"in=2x768x262144 out=768 groups=768 kernel=262144 pad=262143:0", "basis=524288 tiles=1", ONE_WAY},
    {"in=1x768x524288 out=768 groups=768 kernel=524288 pad=524287:0", "basis=1048576 tiles=1", ONE_WAY},
    {"in=1x768x1048576 out=768 groups=768 kernel=1048576 pad=1048575:0", "basis=2097152 tiles=1", ONE_WAY},
    {"in=8x768x32768 out=768 groups=768 kernel=32768 pad=32767:0 dtype=fp16 w=fp32", "basis=65536 tiles=1",
     CONV_FFT_FORWARD},
    {"in=16x768x4096 out=768 groups=768 kernel=4096 pad=4095:0 dtype=bf16 w=fp32", "basis=8192 tiles=1",
     CONV_FFT_FORWARD},
};
const int long_case_count = sizeof long_cases / sizeof long_cases[0];

void fused_make(const char *problem, const char *grid, cf_layer *layer, cf_strategy *strategy) {
    conv_fft_problem p;
    char line[256];
    assert_int_equal(conv_fft_problem_parse(problem, &p, NULL, 0), CONV_FFT_SUCCESS);
    assert_int_equal(cf_layer_make(&p, layer), CONV_FFT_SUCCESS);
    snprintf(line, sizeof line, "fused %s dilation=step spectrum=%s", grid, p.dtype == CONV_FFT_FP64 ? "fp64" : "fp32");
    assert_int_equal(cf_strategy_parse(line, p.rank, strategy), CONV_FFT_SUCCESS);
    cf_strategy_resolve(layer, 0, strategy);
}

static const int64_t product_sizes[PRODUCT_SIZES][5] = {/* groups, bins, rows, in, out */
                                                        {1, 2112, 128, 64, 64},  {1, 544, 64, 512, 512},
                                                        {1, 144, 128, 384, 384}, {1, 2112, 1152, 3, 96},
                                                        {32, 40, 6272, 4, 4},    {1, 40, 6272, 64, 64},
                                                        {1, 1, 1, 1, 1},         {2, 9, 33, 7, 35},
                                                        {1, 24, 100000, 16, 16}};

static const struct {
    conv_fft_dtype operands, result;
    conv_fft_math math;
} product_types[PRODUCT_TYPES] = {{CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_MATH_FP32},
                                  {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_MATH_TF32},
                                  {CONV_FFT_FP32, CONV_FFT_FP32, CONV_FFT_MATH_HALF},
                                  {CONV_FFT_FP16, CONV_FFT_FP16, CONV_FFT_MATH_HALF},
                                  {CONV_FFT_BF16, CONV_FFT_FP32, CONV_FFT_MATH_HALF}};

cf_cgemm_desc product_case(int i) {
    const int64_t *const size = product_sizes[i / (3 * PRODUCT_TYPES)];
    const int type = i / 3 % PRODUCT_TYPES;
    const bool weights = i % 3 == CF_CGEMM_BACKWARD_WEIGHTS;
    return (cf_cgemm_desc){.kind = (cf_cgemm_kind)(i % 3),
                           .variant = CF_CGEMM_TENSOR,
                           .dtype = product_types[type].operands,
                           .result_dtype = weights ? CONV_FFT_FP32 : product_types[type].result,
                           .math = product_types[type].math,
                           .groups = size[0],
                           .bins = size[1],
                           .rows = size[2],
                           .in_columns = size[3],
                           .out_columns = size[4]};
}

cf_gpu_properties gpu_properties_of(const char *file) {
    cf_gpu_properties properties;
    assert_int_equal(cf_gpu_properties_load(file, &properties), CONV_FFT_SUCCESS);
    return properties;
}
