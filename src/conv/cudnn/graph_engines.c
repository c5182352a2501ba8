/* SPDX-License-Identifier: Apache-2.0 */
/* The engines of cuDNN's graph API for a pass. Heuristics name some with their knobs; all engines can be enumerated. */
#include "conv/cudnn/cudnn.h"

enum {
    MAX_CONFIGURATIONS = 32 /* of one heuristic */
};

/* The state of one enumeration. */
typedef struct tour {
    const cf_cudnn_guard *guard;
    const cf_cudnn_pass *pass;
    cf_cudnn_descriptor graph;
    cf_cudnn_visit visit;
    void *user;
} tour;

static bool get(const tour *t, cf_cudnn_descriptor d, cf_cudnn_attribute attribute, cf_cudnn_attribute_type type,
                int64_t wanted, int64_t *count, void *values) {
    return t->guard->call->cudnnBackendGetAttribute(d, attribute, type, wanted, count, values) == 0;
}

static bool set(const tour *t, cf_cudnn_descriptor d, cf_cudnn_attribute attribute, cf_cudnn_attribute_type type,
                const void *value) {
    return t->guard->call->cudnnBackendSetAttribute(d, attribute, type, 1, value) == 0;
}

static cf_cudnn_descriptor create(const tour *t, cf_cudnn_descriptor_type type) {
    cf_cudnn_descriptor d = NULL;
    return t->guard->call->cudnnBackendCreateDescriptor(type, &d) == 0 ? d : NULL;
}

static void destroy(const tour *t, cf_cudnn_descriptor d) {
    if (d)
        t->guard->call->cudnnBackendDestroyDescriptor(d);
}

/* Read the knobs of a configuration. There are none if it reports none. */
static bool read_knobs(const tour *t, cf_cudnn_descriptor configuration, cf_cudnn_engine *engine) {
    cf_cudnn_descriptor choices[CF_CUDNN_KNOBS];
    int64_t count = 0, one;
    for (int i = 0; i < CF_CUDNN_KNOBS; ++i)
        choices[i] = create(t, CF_CUDNN_KNOB_CHOICE);
    if (!get(t, configuration, CF_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, CF_CUDNN_KNOBS,
             &count, choices))
        count = 0;
    bool good = count <= CF_CUDNN_KNOBS;
    for (; good && engine->knobs < count; ++engine->knobs) {
        const int i = engine->knobs;
        good = get(t, choices[i], CF_CUDNN_ATTR_KNOB_TYPE, CF_CUDNN_TYPE_KNOB_TYPE, 1, &one, &engine->knob[i]) &&
               get(t, choices[i], CF_CUDNN_ATTR_KNOB_VALUE, CF_CUDNN_TYPE_INT64, 1, &one, &engine->value[i]);
    }
    for (int i = 0; i < CF_CUDNN_KNOBS; ++i)
        destroy(t, choices[i]);
    return good;
}

/* Visit an engine if it fits. False: the visitor wants no more. */
static bool offer(const tour *t, cf_cudnn_descriptor engine, cf_cudnn_engine *e) {
    char text[CF_ALGORITHM_BYTES];
    const char *why;
    return !cf_cudnn_engine_fits(t->guard->call, t->pass, engine, &why) || !cf_cudnn_engine_format(e, text) ||
           t->visit(text, t->user);
}

static bool offer_configuration(const tour *t, cf_cudnn_descriptor configuration) {
    cf_cudnn_engine e = {.index = -1};
    int64_t one;
    cf_cudnn_descriptor engine = create(t, CF_CUDNN_ENGINE);
    bool more = true;
    if (get(t, configuration, CF_CUDNN_ATTR_ENGINECFG_ENGINE, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine) &&
        get(t, engine, CF_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CF_CUDNN_TYPE_INT64, 1, &one, &e.index) &&
        read_knobs(t, configuration, &e))
        more = offer(t, engine, &e);
    destroy(t, engine);
    return more;
}

static bool each_of_mode(const tour *t, unsigned mode) {
    cf_cudnn_descriptor heuristics = create(t, CF_CUDNN_ENGINEHEUR), configurations[MAX_CONFIGURATIONS] = {NULL};
    int64_t count = 0;
    bool more = true;
    if (heuristics &&
        set(t, heuristics, CF_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, &t->graph) &&
        set(t, heuristics, CF_CUDNN_ATTR_ENGINEHEUR_MODE, CF_CUDNN_TYPE_HEUR_MODE, &mode) &&
        t->guard->call->cudnnBackendFinalize(heuristics) == 0) {
        for (int i = 0; i < MAX_CONFIGURATIONS; ++i)
            configurations[i] = create(t, CF_CUDNN_ENGINECFG);
        if (!get(t, heuristics, CF_CUDNN_ATTR_ENGINEHEUR_RESULTS, CF_CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGURATIONS,
                 &count, configurations))
            count = 0;
    }
    for (int64_t i = 0; i < count && i < MAX_CONFIGURATIONS && more; ++i)
        more = offer_configuration(t, configurations[i]);
    for (int i = 0; i < MAX_CONFIGURATIONS; ++i)
        destroy(t, configurations[i]);
    destroy(t, heuristics);
    return more;
}

/* Visit every engine with its default settings. */
static bool each_engine(const tour *t) {
    int64_t engines = 0, one;
    bool more = true;
    if (!get(t, t->graph, CF_CUDNN_ATTR_OPERATIONGRAPH_ENGINES, CF_CUDNN_TYPE_INT64, 1, &one, &engines))
        return true;
    for (int64_t i = 0; i < engines && more; ++i) {
        cf_cudnn_descriptors descriptors = {.call = t->guard->call};
        cf_cudnn_descriptor engine, configuration;
        cf_cudnn_engine e = {.index = i};
        if (cf_cudnn_descriptors_engine(&descriptors, t->graph, &e, &engine, &configuration) == CONV_FFT_SUCCESS)
            more = offer(t, engine, &e);
        cf_cudnn_descriptors_end(&descriptors);
    }
    return more;
}

conv_fft_status cf_cudnn_graph_each(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, bool all,
                                    cf_cudnn_visit visit, void *user) {
    static const unsigned modes[] = {CF_CUDNN_HEUR_MODE_A, CF_CUDNN_HEUR_MODE_B, CF_CUDNN_HEUR_MODE_FALLBACK};
    cf_cudnn_descriptors descriptors = {.call = guard->call};
    tour t = {.guard = guard, .pass = pass, .visit = visit, .user = user};
    const conv_fft_status status = cf_cudnn_descriptors_graph(&descriptors, guard->handle, pass, false, &t.graph);
    if (status == CONV_FFT_SUCCESS) {
        bool more = true;
        for (int i = 0; i < 3 && more && !all; ++i)
            more = each_of_mode(&t, modes[i]);
        if (all)
            each_engine(&t);
    }
    cf_cudnn_descriptors_end(&descriptors);
    return status;
}
