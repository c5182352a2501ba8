/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causal operations of cuDNN 9.26, computed on the host as their manual defines them. Those by the definition have
 * 2 to 8 taps, or a power of two up to 256, and add to the gradients of w and of the bias. Those by FFT have a power of
 * two of at least 128, which divides the length, and read taps in the opposite order.
 */
#include "cpu/convert.h"
#include "cuda/libs/cudnn_causal.h"
#include "fake.h"

#include <stdbool.h>

enum {
    BAD_PARAM = 2000
};

/* Returns a host pointer to device memory. */
static void *behind(const void *memory) { return (void *)(uintptr_t)((uintptr_t)memory & ~FAKE_DEVICE); }

static double get(const void *memory, cf_cudnn_type type, long long at) {
    const double *const doubles = behind(memory);
    const float *const floats = behind(memory);
    const uint16_t *const shorts = behind(memory);
    return type == CF_CUDNN_DATA_DOUBLE  ? doubles[at]
           : type == CF_CUDNN_DATA_FLOAT ? floats[at]
           : type == CF_CUDNN_DATA_HALF  ? cf_fp16_to_float(shorts[at])
                                         : cf_bfloat_to_float(shorts[at]);
}

static void put(void *memory, cf_cudnn_type type, long long at, double value) {
    double *const doubles = behind(memory);
    float *const floats = behind(memory);
    uint16_t *const shorts = behind(memory);
    if (type == CF_CUDNN_DATA_DOUBLE)
        doubles[at] = value;
    else if (type == CF_CUDNN_DATA_FLOAT)
        floats[at] = (float)value;
    else
        shorts[at] = type == CF_CUDNN_DATA_HALF ? cf_float_to_fp16((float)value) : cf_float_to_bfloat((float)value);
}

/* The sizes of an operation, and how it stores them. */
typedef struct operation {
    int samples, channels, length, taps;
    cf_cudnn_type type, sum_type;
    bool last, newest_first, adds;
} operation;

static long long at(const operation *o, int n, int c, int t) {
    return o->last ? ((long long)n * o->length + t) * o->channels + c
                   : ((long long)n * o->channels + c) * o->length + t;
}

/* The place of the tap that reads the sample `age` before. */
static long long tap_at(const operation *o, int c, int age) {
    const int tap = o->newest_first ? age : o->taps - 1 - age;
    return o->last ? (long long)tap * o->channels + c : (long long)c * o->taps + tap;
}

/* to[t] = bias + the sum of from[t - age] w[age], or with `gradient` of from[t + age] w[age]. */
static void convolve(const operation *o, const void *from, const void *w, const void *bias, void *to, bool gradient) {
    for (int n = 0; n < o->samples; ++n)
        for (int c = 0; c < o->channels; ++c)
            for (int t = 0; t < o->length; ++t) {
                double sum = bias ? get(bias, o->type, c) : 0;
                for (int age = 0; age < o->taps; ++age) {
                    const int other = gradient ? t + age : t - age;
                    if (other >= 0 && other < o->length)
                        sum += get(from, o->type, at(o, n, c, other)) * get(w, o->type, tap_at(o, c, age));
                }
                put(to, o->type, at(o, n, c, t), sum);
            }
}

static void differentiate(const operation *o, const void *x, const void *gy, void *gw, void *gbias) {
    for (int c = 0; c < o->channels; ++c) {
        for (int age = 0; age < o->taps; ++age) {
            const long long place = tap_at(o, c, age);
            double sum = o->adds ? get(gw, o->sum_type, place) : 0;
            for (int n = 0; n < o->samples; ++n)
                for (int t = age; t < o->length; ++t)
                    sum += get(gy, o->type, at(o, n, c, t)) * get(x, o->type, at(o, n, c, t - age));
            put(gw, o->sum_type, place, sum);
        }
        for (int n = 0; gbias && n < o->samples; ++n)
            for (int t = 0; t < o->length; ++t)
                put(gbias, o->sum_type, c, get(gbias, o->sum_type, c) + get(gy, o->type, at(o, n, c, t)));
    }
}

static bool is_power(int number) { return number > 0 && (number & (number - 1)) == 0; }

static cf_cudnn_status check(const operation *o, bool pointers) {
    const bool sizes = o->samples > 0 && o->channels > 0 && o->length > 0;
    const bool taps = o->newest_first ? is_power(o->taps) && o->taps >= 128 && o->length % o->taps == 0
                                      : o->taps >= 2 && (o->taps <= 8 || (is_power(o->taps) && o->taps <= 256));
    return pointers && sizes && taps ? 0 : BAD_PARAM;
}

static cf_cudnn_status forward(const operation *o, const void *x, const void *w, const void *bias, void *y) {
    const cf_cudnn_status status = check(o, x && w && y && (bias || o->newest_first));
    if (status == 0)
        convolve(o, x, w, bias, y, false);
    return status;
}

static cf_cudnn_status backward(const operation *o, const void *x, const void *w, const void *gy, void *gx, void *gw,
                                void *gbias) {
    const cf_cudnn_status status = check(o, x && w && gy && gx && gw && (gbias || o->newest_first));
    if (status != 0)
        return status;
    convolve(o, gy, w, NULL, gx, true);
    differentiate(o, x, gy, gw, gbias);
    return 0;
}

#define FORWARD(name, channels_last)                                                                                  \
    cf_cudnn_status name CF_CUDNN_CAUSAL_FORWARD {                                                                    \
        const operation o = {samples, channels, length, taps, type, CF_CUDNN_DATA_FLOAT, channels_last, false, true}; \
        (void)stream;                                                                                                 \
        return activation == 0 ? forward(&o, x, w, bias, y) : BAD_PARAM;                                              \
    }
#define BACKWARD(name, channels_last)                                                                             \
    cf_cudnn_status name CF_CUDNN_CAUSAL_BACKWARD {                                                               \
        const operation o = {samples, channels, length, taps, type, sum_type, channels_last, false, true};        \
        (void)stream;                                                                                             \
        return activation == 0 && bias && sum_type == CF_CUDNN_DATA_FLOAT ? backward(&o, x, w, gy, gx, gw, gbias) \
                                                                          : BAD_PARAM;                            \
    }
FORWARD(cudnnCausalConv1dForward, false)
FORWARD(cudnnCausalConv1dNwhForward, true)
BACKWARD(cudnnCausalConv1dBackward, false)
BACKWARD(cudnnCausalConv1dNwhBackward, true)

cf_cudnn_status cudnnFFTCausalConv1dForward CF_CUDNN_CAUSAL_FFT_FORWARD {
    const operation o = {samples, channels, length, taps, type, type, false, true, false};
    (void)stream;
    return forward(&o, x, w, NULL, y);
}

#ifndef FAKE_LACKS_FFT
cf_cudnn_status cudnnFFTCausalConv1dBackward CF_CUDNN_CAUSAL_FFT_BACKWARD {
    const operation o = {samples, channels, length, taps, type, type, false, true, false};
    (void)stream;
    return backward(&o, x, w, gy, gx, gw, NULL);
}
#endif
