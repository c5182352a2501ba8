/* SPDX-License-Identifier: Apache-2.0 */
/* Family `cudnn`: what a plan and a call need. */
#include "conv/cudnn/cudnn.h"

#include "conv/cudnn/call.h"
#include "conv/gpu/device.h"
#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"
#include "cuda/jit/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ADD,
    PLAIN,
    TRANSPOSE, /* for causal operations with channels last */
    KERNELS,
    WORK_ALIGNMENT = 256 /* as memory of cudaMalloc has */
};

/* plan->pass[].state. It has `graph` or `old` or is causal, or nothing of these for an empty batch. */
typedef struct cudnn_state {
    cf_gpu *gpu;
    cf_cudnn_pass pass;
    cf_cudnn_graph *graph;
    cf_cudnn_legacy *old;
    bool causal;
    /* scratch: engines that cannot accumulate write their result there, and it is then added */
    size_t workspace, scratch;
    cf_kernel *kernel[KERNELS];
} cudnn_state;

/* ---- creation */

static conv_fft_status make_algorithm(cudnn_state *s, const char *text) {
    cf_cudnn_guard guard;
    s->causal = strcmp(text, CF_CUDNN_CAUSAL) == 0;
    if (s->causal)
        return cf_cudnn_causal_load(&s->pass, s->gpu);
    CF_FORWARD(cf_cudnn_guard_acquire(s->gpu->cudnn, NULL, &guard));
    const conv_fft_status status = strncmp(text, "old:", 4) == 0
                                       ? cf_cudnn_legacy_create(&guard, &s->pass, text, &s->old)
                                       : cf_cudnn_graph_create(&guard, &s->pass, text, true, &s->graph);
    cf_cudnn_guard_release(s->gpu->cudnn, &guard);
    return status;
}

static int64_t elements_of(const cf_cudnn_pass *p, int operand) {
    int64_t count = 1;
    for (int a = 0; a < p->axes; ++a)
        count *= p->operand[operand].extents[a];
    return count;
}

conv_fft_status cf_cudnn_prepare(conv_fft_plan *plan, int pass) {
    const char *why, *const text = plan->pass[pass].strategy.algorithm;
    cudnn_state *s = calloc(1, sizeof *s);
    if (!s)
        return cf_fail_memory(sizeof *s, "a plan of cuDNN");
    plan->pass[pass].state = s;
    s->gpu = cf_gpu_of_layers(plan->device);
    cf_cudnn_pass_make(&plan->layer, pass, &s->pass, &why);
    if (plan->layer.batch == 0)
        return CONV_FFT_SUCCESS;
    const conv_fft_status status = make_algorithm(s, text);
    if (status != CONV_FFT_SUCCESS) {
        char reason[256];
        snprintf(reason, sizeof reason, "%s", conv_fft_last_error());
        return cf_fail(status, "%s of cuDNN does not run %s of this problem: %s", text, cf_pass_table[pass].name,
                       reason);
    }
    const int result = cf_pass_table[pass].result;
    s->workspace = s->causal ? cf_cudnn_causal_workspace(&s->pass) : s->graph ? s->graph->workspace : s->old->workspace;
    if (s->graph && !s->graph->plan[1] && pass != CF_PASS_FORWARD)
        s->scratch = (size_t)elements_of(&s->pass, result) * cf_dtype_bytes(s->pass.operand[result].dtype);
    return CONV_FFT_SUCCESS;
}

static conv_fft_status list_kernel(const char *entry, const char *name, cf_build_list *list, cf_kernel **kernel) {
    cf_source source = {.name = name, .options = {"--device-as-default-execution-space"}};
    CF_FORWARD(cf_gpu_small_text(entry, &source));
    return cf_build_list_add(list, &source, kernel, NULL);
}

conv_fft_status cf_cudnn_list(conv_fft_plan *plan, int pass, cf_build_list *list) {
    static const char *const entries[CF_PASS_COUNT] = {"CF_CUDNN_PLAIN_KERNEL(forward)", "CF_CUDNN_PLAIN_KERNEL(data)",
                                                       "CF_CUDNN_PLAIN_KERNEL(weights)"};
    static const char *const names[CF_PASS_COUNT] = {"cf_cudnn_forward", "cf_cudnn_data", "cf_cudnn_weights"};
    cudnn_state *s = plan->pass[pass].state;
    CF_FORWARD(list_kernel(entries[pass], names[pass], list, &s->kernel[PLAIN]));
    if (!s->causal)
        return list_kernel("CF_CUDNN_ADD_KERNEL", "cf_cudnn_add", list, &s->kernel[ADD]);
    if (s->pass.operand[CF_X].last)
        return list_kernel("CF_CUDNN_TRANSPOSE_KERNEL", "cf_cudnn_transpose", list, &s->kernel[TRANSPOSE]);
    return CONV_FFT_SUCCESS;
}

void cf_cudnn_release(conv_fft_plan *plan, int pass) {
    cudnn_state *s = plan->pass[pass].state;
    plan->pass[pass].state = NULL;
    if (!s)
        return;
    for (int i = 0; i < KERNELS; ++i)
        cf_kernel_destroy(s->kernel[i]);
    if ((s->graph || s->old) && cf_gpu_enter(s->gpu) == CONV_FFT_SUCCESS) {
        cf_cudnn_graph_destroy(s->graph);
        cf_cudnn_legacy_destroy(s->old);
        cf_gpu_leave(s->gpu);
    }
    free(s);
}

static size_t align_work(size_t bytes) { return (bytes + WORK_ALIGNMENT - 1) / WORK_ALIGNMENT * WORK_ALIGNMENT; }

static int pass_of(int set) {
    return set == CONV_FFT_FORWARD ? CF_PASS_FORWARD : set == CONV_FFT_BACKWARD_DATA ? CF_PASS_DATA : CF_PASS_WEIGHTS;
}

cf_workspace cf_cudnn_workspace(const conv_fft_plan *plan, int set, int64_t rows) {
    const cudnn_state *s = plan->pass[pass_of(set)].state;
    cf_workspace ws = {.rows = rows};
    ws.fold = align_work(s->workspace);
    if (s->workspace + s->scratch > 0)
        ws.bytes = ws.fold + align_work(s->scratch) + WORK_ALIGNMENT;
    return ws;
}

/* ---- running */

static conv_fft_status add(const cudnn_state *s, void *data, const void *other, const void *bias, bool keep,
                           struct CUstream_st *stream) {
    const int result = cf_pass_table[s->pass.index].result;
    const cf_cudnn_operand *o = &s->pass.operand[result];
    cf_cudnn_add_call a = {data, other, bias, elements_of(&s->pass, result), o->extents[1], 1, (int)o->dtype, keep};
    for (int axis = 2; axis < s->pass.axes && !o->last; ++axis)
        a.inner *= o->extents[axis];
    return cf_gpu_small_launch(s->kernel[ADD], a.count, NULL, &a, NULL, stream);
}

static conv_fft_status run_algorithm(const cudnn_state *s, void *const memory[CF_OPERAND_COUNT], void *workspace,
                                     bool accumulate, struct CUstream_st *stream) {
    cf_cudnn_guard guard;
    CF_FORWARD(cf_cudnn_guard_acquire(s->gpu->cudnn, stream, &guard));
    const conv_fft_status status = s->graph
                                       ? cf_cudnn_graph_run(s->graph, &guard, memory, workspace, accumulate)
                                       : cf_cudnn_legacy_run(s->old, &guard, &s->pass, memory, workspace, accumulate);
    cf_cudnn_guard_release(s->gpu->cudnn, &guard);
    return status;
}

/* If the algorithm can accumulate, a sum that starts with the bias or with the old contents is rounded once. */
static conv_fft_status run_cudnn(const cudnn_state *s, void *memory[CF_OPERAND_COUNT], const cf_workspace *ws,
                                 const cf_call *call, const void *bias, bool accumulate) {
    const int result = cf_pass_table[s->pass.index].result;
    const uintptr_t address = (uintptr_t)call->workspace;
    char *const base = call->workspace ? (char *)call->workspace + (align_work(address) - address) : NULL;
    void *const target = memory[result];
    if (s->causal)
        return cf_cudnn_causal_run(&s->pass, s->gpu, s->kernel[TRANSPOSE], memory, bias, base, call->stream);
    const bool adds = !s->graph || s->graph->plan[1];
    if (adds) {
        if (bias)
            CF_FORWARD(add(s, target, NULL, bias, false, call->stream));
        return run_algorithm(s, memory, base, accumulate || bias, call->stream);
    }
    if (accumulate)
        memory[result] = base + ws->fold;
    CF_FORWARD(run_algorithm(s, memory, base, false, call->stream));
    if (!accumulate && !bias)
        return CONV_FFT_SUCCESS;
    return add(s, target, accumulate ? memory[result] : NULL, bias, true, call->stream);
}

static conv_fft_status run_plain(const conv_fft_plan *plan, const cudnn_state *s, void *const memory[CF_OPERAND_COUNT],
                                 const void *bias, bool accumulate, struct CUstream_st *stream) {
    const cf_layer *l = &plan->layer;
    int64_t x[5], y[5], w[5];
    cf_layer_extents(l, x, y, w);
    cf_cudnn_plain_call p = {
        .x = cf_tensor_view_of(&l->x, l->batch, l->groups, l->in_channels, x + 2),
        .w = cf_tensor_view_of(s->pass.index == CF_PASS_WEIGHTS ? &l->gw : &l->w, w[0], 1, w[1], w + 2),
        .y = cf_tensor_view_of(&l->y, l->batch, l->groups, l->out_channels, y + 2),
        .x_data = memory[CF_X],
        .w_data = memory[CF_W],
        .y_data = memory[CF_Y],
        .bias = bias,
        .in = l->in_channels,
        .out = l->out_channels,
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
        .accumulate = accumulate};
    for (int a = 0; a < s->pass.axes - 2; ++a) {
        const int own = 5 - s->pass.axes + a;
        p.pad[own] = s->pass.pad_before[a];
        p.stride[own] = s->pass.stride[a];
        p.dilation[own] = s->pass.dilation[a];
    }
    return cf_gpu_small_launch(s->kernel[PLAIN], elements_of(&s->pass, cf_pass_table[s->pass.index].result), NULL, &p,
                               NULL, stream);
}

static bool aligned(void *const memory[CF_OPERAND_COUNT]) {
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        if ((uintptr_t)memory[i] % CF_CUDNN_ALIGNMENT != 0)
            return false;
    return true;
}

conv_fft_status cf_cudnn_run(const conv_fft_plan *plan, int set, const cf_call *call) {
    static const cf_stage_kind stages[] = {CF_STAGE_CONVOLVE_Y, CF_STAGE_CONVOLVE_GX, CF_STAGE_CONVOLVE_GW};
    const int pass = pass_of(set);
    const cudnn_state *s = plan->pass[pass].state;
    if (cf_recording_refused())
        return CONV_FFT_SUCCESS;
    if (plan->layer.batch == 0)
        return pass == CF_PASS_WEIGHTS ? cf_zero_weights(plan, call) : CONV_FFT_SUCCESS;
    /* cuDNN and the kernels take all three operands as memory that may be written. They write the result only. */
    void *memory[CF_OPERAND_COUNT] = {pass == CF_PASS_DATA ? call->gx : (void *)(uintptr_t)call->x,
                                      pass == CF_PASS_WEIGHTS ? call->gw : (void *)(uintptr_t)call->w,
                                      pass == CF_PASS_FORWARD ? call->y : (void *)(uintptr_t)call->gy};
    const void *const bias = pass == CF_PASS_FORWARD ? call->bias : NULL;
    const bool accumulate = (pass == CF_PASS_DATA && (call->flags & CONV_FFT_ACCUMULATE_GX)) ||
                            (pass == CF_PASS_WEIGHTS && (call->flags & CONV_FFT_ACCUMULATE_GW));
    /* Of the operations of cuDNN that are used, only the causal one reads the bias. */
    const bool whole = aligned(memory) && !(s->causal && (uintptr_t)bias % CF_CUDNN_ALIGNMENT);
    CF_FORWARD(whole ? run_cudnn(s, memory, &plan->workspace[set], call, bias, accumulate)
                     : run_plain(plan, s, memory, bias, accumulate, call->stream));
    cf_stage_done(plan, call, stages[pass]);
    return CONV_FFT_SUCCESS;
}
