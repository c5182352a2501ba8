/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's graphs, here of one convolution: an engine by its index becomes a plan, with and without accumulation. */
#include "conv/cudnn/cudnn.h"

#include "core/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_NOTES = 32
};

cf_cudnn_type cf_direct_type(conv_fft_dtype dtype) {
    static const cf_cudnn_type types[] = {[CONV_FFT_FP32] = CF_CUDNN_DATA_FLOAT,
                                          [CONV_FFT_FP16] = CF_CUDNN_DATA_HALF,
                                          [CONV_FFT_BF16] = CF_CUDNN_DATA_BFLOAT16,
                                          [CONV_FFT_FP64] = CF_CUDNN_DATA_DOUBLE};
    return types[dtype];
}

/* ---- the text of an engine */

bool cf_direct_engine_parse(const char *text, cf_direct_engine *engine) {
    char *end;
    memset(engine, 0, sizeof *engine);
    if (strncmp(text, "graph:", 6) != 0 || text[6] < '0' || text[6] > '9')
        return false;
    engine->index = strtoll(text + 6, &end, 10);
    for (char before = ':'; *end; before = ',') {
        if (*end != before || end[1] != 'k' || end[2] < '0' || end[2] > '9' || engine->knobs == CF_DIRECT_KNOBS)
            return false;
        engine->knob[engine->knobs] = (unsigned)strtoul(end + 2, &end, 10);
        if (*end != '=' || !((end[1] >= '0' && end[1] <= '9') || end[1] == '-'))
            return false;
        engine->value[engine->knobs++] = strtoll(end + 1, &end, 10);
    }
    return true;
}

bool cf_direct_engine_format(const cf_direct_engine *engine, char text[CF_ALGORITHM_BYTES]) {
    cf_text t = {text, CF_ALGORITHM_BYTES, 0};
    cf_text_add(&t, "graph:%" PRId64, engine->index);
    for (int i = 0; i < engine->knobs; ++i)
        cf_text_add(&t, "%ck%u=%" PRId64, i ? ',' : ':', engine->knob[i], engine->value[i]);
    return t.length < CF_ALGORITHM_BYTES;
}

/* ---- descriptors */

conv_fft_status cf_direct_bag_add(cf_direct_bag *bag, cf_cudnn_descriptor_type type, cf_cudnn_descriptor *made) {
    if (bag->count == (int)(sizeof bag->owned / sizeof bag->owned[0]))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "cuDNN's graph needs more than %d descriptors", bag->count);
    *made = NULL;
    CF_FORWARD(CF_CUDNN(bag->call, cudnnBackendCreateDescriptor, type, made));
    bag->owned[bag->count++] = *made;
    return CONV_FFT_SUCCESS;
}

void cf_direct_bag_end(cf_direct_bag *bag) {
    while (bag->count > 0)
        bag->call->cudnnBackendDestroyDescriptor(bag->owned[--bag->count]);
}

static conv_fft_status set(const cf_direct_bag *bag, cf_cudnn_descriptor d, cf_cudnn_attribute attribute,
                           cf_cudnn_attribute_type type, int64_t count, const void *values) {
    return CF_CUDNN(bag->call, cudnnBackendSetAttribute, d, attribute, type, count, values);
}

static conv_fft_status set_int64(const cf_direct_bag *bag, cf_cudnn_descriptor d, cf_cudnn_attribute attribute,
                                 int64_t value) {
    return set(bag, d, attribute, CF_CUDNN_TYPE_INT64, 1, &value);
}

static conv_fft_status set_descriptor(const cf_direct_bag *bag, cf_cudnn_descriptor d, cf_cudnn_attribute attribute,
                                      cf_cudnn_descriptor value) {
    return set(bag, d, attribute, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static conv_fft_status finalize(const cf_direct_bag *bag, cf_cudnn_descriptor d) {
    return CF_CUDNN(bag->call, cudnnBackendFinalize, d);
}

/* ---- the graph */

/* Operands are known to cuDNN by their numbers, from 1. */
static conv_fft_status add_tensor(cf_direct_bag *bag, const cf_direct_pass *p, int operand, cf_cudnn_descriptor *made) {
    const cf_direct_operand *o = &p->operand[operand];
    const cf_cudnn_type type = cf_direct_type(o->dtype);
    CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_TENSOR, made));
    CF_FORWARD(set(bag, *made, CF_CUDNN_ATTR_TENSOR_DATA_TYPE, CF_CUDNN_TYPE_DATA_TYPE, 1, &type));
    CF_FORWARD(set(bag, *made, CF_CUDNN_ATTR_TENSOR_DIMENSIONS, CF_CUDNN_TYPE_INT64, p->axes, o->extents));
    CF_FORWARD(set(bag, *made, CF_CUDNN_ATTR_TENSOR_STRIDES, CF_CUDNN_TYPE_INT64, p->axes, o->strides));
    CF_FORWARD(set_int64(bag, *made, CF_CUDNN_ATTR_TENSOR_UNIQUE_ID, 1 + operand));
    CF_FORWARD(set_int64(bag, *made, CF_CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CF_DIRECT_ALIGNMENT));
    return finalize(bag, *made);
}

static conv_fft_status add_convolution(cf_direct_bag *bag, const cf_direct_pass *p, cf_cudnn_descriptor *made) {
    const cf_cudnn_type type = cf_direct_doubles(p) ? CF_CUDNN_DATA_DOUBLE : CF_CUDNN_DATA_FLOAT;
    const cf_cudnn_mode mode = CF_CUDNN_CROSS_CORRELATION;
    const int64_t axes = p->axes - 2;
    const struct {
        cf_cudnn_attribute attribute;
        const int64_t *values;
    } lists[] = {{CF_CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, p->pad_before},
                 {CF_CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, p->pad_after},
                 {CF_CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, p->stride},
                 {CF_CUDNN_ATTR_CONVOLUTION_DILATIONS, p->dilation}};
    CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_CONVOLUTION, made));
    CF_FORWARD(set(bag, *made, CF_CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CF_CUDNN_TYPE_DATA_TYPE, 1, &type));
    CF_FORWARD(set(bag, *made, CF_CUDNN_ATTR_CONVOLUTION_CONV_MODE, CF_CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
    CF_FORWARD(set_int64(bag, *made, CF_CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, axes));
    for (int i = 0; i < 4; ++i)
        CF_FORWARD(set(bag, *made, lists[i].attribute, CF_CUDNN_TYPE_INT64, axes, lists[i].values));
    return finalize(bag, *made);
}

/* The operations of the three passes differ in names only. */
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

static conv_fft_status set_factor(const cf_direct_bag *bag, const cf_direct_pass *p, cf_cudnn_descriptor d,
                                  cf_cudnn_attribute attribute, bool one) {
    const float single = one;
    const double wide = one;
    return cf_direct_doubles(p) ? set(bag, d, attribute, CF_CUDNN_TYPE_DOUBLE, 1, &wide)
                                : set(bag, d, attribute, CF_CUDNN_TYPE_FLOAT, 1, &single);
}

static conv_fft_status add_operation(cf_direct_bag *bag, const cf_direct_pass *p, bool accumulate,
                                     cf_cudnn_descriptor *made) {
    const struct operation *o = &operations[p->index];
    cf_cudnn_descriptor convolution, tensor[CF_OPERAND_COUNT];
    CF_FORWARD(add_convolution(bag, p, &convolution));
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        CF_FORWARD(add_tensor(bag, p, i, &tensor[i]));
    CF_FORWARD(cf_direct_bag_add(bag, o->type, made));
    CF_FORWARD(set_descriptor(bag, *made, o->convolution, convolution));
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        CF_FORWARD(set_descriptor(bag, *made, o->operand[i], tensor[i]));
    CF_FORWARD(set_factor(bag, p, *made, o->alpha, true));
    CF_FORWARD(set_factor(bag, p, *made, o->beta, accumulate));
    return finalize(bag, *made);
}

conv_fft_status cf_direct_bag_graph(cf_direct_bag *bag, cf_cudnn_handle handle, const cf_direct_pass *pass,
                                    bool accumulate, cf_cudnn_descriptor *graph) {
    cf_cudnn_descriptor node;
    CF_FORWARD(add_operation(bag, pass, accumulate, &node));
    CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_OPERATIONGRAPH, graph));
    CF_FORWARD(set(bag, *graph, CF_CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CF_CUDNN_TYPE_HANDLE, 1, &handle));
    CF_FORWARD(set_descriptor(bag, *graph, CF_CUDNN_ATTR_OPERATIONGRAPH_OPS, node));
    return finalize(bag, *graph);
}

/* ---- engines */

conv_fft_status cf_direct_bag_engine(cf_direct_bag *bag, cf_cudnn_descriptor graph, const cf_direct_engine *engine,
                                     cf_cudnn_descriptor *made, cf_cudnn_descriptor *configuration) {
    cf_cudnn_descriptor choice[CF_DIRECT_KNOBS];
    CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_ENGINE, made));
    CF_FORWARD(set_descriptor(bag, *made, CF_CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph));
    CF_FORWARD(set_int64(bag, *made, CF_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, engine->index));
    CF_FORWARD(finalize(bag, *made));
    for (int i = 0; i < engine->knobs; ++i) {
        CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_KNOB_CHOICE, &choice[i]));
        CF_FORWARD(
            set(bag, choice[i], CF_CUDNN_ATTR_KNOB_TYPE, CF_CUDNN_TYPE_KNOB_TYPE, 1, (const void *)&engine->knob[i]));
        CF_FORWARD(set_int64(bag, choice[i], CF_CUDNN_ATTR_KNOB_VALUE, engine->value[i]));
        CF_FORWARD(finalize(bag, choice[i]));
    }
    CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_ENGINECFG, configuration));
    CF_FORWARD(set_descriptor(bag, *configuration, CF_CUDNN_ATTR_ENGINECFG_ENGINE, *made));
    if (engine->knobs > 0)
        CF_FORWARD(set(bag, *configuration, CF_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR,
                       engine->knobs, choice));
    return finalize(bag, *configuration);
}

/* FP32 leaves no room for TF32, nor do 16-bit tensors for sums of 16 bits; for doubles tensor cores are as good. */
bool cf_direct_engine_fits(const cf_cudnn_functions *call, const cf_direct_pass *pass, cf_cudnn_descriptor engine,
                           const char **why) {
    unsigned notes[MOST_NOTES];
    int64_t count = 0;
    const conv_fft_dtype dtype = pass->operand[CF_X].dtype;
    *why = "it does not tell its numerical notes";
    if (call->cudnnBackendGetAttribute(engine, CF_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CF_CUDNN_TYPE_NUMERICAL_NOTE,
                                       MOST_NOTES, &count, notes) != 0)
        return false;
    for (int64_t i = 0; i < count && i < MOST_NOTES; ++i) {
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
        if (notes[i] == CF_CUDNN_NOTE_WINOGRAD && cf_direct_loses_bits(pass))
            return false;
    }
    return true;
}

/* ---- plans */

static conv_fft_status make_plan(const cf_cudnn_lease *lease, const cf_direct_pass *pass,
                                 const cf_direct_engine *engine, bool accumulate, cf_direct_graph *g) {
    cf_direct_bag *bag = &g->bag[accumulate];
    cf_cudnn_descriptor graph, made, configuration, plan;
    const char *why;
    int64_t bytes = 0, one;
    CF_FORWARD(cf_direct_bag_graph(bag, lease->handle, pass, accumulate, &graph));
    CF_FORWARD(cf_direct_bag_engine(bag, graph, engine, &made, &configuration));
    if (!cf_direct_engine_fits(lease->call, pass, made, &why))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "%s", why);
    CF_FORWARD(cf_direct_bag_add(bag, CF_CUDNN_EXECUTION_PLAN, &plan));
    CF_FORWARD(set(bag, plan, CF_CUDNN_ATTR_PLAN_HANDLE, CF_CUDNN_TYPE_HANDLE, 1, &lease->handle));
    CF_FORWARD(set_descriptor(bag, plan, CF_CUDNN_ATTR_PLAN_ENGINE_CONFIG, configuration));
    CF_FORWARD(finalize(bag, plan));
    CF_FORWARD(CF_CUDNN(bag->call, cudnnBackendGetAttribute, plan, CF_CUDNN_ATTR_PLAN_WORKSPACE_SIZE,
                        CF_CUDNN_TYPE_INT64, 1, &one, &bytes));
    if ((size_t)bytes > g->workspace)
        g->workspace = (size_t)bytes;
    g->plan[accumulate] = plan;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_direct_graph_create(const cf_cudnn_lease *lease, const cf_direct_pass *pass, const char *text,
                                       bool accumulates, cf_direct_graph **graph) {
    cf_direct_engine engine;
    cf_direct_graph *g = calloc(1, sizeof *g);
    if (!g)
        return cf_fail_memory(sizeof *g, "a plan of cuDNN");
    pthread_mutex_init(&g->mutex, NULL);
    g->bag[0].call = g->bag[1].call = lease->call;
    cf_direct_engine_parse(text, &engine);
    const conv_fft_status status = make_plan(lease, pass, &engine, false, g);
    if (status != CONV_FFT_SUCCESS) {
        cf_direct_graph_destroy(g);
        return status;
    }
    if (accumulates && make_plan(lease, pass, &engine, true, g) != CONV_FFT_SUCCESS)
        cf_direct_bag_end(&g->bag[1]);
    *graph = g;
    return CONV_FFT_SUCCESS;
}

void cf_direct_graph_destroy(cf_direct_graph *graph) {
    if (!graph)
        return;
    cf_direct_bag_end(&graph->bag[0]);
    cf_direct_bag_end(&graph->bag[1]);
    pthread_mutex_destroy(&graph->mutex);
    free(graph);
}

static conv_fft_status execute(const cf_cudnn_lease *lease, cf_direct_bag *pack, cf_cudnn_descriptor plan,
                               void *const memory[CF_OPERAND_COUNT], void *workspace) {
    static const int64_t ids[CF_OPERAND_COUNT] = {1 + CF_X, 1 + CF_W, 1 + CF_Y};
    cf_cudnn_descriptor d;
    CF_FORWARD(cf_direct_bag_add(pack, CF_CUDNN_VARIANT_PACK, &d));
    CF_FORWARD(set(pack, d, CF_CUDNN_ATTR_PACK_UNIQUE_IDS, CF_CUDNN_TYPE_INT64, CF_OPERAND_COUNT, ids));
    CF_FORWARD(set(pack, d, CF_CUDNN_ATTR_PACK_DATA_POINTERS, CF_CUDNN_TYPE_VOID_PTR, CF_OPERAND_COUNT, memory));
    CF_FORWARD(set(pack, d, CF_CUDNN_ATTR_PACK_WORKSPACE, CF_CUDNN_TYPE_VOID_PTR, 1, (const void *)&workspace));
    CF_FORWARD(finalize(pack, d));
    return CF_CUDNN(lease->call, cudnnBackendExecute, lease->handle, plan, d);
}

conv_fft_status cf_direct_graph_run(cf_direct_graph *graph, const cf_cudnn_lease *lease,
                                    void *const memory[CF_OPERAND_COUNT], void *workspace, bool accumulate) {
    cf_direct_bag pack = {.call = lease->call};
    pthread_mutex_lock(&graph->mutex);
    const conv_fft_status status = execute(lease, &pack, graph->plan[accumulate], memory, workspace);
    pthread_mutex_unlock(&graph->mutex);
    cf_direct_bag_end(&pack);
    return status;
}
