/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a case, on the host and on the device. */
#ifndef BENCH_TENSORS_H
#define BENCH_TENSORS_H

#include "common/suite.h"

struct bench_gpu;

/* Inputs x, w, gy of a case on the host: channels first, rounded to the type of the class. On the CPU also the
 * outputs. */
typedef struct bench_data {
    float *x, *w, *gy, *y, *gx, *gw;
} bench_data;

/* A tensor as implementations get it: [outer][channels][space], or with `last` [outer][space][channels]. */
typedef struct bench_tensor {
    void *memory; /* of the device */
    conv_fft_dtype dtype;
    bool last;
    int64_t outer, channels, space;
} bench_tensor;

typedef struct bench_tensors {
    bench_tensor x, w, gy, y, gx, gw;
} bench_tensors;

/* gpu: NULL on the CPU, where the tensors are the data. False: a message has been written, and nothing is to be
 * freed. */
bool bench_data_create(const bench_case *layer, const struct bench_gpu *gpu, bench_data *data);
void bench_data_free(bench_data *data);
bool bench_tensors_create(const bench_case *layer, const struct bench_gpu *gpu, const bench_data *data,
                          bench_tensors *tensors);
void bench_tensors_free(const struct bench_gpu *gpu, bench_tensors *tensors);

/* Overwrite a tensor with NaN. */
bool bench_tensor_poison(const struct bench_gpu *gpu, const bench_tensor *tensor);

/* Overwrite a tensor of the device with values in channels-first order. False: a message has been written. */
bool bench_tensor_set(const struct bench_gpu *gpu, const bench_tensor *tensor, const float *values);

/* An element of a type that the classes of precision have. */
float bench_value(conv_fft_dtype dtype, const void *element);

/* Read some elements. An index counts elements in channels-first order. */
bool bench_tensor_fetch(const struct bench_gpu *gpu, const bench_tensor *tensor, const int64_t *index, int64_t count,
                        float *values);

#endif
