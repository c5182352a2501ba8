/* SPDX-License-Identifier: Apache-2.0 */
/* The old calls of cuDNN: an algorithm by number for each pass. */
#include "cudnn_unit.h"

#include <limits.h>
#include <stdio.h>

static const char *const forward_names[DNN_FWD_ALGORITHMS] = {
    "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
static const char *const data_names[DNN_BWD_DATA_ALGORITHMS] = {"ALGO_0",     "ALGO_1",   "FFT",
                                                                "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
static const char *const filter_names[DNN_BWD_FILTER_ALGORITHMS] = {
    "ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"};

static const char *const *names_of(const cudnn_unit *u, cudnn_algorithm *count) {
    switch (u->pass) {
    case CONV_FFT_FORWARD:
        *count = DNN_FWD_ALGORITHMS;
        return forward_names;
    case CONV_FFT_BACKWARD_DATA:
        *count = DNN_BWD_DATA_ALGORITHMS;
        return data_names;
    default:
        *count = DNN_BWD_FILTER_ALGORITHMS;
        return filter_names;
    }
}

/* What the class allows. On GPUs since Ampere the default of FP32 is TF32. */
typedef struct math_type {
    cudnn_math math;
    const char *name;
} math_type;

static const math_type *maths_of(const cudnn_unit *u, int *count) {
    static const math_type fp32[] = {{DNN_FMA_MATH, "fma"}};
    static const math_type tf32[] = {{DNN_DEFAULT_MATH, "default"}, {DNN_ALLOW_CONVERSION, "conversion"}};
    static const math_type half[] = {{DNN_TENSOR_OP_MATH, "tensor-op"}, {DNN_DEFAULT_MATH, "default"}};
    *count = u->class->math == CONV_FFT_MATH_FP32 ? 1 : CUDNN_MAX_MATHS;
    return *count == 1 ? fp32 : u->class->math == CONV_FFT_MATH_TF32 ? tf32 : half;
}

/* -------------------------------------------------------------------------------------------------- descriptors */

static bool to_ints(const int64_t *from, int count, int *to) {
    for (int i = 0; i < count; i++) {
        if (from[i] > INT_MAX)
            return false;
        to[i] = (int)from[i];
    }
    return true;
}

static bool set_tensor(const cudnn_unit *u, cudnn_tensor_desc *desc, const cudnn_operand *t) {
    int extents[CUDNN_MAX_AXES], strides[CUDNN_MAX_AXES];
    return to_ints(t->extents, u->axes, extents) && to_ints(t->strides, u->axes, strides) &&
           !u->call->cudnnCreateTensorDescriptor(desc) &&
           !u->call->cudnnSetTensorNdDescriptor(*desc, cudnn_type_of(u), u->axes, extents, strides);
}

static bool set_filter(cudnn_unit *u) {
    int extents[CUDNN_MAX_AXES];
    return to_ints(u->filter.extents, u->axes, extents) && !u->call->cudnnCreateFilterDescriptor(&u->filter_desc) &&
           !u->call->cudnnSetFilterNdDescriptor(u->filter_desc, cudnn_type_of(u),
                                                u->last ? DNN_FORMAT_NHWC : DNN_FORMAT_NCHW, u->axes, extents);
}

static bool set_convolution(cudnn_unit *u, cudnn_convolution_desc *desc, cudnn_math math) {
    const bench_shape *s = &u->layer->shape;
    const int axes = u->axes - 2, first = 3 - axes;
    int pads[3], strides[3], dilations[3], groups;
    return to_ints(s->pad + first, axes, pads) && to_ints(s->stride + first, axes, strides) &&
           to_ints(s->dilation + first, axes, dilations) && to_ints(&s->groups, 1, &groups) &&
           !u->call->cudnnCreateConvolutionDescriptor(desc) &&
           !u->call->cudnnSetConvolutionNdDescriptor(*desc, axes, pads, strides, dilations, DNN_CROSS_CORRELATION,
                                                     DNN_DATA_FLOAT) &&
           !u->call->cudnnSetConvolutionGroupCount(*desc, groups) && !u->call->cudnnSetConvolutionMathType(*desc, math);
}

/* They pad both sides alike. */
static bool pads_alike(const conv_fft_problem *p) {
    for (int a = 0; a < p->rank; a++)
        if (p->pad_before[a] != p->pad_after[a])
            return false;
    return true;
}

void cudnn_algorithms_close(cudnn_unit *u) {
    if (u->image_desc)
        u->call->cudnnDestroyTensorDescriptor(u->image_desc);
    if (u->result_desc)
        u->call->cudnnDestroyTensorDescriptor(u->result_desc);
    if (u->filter_desc)
        u->call->cudnnDestroyFilterDescriptor(u->filter_desc);
    for (int i = 0; i < CUDNN_MAX_MATHS; i++)
        if (u->convolutions[i])
            u->call->cudnnDestroyConvolutionDescriptor(u->convolutions[i]);
}

/* --------------------------------------------------------------------------------------------------- algorithms */

static cudnn_status workspace_size(const cudnn_unit *u, cudnn_convolution_desc convolution, cudnn_algorithm algorithm,
                                   size_t *bytes) {
    const cudnn_functions *c = u->call;
    switch (u->pass) {
    case CONV_FFT_FORWARD:
        return c->cudnnGetConvolutionForwardWorkspaceSize(u->handle, u->image_desc, u->filter_desc, convolution,
                                                          u->result_desc, algorithm, bytes);
    case CONV_FFT_BACKWARD_DATA:
        return c->cudnnGetConvolutionBackwardDataWorkspaceSize(u->handle, u->filter_desc, u->result_desc, convolution,
                                                               u->image_desc, algorithm, bytes);
    default:
        return c->cudnnGetConvolutionBackwardFilterWorkspaceSize(u->handle, u->image_desc, u->result_desc, convolution,
                                                                 u->filter_desc, algorithm, bytes);
    }
}

cudnn_status cudnn_algorithm_run(const cudnn_unit *u, const cudnn_way *way) {
    const cudnn_functions *c = u->call;
    const cudnn_convolution_desc convolution = u->convolutions[way->math];
    const float one = 1, zero = 0;
    void *const workspace = u->gpu->scratch;
    const size_t bytes = way->workspace_bytes;
    switch (u->pass) {
    case CONV_FFT_FORWARD:
        return c->cudnnConvolutionForward(u->handle, &one, u->image_desc, u->image.memory, u->filter_desc,
                                          u->filter.memory, convolution, way->algorithm, workspace, bytes, &zero,
                                          u->result_desc, u->result.memory);
    case CONV_FFT_BACKWARD_DATA:
        return c->cudnnConvolutionBackwardData(u->handle, &one, u->filter_desc, u->filter.memory, u->result_desc,
                                               u->result.memory, convolution, way->algorithm, workspace, bytes, &zero,
                                               u->image_desc, u->image.memory);
    default:
        return c->cudnnConvolutionBackwardFilter(u->handle, &one, u->image_desc, u->image.memory, u->result_desc,
                                                 u->result.memory, convolution, way->algorithm, workspace, bytes, &zero,
                                                 u->filter_desc, u->filter.memory);
    }
}

void cudnn_algorithms_consider(cudnn_unit *u) {
    cudnn_algorithm algorithms;
    int maths;
    const char *const *names = names_of(u, &algorithms);
    const math_type *math = maths_of(u, &maths);
    if (!pads_alike(&u->layer->problem) || !set_tensor(u, &u->image_desc, &u->image) ||
        !set_tensor(u, &u->result_desc, &u->result) || !set_filter(u))
        return;
    for (int m = 0; m < maths; m++) {
        if (!set_convolution(u, &u->convolutions[m], math[m].math))
            return;
        for (cudnn_algorithm a = 0; a < algorithms; a++) {
            cudnn_way way = {.math = m, .algorithm = a};
            snprintf(way.text, sizeof way.text, "algorithm %s math=%s", names[a], math[m].name);
            if (workspace_size(u, u->convolutions[m], a, &way.workspace_bytes) == 0 && !cudnn_consider(u, &way))
                return;
        }
    }
}
