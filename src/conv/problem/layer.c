/* SPDX-License-Identifier: Apache-2.0 */
#include "conv/problem/layer.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "core/strides.h"
#include "core/words.h"

#include <string.h>

void cf_problem_defaults(conv_fft_problem *p, int rank) {
    memset(p, 0, sizeof *p);
    p->rank = rank;
    p->batch = p->in_channels = p->out_channels = p->groups = 1;
    for (int a = 0; a < CONV_FFT_MAX_RANK; ++a)
        p->input[a] = p->kernel[a] = p->stride[a] = p->dilation[a] = 1;
    p->weight_grad_dtype = CONV_FFT_DTYPE_SAME;
}

conv_fft_dtype cf_problem_weight_dtype(const conv_fft_problem *p) { return p->fp32_weights ? CONV_FFT_FP32 : p->dtype; }

static conv_fft_status check_scalars(const conv_fft_problem *p) {
    CF_FORWARD(cf_check_range("rank", -1, p->rank, 1, CONV_FFT_MAX_RANK));
    CF_FORWARD(cf_check_range("batch", -1, p->batch, 0, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("groups", -1, p->groups, 1, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("in_channels", -1, p->in_channels, 1, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("out_channels", -1, p->out_channels, 1, CF_MAX_ELEMENTS));
    CF_REQUIRE(p->in_channels % p->groups == 0, "in_channels is %lld; it must be a multiple of groups (%lld)",
               (long long)p->in_channels, (long long)p->groups);
    CF_REQUIRE(p->out_channels % p->groups == 0, "out_channels is %lld; it must be a multiple of groups (%lld)",
               (long long)p->out_channels, (long long)p->groups);
    CF_FORWARD(cf_check_range("padding", -1, (int)p->padding, 0, CF_PADDING_COUNT - 1));
    CF_FORWARD(cf_check_range("tensor_layout", -1, (int)p->tensor_layout, 0, CF_LAYOUT_COUNT - 1));
    CF_FORWARD(cf_check_range("weight_layout", -1, (int)p->weight_layout, 0, CF_LAYOUT_COUNT - 1));
    CF_FORWARD(cf_check_range("dtype", -1, p->dtype, 0, CF_DTYPE_COUNT - 1));
    CF_FORWARD(cf_check_range("weight_grad_dtype", -1, p->weight_grad_dtype, CONV_FFT_DTYPE_SAME, CF_DTYPE_COUNT - 1));
    CF_FORWARD(cf_check_range("math", -1, (int)p->math, 0, CF_MATH_COUNT - 1));
    CF_FORWARD(cf_check_range("fp32_weights", -1, p->fp32_weights, 0, 1));
    for (int i = 0; i < (int)(sizeof p->reserved / sizeof p->reserved[0]); ++i)
        CF_FORWARD(cf_check_range("reserved", i, p->reserved[i], 0, 0));
    return CONV_FFT_SUCCESS;
}

static conv_fft_status resolve_types(conv_fft_problem *p) {
    const bool half = cf_dtype_is_16_bit(p->dtype);
    CF_REQUIRE(half || !p->fp32_weights, "fp32_weights is 1 for %s tensors; it must be 0, or dtype FP16 or BF16",
               cf_dtype_names[p->dtype]);
    if (p->weight_grad_dtype == CONV_FFT_DTYPE_SAME)
        p->weight_grad_dtype = cf_problem_weight_dtype(p);
    CF_REQUIRE(p->weight_grad_dtype == p->dtype || (half && p->weight_grad_dtype == CONV_FFT_FP32),
               "weight_grad_dtype is %s for %s tensors; it must be the same type%s",
               cf_dtype_names[p->weight_grad_dtype], cf_dtype_names[p->dtype], half ? " or FP32" : "");
    if (p->math == CONV_FFT_MATH_DEFAULT)
        p->math = p->dtype == CONV_FFT_FP64 ? CONV_FFT_MATH_FP64 : CONV_FFT_MATH_FP32;
    const bool fits = p->dtype == CONV_FFT_FP64       ? p->math == CONV_FFT_MATH_FP64
                      : p->math == CONV_FFT_MATH_FP32 ? true
                      : half                          ? p->math == CONV_FFT_MATH_HALF
                                                      : p->math == CONV_FFT_MATH_TF32;
    CF_REQUIRE(fits, "math is %s for %s tensors; it must be %s", cf_math_names[p->math], cf_dtype_names[p->dtype],
               p->dtype == CONV_FFT_FP64 ? "FP64"
               : half                    ? "FP32 or HALF"
                                         : "FP32 or TF32");
    return CONV_FFT_SUCCESS;
}

/* The sentence names the padding mode if the mode is the reason for the limit. */
static conv_fft_status check_pad(const conv_fft_problem *p, const char *field, int a, int64_t pad, int64_t max_pad) {
    if (pad < 0 || pad > CF_MAX_ELEMENTS || pad <= max_pad)
        return cf_check_range(field, a, pad, 0, max_pad);
    return cf_fail(CONV_FFT_INVALID_ARGUMENT, "%s[%d] is %lld; with padding %s and input[%d] %lld it must be 0 to %lld",
                   field, a, (long long)pad, cf_padding_names[p->padding], a, (long long)p->input[a],
                   (long long)max_pad);
}

static conv_fft_status make_axis(const conv_fft_problem *p, int a, cf_axis *axis) {
    CF_FORWARD(cf_check_range("input", a, p->input[a], 1, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("kernel", a, p->kernel[a], 1, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("stride", a, p->stride[a], 1, CF_MAX_ELEMENTS));
    CF_FORWARD(cf_check_range("dilation", a, p->dilation[a], 1, CF_MAX_ELEMENTS));
    /* Circular padding could be longer, but the fold of the gradient takes one period on each side. */
    const int64_t max_pad =
        p->padding == CONV_FFT_PAD_CIRCULAR ? p->input[a] : cf_padding_reach(p->padding, p->input[a]);
    CF_FORWARD(check_pad(p, "pad_before", a, p->pad_before[a], max_pad));
    CF_FORWARD(check_pad(p, "pad_after", a, p->pad_after[a], max_pad));
    int64_t reach = p->kernel[a] - 1;
    CF_REQUIRE(cf_multiply(&reach, p->dilation[a]) && reach < CF_MAX_ELEMENTS,
               "kernel[%d] is %lld with dilation %lld; (kernel - 1) * dilation must stay below %lld", a,
               (long long)p->kernel[a], (long long)p->dilation[a], (long long)CF_MAX_ELEMENTS);
    const int64_t padded = p->input[a] + p->pad_before[a] + p->pad_after[a];
    CF_REQUIRE(reach + 1 <= padded,
               "kernel[%d] is %lld with dilation %lld: %lld elements; the padded input has %lld, and the kernel must "
               "fit into it",
               a, (long long)p->kernel[a], (long long)p->dilation[a], (long long)(reach + 1), (long long)padded);
    axis->input = p->input[a];
    axis->kernel = p->kernel[a];
    axis->stride = p->stride[a];
    axis->dilation = p->kernel[a] > 1 ? p->dilation[a] : 1; /* one tap has no dilation */
    axis->pad_before = p->pad_before[a];
    axis->pad_after = p->pad_after[a];
    axis->mode = p->pad_before[a] + p->pad_after[a] ? p->padding : CONV_FFT_PAD_ZEROS;
    axis->output = (padded - reach - 1) / p->stride[a] + 1;
    cf_axis_trim(axis);
    return CONV_FFT_SUCCESS;
}

static cf_tensor make_tensor(conv_fft_dtype dtype, int rank, const int64_t *strides) {
    cf_tensor t = {0};
    t.dtype = dtype;
    t.sample_stride = strides[0];
    t.channel_stride = strides[1];
    for (int a = 0; a < rank; ++a)
        t.axis_stride[3 - rank + a] = strides[2 + a];
    return t;
}

size_t cf_tensor_bytes(const cf_tensor *t, const int64_t extents[5]) {
    int64_t last = (extents[0] - 1) * t->sample_stride + (extents[1] - 1) * t->channel_stride;
    for (int a = 0; a < 3; ++a)
        last += (extents[2 + a] - 1) * t->axis_stride[a];
    return extents[0] > 0 ? (size_t)(last + 1) * cf_dtype_bytes(t->dtype) : 0;
}

void cf_layer_extents(const cf_layer *l, int64_t x[5], int64_t y[5], int64_t w[5]) {
    x[0] = y[0] = l->batch;
    x[1] = l->in_channels * l->groups;
    y[1] = w[0] = l->out_channels * l->groups;
    w[1] = l->in_channels;
    for (int a = 0; a < 3; ++a) {
        x[2 + a] = l->axis[a].input;
        y[2 + a] = l->axis[a].output;
        w[2 + a] = 1;
    }
    const int rank = l->problem.rank; /* w has all taps, also those that were trimmed */
    for (int a = 0; a < rank; ++a)
        w[5 - rank + a] = l->problem.kernel[a];
}

conv_fft_status cf_layer_make(const conv_fft_problem *problem, cf_layer *layer) {
    CF_REQUIRE(problem != NULL, "problem is NULL; it must point to a conv_fft_problem");
    CF_FORWARD(check_scalars(problem));
    cf_layer l;
    memset(&l, 0, sizeof l);
    l.problem = *problem;
    conv_fft_problem *p = &l.problem;
    CF_FORWARD(resolve_types(p));
    l.batch = p->batch;
    l.groups = p->groups;
    l.in_channels = p->in_channels / p->groups;
    l.out_channels = p->out_channels / p->groups;
    l.compute = cf_compute_dtype(p->dtype);
    for (int a = 0; a < 3; ++a) {
        l.axis[a] =
            (cf_axis){.input = 1, .kernel = 1, .stride = 1, .dilation = 1, .output = 1, .mode = CONV_FFT_PAD_ZEROS};
    }
    for (int a = 0; a < p->rank; ++a)
        CF_FORWARD(make_axis(p, a, &l.axis[3 - p->rank + a]));

    int64_t x[5], y[5], w[5], strides[5];
    cf_layer_extents(&l, x, y, w);
    for (int a = 0; a < p->rank; ++a) { /* extents of the problem's own axes */
        x[2 + a] = x[5 - p->rank + a], y[2 + a] = y[5 - p->rank + a], w[2 + a] = w[5 - p->rank + a];
    }
    CF_FORWARD(cf_strides_resolve("x_stride", "x", p->x_stride, p->rank, x, p->tensor_layout, strides));
    l.x = make_tensor(p->dtype, p->rank, strides);
    CF_FORWARD(cf_strides_resolve("y_stride", "y", p->y_stride, p->rank, y, p->tensor_layout, strides));
    l.y = make_tensor(p->dtype, p->rank, strides);
    CF_FORWARD(cf_strides_resolve("w_stride", "w", p->w_stride, p->rank, w, p->weight_layout, strides));
    l.w = make_tensor(cf_problem_weight_dtype(p), p->rank, strides);
    l.y.fp32_bias = p->fp32_weights != 0;
    l.x.group_stride = l.x.channel_stride * l.in_channels;
    l.y.group_stride = l.y.channel_stride * l.out_channels;
    l.w.group_stride = l.w.sample_stride * l.out_channels;
    /* Kernels move vectors of 16 bytes. 1-D transforms with 16-bit spectra also begin at sectors of 32 bytes. 1-D
     * transforms with FP32 spectra, and FP64 tensors, are moved number by number. */
    const int64_t element_bytes = (int64_t)cf_dtype_bytes(p->dtype);
    const bool spectra_16_bit = p->math == CONV_FFT_MATH_TF32 || p->math == CONV_FFT_MATH_HALF;
    l.axis[2].only_axis = p->rank == 1;
    if (element_bytes <= 4 && (p->rank > 1 || spectra_16_bit) && l.x.axis_stride[2] == 1 && l.y.axis_stride[2] == 1)
        l.axis[2].max_vector = (p->rank > 1 ? 16 : 32) / element_bytes;
    l.gw = l.w;
    l.gw.dtype = p->weight_grad_dtype;
    *layer = l;
    return CONV_FFT_SUCCESS;
}

static conv_fft_status check_tensor(const char *field, const char *name, const cf_tensor *t, const int64_t extents[5]) {
    const int64_t strides[5] = {t->sample_stride, t->channel_stride, t->axis_stride[0], t->axis_stride[1],
                                t->axis_stride[2]};
    return cf_strides_check_distinct(field, name, strides, extents);
}

conv_fft_status cf_layer_check_written(const cf_layer *layer, int passes) {
    int64_t x[5], y[5], w[5];
    cf_layer_extents(layer, x, y, w);
    if (passes & CONV_FFT_FORWARD)
        CF_FORWARD(check_tensor("y_stride", "y", &layer->y, y));
    if (passes & CONV_FFT_BACKWARD_DATA)
        CF_FORWARD(check_tensor("x_stride", "gx", &layer->x, x));
    if (passes & CONV_FFT_BACKWARD_WEIGHTS)
        CF_FORWARD(check_tensor("w_stride", "gw", &layer->w, w));
    return CONV_FFT_SUCCESS;
}
