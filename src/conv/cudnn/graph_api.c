/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's graph API. A graph here has one convolution. An engine, named by its index, becomes a plan, with and
 * without accumulation. */
#include "conv/cudnn/cudnn.h"

#include "core/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NOTES = 32
};

cf_cudnn_type cf_cudnn_type_of(conv_fft_dtype dtype) {
    static const cf_cudnn_type types[] = {[CONV_FFT_FP32] = CF_CUDNN_DATA_FLOAT,
                                          [CONV_FFT_FP16] = CF_CUDNN_DATA_HALF,
                                          [CONV_FFT_BF16] = CF_CUDNN_DATA_BFLOAT16,
                                          [CONV_FFT_FP64] = CF_CUDNN_DATA_DOUBLE};
    return types[dtype];
}

/* ---- the text of an engine */

bool cf_cudnn_engine_parse(const char *text, cf_cudnn_engine *engine) {
    char *end;
    memset(engine, 0, sizeof *engine);
    if (strncmp(text, "graph:", 6) != 0 || text[6] < '0' || text[6] > '9')
        return false;
    engine->index = strtoll(text + 6, &end, 10);
    for (char before = ':'; *end; before = ',') {
        if (*end != before || end[1] != 'k' || end[2] < '0' || end[2] > '9' || engine->knobs == CF_CUDNN_KNOBS)
            return false;
        engine->knob[engine->knobs] = (unsigned)strtoul(end + 2, &end, 10);
        if (*end != '=' || !((end[1] >= '0' && end[1] <= '9') || end[1] == '-'))
            return false;
        engine->value[engine->knobs++] = strtoll(end + 1, &end, 10);
    }
    return true;
}

bool cf_cudnn_engine_format(const cf_cudnn_engine *engine, char text[CF_ALGORITHM_BYTES]) {
    cf_text t = {text, CF_ALGORITHM_BYTES, 0};
    cf_text_add(&t, "graph:%" PRId64, engine->index);
    for (int i = 0; i < engine->knobs; ++i)
        cf_text_add(&t, "%ck%u=%" PRId64, i ? ',' : ':', engine->knob[i], engine->value[i]);
    return t.length < CF_ALGORITHM_BYTES;
}

/* ---- descriptors */

conv_fft_status cf_cudnn_descriptors_add(cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor_type type,
                                         cf_cudnn_descriptor *made) {
    if (descriptors->count == (int)(sizeof descriptors->owned / sizeof descriptors->owned[0]))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "cuDNN's graph needs more than %d descriptors", descriptors->count);
    *made = NULL;
    CF_FORWARD(CF_CUDNN(descriptors->call, cudnnBackendCreateDescriptor, type, made));
    descriptors->owned[descriptors->count++] = *made;
    return CONV_FFT_SUCCESS;
}

void cf_cudnn_descriptors_end(cf_cudnn_descriptors *descriptors) {
    while (descriptors->count > 0)
        descriptors->call->cudnnBackendDestroyDescriptor(descriptors->owned[--descriptors->count]);
}

static conv_fft_status set(const cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor d, cf_cudnn_attribute attribute,
                           cf_cudnn_attribute_type type, int64_t count, const void *values) {
    return CF_CUDNN(descriptors->call, cudnnBackendSetAttribute, d, attribute, type, count, values);
}

static conv_fft_status set_int64(const cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor d,
                                 cf_cudnn_attribute attribute, int64_t value) {
    return set(descriptors, d, attribute, CF_CUDNN_TYPE_INT64, 1, &value);
}

static conv_fft_status set_descriptor(const cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor d,
                                      cf_cudnn_attribute attribute, cf_cudnn_descriptor value) {
    return set(descriptors, d, attribute, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static conv_fft_status finalize(const cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor d) {
    return CF_CUDNN(descriptors->call, cudnnBackendFinalize, d);
}

/* ---- the graph */

/* cuDNN identifies operands by numbers, from 1. */
static conv_fft_status add_tensor(cf_cudnn_descriptors *descriptors, const cf_cudnn_pass *p, int operand,
                                  cf_cudnn_descriptor *made) {
    const cf_cudnn_operand *o = &p->operand[operand];
    const cf_cudnn_type type = cf_cudnn_type_of(o->dtype);
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_TENSOR, made));
    CF_FORWARD(set(descriptors, *made, CF_CUDNN_ATTR_TENSOR_DATA_TYPE, CF_CUDNN_TYPE_DATA_TYPE, 1, &type));
    CF_FORWARD(set(descriptors, *made, CF_CUDNN_ATTR_TENSOR_DIMENSIONS, CF_CUDNN_TYPE_INT64, p->axes, o->extents));
    CF_FORWARD(set(descriptors, *made, CF_CUDNN_ATTR_TENSOR_STRIDES, CF_CUDNN_TYPE_INT64, p->axes, o->strides));
    CF_FORWARD(set_int64(descriptors, *made, CF_CUDNN_ATTR_TENSOR_UNIQUE_ID, 1 + operand));
    CF_FORWARD(set_int64(descriptors, *made, CF_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CF_CUDNN_ALIGNMENT));
    return finalize(descriptors, *made);
}

static conv_fft_status add_convolution(cf_cudnn_descriptors *descriptors, const cf_cudnn_pass *p,
                                       cf_cudnn_descriptor *made) {
    const cf_cudnn_type type = cf_cudnn_doubles(p) ? CF_CUDNN_DATA_DOUBLE : CF_CUDNN_DATA_FLOAT;
    const cf_cudnn_mode mode = CF_CUDNN_CROSS_CORRELATION;
    const int64_t axes = p->axes - 2;
    const struct {
        cf_cudnn_attribute attribute;
        const int64_t *values;
    } lists[] = {{CF_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, p->pad_before},
                 {CF_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, p->pad_after},
                 {CF_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, p->stride},
                 {CF_CUDNN_ATTR_CONVOLUTION_DILATIONS, p->dilation}};
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_CONVOLUTION, made));
    CF_FORWARD(set(descriptors, *made, CF_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CF_CUDNN_TYPE_DATA_TYPE, 1, &type));
    CF_FORWARD(set(descriptors, *made, CF_CUDNN_ATTR_CONVOLUTION_CONV_MODE, CF_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
    CF_FORWARD(set_int64(descriptors, *made, CF_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, axes));
    for (int i = 0; i < 4; ++i)
        CF_FORWARD(set(descriptors, *made, lists[i].attribute, CF_CUDNN_TYPE_INT64, axes, lists[i].values));
    return finalize(descriptors, *made);
}

/* The operations of the three passes differ only in names. */
static const struct operation {
    cf_cudnn_descriptor_type type;
    cf_cudnn_attribute convolution, operand[CF_OPERAND_COUNT], alpha, beta;
} operations[CF_PASS_COUNT] = {
    [CF_PASS_FORWARD] = {CF_CUDNN_CONVOLUTION_FORWARD,
                         CF_CUDNN_ATTR_FORWARD_CONV_DESC,
                         {CF_CUDNN_ATTR_FORWARD_X, CF_CUDNN_ATTR_FORWARD_W, CF_CUDNN_ATTR_FORWARD_Y},
                         CF_CUDNN_ATTR_FORWARD_ALPHA,
                         CF_CUDNN_ATTR_FORWARD_BETA},
    [CF_PASS_DATA] = {CF_CUDNN_CONVOLUTION_BWD_DATA,
                      CF_CUDNN_ATTR_BWD_DATA_CONV_DESC,
                      {CF_CUDNN_ATTR_BWD_DATA_DX, CF_CUDNN_ATTR_BWD_DATA_W, CF_CUDNN_ATTR_BWD_DATA_DY},
                      CF_CUDNN_ATTR_BWD_DATA_ALPHA,
                      CF_CUDNN_ATTR_BWD_DATA_BETA},
    [CF_PASS_WEIGHTS] = {CF_CUDNN_CONVOLUTION_BWD_FILTER,
                         CF_CUDNN_ATTR_BWD_FILTER_CONV_DESC,
                         {CF_CUDNN_ATTR_BWD_FILTER_X, CF_CUDNN_ATTR_BWD_FILTER_DW, CF_CUDNN_ATTR_BWD_FILTER_DY},
                         CF_CUDNN_ATTR_BWD_FILTER_ALPHA,
                         CF_CUDNN_ATTR_BWD_FILTER_BETA},
};

static conv_fft_status set_factor(const cf_cudnn_descriptors *descriptors, const cf_cudnn_pass *p,
                                  cf_cudnn_descriptor d, cf_cudnn_attribute attribute, bool one) {
    const float single = one;
    const double one_as_double = one;
    return cf_cudnn_doubles(p) ? set(descriptors, d, attribute, CF_CUDNN_TYPE_DOUBLE, 1, &one_as_double)
                               : set(descriptors, d, attribute, CF_CUDNN_TYPE_FLOAT, 1, &single);
}

static conv_fft_status add_operation(cf_cudnn_descriptors *descriptors, const cf_cudnn_pass *p, bool accumulate,
                                     cf_cudnn_descriptor *made) {
    const struct operation *o = &operations[p->index];
    cf_cudnn_descriptor convolution, tensor[CF_OPERAND_COUNT];
    CF_FORWARD(add_convolution(descriptors, p, &convolution));
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        CF_FORWARD(add_tensor(descriptors, p, i, &tensor[i]));
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, o->type, made));
    CF_FORWARD(set_descriptor(descriptors, *made, o->convolution, convolution));
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        CF_FORWARD(set_descriptor(descriptors, *made, o->operand[i], tensor[i]));
    CF_FORWARD(set_factor(descriptors, p, *made, o->alpha, true));
    CF_FORWARD(set_factor(descriptors, p, *made, o->beta, accumulate));
    return finalize(descriptors, *made);
}

conv_fft_status cf_cudnn_descriptors_graph(cf_cudnn_descriptors *descriptors, cf_cudnn_handle handle,
                                           const cf_cudnn_pass *pass, bool accumulate, cf_cudnn_descriptor *graph) {
    cf_cudnn_descriptor node;
    CF_FORWARD(add_operation(descriptors, pass, accumulate, &node));
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_OPERATIONGRAPH, graph));
    CF_FORWARD(set(descriptors, *graph, CF_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CF_CUDNN_TYPE_HANDLE, 1, &handle));
    CF_FORWARD(set_descriptor(descriptors, *graph, CF_CUDNN_ATTR_OPERATIONGRAPH_OPS, node));
    return finalize(descriptors, *graph);
}

/* ---- engines */

conv_fft_status cf_cudnn_descriptors_engine(cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor graph,
                                            const cf_cudnn_engine *engine, cf_cudnn_descriptor *made,
                                            cf_cudnn_descriptor *configuration) {
    cf_cudnn_descriptor choice[CF_CUDNN_KNOBS];
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_ENGINE, made));
    CF_FORWARD(set_descriptor(descriptors, *made, CF_CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
    CF_FORWARD(set_int64(descriptors, *made, CF_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine->index));
    CF_FORWARD(finalize(descriptors, *made));
    for (int i = 0; i < engine->knobs; ++i) {
        CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_KNOB_CHOICE, &choice[i]));
        CF_FORWARD(set(descriptors, choice[i], CF_CUDNN_ATTR_KNOB_TYPE, CF_CUDNN_TYPE_KNOB_TYPE, 1,
                       (const void *)&engine->knob[i]));
        CF_FORWARD(set_int64(descriptors, choice[i], CF_CUDNN_ATTR_KNOB_VALUE, engine->value[i]));
        CF_FORWARD(finalize(descriptors, choice[i]));
    }
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_ENGINECFG, configuration));
    CF_FORWARD(set_descriptor(descriptors, *configuration, CF_CUDNN_ATTR_ENGINECFG_ENGINE, *made));
    if (engine->knobs > 0)
        CF_FORWARD(set(descriptors, *configuration, CF_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                       CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, engine->knobs, choice));
    return finalize(descriptors, *configuration);
}

/* FP32 may not use TF32, and 16-bit tensors may not be summed in 16 bits. For FP64, tensor cores are as accurate. */
bool cf_cudnn_engine_fits(const cf_cudnn_functions *call, const cf_cudnn_pass *pass, cf_cudnn_descriptor engine,
                          const char **why) {
    unsigned notes[MAX_NOTES];
    int64_t count = 0;
    const conv_fft_dtype dtype = pass->operand[CF_X].dtype;
    *why = "it does not tell its numerical notes";
    if (call->cudnnBackendGetAttribute(engine, CF_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CF_CUDNN_TYPE_NUMERICAL_NOTE,
                                       MAX_NOTES, &count, notes) != 0)
        return false;
    for (int64_t i = 0; i < count && i < MAX_NOTES; ++i) {
        *why = "it is not deterministic";
        if (notes[i] == CF_CUDNN_NOTE_NONDETERMINISTIC && !pass->any_order)
            return false;
        *why = "it computes with fewer bits than the math mode allows";
        if (notes[i] == CF_CUDNN_NOTE_DOWN_CONVERT_INPUTS ||
            (notes[i] == CF_CUDNN_NOTE_REDUCED_PRECISION_REDUCTION && pass->math != CONV_FFT_MATH_HALF &&
             pass->math != CONV_FFT_MATH_TF32) ||
            (notes[i] == CF_CUDNN_NOTE_TENSOR_CORE && pass->math == CONV_FFT_MATH_FP32 && dtype == CONV_FFT_FP32))
            return false;
        *why = "its Winograd transform of a kernel that large loses too many bits";
        if (notes[i] == CF_CUDNN_NOTE_WINOGRAD && cf_cudnn_loses_bits(pass))
            return false;
    }
    return true;
}

/* ---- plans */

static conv_fft_status make_plan(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, const cf_cudnn_engine *engine,
                                 bool accumulate, cf_cudnn_graph *g) {
    cf_cudnn_descriptors *descriptors = &g->descriptors[accumulate];
    cf_cudnn_descriptor graph, made, configuration, plan;
    const char *why;
    int64_t bytes = 0, one;
    CF_FORWARD(cf_cudnn_descriptors_graph(descriptors, guard->handle, pass, accumulate, &graph));
    CF_FORWARD(cf_cudnn_descriptors_engine(descriptors, graph, engine, &made, &configuration));
    if (!cf_cudnn_engine_fits(guard->call, pass, made, &why))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%s", why);
    CF_FORWARD(cf_cudnn_descriptors_add(descriptors, CF_CUDNN_EXECUTION_PLAN, &plan));
    CF_FORWARD(set(descriptors, plan, CF_CUDNN_ATTR_PLAN_HANDLE, CF_CUDNN_TYPE_HANDLE, 1, &guard->handle));
    CF_FORWARD(set_descriptor(descriptors, plan, CF_CUDNN_ATTR_PLAN_ENGINE_CONFIG, configuration));
    CF_FORWARD(finalize(descriptors, plan));
    CF_FORWARD(CF_CUDNN(descriptors->call, cudnnBackendGetAttribute, plan, CF_CUDNN_ATTR_PLAN_WORKSPACE_SIZE,
                        CF_CUDNN_TYPE_INT64, 1, &one, &bytes));
    if ((size_t)bytes > g->workspace)
        g->workspace = (size_t)bytes;
    g->plan[accumulate] = plan;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_cudnn_graph_create(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, const char *text,
                                      bool accumulates, cf_cudnn_graph **graph) {
    cf_cudnn_engine engine;
    cf_cudnn_graph *g = calloc(1, sizeof *g);
    if (!g)
        return cf_fail_memory(sizeof *g, "a plan of cuDNN");
    pthread_mutex_init(&g->mutex, NULL);
    g->descriptors[0].call = g->descriptors[1].call = guard->call;
    cf_cudnn_engine_parse(text, &engine);
    const conv_fft_status status = make_plan(guard, pass, &engine, false, g);
    if (status != CONV_FFT_SUCCESS) {
        cf_cudnn_graph_destroy(g);
        return status;
    }
    if (accumulates && make_plan(guard, pass, &engine, true, g) != CONV_FFT_SUCCESS)
        cf_cudnn_descriptors_end(&g->descriptors[1]);
    *graph = g;
    return CONV_FFT_SUCCESS;
}

void cf_cudnn_graph_destroy(cf_cudnn_graph *graph) {
    if (!graph)
        return;
    cf_cudnn_descriptors_end(&graph->descriptors[0]);
    cf_cudnn_descriptors_end(&graph->descriptors[1]);
    pthread_mutex_destroy(&graph->mutex);
    free(graph);
}

static conv_fft_status execute(const cf_cudnn_guard *guard, cf_cudnn_descriptors *pack, cf_cudnn_descriptor plan,
                               void *const memory[CF_OPERAND_COUNT], void *workspace) {
    static const int64_t ids[CF_OPERAND_COUNT] = {1 + CF_X, 1 + CF_W, 1 + CF_Y};
    cf_cudnn_descriptor d;
    CF_FORWARD(cf_cudnn_descriptors_add(pack, CF_CUDNN_VARIANT_PACK, &d));
    CF_FORWARD(set(pack, d, CF_CUDNN_ATTR_PACK_UNIQUE_IDS, CF_CUDNN_TYPE_INT64, CF_OPERAND_COUNT, ids));
    CF_FORWARD(set(pack, d, CF_CUDNN_ATTR_PACK_DATA_POINTERS, CF_CUDNN_TYPE_VOID_PTR, CF_OPERAND_COUNT, memory));
    CF_FORWARD(set(pack, d, CF_CUDNN_ATTR_PACK_WORKSPACE, CF_CUDNN_TYPE_VOID_PTR, 1, (const void *)&workspace));
    CF_FORWARD(finalize(pack, d));
    return CF_CUDNN(guard->call, cudnnBackendExecute, guard->handle, plan, d);
}

conv_fft_status cf_cudnn_graph_run(cf_cudnn_graph *graph, const cf_cudnn_guard *guard,
                                   void *const memory[CF_OPERAND_COUNT], void *workspace, bool accumulate) {
    cf_cudnn_descriptors pack = {.call = guard->call};
    pthread_mutex_lock(&graph->mutex);
    const conv_fft_status status = execute(guard, &pack, graph->plan[accumulate], memory, workspace);
    pthread_mutex_unlock(&graph->mutex);
    cf_cudnn_descriptors_end(&pack);
    return status;
}
