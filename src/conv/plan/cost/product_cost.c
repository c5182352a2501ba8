/* SPDX-License-Identifier: Apache-2.0 */
/* The costs of the products of all bins. Most figures are from measurements on an H200. */
#include "conv/plan/cost/stage_cost.h"

#include "core/arith.h"
#include "core/calibration.h"
#include "core/dtype.h"

#include <math.h>

/*
 * Matrix products reach their full rate when all three extents are large. On an H200:
 *
 *     Products that may be rounded to TF32 are faster.
 *     If matrices are a few numbers wide, cuBLAS takes up to three times as long as its bytes need.
 *     For a term of its sum, a loop takes as long as loading the numbers. Other products take a sixth of that.
 */
cf_stage_cost cf_cost_product(const cf_device *device, int pass, const cf_spectrum s[CF_OPERAND_COUNT],
                              cf_cgemm_variant variant, conv_fft_math math) {
    const cf_calibration *c = device->calibration; /* every device with tensor cores has it */
    const double term = c ? (variant == CF_CGEMM_LOOP ? c->loop_term : c->product_term) : 0.0;
    const double rows = (double)cf_max(1, s[CF_X].rows), in = (double)s[CF_X].columns, out = (double)s[CF_Y].columns;
    const double count = (double)s[CF_X].bins * (double)s[CF_X].groups;
    const double operations = 8.0 * count * rows * in * out;
    const bool tf32 = math == CONV_FFT_MATH_TF32 && device->tensor_flops > 0.0;
    const bool rounds = tf32 || math == CONV_FFT_MATH_HALF; /* FP32 values to one FP16 value each */
    const bool has_16_bits = cf_dtype_bytes(s[CF_X].dtype) == 2 || cf_dtype_bytes(s[CF_Y].dtype) == 2;
    const double large = (rows / (rows + 4)) * (in / (in + 4)) * (out / (out + 4));
    double bytes = 0.0;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i) {
        bytes += count * (double)s[i].rows * (double)s[i].columns * 2.0 * (double)cf_dtype_bytes(s[i].dtype);
    }
    double rate = device->flops;
    const double depth = pass == CF_PASS_FORWARD ? in : pass == CF_PASS_DATA ? out : rows;
    double calls = 0.0, narrow = 1.0, sum = term * depth, blocks = 0.0;
    if (variant == CF_CGEMM_TENSOR) {
        /* Where there are few tiles of 64 x 64 numbers, up to four groups of warps share a sum. Each takes at
         * least 64 terms. */
        const double tiles = count * ceil((pass == CF_PASS_WEIGHTS ? in : rows) / 64.0) *
                             ceil((pass == CF_PASS_DATA ? in : out) / 64.0),
                     free_groups = device->threads / 16.0 / tiles;
        sum /= fmax(1.0, floor(fmin(fmin(free_groups, 4.0), depth / 64.0)));
        /* A tile takes so long however few numbers it has: on an H100, in matrices of one column (depthwise layers). */
        blocks =
            tiles / (device->threads / 16.0) * (66e-9 + 224e-9 * fmin(1.0, rows / 64.0)) * (has_16_bits ? 1.0 : 1.3);
        /* If blocks of 32 x 32 numbers are still too few, several share a sum, and another kernel adds their slices.
         * With 16-bit spectra that was measured to gain nothing. */
        const double slices = floor(fmin(free_groups / 16.0, depth / 1024.0));
        if (pass == CF_PASS_WEIGHTS && !has_16_bits && s[CF_X].groups == 1 && slices > 1.0)
            sum = sum / slices + device->stage_seconds;
        rate = device->tensor_flops * large *
               (has_16_bits ? c->tensor_16bit_rate
                : rounds    ? c->tensor_rounded_rate
                            : 1.0);
        calls = has_16_bits ? device->stage_seconds : 0.0; /* the first numbers come late, and little is multiplied */
    } else if (variant == CF_CGEMM_BLAS) {
        rate = device->product_flops * large * (tf32 ? c->blas_tf32_rate : 1.0);
        calls = 0.4e-6 * count / device->threads; /* a library call and its packing */
        narrow = c ? 1.0 + c->narrow_share / fmin(rows, fmin(in, out)) : 1.0;
    } else {
        if (in * out > 1)
            rate = device->product_flops * (c ? c->loop_rate : 0.2);
    }
    cf_stage_cost cost = cf_cost_of(device, bytes, operations, rate);
    /* Fitted to measured products. A transform has left part of their operands in the cache. */
    const double cached = variant == CF_CGEMM_TENSOR && has_16_bits ? c->cached_share : 1.0;
    cost.seconds = fmax(cost.seconds * narrow * cached + calls, fmax(sum, blocks) + device->stage_seconds);
    return cost;
}
