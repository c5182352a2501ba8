/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far apart two right results may be. The inputs are random, of magnitude 1/2 to 1. A result that sums n products
 * has the rms 0.58 sqrt(n). Its relative error is the sum of three errors:
 *
 *     the rounding of the result to its type        2 eps(type)
 *     the arithmetic of the products                TF32, FP16 and BF16: 16 eps(type); else 64 eps(compute)
 *     the sum of n terms, with growing partial sums 4 eps(sum) sqrt(n)
 *
 * If one of n taps is missing or counted twice, the error is 1 / sqrt(n). For FP32 that is far above the tolerance, for
 * every n of a layer.
 */
#include "autotune/search/verify.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "core/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART_BYTES = 32 << 20,
    PARTS = 3 /* of a larger result; results of up to PARTS * PART_BYTES are compared whole */
};

typedef struct byte_range {
    size_t offset, bytes;
} byte_range;

/* The ranges of a result that are compared. Their offsets are multiples of the element size. */
static int ranges_of(size_t bytes, byte_range ranges[PARTS]) {
    if (bytes <= (size_t)PARTS * PART_BYTES) {
        ranges[0] = (byte_range){0, bytes};
        return 1;
    }
    for (size_t i = 0; i < PARTS; ++i)
        ranges[i] = (byte_range){(bytes - PART_BYTES) / (PARTS - 1) * i / 64 * 64, PART_BYTES};
    ranges[PARTS - 1].offset = bytes - PART_BYTES;
    return PARTS;
}

conv_fft_status cf_snapshot_take(const cf_bench_buffers *buffers, const conv_fft_plan *plan, cf_snapshot *snapshot) {
    cf_part results[CF_PASS_COUNT];
    conv_fft_dtype dtypes[CF_PASS_COUNT];
    byte_range ranges[PARTS];
    const int count = cf_bench_buffers_results(buffers, results, dtypes, &plan->layer);
    *snapshot = (cf_snapshot){0};
    size_t bytes = 0;
    for (int i = 0; i < count; ++i) {
        const int parts = ranges_of(results[i].bytes, ranges);
        for (int k = 0; k < parts; ++k)
            bytes += ranges[k].bytes;
    }
    CF_FORWARD(cf_bench_buffers_clear_results(buffers));
    CF_FORWARD(cf_bench_buffers_run(buffers, plan));
    snapshot->data = malloc(bytes + 1);
    if (!snapshot->data)
        return cf_fail_memory(bytes, "results to compare");
    for (int i = 0; i < count; ++i) {
        const int parts = ranges_of(results[i].bytes, ranges);
        for (int k = 0; k < parts; ++k) {
            CF_FORWARD(cf_bench_buffers_read(buffers, (char *)results[i].data + ranges[k].offset, ranges[k].bytes,
                                             snapshot->data + snapshot->bytes));
            snapshot->bytes += ranges[k].bytes;
        }
    }
    return CONV_FFT_SUCCESS;
}

void cf_snapshot_clear(cf_snapshot *snapshot) {
    free(snapshot->data);
    *snapshot = (cf_snapshot){0};
}

static double epsilon_of(conv_fft_dtype dtype) { return ldexp(1.0, -cf_dtype_significand_bits(dtype)); }

/* The number of products in the sum of one element of a pass's result. */
static double terms_of(const cf_layer *l, int pass) {
    double taps = 1.0, outputs = (double)cf_max(1, l->batch);
    for (int a = 0; a < 3; ++a) {
        taps *= (double)l->axis[a].kernel;
        outputs *= (double)l->axis[a].output;
    }
    if (pass == CF_PASS_WEIGHTS)
        return outputs;
    return taps * (double)(pass == CF_PASS_DATA ? l->out_channels : l->in_channels);
}

static double tolerance_of(const cf_layer *l, int pass, conv_fft_dtype dtype) {
    const conv_fft_math math = l->problem.math;
    const double sum = epsilon_of(l->compute == CONV_FFT_FP64 ? CONV_FFT_FP64 : CONV_FFT_FP32);
    double arithmetic = 64.0 * sum;
    if (math == CONV_FFT_MATH_TF32)
        arithmetic = 16.0 * 0x1p-11;
    else if (math == CONV_FFT_MATH_HALF)
        arithmetic = 16.0 * epsilon_of(l->problem.dtype);
    return 2.0 * epsilon_of(dtype) + arithmetic + 4.0 * sum * sqrt(terms_of(l, pass));
}

/* Whether two arrays of `bytes` bytes agree. */
static bool agree(const char *a, const char *b, size_t bytes, conv_fft_dtype dtype, double tolerance) {
    const size_t size = cf_dtype_bytes(dtype), count = bytes / size;
    double difference = 0.0, norm = 0.0, worst = 0.0;
    for (size_t i = 0; i < count; ++i) {
        const double x = cf_element_value(dtype, a + i * size), y = cf_element_value(dtype, b + i * size);
        const double distance = fabs(x - y);
        if (!(distance < HUGE_VAL)) /* also false for NaN */
            return false;
        difference += distance * distance;
        norm += y * y;
        worst = distance > worst ? distance : worst;
    }
    const double rms = sqrt(norm / (double)(count ? count : 1));
    /* Sums of random products are not all zero. A norm of 0 means that nothing was computed. */
    return norm > 0.0 && sqrt(difference) <= tolerance * sqrt(norm) && worst <= 32.0 * tolerance * rms;
}

bool cf_snapshots_agree(const cf_bench_buffers *buffers, const cf_layer *layer, const cf_snapshot *a,
                        const cf_snapshot *b) {
    cf_part results[CF_PASS_COUNT];
    conv_fft_dtype dtypes[CF_PASS_COUNT];
    byte_range ranges[PARTS];
    const int count = cf_bench_buffers_results(buffers, results, dtypes, layer);
    size_t at = 0;
    for (int i = 0, pass = 0; i < count; ++i, ++pass) {
        while (!(buffers->passes & 1 << pass))
            ++pass;
        const int parts = ranges_of(results[i].bytes, ranges);
        size_t bytes = 0;
        for (int k = 0; k < parts; ++k)
            bytes += ranges[k].bytes;
        if (at + bytes > a->bytes || at + bytes > b->bytes ||
            !agree(a->data + at, b->data + at, bytes, dtypes[i], tolerance_of(layer, pass, dtypes[i])))
            return false;
        at += bytes;
    }
    return true;
}
