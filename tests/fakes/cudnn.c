/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cuDNN that computes nothing. Its graphs have five engines: 0 knows knobs 2 and 13 (below 100), 1 uses tensor
 * cores, 2 is not deterministic, 3 cannot accumulate, and 4 supports nothing. Of its old algorithms 0 is not
 * deterministic but forward, 3 is not supported, and every other one is.
 */
#include "cuda/libs/cudnn.h"
#include "fake.h"

#include <stdlib.h>
#include <string.h>

#ifndef FAKE_MAJOR
#define FAKE_MAJOR 9
#endif
#ifndef FAKE_CUDART
#define FAKE_CUDART 13000
#endif
#ifndef FAKE_CREATE
#define FAKE_CREATE 0
#endif

enum {
    BAD_PARAM = 2000,
    NOT_SUPPORTED = 3000,
    ENGINES = 5,
    MAX_KNOBS = 8
};

fake_cudnn fake_cudnn_state;

struct cudnnContext {
    cf_cu_stream stream;
};

/* A descriptor that is set in another one passes its attributes on to it. */
typedef struct descriptor {
    cf_cudnn_descriptor_type type;
    bool finalized;
    float beta;
    int64_t engine, knobs, value[MAX_KNOBS];
    unsigned knob[MAX_KNOBS];
    void *pointers[4];
} descriptor;

const char *cudnnGetErrorString(cf_cudnn_status status) {
    return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OTHER";
}
size_t cudnnGetCudartVersion(void) { return FAKE_CUDART; }
cf_cudnn_status cudnnGetProperty(cf_cudnn_property property, int *value) {
    *value = property == 0 ? FAKE_MAJOR : 19;
    return 0;
}
cf_cudnn_status cudnnCreate(cf_cudnn_handle *handle) {
    if (FAKE_CREATE)
        return FAKE_CREATE;
    *handle = calloc(1, sizeof **handle);
    ++fake_cudnn_state.handles;
    return 0;
}
cf_cudnn_status cudnnDestroy(cf_cudnn_handle handle) {
    free(handle);
    --fake_cudnn_state.handles;
    return 0;
}
cf_cudnn_status cudnnSetStream(cf_cudnn_handle handle, cf_cu_stream stream) {
    handle->stream = stream;
    return 0;
}

/* ---- graphs */

cf_cudnn_status cudnnBackendCreateDescriptor(cf_cudnn_descriptor_type type, cf_cudnn_descriptor *made) {
    descriptor *d = calloc(1, sizeof *d);
    d->type = type;
    d->engine = -1;
    *made = d;
    ++fake_cudnn_state.descriptors;
    return 0;
}
cf_cudnn_status cudnnBackendDestroyDescriptor(cf_cudnn_descriptor d) {
    free(d);
    --fake_cudnn_state.descriptors;
    return 0;
}
cf_cudnn_status cudnnBackendFinalize(cf_cudnn_descriptor given) {
    descriptor *d = given;
    const bool plan = d->type == CF_CUDNN_EXECUTION_PLAN;
    if (d->type == CF_CUDNN_ENGINE && (d->engine < 0 || d->engine >= ENGINES))
        return BAD_PARAM;
    for (int64_t i = 0; i < d->knobs; ++i)
        if (d->type == CF_CUDNN_ENGINECFG && (d->engine != 0 || d->value[i] >= 100))
            return NOT_SUPPORTED;
    if (plan && (d->engine == 4 || (d->engine == 3 && d->beta != 0)))
        return NOT_SUPPORTED;
    fake_cudnn_state.plans += plan;
    d->finalized = true;
    return 0;
}

static void inherit(descriptor *d, const descriptor *from) {
    d->beta = from->beta;
    if (from->engine >= 0)
        d->engine = from->engine;
    if (from->knobs > 0) {
        d->knobs = from->knobs;
        memcpy(d->knob, from->knob, sizeof d->knob);
        memcpy(d->value, from->value, sizeof d->value);
    }
}

cf_cudnn_status cudnnBackendSetAttribute(cf_cudnn_descriptor given, cf_cudnn_attribute attribute,
                                         cf_cudnn_attribute_type type, int64_t count, const void *values) {
    descriptor *d = given;
    const descriptor *const *children = values;
    if (d->finalized || !values)
        return BAD_PARAM;
    if (type == CF_CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        for (int64_t i = 0; i < count; ++i)
            if (!children[i]->finalized)
                return BAD_PARAM;
    }
    switch (attribute) {
    case CF_CUDNN_ATTR_FORWARD_BETA:
    case CF_CUDNN_ATTR_BWD_DATA_BETA:
    case CF_CUDNN_ATTR_BWD_FILTER_BETA:
        d->beta = type == CF_CUDNN_TYPE_FLOAT ? *(const float *)values : (float)*(const double *)values;
        break;
    case CF_CUDNN_ATTR_OPERATIONGRAPH_OPS:
    case CF_CUDNN_ATTR_ENGINE_OPERATION_GRAPH:
    case CF_CUDNN_ATTR_ENGINECFG_ENGINE:
    case CF_CUDNN_ATTR_PLAN_ENGINE_CONFIG:
        inherit(d, children[0]);
        break;
    case CF_CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        d->engine = *(const int64_t *)values;
        break;
    case CF_CUDNN_ATTR_KNOB_TYPE:
        d->knob[0] = *(const unsigned *)values;
        break;
    case CF_CUDNN_ATTR_KNOB_VALUE:
        d->value[0] = *(const int64_t *)values;
        break;
    case CF_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        d->knobs = count;
        for (int64_t i = 0; i < count && i < MAX_KNOBS; ++i) {
            d->knob[i] = children[i]->knob[0];
            d->value[i] = children[i]->value[0];
        }
        break;
    case CF_CUDNN_ATTR_PACK_DATA_POINTERS:
        memcpy(d->pointers, values, (size_t)count * sizeof(void *));
        break;
    case CF_CUDNN_ATTR_PACK_WORKSPACE:
        d->pointers[3] = *(void *const *)values;
        break;
    default:
        break;
    }
    return 0;
}

/* Two configurations of engine 0, with and without knobs, one of engine 2 between them, and the first one again. */
static int64_t heuristics(int64_t wanted, descriptor *const *results) {
    static const int64_t engines[] = {0, 2, 0, 0};
    for (int i = 0; i < 4 && i < wanted; ++i) {
        results[i]->engine = engines[i];
        results[i]->knobs = i == 0 || i == 3 ? 2 : 0;
        results[i]->knob[0] = 2, results[i]->value[0] = 27;
        results[i]->knob[1] = 13, results[i]->value[1] = -1;
        results[i]->finalized = true;
    }
    return 4;
}

cf_cudnn_status cudnnBackendGetAttribute(cf_cudnn_descriptor given, cf_cudnn_attribute attribute,
                                         cf_cudnn_attribute_type type, int64_t wanted, int64_t *count, void *values) {
    static const unsigned notes[ENGINES] = {CF_CUDNN_NOTE_FFT, CF_CUDNN_NOTE_TENSOR_CORE,
                                            CF_CUDNN_NOTE_NONDETERMINISTIC, CF_CUDNN_NOTE_WINOGRAD, CF_CUDNN_NOTE_FFT};
    const descriptor *d = given;
    descriptor *const *children = values;
    (void)type;
    *count = 1;
    switch (attribute) {
    case CF_CUDNN_ATTR_ENGINEHEUR_RESULTS:
        *count = heuristics(wanted, children);
        break;
    case CF_CUDNN_ATTR_ENGINECFG_ENGINE:
        children[0]->engine = d->engine;
        break;
    case CF_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
        *count = d->knobs;
        for (int64_t i = 0; i < d->knobs && i < wanted; ++i) {
            children[i]->knob[0] = d->knob[i];
            children[i]->value[0] = d->value[i];
        }
        break;
    case CF_CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        *(int64_t *)values = d->engine;
        break;
    case CF_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        *(unsigned *)values = notes[d->engine];
        break;
    case CF_CUDNN_ATTR_KNOB_TYPE:
        *(unsigned *)values = d->knob[0];
        break;
    case CF_CUDNN_ATTR_KNOB_VALUE:
        *(int64_t *)values = d->value[0];
        break;
    case CF_CUDNN_ATTR_OPERATIONGRAPH_ENGINES:
        *(int64_t *)values = ENGINES;
        break;
    case CF_CUDNN_ATTR_PLAN_WORKSPACE_SIZE:
        *(int64_t *)values = 1000 * (d->engine + 1);
        break;
    default:
        return BAD_PARAM;
    }
    return 0;
}

static void note_run(cf_cudnn_handle handle, const void *a, const void *b, const void *c, void *workspace, float beta) {
    const void *const pointers[] = {a, b, c};
    ++fake_cudnn_state.runs;
    fake_cudnn_state.stream = handle->stream;
    for (int i = 0; i < 3; ++i)
        fake_cudnn_state.pointers[i] = pointers[i];
    fake_cudnn_state.workspace = workspace;
    fake_cudnn_state.beta = beta;
}

#ifndef FAKE_LACKS_EXECUTE
cf_cudnn_status cudnnBackendExecute(cf_cudnn_handle handle, cf_cudnn_descriptor plan, cf_cudnn_descriptor pack) {
    const descriptor *p = plan, *v = pack;
    if (!p->finalized || !v->finalized)
        return BAD_PARAM;
    note_run(handle, v->pointers[0], v->pointers[1], v->pointers[2], v->pointers[3], p->beta);
    return 0;
}
#endif

/* ---- old calls */

#define CREATE(name, type)              \
    cf_cudnn_status name(type *made) {  \
        *made = malloc(1);              \
        ++fake_cudnn_state.descriptors; \
        return 0;                       \
    }
#define DESTROY(name, type)             \
    cf_cudnn_status name(type d) {      \
        free(d);                        \
        --fake_cudnn_state.descriptors; \
        return 0;                       \
    }
CREATE(cudnnCreateTensorDescriptor, cf_cudnn_tensor_desc)
CREATE(cudnnCreateFilterDescriptor, cf_cudnn_filter_desc)
CREATE(cudnnCreateConvolutionDescriptor, cf_cudnn_convolution_desc)
DESTROY(cudnnDestroyTensorDescriptor, cf_cudnn_tensor_desc)
DESTROY(cudnnDestroyFilterDescriptor, cf_cudnn_filter_desc)
DESTROY(cudnnDestroyConvolutionDescriptor, cf_cudnn_convolution_desc)

cf_cudnn_status cudnnSetTensorNdDescriptor(cf_cudnn_tensor_desc tensor, cf_cudnn_type type, int axes,
                                           const int extents[], const int strides[]) {
    (void)tensor, (void)type, (void)strides;
    return axes >= 4 && extents[0] > 0 ? 0 : BAD_PARAM;
}
cf_cudnn_status cudnnSetFilterNdDescriptor(cf_cudnn_filter_desc filter, cf_cudnn_type type, cf_cudnn_format format,
                                           int axes, const int extents[]) {
    (void)filter, (void)type, (void)format;
    return axes >= 4 && extents[0] > 0 ? 0 : BAD_PARAM;
}
cf_cudnn_status cudnnSetConvolutionNdDescriptor(cf_cudnn_convolution_desc convolution, int axes, const int pads[],
                                                const int strides[], const int dilations[], cf_cudnn_mode mode,
                                                cf_cudnn_type type) {
    (void)convolution, (void)pads, (void)type;
    return axes >= 2 && strides[0] > 0 && dilations[0] > 0 && mode == CF_CUDNN_CROSS_CORRELATION ? 0 : BAD_PARAM;
}
cf_cudnn_status cudnnSetConvolutionGroupCount(cf_cudnn_convolution_desc convolution, int groups) {
    (void)convolution;
    return groups > 0 ? 0 : BAD_PARAM;
}
cf_cudnn_status cudnnSetConvolutionMathType(cf_cudnn_convolution_desc convolution, cf_cudnn_math math) {
    (void)convolution;
    fake_cudnn_state.math = math;
    return 0;
}

/* Algorithms 5, 1 and 0, and one unknown number. */
static cf_cudnn_status rank(bool forward, int wanted, int *count, cf_cudnn_performance *results) {
    static const cf_cudnn_algorithm order[] = {5, 1, 77, 0, 3};
    *count = 5;
    for (int i = 0; i < 5 && i < wanted; ++i)
        results[i] = (cf_cudnn_performance){.algorithm = order[i], .determinism = order[i] > 0 || forward};
    return 0;
}
static cf_cudnn_status workspace(cf_cudnn_algorithm algorithm, size_t *bytes) {
    *bytes = 100 * algorithm;
    return algorithm == 3 ? NOT_SUPPORTED : 0;
}

#define UNUSED(a, b, c, d) (void)handle, (void)(a), (void)(b), (void)(c), (void)(d)
cf_cudnn_status cudnnGetConvolutionForwardAlgorithm_v7(cf_cudnn_handle handle, cf_cudnn_tensor_desc x,
                                                       cf_cudnn_filter_desc w, cf_cudnn_convolution_desc convolution,
                                                       cf_cudnn_tensor_desc y, int wanted, int *count,
                                                       cf_cudnn_performance *results) {
    UNUSED(x, w, convolution, y);
    return rank(true, wanted, count, results);
}
cf_cudnn_status cudnnGetConvolutionBackwardDataAlgorithm_v7(cf_cudnn_handle handle, cf_cudnn_filter_desc w,
                                                            cf_cudnn_tensor_desc gy,
                                                            cf_cudnn_convolution_desc convolution,
                                                            cf_cudnn_tensor_desc gx, int wanted, int *count,
                                                            cf_cudnn_performance *results) {
    UNUSED(w, gy, convolution, gx);
    return rank(false, wanted, count, results);
}
cf_cudnn_status cudnnGetConvolutionBackwardFilterAlgorithm_v7(cf_cudnn_handle handle, cf_cudnn_tensor_desc x,
                                                              cf_cudnn_tensor_desc gy,
                                                              cf_cudnn_convolution_desc convolution,
                                                              cf_cudnn_filter_desc gw, int wanted, int *count,
                                                              cf_cudnn_performance *results) {
    UNUSED(x, gy, convolution, gw);
    return rank(false, wanted, count, results);
}
cf_cudnn_status cudnnGetConvolutionForwardWorkspaceSize(cf_cudnn_handle handle, cf_cudnn_tensor_desc x,
                                                        cf_cudnn_filter_desc w, cf_cudnn_convolution_desc convolution,
                                                        cf_cudnn_tensor_desc y, cf_cudnn_algorithm algorithm,
                                                        size_t *bytes) {
    UNUSED(x, w, convolution, y);
    return workspace(algorithm, bytes);
}
cf_cudnn_status cudnnGetConvolutionBackwardDataWorkspaceSize(cf_cudnn_handle handle, cf_cudnn_filter_desc w,
                                                             cf_cudnn_tensor_desc gy,
                                                             cf_cudnn_convolution_desc convolution,
                                                             cf_cudnn_tensor_desc gx, cf_cudnn_algorithm algorithm,
                                                             size_t *bytes) {
    UNUSED(w, gy, convolution, gx);
    return workspace(algorithm, bytes);
}
cf_cudnn_status cudnnGetConvolutionBackwardFilterWorkspaceSize(cf_cudnn_handle handle, cf_cudnn_tensor_desc x,
                                                               cf_cudnn_tensor_desc gy,
                                                               cf_cudnn_convolution_desc convolution,
                                                               cf_cudnn_filter_desc gw, cf_cudnn_algorithm algorithm,
                                                               size_t *bytes) {
    UNUSED(x, gy, convolution, gw);
    return workspace(algorithm, bytes);
}

cf_cudnn_status cudnnConvolutionForward(cf_cudnn_handle handle, const void *alpha, cf_cudnn_tensor_desc x_desc,
                                        const void *x, cf_cudnn_filter_desc w_desc, const void *w,
                                        cf_cudnn_convolution_desc convolution, cf_cudnn_algorithm algorithm,
                                        void *scratch, size_t bytes, const void *beta, cf_cudnn_tensor_desc y_desc,
                                        void *y) {
    UNUSED(x_desc, w_desc, convolution, y_desc);
    (void)alpha, (void)algorithm, (void)bytes;
    note_run(handle, x, w, y, scratch, *(const float *)beta);
    return 0;
}
cf_cudnn_status cudnnConvolutionBackwardData(cf_cudnn_handle handle, const void *alpha, cf_cudnn_filter_desc w_desc,
                                             const void *w, cf_cudnn_tensor_desc gy_desc, const void *gy,
                                             cf_cudnn_convolution_desc convolution, cf_cudnn_algorithm algorithm,
                                             void *scratch, size_t bytes, const void *beta,
                                             cf_cudnn_tensor_desc gx_desc, void *gx) {
    UNUSED(w_desc, gy_desc, convolution, gx_desc);
    (void)alpha, (void)algorithm, (void)bytes;
    note_run(handle, gx, w, gy, scratch, *(const float *)beta);
    return 0;
}
cf_cudnn_status cudnnConvolutionBackwardFilter(cf_cudnn_handle handle, const void *alpha, cf_cudnn_tensor_desc x_desc,
                                               const void *x, cf_cudnn_tensor_desc gy_desc, const void *gy,
                                               cf_cudnn_convolution_desc convolution, cf_cudnn_algorithm algorithm,
                                               void *scratch, size_t bytes, const void *beta,
                                               cf_cudnn_filter_desc gw_desc, void *gw) {
    UNUSED(x_desc, gy_desc, convolution, gw_desc);
    (void)alpha, (void)algorithm, (void)bytes;
    note_run(handle, x, gw, gy, scratch, *(const float *)beta);
    return 0;
}
