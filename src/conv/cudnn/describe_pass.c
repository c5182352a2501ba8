/* SPDX-License-Identifier: Apache-2.0 */
/* Which problems and devices family `cudnn` takes, and a pass in cuDNN's terms. */
#include "conv/cudnn/cudnn.h"
#include "conv/gpu/device.h"
#include "cuda/libs/cudnn_causal.h"

#include <string.h>

static void dense_strides(cf_cudnn_operand *o, int axes) {
    int64_t stride = o->last ? o->extents[1] : 1;
    for (int a = axes - 1; a >= 2; --a) {
        o->strides[a] = stride;
        stride *= o->extents[a];
    }
    o->strides[1] = o->last ? 1 : stride;
    o->strides[0] = o->last ? stride : stride * o->extents[1];
}

/* Axes of one element may have any stride. */
static bool has_strides(const cf_cudnn_operand *o, int axes, const int64_t strides[CF_CUDNN_AXES]) {
    for (int a = 0; a < axes; ++a)
        if (o->extents[a] > 1 && o->strides[a] != strides[a])
            return false;
    return true;
}

/* Weights of one channel fit both layouts. cuDNN prefers the layout of the tensors. */
static bool make_operand(const cf_tensor *t, const int64_t extents[5], int axes, conv_fft_layout layout,
                         cf_cudnn_operand *o) {
    const int first = 5 - axes; /* the first used axis of three */
    int64_t strides[CF_CUDNN_AXES] = {t->sample_stride, t->channel_stride};
    o->dtype = t->dtype;
    o->extents[0] = extents[0];
    o->extents[1] = extents[1];
    for (int a = 2; a < axes; ++a) {
        o->extents[a] = extents[first + a];
        strides[a] = t->axis_stride[first + a - 2];
    }
    for (int other = 0; other < 2; ++other) {
        o->last = (layout == CONV_FFT_CHANNELS_LAST) != (other == 1);
        dense_strides(o, axes);
        if (has_strides(o, axes, strides))
            return true;
    }
    return false;
}

bool cf_cudnn_pass_make(const cf_layer *layer, int index, cf_cudnn_pass *pass, const char **why) {
    const conv_fft_problem *p = &layer->problem;
    const cf_tensor *const tensors[] = {&layer->x, index == CF_PASS_WEIGHTS ? &layer->gw : &layer->w, &layer->y};
    int64_t extents[CF_OPERAND_COUNT][5];
    memset(pass, 0, sizeof *pass);
    pass->index = index;
    pass->axes = p->rank == 3 ? 5 : 4;
    pass->groups = layer->groups;
    pass->math = p->math;
    const int first = 5 - pass->axes; /* the first used axis of three */
    for (int a = 0; a < pass->axes - 2; ++a)
        pass->stride[a] = pass->dilation[a] = 1;
    for (int a = 0; a < p->rank; ++a) {
        const int own = 3 - p->rank + a - first;
        pass->pad_before[own] = p->pad_before[a];
        pass->pad_after[own] = p->pad_after[a];
        pass->stride[own] = p->stride[a];
        pass->dilation[own] = p->dilation[a];
    }
    *why = "cuDNN pads with zeros only";
    for (int a = 0; a < 3; ++a)
        if (layer->axis[a].mode != CONV_FFT_PAD_ZEROS)
            return false;
    *why = "cuDNN takes weights of the type of the tensors only";
    if (index != CF_PASS_WEIGHTS && layer->w.dtype != layer->x.dtype)
        return false;
    *why = "cuDNN takes dense tensors only, channels first or last";
    cf_layer_extents(layer, extents[CF_X], extents[CF_Y], extents[CF_W]);
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        if (!make_operand(tensors[i], extents[i], pass->axes, p->tensor_layout, &pass->operand[i]))
            return false;
    return true;
}

bool cf_cudnn_is_trusted(const cf_cudnn_pass *p, const char **why) {
    const cf_cudnn_operand *x = &p->operand[CF_X];
    *why = "cuDNN is not trusted with one channel of 16 bits, which may count as first or last";
    if ((x->dtype == CONV_FFT_FP16 || x->dtype == CONV_FFT_BF16) && x->extents[1] == 1)
        return false;
    *why = "cuDNN is trusted only where it pads both sides of an axis alike, by less than the kernel covers";
    for (int a = 0; a < p->axes - 2; ++a) {
        const int64_t kernel = p->operand[CF_W].extents[2 + a];
        if (p->pad_before[a] != p->pad_after[a] || p->pad_before[a] > (kernel - 1) * p->dilation[a])
            return false;
    }
    return true;
}

static bool is_causal(const cf_strategy *strategy) { return strcmp(strategy->algorithm, CF_CUDNN_CAUSAL) == 0; }

bool cf_cudnn_feasible(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why) {
    cf_cudnn_pass p;
    cf_cudnn_engine engine;
    if (!cf_cudnn_pass_make(layer, pass, &p, why))
        return false;
    if (is_causal(strategy))
        return cf_cudnn_causal_fits(&p, why);
    if (!cf_cudnn_is_trusted(&p, why))
        return false;
    *why = "Winograd's transform of a kernel that large loses too many bits";
    if (cf_cudnn_loses_bits(&p) && strstr(strategy->algorithm, "WINOGRAD"))
        return false;
    if (cf_cudnn_legacy_parse(pass, strategy->algorithm))
        return cf_cudnn_legacy_fits(&p, why);
    *why = "algorithm must be graph:ENGINE[:kKNOB=VALUE,..], causal, or old:NAME:MATH with the name of an algorithm of "
           "the pass and math fma, default or tensor-op";
    return cf_cudnn_engine_parse(strategy->algorithm, &engine);
}

bool cf_cudnn_runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                      const char **why) {
    (void)layer, (void)pass;
    const cf_gpu *gpu = cf_gpu_of_layers(device);
    *why = "cuDNN needs a GPU";
    if (!gpu)
        return false;
    const cf_library *library = cf_cudnn_library(gpu->cudnn);
    if (library->usable && is_causal(strategy))
        library = cf_cudnn_causal_library(gpu->cudnn);
    *why = library->problem;
    return library->usable;
}
