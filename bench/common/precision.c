/* SPDX-License-Identifier: Apache-2.0 */
#include "common/precision.h"

/* Inputs that are rounded to TF32 have errors near 2.5e-4. So the limits of FP32 tell TF32 from FP32. */
const bench_class bench_classes[BENCH_CLASSES] = {
    {"fp32", CONV_FFT_FP32, CONV_FFT_MATH_FP32, 1e-3, 1e-4},
    {"tf32", CONV_FFT_FP32, CONV_FFT_MATH_TF32, 2e-3, 2e-3},
    {"fp16", CONV_FFT_FP16, CONV_FFT_MATH_HALF, 1e-2, 1e-2},
    {"bf16", CONV_FFT_BF16, CONV_FFT_MATH_HALF, 2e-2, 2e-2},
};

const bench_pass bench_passes[BENCH_PASSES] = {
    {"fprop", CONV_FFT_FORWARD, false},
    {"bprop", CONV_FFT_BACKWARD_DATA, false},
    {"accgrad", CONV_FFT_BACKWARD_WEIGHTS, false},
    {"backward", CONV_FFT_BACKWARD, false},
    {"fprop-kept", CONV_FFT_FORWARD, true},
    {"bprop-kept", CONV_FFT_BACKWARD_DATA, true},
    {"accgrad-kept", CONV_FFT_BACKWARD_WEIGHTS, true},
    {"backward-kept", CONV_FFT_BACKWARD, true},
};
