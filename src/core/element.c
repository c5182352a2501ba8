/* SPDX-License-Identifier: Apache-2.0 */
#include "core/element.h"

#include <math.h>
#include <string.h>

static double fp16_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

double cf_element_value(conv_fft_dtype dtype, const void *element) {
    double wide;
    float single;
    uint16_t half;
    uint32_t bits;
    switch (dtype) {
    case CONV_FFT_FP64:
        memcpy(&wide, element, sizeof wide);
        return wide;
    case CONV_FFT_FP16:
        memcpy(&half, element, sizeof half);
        return fp16_value(half);
    case CONV_FFT_BF16:
        memcpy(&half, element, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    default:
        memcpy(&single, element, sizeof single);
        return (double)single;
    }
}
