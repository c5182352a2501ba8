/* SPDX-License-Identifier: Apache-2.0 */
/* The legacy API of cuDNN: an algorithm by number for each pass. */
#include "conv/cudnn/cudnn.h"

#include "core/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RESULTS = 32
};

/* The names, indexed by the numbers of the algorithms. */
static const char *const forward_names[] = {
    "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
    "WINOGRAD",      "WINOGRAD_NONFUSED",     NULL};
static const char *const data_names[] = {"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED",
                                         NULL};
static const char *const weights_names[] = {"ALGO_0",     "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED",
                                            "FFT_TILING", NULL};
static const char *const *const names[CF_PASS_COUNT] = {
    [CF_PASS_FORWARD] = forward_names, [CF_PASS_DATA] = data_names, [CF_PASS_WEIGHTS] = weights_names};

static const struct math {
    const char *name;
    cf_cudnn_math math;
} maths[] = {{"fma", CF_CUDNN_FMA_MATH}, {"default", CF_CUDNN_DEFAULT_MATH}, {"tensor-op", CF_CUDNN_TENSOR_OP_MATH}};
enum {
    FMA,
    DEFAULT,
    TENSOR_OP,
    MATHS
};

/* Math types that the math mode allows. Bit m stands for maths[m]. cuDNN's default for FP32 is TF32. */
static unsigned allowed_maths(const cf_cudnn_pass *p) {
    if (p->operand[CF_X].dtype == CONV_FFT_FP32)
        return p->math == CONV_FFT_MATH_TF32 ? 1u << DEFAULT : 1u << FMA;
    return p->operand[CF_X].dtype == CONV_FFT_FP64 ? 1u << DEFAULT : 1u << TENSOR_OP | 1u << DEFAULT;
}

static bool parse(int pass, const char *text, cf_cudnn_algorithm *algorithm, int *math) {
    if (strncmp(text, "old:", 4) != 0)
        return false;
    const char *const name = text + 4, *const colon = strchr(name, ':');
    if (!colon)
        return false;
    const size_t length = (size_t)(colon - name);
    for (*algorithm = 0; names[pass][*algorithm]; ++*algorithm)
        if (strlen(names[pass][*algorithm]) == length && strncmp(names[pass][*algorithm], name, length) == 0)
            break;
    for (*math = 0; *math < MATHS && strcmp(colon + 1, maths[*math].name) != 0;)
        ++*math;
    return names[pass][*algorithm] && *math < MATHS;
}

bool cf_cudnn_legacy_parse(int pass, const char *text) {
    cf_cudnn_algorithm algorithm;
    int math;
    return parse(pass, text, &algorithm, &math);
}

/* ---- descriptors */

static bool to_ints(const int64_t *from, int count, int *to) {
    for (int i = 0; i < count; ++i) {
        if (from[i] > INT_MAX)
            return false;
        to[i] = (int)from[i];
    }
    return true;
}

bool cf_cudnn_legacy_fits(const cf_cudnn_pass *p, const char **why) {
    int ints[CF_CUDNN_AXES];
    const int axes = p->axes - 2;
    *why = "the old calls of cuDNN pad both sides of an axis alike";
    for (int a = 0; a < axes; ++a)
        if (p->pad_before[a] != p->pad_after[a])
            return false;
    *why = "the old calls of cuDNN count with 31 bits";
    bool fits = to_ints(p->pad_before, axes, ints) && to_ints(p->stride, axes, ints) &&
                to_ints(p->dilation, axes, ints) && to_ints(&p->groups, 1, ints);
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        fits = fits && to_ints(p->operand[i].extents, p->axes, ints) && to_ints(p->operand[i].strides, p->axes, ints);
    return fits;
}

static conv_fft_status make_tensor(cf_cudnn_legacy *old, const cf_cudnn_pass *p, int operand) {
    const cf_cudnn_operand *o = &p->operand[operand];
    int extents[CF_CUDNN_AXES], strides[CF_CUDNN_AXES];
    to_ints(o->extents, p->axes, extents);
    to_ints(o->strides, p->axes, strides);
    CF_FORWARD(CF_CUDNN(old->call, cudnnCreateTensorDescriptor, &old->tensor[operand]));
    return CF_CUDNN(old->call, cudnnSetTensorNdDescriptor, old->tensor[operand], cf_cudnn_type_of(o->dtype), p->axes,
                    extents, strides);
}

static conv_fft_status make_filter(cf_cudnn_legacy *old, const cf_cudnn_pass *p) {
    const cf_cudnn_operand *o = &p->operand[CF_W];
    int extents[CF_CUDNN_AXES];
    to_ints(o->extents, p->axes, extents);
    CF_FORWARD(CF_CUDNN(old->call, cudnnCreateFilterDescriptor, &old->filter));
    return CF_CUDNN(old->call, cudnnSetFilterNdDescriptor, old->filter, cf_cudnn_type_of(o->dtype),
                    o->last ? CF_CUDNN_FORMAT_NHWC : CF_CUDNN_FORMAT_NCHW, p->axes, extents);
}

static conv_fft_status make_descriptors(cf_cudnn_legacy *old, const cf_cudnn_pass *p) {
    const int axes = p->axes - 2;
    int pads[3], strides[3], dilations[3];
    to_ints(p->pad_before, axes, pads);
    to_ints(p->stride, axes, strides);
    to_ints(p->dilation, axes, dilations);
    CF_FORWARD(make_tensor(old, p, CF_X));
    CF_FORWARD(make_tensor(old, p, CF_Y));
    CF_FORWARD(make_filter(old, p));
    CF_FORWARD(CF_CUDNN(old->call, cudnnCreateConvolutionDescriptor, &old->convolution));
    CF_FORWARD(CF_CUDNN(old->call, cudnnSetConvolutionNdDescriptor, old->convolution, axes, pads, strides, dilations,
                        CF_CUDNN_CROSS_CORRELATION, cf_cudnn_doubles(p) ? CF_CUDNN_DATA_DOUBLE : CF_CUDNN_DATA_FLOAT));
    return CF_CUDNN(old->call, cudnnSetConvolutionGroupCount, old->convolution, (int)p->groups);
}

static conv_fft_status use_math(const cf_cudnn_legacy *old, int math) {
    return CF_CUDNN(old->call, cudnnSetConvolutionMathType, old->convolution, maths[math].math);
}

/* What cuDNN says of all algorithms of the pass with this math type, the fastest in its opinion first. */
static conv_fft_status rank(const cf_cudnn_legacy *old, const cf_cudnn_guard *guard, int pass,
                            cf_cudnn_performance results[MAX_RESULTS], int *count) {
    *count = 0;
    switch (pass) {
    case CF_PASS_FORWARD:
        return CF_CUDNN(guard->call, cudnnGetConvolutionForwardAlgorithm_v7, guard->handle, old->tensor[CF_X],
                        old->filter, old->convolution, old->tensor[CF_Y], MAX_RESULTS, count, results);
    case CF_PASS_DATA:
        return CF_CUDNN(guard->call, cudnnGetConvolutionBackwardDataAlgorithm_v7, guard->handle, old->filter,
                        old->tensor[CF_Y], old->convolution, old->tensor[CF_X], MAX_RESULTS, count, results);
    default:
        return CF_CUDNN(guard->call, cudnnGetConvolutionBackwardFilterAlgorithm_v7, guard->handle, old->tensor[CF_X],
                        old->tensor[CF_Y], old->convolution, old->filter, MAX_RESULTS, count, results);
    }
}

static conv_fft_status read_workspace(cf_cudnn_legacy *old, const cf_cudnn_guard *guard, int pass) {
    switch (pass) {
    case CF_PASS_FORWARD:
        return CF_CUDNN(guard->call, cudnnGetConvolutionForwardWorkspaceSize, guard->handle, old->tensor[CF_X],
                        old->filter, old->convolution, old->tensor[CF_Y], old->algorithm, &old->workspace);
    case CF_PASS_DATA:
        return CF_CUDNN(guard->call, cudnnGetConvolutionBackwardDataWorkspaceSize, guard->handle, old->filter,
                        old->tensor[CF_Y], old->convolution, old->tensor[CF_X], old->algorithm, &old->workspace);
    default:
        return CF_CUDNN(guard->call, cudnnGetConvolutionBackwardFilterWorkspaceSize, guard->handle, old->tensor[CF_X],
                        old->tensor[CF_Y], old->convolution, old->filter, old->algorithm, &old->workspace);
    }
}

/* ---- one algorithm */

static conv_fft_status new_old(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, cf_cudnn_legacy **made) {
    cf_cudnn_legacy *old = calloc(1, sizeof *old);
    if (!old)
        return cf_fail_memory(sizeof *old, "descriptors of cuDNN");
    old->call = guard->call;
    const conv_fft_status status = make_descriptors(old, pass);
    if (status == CONV_FFT_SUCCESS)
        *made = old;
    else
        cf_cudnn_legacy_destroy(old);
    return status;
}

static conv_fft_status choose(cf_cudnn_legacy *old, const cf_cudnn_guard *guard, const cf_cudnn_pass *pass,
                              const char *text) {
    cf_cudnn_performance results[MAX_RESULTS];
    int math, count;
    parse(pass->index, text, &old->algorithm, &math);
    if (!(allowed_maths(pass) & 1u << math))
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the math mode does not allow %s", maths[math].name);
    CF_FORWARD(use_math(old, math));
    CF_FORWARD(rank(old, guard, pass->index, results, &count));
    bool deterministic = pass->any_order;
    for (int i = 0; i < count; ++i)
        deterministic = deterministic ||
                        (results[i].algorithm == old->algorithm && results[i].determinism == CF_CUDNN_DETERMINISTIC);
    if (!deterministic)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "it is not deterministic");
    return read_workspace(old, guard, pass->index);
}

conv_fft_status cf_cudnn_legacy_create(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, const char *text,
                                       cf_cudnn_legacy **old) {
    cf_cudnn_legacy *made = NULL;
    CF_FORWARD(new_old(guard, pass, &made));
    const conv_fft_status status = choose(made, guard, pass, text);
    if (status == CONV_FFT_SUCCESS)
        *old = made;
    else
        cf_cudnn_legacy_destroy(made);
    return status;
}

void cf_cudnn_legacy_destroy(cf_cudnn_legacy *old) {
    if (!old)
        return;
    for (int i = 0; i < CF_OPERAND_COUNT; ++i)
        if (old->tensor[i])
            old->call->cudnnDestroyTensorDescriptor(old->tensor[i]);
    if (old->filter)
        old->call->cudnnDestroyFilterDescriptor(old->filter);
    if (old->convolution)
        old->call->cudnnDestroyConvolutionDescriptor(old->convolution);
    free(old);
}

conv_fft_status cf_cudnn_legacy_run(const cf_cudnn_legacy *old, const cf_cudnn_guard *guard, const cf_cudnn_pass *pass,
                                    void *const memory[CF_OPERAND_COUNT], void *workspace, bool accumulate) {
    const float one_f = 1, beta_f = accumulate;
    const double one_d = 1, beta_d = accumulate;
    const void *const one = cf_cudnn_doubles(pass) ? (const void *)&one_d : &one_f;
    const void *const beta = cf_cudnn_doubles(pass) ? (const void *)&beta_d : &beta_f;
    void *const x = memory[CF_X], *const w = memory[CF_W], *const y = memory[CF_Y];
    switch (pass->index) {
    case CF_PASS_FORWARD:
        return CF_CUDNN(guard->call, cudnnConvolutionForward, guard->handle, one, old->tensor[CF_X], x, old->filter, w,
                        old->convolution, old->algorithm, workspace, old->workspace, beta, old->tensor[CF_Y], y);
    case CF_PASS_DATA:
        return CF_CUDNN(guard->call, cudnnConvolutionBackwardData, guard->handle, one, old->filter, w,
                        old->tensor[CF_Y], y, old->convolution, old->algorithm, workspace, old->workspace, beta,
                        old->tensor[CF_X], x);
    default:
        return CF_CUDNN(guard->call, cudnnConvolutionBackwardFilter, guard->handle, one, old->tensor[CF_X], x,
                        old->tensor[CF_Y], y, old->convolution, old->algorithm, workspace, old->workspace, beta,
                        old->filter, w);
    }
}

/* ---- all of them */

/* Visit the algorithms of one math type. False: the visitor wants no more. */
static bool each_of_math(cf_cudnn_legacy *old, const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, int math,
                         cf_cudnn_visit visit, void *user) {
    cf_cudnn_performance results[MAX_RESULTS];
    char text[CF_ALGORITHM_BYTES];
    int count;
    cf_cudnn_algorithm known = 0;
    unsigned seen = 0;
    while (names[pass->index][known])
        ++known;
    if (use_math(old, math) != CONV_FFT_SUCCESS || rank(old, guard, pass->index, results, &count) != CONV_FFT_SUCCESS)
        return true;
    for (int i = 0; i < count; ++i) {
        old->algorithm = results[i].algorithm;
        if (old->algorithm >= known || (seen & 1u << old->algorithm) ||
            (results[i].determinism != CF_CUDNN_DETERMINISTIC && !pass->any_order) ||
            read_workspace(old, guard, pass->index) != CONV_FFT_SUCCESS)
            continue;
        seen |= 1u << old->algorithm;
        cf_text t = {text, sizeof text, 0};
        cf_text_add(&t, "old:%s:%s", names[pass->index][old->algorithm], maths[math].name);
        if (!visit(text, user))
            return false;
    }
    return true;
}

conv_fft_status cf_cudnn_legacy_each(const cf_cudnn_guard *guard, const cf_cudnn_pass *pass, cf_cudnn_visit visit,
                                     void *user) {
    cf_cudnn_legacy *old = NULL;
    const char *why;
    if (!cf_cudnn_legacy_fits(pass, &why))
        return CONV_FFT_SUCCESS;
    CF_FORWARD(new_old(guard, pass, &old));
    bool more = true;
    for (int math = MATHS - 1; math >= 0 && more; --math)
        if (allowed_maths(pass) & 1u << math)
            more = each_of_math(old, guard, pass, math, visit, user);
    cf_cudnn_legacy_destroy(old);
    return CONV_FFT_SUCCESS;
}
