/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Family `cudnn`: one algorithm of cuDNN computes a whole pass. So a tuned layer is never slower than cuDNN. This
 * header has what the files of the family share. Only algorithms that cuDNN calls deterministic are used. The strategy
 * names one:
 *
 *     graph:29               an engine of the graph API by its global index, with its default settings
 *     graph:29:k2=27,k13=1   the same with knobs by number; the same version of cuDNN makes the same plan of it
 *     old:FFT_TILING:fma     an algorithm of the legacy API, and its math type: fma, default or tensor-op
 *     causal                 the causal operation by the definition, of cuDNN 9.26 or newer
 *
 * cuDNN's kernels may read 16 bytes at a time. If a pointer of a call is not aligned to 16 bytes, a plain kernel of
 * this library computes the pass instead. It is correct and slow.
 */
#ifndef CF_CONV_CUDNN_H
#define CF_CONV_CUDNN_H

#include "conv/plan/family.h"
#include "cuda/jit/kernel.h"
#include "cuda/libs/cudnn.h"

#include <pthread.h>

enum {
    CF_CUDNN_AXES = 5, /* samples, channels, and two or three axes; a 1-D signal is a plane of one row */
    CF_CUDNN_ALIGNMENT = 16
};

typedef struct cf_cudnn_operand {
    conv_fft_dtype dtype;
    bool last; /* channels-last */
    int64_t extents[CF_CUDNN_AXES], strides[CF_CUDNN_AXES];
} cf_cudnn_operand;

/* One pass of a layer in cuDNN's terms. */
typedef struct cf_cudnn_pass {
    int index, axes;
    cf_cudnn_operand operand[CF_OPERAND_COUNT]; /* x or gx, w or gw, y or gy */
    int64_t pad_before[3], pad_after[3], stride[3], dilation[3];
    int64_t groups;
    conv_fft_math math;
    bool any_order; /* for comparisons, never for plans: algorithms that are not deterministic are allowed */
} cf_cudnn_pass;

/* False: cuDNN cannot express the pass; *why is a clause. */
bool cf_cudnn_pass_make(const cf_layer *layer, int index, cf_cudnn_pass *pass, const char **why);

cf_cudnn_type cf_cudnn_type_of(conv_fft_dtype dtype);
/* False: cuDNN gives wrong results. Several engines of cuDNN 9.19 accept uneven padding and give wrong gradients. One
 * accepts single channels of 16 bits and gives wrong outputs. Its heuristics crash for some paddings. */
bool cf_cudnn_is_trusted(const cf_cudnn_pass *pass, const char **why);

/* With more than 3 taps an axis, Winograd transforms lose up to four digits, which is too much for FP32. */
static inline bool cf_cudnn_loses_bits(const cf_cudnn_pass *p) {
    if (p->math != CONV_FFT_MATH_FP32 || p->operand[CF_X].dtype != CONV_FFT_FP32)
        return false;
    for (int a = 2; a < p->axes; ++a)
        if (p->operand[CF_W].extents[a] > 3)
            return true;
    return false;
}

static inline bool cf_cudnn_doubles(const cf_cudnn_pass *p) { return p->math == CONV_FFT_MATH_FP64; }

/* ---- engines of the graph API */

enum {
    CF_CUDNN_KNOBS = 24
};

typedef struct cf_cudnn_engine {
    int64_t index;
    int knobs;
    unsigned knob[CF_CUDNN_KNOBS];
    int64_t value[CF_CUDNN_KNOBS];
} cf_cudnn_engine;

bool cf_cudnn_engine_parse(const char *text, cf_cudnn_engine *engine);
/* Write the text of an engine. False: it does not fit. */
bool cf_cudnn_engine_format(const cf_cudnn_engine *engine, char text[CF_ALGORITHM_BYTES]);

/* Descriptors of cuDNN's graph API that are destroyed together. A descriptor must outlive those that contain it. */
typedef struct cf_cudnn_descriptors {
    const cf_cudnn_functions *call;
    cf_cudnn_descriptor owned[CF_CUDNN_KNOBS + 16];
    int count;
} cf_cudnn_descriptors;

/* Make a graph of one operation. result = convolution + accumulate * result. */
conv_fft_status cf_cudnn_descriptors_graph(cf_cudnn_descriptors *descriptors, cf_cudnn_handle handle,
                                           const cf_cudnn_pass *pass, bool accumulate, cf_cudnn_descriptor *graph);
/* Make an engine of a graph, which has notes, and its configuration. */
conv_fft_status cf_cudnn_descriptors_engine(cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor graph,
                                            const cf_cudnn_engine *engine, cf_cudnn_descriptor *made,
                                            cf_cudnn_descriptor *configuration);
conv_fft_status cf_cudnn_descriptors_add(cf_cudnn_descriptors *descriptors, cf_cudnn_descriptor_type type,
                                         cf_cudnn_descriptor *made);
void cf_cudnn_descriptors_end(cf_cudnn_descriptors *descriptors);

/* Whether the engine is deterministic, and as accurate as the math mode needs, by its own notes. If not, *why is a
 * clause. */
bool cf_cudnn_engine_fits(const cf_cudnn_functions *call, const cf_cudnn_pass *pass, cf_cudnn_descriptor engine,
                          const char **why);

/* Plans of one engine, without accumulation and, if wanted and possible, with it. */
typedef struct cf_cudnn_graph {
    pthread_mutex_t mutex; /* a plan serves one thread at a time */
    cf_cudnn_descriptors descriptors[2];
    cf_cudnn_descriptor plan[2]; /* [1]: NULL if there is none */
    size_t workspace;
} cf_cudnn_graph;

conv_fft_status cf_cudnn_graph_create(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, const char *text,
                                      bool accumulates, cf_cudnn_graph **graph);
void cf_cudnn_graph_destroy(cf_cudnn_graph *graph); /* NULL is allowed */
conv_fft_status cf_cudnn_graph_run(cf_cudnn_graph *graph, const cf_cudnn_guard *guard,
                                   void *const memory[CF_OPERAND_COUNT], void *workspace, bool accumulate);

/* Visit engines that fit: those that a heuristic mode names, the best first; with `all`, every engine. */
typedef bool (*cf_cudnn_visit)(const char *text, void *user);
conv_fft_status cf_cudnn_graph_each(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, bool all,
                                    cf_cudnn_visit visit, void *user);

/* ---- algorithms of the legacy API */

typedef struct cf_cudnn_legacy {
    cf_cudnn_tensor_desc tensor[CF_OPERAND_COUNT]; /* of x and y */
    cf_cudnn_filter_desc filter;
    cf_cudnn_convolution_desc convolution;
    cf_cudnn_algorithm algorithm;
    const cf_cudnn_functions *call;
    size_t workspace;
} cf_cudnn_legacy;

bool cf_cudnn_legacy_parse(int pass, const char *text);
conv_fft_status cf_cudnn_legacy_create(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, const char *text,
                                       cf_cudnn_legacy **old);
void cf_cudnn_legacy_destroy(cf_cudnn_legacy *old); /* NULL is allowed */
conv_fft_status cf_cudnn_legacy_run(const cf_cudnn_legacy *old, const cf_cudnn_guard *guard, const cf_cudnn_pass *pass,
                                    void *const memory[CF_OPERAND_COUNT], void *workspace, bool accumulate);

/* Visit algorithms that cuDNN calls deterministic, in cuDNN's order. */
conv_fft_status cf_cudnn_legacy_each(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, cf_cudnn_visit visit,
                                     void *user);

/* Whether the legacy API can express the pass: sizes are int, and both sides of an axis have one padding. If not,
 * *why is a clause. */
bool cf_cudnn_legacy_fits(const cf_cudnn_pass *pass, const char **why);

/* ---- the causal operation */

#define CF_CUDNN_CAUSAL "causal"

/* Whether it computes the pass. If not, *why is a clause. */
bool cf_cudnn_causal_fits(const cf_cudnn_pass *pass, const char **why);
/* cuDNN compiles the operation when it first runs, which takes seconds. So this runs it on a small signal. */
conv_fft_status cf_cudnn_causal_load(const cf_cudnn_pass *pass, cf_gpu *gpu);
/* Its workspace has zeros in place of a bias and, with channels last, w in the operation's order. */
size_t cf_cudnn_causal_workspace(const cf_cudnn_pass *pass);
/* transpose: the kernel of that name; needed with channels last only. */
conv_fft_status cf_cudnn_causal_run(const cf_cudnn_pass *pass, cf_gpu *gpu, const cf_kernel *transpose,
                                    void *const memory[CF_OPERAND_COUNT], const void *bias, void *workspace,
                                    struct CUstream_st *stream);

extern const cf_family cf_cudnn_family;

/* Its operations (conv/plan/family.h). */
bool cf_cudnn_feasible(const cf_layer *layer, int pass, const cf_strategy *strategy, const char **why);
bool cf_cudnn_runs_on(const cf_device *device, const cf_layer *layer, int pass, const cf_strategy *strategy,
                      const char **why);
conv_fft_status cf_cudnn_prepare(conv_fft_plan *plan, int pass);
conv_fft_status cf_cudnn_list(conv_fft_plan *plan, int pass, cf_build_list *list);
void cf_cudnn_release(conv_fft_plan *plan, int pass);
cf_workspace cf_cudnn_workspace(const conv_fft_plan *plan, int set, int64_t rows);
void cf_cudnn_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                      cf_stage_cost cost[CF_STAGE_COUNT]);
conv_fft_status cf_cudnn_run(const conv_fft_plan *plan, int set, const cf_call *call);
double cf_cudnn_first_seconds(const cf_layer *layer, const cf_device *device, int pass);
conv_fft_status cf_cudnn_candidates(const cf_layer *layer, cf_device *device, int pass,
                                    bool (*visit)(const cf_strategy *strategy, void *user), void *user);

#endif
