/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer.h"

#include "reference/dtype.h"

#include <math.h>
#include <stdlib.h>

static operand create_operand(conv_fft_dtype dtype, int dims, const int64_t *extent, const int64_t *stride,
                              generator *g) {
    operand o = {tensor_create(dtype, dims, extent, stride), NULL};
    o.values = test_alloc((size_t)o.tensor.count * sizeof(double));
    random_values(g, o.tensor.count, o.values);
    tensor_set(&o.tensor, o.values);
    tensor_get(&o.tensor, o.values);
    return o;
}

static result create_result(const char *name, conv_fft_dtype dtype, int dims, const int64_t *extent,
                            const int64_t *stride, generator *g) {
    result r = {.name = name, .tensor = tensor_create(dtype, dims, extent, stride)};
    const size_t bytes = (size_t)r.tensor.count * sizeof(double);
    r.expected = test_alloc(bytes);
    r.magnitude = test_alloc(bytes);
    r.old = test_alloc(bytes);
    random_values(g, r.tensor.count, r.old);
    tensor_set(&r.tensor, r.old);
    tensor_get(&r.tensor, r.old);
    return r;
}

static bool all_zero(const int64_t *stride, int dims) {
    for (int d = 0; d < dims; d++)
        if (stride[d] != 0)
            return false;
    return true;
}

typedef struct arrangement {
    int64_t extent[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
} arrangement;

static arrangement arrange(int rank, int64_t first, int64_t second, const int64_t axes[3], const int64_t *stride,
                           conv_fft_layout layout) {
    arrangement a = {{first, second}, {0}};
    for (int axis = 0; axis < rank; axis++)
        a.extent[2 + axis] = axes[3 - rank + axis];
    if (all_zero(stride, 2 + rank))
        layout_strides(layout, 2 + rank, a.extent, a.stride);
    else
        for (int d = 0; d < 2 + rank; d++)
            a.stride[d] = stride[d];
    return a;
}

layer layer_create(const conv_fft_problem *p, generator *g) {
    const ref_shape s = ref_shape_of(p);
    const conv_fft_dtype weights = p->fp32_weights ? CONV_FFT_FP32 : p->dtype;
    const conv_fft_dtype grad = p->weight_grad_dtype == CONV_FFT_DTYPE_SAME ? weights : p->weight_grad_dtype;
    const arrangement x = arrange(p->rank, s.batch, s.in_channels, s.input, p->x_stride, p->tensor_layout);
    const arrangement y = arrange(p->rank, s.batch, s.out_channels, s.output, p->y_stride, p->tensor_layout);
    const arrangement w =
        arrange(p->rank, s.out_channels, s.in_channels / s.groups, s.kernel, p->w_stride, p->weight_layout);
    const int dims = 2 + p->rank;
    layer l = {.problem = *p, .shape = s};
    l.x = create_operand(p->dtype, dims, x.extent, x.stride, g);
    l.w = create_operand(weights, dims, w.extent, w.stride, g);
    l.gy = create_operand(p->dtype, dims, y.extent, y.stride, g);
    l.bias = create_operand(weights, 1, &s.out_channels, NULL, g);
    l.y = create_result("y", p->dtype, dims, y.extent, y.stride, g);
    l.gx = create_result("gx", p->dtype, dims, x.extent, x.stride, g);
    l.gw = create_result("gw", grad, dims, w.extent, w.stride, g);
    l.gbias = create_result("gbias", grad, 1, &s.out_channels, NULL, g);
    l.workspace_alignment = (size_t)1 << random_int(g, 0, 6);
    layer_compute_expected(&l);
    return l;
}

static void destroy_operand(operand *o) {
    tensor_destroy(&o->tensor);
    free(o->values);
}

static void destroy_result(result *r) {
    tensor_destroy(&r->tensor);
    free(r->expected);
    free(r->magnitude);
    free(r->old);
}

void layer_destroy(layer *l) {
    destroy_operand(&l->x);
    destroy_operand(&l->w);
    destroy_operand(&l->bias);
    destroy_operand(&l->gy);
    destroy_result(&l->y);
    destroy_result(&l->gx);
    destroy_result(&l->gw);
    destroy_result(&l->gbias);
}

void layer_set(layer *l, operand *o, const double *values) {
    tensor_set(&o->tensor, values);
    tensor_get(&o->tensor, o->values);
    layer_compute_expected(l);
}

void layer_grade_weights(layer *l) {
    double *const values = test_alloc((size_t)l->w.tensor.count * sizeof *values);
    const int64_t taps = l->w.tensor.count / l->w.tensor.extent[0];
    for (int64_t i = 0; i < l->w.tensor.count; i++)
        values[i] = l->w.values[i] * ldexp(1, (int)(3 * (i / taps % 5)) - 6);
    layer_set(l, &l->w, values);
    free(values);
}

void layer_fill(layer *l, double value) {
    operand *const operands[] = {&l->x, &l->w};
    for (int o = 0; o < 2; ++o) {
        double *const values = test_alloc((size_t)operands[o]->tensor.count * sizeof *values);
        for (int64_t i = 0; i < operands[o]->tensor.count; i++)
            values[i] = value;
        layer_set(l, operands[o], values);
        free(values);
    }
}

static void compute(const ref_shape *s, const double *x, const double *w, const double *gy, double *y, double *gx,
                    double *gw, double *gbias) {
    ref_forward(s, x, w, y);
    ref_backward_data(s, w, gy, gx);
    ref_backward_weights(s, x, gy, gw);
    ref_backward_bias(s, gy, gbias);
}

static double *mapped(const operand *o, double (*function)(double)) {
    double *values = test_alloc((size_t)o->tensor.count * sizeof(double));
    for (int64_t i = 0; i < o->tensor.count; i++)
        values[i] = function(o->values[i]);
    return values;
}

static double nonzero_share(const double *values, int64_t count) {
    int64_t nonzero = 0;
    for (int64_t i = 0; i < count; i++)
        nonzero += values[i] != 0;
    return count ? (double)nonzero / (double)count : 1;
}

static double one(double value) {
    (void)value;
    return 1;
}

/* Elements that no product reaches are rightly zero, for instance with a stride larger than the kernel, or for outputs
 * inside the zero padding. If there are many of them, the required share of non-zeros is half of the elements that a
 * convolution of ones reaches: random numbers may be zero, and few elements may depend on one of them. */
static void set_shares(layer *l) {
    result *results[] = {&l->y, &l->gx, &l->gw, &l->gbias};
    bool sparse = false;
    for (int r = 0; r < 4; r++) {
        results[r]->share = DEFAULT_SHARE;
        sparse = sparse || 0.9 * nonzero_share(results[r]->magnitude, results[r]->tensor.count) < DEFAULT_SHARE;
    }
    if (!sparse)
        return;
    double *x = mapped(&l->x, one), *w = mapped(&l->w, one), *gy = mapped(&l->gy, one), *reach[4];
    for (int r = 0; r < 4; r++)
        reach[r] = test_alloc((size_t)results[r]->tensor.count * sizeof(double));
    compute(&l->shape, x, w, gy, reach[0], reach[1], reach[2], reach[3]);
    for (int r = 0; r < 4; r++) {
        const double reached = 0.5 * nonzero_share(reach[r], results[r]->tensor.count);
        results[r]->share = reached < DEFAULT_SHARE ? reached : DEFAULT_SHARE;
        free(reach[r]);
    }
    free(x);
    free(w);
    free(gy);
}

void layer_compute_expected(layer *l) {
    double *x = mapped(&l->x, fabs), *w = mapped(&l->w, fabs), *gy = mapped(&l->gy, fabs);
    compute(&l->shape, l->x.values, l->w.values, l->gy.values, l->y.expected, l->gx.expected, l->gw.expected,
            l->gbias.expected);
    compute(&l->shape, x, w, gy, l->y.magnitude, l->gx.magnitude, l->gw.magnitude, l->gbias.magnitude);
    set_shares(l);
    free(x);
    free(w);
    free(gy);
}
