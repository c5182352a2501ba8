/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's graphs of operations, here of one convolution: heuristics name engines and their settings, each may become a
   plan. Engines that they do not name are asked too, with the settings that they have of themselves. */
#include "cudnn_unit.h"

#include "core/text.h"

#include <inttypes.h>
#include <string.h>

#define MAX_CONFIGURATIONS 32 /* of one heuristic */
#define MAX_KNOBS 64
#define MAX_NOTES 32
#define ALIGNMENT 16 /* bytes; device memory has more */

enum {
    IMAGE_ID = 1,
    FILTER_ID,
    RESULT_ID
};

/* -------------------------------------------------------------------------------------------------- descriptors */

static bool create(const cudnn_unit *u, cudnn_descriptor_type type, cudnn_descriptor *d) {
    *d = NULL;
    return u->call->cudnnBackendCreateDescriptor(type, d) == 0;
}

static void destroy(const cudnn_unit *u, cudnn_descriptor d) {
    if (d)
        u->call->cudnnBackendDestroyDescriptor(d);
}

static bool set(const cudnn_unit *u, cudnn_descriptor d, cudnn_attribute attribute, cudnn_attribute_type type,
                int64_t count, const void *values) {
    return u->call->cudnnBackendSetAttribute(d, attribute, type, count, values) == 0;
}

static bool set_int64(const cudnn_unit *u, cudnn_descriptor d, cudnn_attribute attribute, int64_t value) {
    return set(u, d, attribute, DNN_TYPE_INT64, 1, &value);
}

static bool set_descriptor(const cudnn_unit *u, cudnn_descriptor d, cudnn_attribute attribute, cudnn_descriptor value) {
    return set(u, d, attribute, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

/* *count: how many there are; at most `wanted` are written. */
static bool get(const cudnn_unit *u, cudnn_descriptor d, cudnn_attribute attribute, cudnn_attribute_type type,
                int64_t wanted, int64_t *count, void *values) {
    return u->call->cudnnBackendGetAttribute(d, attribute, type, wanted, count, values) == 0;
}

static bool finalize(const cudnn_unit *u, cudnn_descriptor d) { return u->call->cudnnBackendFinalize(d) == 0; }

/* One that lives as long as the unit. */
static cudnn_descriptor add(cudnn_unit *u, cudnn_descriptor_type type) {
    cudnn_descriptor d = NULL;
    if (u->descriptor_count < CUDNN_MAX_DESCRIPTORS && create(u, type, &d))
        u->descriptors[u->descriptor_count++] = d;
    return d;
}

void cudnn_graph_close(cudnn_unit *u) {
    while (u->descriptor_count > 0)
        destroy(u, u->descriptors[--u->descriptor_count]);
}

/* ------------------------------------------------------------------------------------------------------ the graph */

static cudnn_descriptor add_tensor(cudnn_unit *u, int64_t id, const cudnn_operand *t) {
    const cudnn_type type = cudnn_type_of(u);
    const cudnn_descriptor d = add(u, DNN_TENSOR);
    const bool good = d && set(u, d, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &type) &&
                      set(u, d, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, u->axes, t->extents) &&
                      set(u, d, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, u->axes, t->strides) &&
                      set_int64(u, d, DNN_ATTR_TENSOR_UNIQUE_ID, id) &&
                      set_int64(u, d, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, ALIGNMENT) && finalize(u, d);
    return good ? d : NULL;
}

static cudnn_descriptor add_convolution(cudnn_unit *u) {
    const bench_shape *s = &u->layer->shape;
    const int64_t axes = u->axes - 2, first = 3 - axes;
    const cudnn_type type = DNN_DATA_FLOAT;
    const cudnn_mode mode = DNN_CROSS_CORRELATION;
    const cudnn_descriptor d = add(u, DNN_CONVOLUTION);
    int64_t after[3] = {0, 0, 0};
    for (int a = 0; a < u->layer->problem.rank; a++)
        after[3 - u->layer->problem.rank + a] = u->layer->problem.pad_after[a];
    const bool good = d && set(u, d, DNN_ATTR_CONVOLUTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &type) &&
                      set(u, d, DNN_ATTR_CONVOLUTION_CONV_MODE, DNN_TYPE_CONVOLUTION_MODE, 1, &mode) &&
                      set_int64(u, d, DNN_ATTR_CONVOLUTION_SPATIAL_DIMS, axes) &&
                      set(u, d, DNN_ATTR_CONVOLUTION_PRE_PADDINGS, DNN_TYPE_INT64, axes, s->pad + first) &&
                      set(u, d, DNN_ATTR_CONVOLUTION_POST_PADDINGS, DNN_TYPE_INT64, axes, after + first) &&
                      set(u, d, DNN_ATTR_CONVOLUTION_FILTER_STRIDES, DNN_TYPE_INT64, axes, s->stride + first) &&
                      set(u, d, DNN_ATTR_CONVOLUTION_DILATIONS, DNN_TYPE_INT64, axes, s->dilation + first) &&
                      finalize(u, d);
    return good ? d : NULL;
}

/* The three operations differ in names only. */
typedef struct operation {
    conv_fft_pass pass;
    cudnn_descriptor_type type;
    cudnn_attribute convolution, image, filter, result, alpha, beta;
} operation;

static const operation operations[] = {
    {CONV_FFT_FORWARD, DNN_CONVOLUTION_FORWARD, DNN_ATTR_FORWARD_CONV_DESC, DNN_ATTR_FORWARD_X, DNN_ATTR_FORWARD_W,
     DNN_ATTR_FORWARD_Y, DNN_ATTR_FORWARD_ALPHA, DNN_ATTR_FORWARD_BETA},
    {CONV_FFT_BACKWARD_DATA, DNN_CONVOLUTION_BWD_DATA, DNN_ATTR_BWD_DATA_CONV_DESC, DNN_ATTR_BWD_DATA_DX,
     DNN_ATTR_BWD_DATA_W, DNN_ATTR_BWD_DATA_DY, DNN_ATTR_BWD_DATA_ALPHA, DNN_ATTR_BWD_DATA_BETA},
    {CONV_FFT_BACKWARD_WEIGHTS, DNN_CONVOLUTION_BWD_FILTER, DNN_ATTR_BWD_FILTER_CONV_DESC, DNN_ATTR_BWD_FILTER_X,
     DNN_ATTR_BWD_FILTER_DW, DNN_ATTR_BWD_FILTER_DY, DNN_ATTR_BWD_FILTER_ALPHA, DNN_ATTR_BWD_FILTER_BETA},
};

static cudnn_descriptor add_operation(cudnn_unit *u) {
    const operation *o = operations;
    const float one = 1, zero = 0;
    while (o->pass != u->pass)
        o++;
    const cudnn_descriptor image = add_tensor(u, IMAGE_ID, &u->image), filter = add_tensor(u, FILTER_ID, &u->filter),
                           result = add_tensor(u, RESULT_ID, &u->result), convolution = add_convolution(u);
    if (!image || !filter || !result || !convolution)
        return NULL;
    const cudnn_descriptor d = add(u, o->type);
    const bool good = d && set_descriptor(u, d, o->convolution, convolution) && set_descriptor(u, d, o->image, image) &&
                      set_descriptor(u, d, o->filter, filter) && set_descriptor(u, d, o->result, result) &&
                      set(u, d, o->alpha, DNN_TYPE_FLOAT, 1, &one) && set(u, d, o->beta, DNN_TYPE_FLOAT, 1, &zero) &&
                      finalize(u, d);
    return good ? d : NULL;
}

static cudnn_descriptor add_graph(cudnn_unit *u) {
    const cudnn_descriptor node = add_operation(u);
    const cudnn_descriptor d = node ? add(u, DNN_OPERATIONGRAPH) : NULL;
    const bool good = d && set(u, d, DNN_ATTR_OPERATIONGRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &u->handle) &&
                      set_descriptor(u, d, DNN_ATTR_OPERATIONGRAPH_OPS, node) && finalize(u, d);
    return good ? d : NULL;
}

/* --------------------------------------------------------------------------------------------------------- plans */

/* " k2=27 k13=1" */
static void add_knobs(const cudnn_unit *u, cudnn_descriptor configuration, cf_text *t) {
    cudnn_descriptor choices[MAX_KNOBS] = {NULL};
    int64_t count = 0, one;
    for (int i = 0; i < MAX_KNOBS; i++)
        if (!create(u, DNN_KNOB_CHOICE, &choices[i]))
            break;
    if (!get(u, configuration, DNN_ATTR_ENGINECFG_KNOB_CHOICES, DNN_TYPE_BACKEND_DESCRIPTOR, MAX_KNOBS, &count,
             choices))
        count = 0;
    for (int64_t i = 0; i < count && i < MAX_KNOBS; i++) {
        unsigned knob = 0;
        int64_t value = 0;
        if (get(u, choices[i], DNN_ATTR_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &one, &knob) &&
            get(u, choices[i], DNN_ATTR_KNOB_VALUE, DNN_TYPE_INT64, 1, &one, &value))
            cf_text_add(t, " k%u=%" PRId64, knob, value);
    }
    for (int i = 0; i < MAX_KNOBS; i++)
        destroy(u, choices[i]);
}

static const char *note_name(unsigned note) {
    switch (note) {
    case DNN_NOTE_TENSOR_CORE:
        return " tensor-core";
    case DNN_NOTE_FFT:
        return " fft";
    case DNN_NOTE_NONDETERMINISTIC:
        return " nondeterministic";
    case DNN_NOTE_WINOGRAD:
        return " winograd";
    default:
        return "";
    }
}

/* Inputs of fewer bits than the class has are out of it; for FP32 so is all that may use TF32. */
static bool in_class(const cudnn_unit *u, unsigned note) {
    const bool fp32 = u->class->math == CONV_FFT_MATH_FP32;
    return note != DNN_NOTE_DOWN_CONVERT_INPUTS &&
           (!fp32 || (note != DNN_NOTE_TENSOR_CORE && note != DNN_NOTE_REDUCED_PRECISION_REDUCTION));
}

/* Which engine with which settings. False: it is of another class. */
static bool describe(const cudnn_unit *u, cudnn_descriptor configuration, char *text, size_t bytes) {
    cf_text t = {text, bytes, 0};
    unsigned notes[MAX_NOTES];
    int64_t index = -1, count = 0, one;
    cudnn_descriptor engine;
    if (!create(u, DNN_ENGINE, &engine))
        return false;
    bool good = get(u, configuration, DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine) &&
                get(u, engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &one, &index) &&
                get(u, engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &count, notes);
    cf_text_add(&t, "engine %" PRId64, index);
    for (int64_t i = 0; i < count && i < MAX_NOTES && good; i++) {
        good = in_class(u, notes[i]);
        cf_text_add(&t, "%s", note_name(notes[i]));
    }
    add_knobs(u, configuration, &t);
    destroy(u, engine);
    return good;
}

bool cudnn_graph_bind(const cudnn_unit *u, cudnn_way *way) {
    static const int64_t ids[] = {IMAGE_ID, FILTER_ID, RESULT_ID};
    void *const memory[] = {u->image.memory, u->filter.memory, u->result.memory};
    destroy(u, way->pack);
    return create(u, DNN_VARIANT_PACK, &way->pack) &&
           set(u, way->pack, DNN_ATTR_PACK_UNIQUE_IDS, DNN_TYPE_INT64, 3, ids) &&
           set(u, way->pack, DNN_ATTR_PACK_DATA_POINTERS, DNN_TYPE_VOID_PTR, 3, memory) &&
           set(u, way->pack, DNN_ATTR_PACK_WORKSPACE, DNN_TYPE_VOID_PTR, 1, &u->gpu->scratch) && finalize(u, way->pack);
}

void cudnn_way_close(const cudnn_unit *u, cudnn_way *way) {
    destroy(u, way->pack);
    destroy(u, way->plan);
    destroy(u, way->configuration);
    way->pack = way->plan = way->configuration = NULL;
}

/* May compile kernels. */
static bool make_plan(const cudnn_unit *u, cudnn_way *way) {
    int64_t bytes = 0, one;
    const bool good = create(u, DNN_EXECUTION_PLAN, &way->plan) &&
                      set(u, way->plan, DNN_ATTR_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &u->handle) &&
                      set_descriptor(u, way->plan, DNN_ATTR_PLAN_ENGINE_CONFIG, way->configuration) &&
                      finalize(u, way->plan) &&
                      get(u, way->plan, DNN_ATTR_PLAN_WORKSPACE_SIZE, DNN_TYPE_INT64, 1, &one, &bytes);
    way->workspace_bytes = (size_t)bytes;
    return good;
}

/* Takes the configuration: a plan may refer to it. False: there is no time for others. */
static bool consider_configuration(cudnn_unit *u, cudnn_descriptor configuration) {
    cudnn_way way = {.configuration = configuration};
    if (describe(u, configuration, way.text, sizeof way.text) && !cudnn_seen(u, way.text) && make_plan(u, &way))
        return cudnn_consider(u, &way);
    cudnn_way_close(u, &way);
    return bench_now_ms() < u->deadline_ms;
}

static bool consider_mode(cudnn_unit *u, cudnn_descriptor graph, unsigned mode) {
    cudnn_descriptor heuristics, configurations[MAX_CONFIGURATIONS] = {NULL};
    int64_t count = 0;
    bool more = true;
    if (!create(u, DNN_ENGINEHEUR, &heuristics))
        return true;
    if (set_descriptor(u, heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph) &&
        set(u, heuristics, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1, &mode) && finalize(u, heuristics)) {
        for (int i = 0; i < MAX_CONFIGURATIONS; i++)
            create(u, DNN_ENGINECFG, &configurations[i]);
        if (!get(u, heuristics, DNN_ATTR_ENGINEHEUR_RESULTS, DNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGURATIONS, &count,
                 configurations))
            count = 0;
    }
    for (int64_t i = 0; i < count && i < MAX_CONFIGURATIONS && more; i++) {
        more = consider_configuration(u, configurations[i]);
        configurations[i] = NULL;
    }
    for (int i = 0; i < MAX_CONFIGURATIONS; i++)
        destroy(u, configurations[i]);
    destroy(u, heuristics);
    return more;
}

/* An engine with its own settings. False: there is no time for others. */
static bool consider_engine(cudnn_unit *u, cudnn_descriptor graph, int64_t index) {
    cudnn_descriptor engine, configuration = NULL;
    if (!create(u, DNN_ENGINE, &engine))
        return true;
    const bool good = set_descriptor(u, engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, graph) &&
                      set_int64(u, engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, index) && finalize(u, engine) &&
                      create(u, DNN_ENGINECFG, &configuration) &&
                      set_descriptor(u, configuration, DNN_ATTR_ENGINECFG_ENGINE, engine) && finalize(u, configuration);
    bool more = true;
    if (good)
        more = consider_configuration(u, configuration);
    else
        destroy(u, configuration);
    destroy(u, engine);
    return more;
}

void cudnn_graph_consider(cudnn_unit *u) {
    static const unsigned modes[] = {DNN_HEUR_MODE_A, DNN_HEUR_MODE_B, DNN_HEUR_MODE_FALLBACK};
    const cudnn_descriptor graph = add_graph(u);
    int64_t engines = 0, one;
    bool more = graph != NULL;
    if (!graph)
        bench_message("cudnn %s: no graph of this layer", u->layer->name);
    for (int i = 0; i < 3 && more; i++)
        more = consider_mode(u, graph, modes[i]);
    if (more && !get(u, graph, DNN_ATTR_OPERATIONGRAPH_ENGINES, DNN_TYPE_INT64, 1, &one, &engines))
        engines = 0;
    for (int64_t i = 0; i < engines && more; i++)
        more = consider_engine(u, graph, i);
}
