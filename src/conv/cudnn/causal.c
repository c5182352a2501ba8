/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN's causal operation by the definition, for forward passes of depthwise signals. The operation of the gradients
 * adds to gw in any order, and computes both of them, so it is not used. */
#include "conv/cudnn/call.h"
#include "conv/cudnn/cudnn.h"
#include "conv/gpu/device.h"
#include "core/dtype.h"
#include "cuda/driver/memory.h"
#include "cuda/libs/cudnn_causal.h"

#include <limits.h>

enum {
    MAX_ANY_TAPS = 8, /* every number up to this one, and powers of two up to MAX_TAPS */
    MAX_TAPS = 256,
    W_ALIGNMENT = 256,
    UNIT = 64,
    SMALL_BYTES = 2 * UNIT * MAX_TAPS * 8 /* an operand of a signal with fewer than 2 * UNIT channels and samples */
};

static bool is_power(int64_t number) { return (number & (number - 1)) == 0; }

bool cf_cudnn_causal_fits(const cf_cudnn_pass *p, const char **why) {
    const cf_cudnn_operand *x = &p->operand[CF_X], *w = &p->operand[CF_W], *y = &p->operand[CF_Y];
    const int64_t taps = w->extents[3];
    *why = "cuDNN's causal operation computes forward passes of depthwise signals, in one layout and type";
    if (p->index != CF_PASS_FORWARD || p->axes != 4 || x->extents[2] != 1 || w->extents[2] != 1 || y->extents[2] != 1 ||
        p->groups != x->extents[1] || p->groups != y->extents[1] || x->last != y->last || x->dtype != w->dtype ||
        x->dtype != y->dtype)
        return false;
    *why = "cuDNN's causal operation pads with taps - 1 zeros before the signal and none after it";
    if (p->pad_before[1] != taps - 1 || p->pad_after[1] != 0 || p->pad_before[0] != 0 || p->pad_after[0] != 0 ||
        p->stride[1] != 1 || p->dilation[1] != 1)
        return false;
    *why = "cuDNN's causal operation has 2 to 8 taps, or 16, 32, 64, 128 or 256";
    if (taps < 2 || taps > MAX_TAPS || (taps > MAX_ANY_TAPS && !is_power(taps)))
        return false;
    *why = "cuDNN counts extents as int";
    return x->extents[0] <= INT_MAX && x->extents[1] <= INT_MAX && x->extents[3] <= INT_MAX;
}

/* Zeros of all channels, up to where w begins. */
static size_t zero_bytes(const cf_cudnn_pass *p) {
    const size_t bytes = (size_t)p->groups * cf_dtype_bytes(p->operand[CF_Y].dtype);
    return (bytes + W_ALIGNMENT - 1) / W_ALIGNMENT * W_ALIGNMENT;
}

size_t cf_cudnn_causal_workspace(const cf_cudnn_pass *p) {
    const cf_cudnn_operand *w = &p->operand[CF_W];
    const size_t w_bytes = (size_t)p->groups * (size_t)w->extents[3] * cf_dtype_bytes(w->dtype);
    return zero_bytes(p) + (p->operand[CF_X].last ? w_bytes : 0);
}

typedef struct sizes {
    int64_t samples, channels, length;
} sizes;

static conv_fft_status call(const cf_cudnn_pass *p, cf_gpu *gpu, sizes s, void *const memory[CF_OPERAND_COUNT],
                            const void *w, const void *bias, cf_cu_stream stream) {
    const cf_cudnn_operand *x = &p->operand[CF_X];
    const cf_cudnn_causal_functions *const functions = cf_cudnn_causal_calls(gpu->cudnn);
    cf_cudnn_guard guard;
    CF_FORWARD(cf_cudnn_guard_acquire(gpu->cudnn, stream, &guard));
    const cf_cudnn_status status =
        (x->last ? functions->cudnnCausalConv1dNwhForward : functions->cudnnCausalConv1dForward)(
            stream, memory[CF_X], w, bias, memory[CF_Y], (int)s.samples, (int)s.channels, (int)s.length,
            (int)p->operand[CF_W].extents[3], cf_cudnn_type_of(x->dtype), 0);
    const conv_fft_status result =
        cf_cudnn_check(guard.call, status, x->last ? "cudnnCausalConv1dNwhForward" : "cudnnCausalConv1dForward");
    cf_cudnn_guard_release(gpu->cudnn, &guard);
    return result;
}

/* At most 2 * UNIT - 1, and aligned as the extent is. */
static int64_t shortened(int64_t extent) { return extent < UNIT ? extent : UNIT + extent % UNIT; }

static conv_fft_status run_small(const cf_cudnn_pass *p, cf_gpu *gpu, char *memory, cf_cu_stream stream) {
    const cf_cudnn_operand *x = &p->operand[CF_X];
    const sizes small = {1, shortened(x->extents[1]), shortened(x->extents[3])};
    void *const operands[CF_OPERAND_COUNT] = {[CF_X] = memory, [CF_Y] = memory + SMALL_BYTES};
    CF_FORWARD(call(p, gpu, small, operands, memory + 2 * SMALL_BYTES, memory + 3 * SMALL_BYTES, stream));
    return cf_gpu_synchronize(gpu, stream);
}

conv_fft_status cf_cudnn_causal_load(const cf_cudnn_pass *p, cf_gpu *gpu) {
    cf_cu_stream stream;
    void *memory = NULL;
    CF_FORWARD(cf_gpu_stream_create(gpu, &stream));
    conv_fft_status status = cf_gpu_allocate(gpu, 4 * SMALL_BYTES, &memory);
    if (status == CONV_FFT_SUCCESS)
        status = run_small(p, gpu, memory, stream);
    cf_gpu_free(gpu, memory);
    cf_gpu_stream_destroy(gpu, stream);
    return status;
}

conv_fft_status cf_cudnn_causal_run(const cf_cudnn_pass *p, cf_gpu *gpu, const cf_kernel *transpose,
                                    void *const memory[CF_OPERAND_COUNT], const void *bias, void *workspace,
                                    struct CUstream_st *stream) {
    const void *w = memory[CF_W];
    if (!bias)
        CF_FORWARD(cf_gpu_fill(gpu, workspace, 0, zero_bytes(p), stream));
    if (p->operand[CF_X].last) {
        cf_cudnn_transpose_call a = {
            w, (char *)workspace + zero_bytes(p), p->groups, p->operand[CF_W].extents[3], (int)p->operand[CF_W].dtype,
            0};
        CF_FORWARD(cf_gpu_small_launch(transpose, a.rows * a.columns, NULL, &a, NULL, stream));
        w = a.to;
    }
    const cf_cudnn_operand *x = &p->operand[CF_X];
    return call(p, gpu, (sizes){x->extents[0], x->extents[1], x->extents[3]}, memory, w, bias ? bias : workspace,
                stream);
}
