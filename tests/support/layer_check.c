/* SPDX-License-Identifier: Apache-2.0 */
#include "support/layer.h"

#include "reference/dtype.h"
#include "support/device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Worst ratios, by the arithmetic inside, whose roundoffs differ, and the type of the compared tensor. */
static const char *const arithmetics[] = {"", "tf32 ", "half "};
static struct { double norm, element, adjoint; } worst[3][4];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static double larger(double a, double b) { return a > b ? a : b; }

static void note_ratios(conv_fft_math math, conv_fft_dtype dtype, double norm, double element, double adjoint) {
    const int inside = math == CONV_FFT_MATH_TF32 ? 1 : math == CONV_FFT_MATH_HALF ? 2 : 0;
    pthread_mutex_lock(&mutex);
    worst[inside][dtype].norm = larger(worst[inside][dtype].norm, norm);
    worst[inside][dtype].element = larger(worst[inside][dtype].element, element);
    worst[inside][dtype].adjoint = larger(worst[inside][dtype].adjoint, adjoint);
    pthread_mutex_unlock(&mutex);
}

void print_worst_ratios(const char *title) {
    printf("%s: worst ratios (norm, element, adjoint):", title);
    for (int inside = 0; inside < 3; inside++)
        for (int d = 0; d < 4; d++)
            if (worst[inside][d].norm > 0)
                printf(" %s%s %.3g %.3g %.3g", arithmetics[inside], ref_dtype_name((conv_fft_dtype)d),
                       worst[inside][d].norm, worst[inside][d].element, worst[inside][d].adjoint);
    printf("\n");
}

guarded layer_workspace(const layer *l, const conv_fft_plan *plan, conv_fft_pass pass) {
    size_t bytes = SIZE_MAX;
    if (conv_fft_plan_workspace(plan, pass, &bytes) != CONV_FFT_SUCCESS) {
        case_fail("conv_fft_plan_workspace(pass %d): %s", (int)pass, conv_fft_last_error());
        bytes = 0;
    }
    return guarded_create(bytes, l->workspace_alignment);
}

bool release_workspace(guarded *workspace, const char *call) {
    const bool intact = guarded_canaries_intact(workspace);
    guarded_destroy(workspace);
    return intact || case_fail("%s: bytes beside the workspace were written", call);
}

bool check_status(conv_fft_status status, const char *call) {
    if (status == CONV_FFT_SUCCESS)
        status = device_wait();
    return status == CONV_FFT_SUCCESS ||
           case_fail("%s: %s (%s)", call, conv_fft_status_string(status), conv_fft_last_error());
}

bool check_inputs(const layer *l, const char *call) {
    const struct {
        const char *name;
        const tensor *tensor;
    } inputs[] = {{"x", &l->x.tensor}, {"w", &l->w.tensor}, {"bias", &l->bias.tensor}, {"gy", &l->gy.tensor}};
    for (int i = 0; i < 4; i++)
        if (!tensor_untouched(inputs[i].tensor))
            return case_fail("%s: the input %s was written", call, inputs[i].name);
    return true;
}

bool check_result(const layer *l, const result *r, const double *extra, const char *call) {
    const int64_t count = r->tensor.count;
    double *expected = test_alloc((size_t)count * sizeof(double)),
           *magnitude = test_alloc((size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        expected[i] = r->expected[i] + (extra ? extra[i] : 0);
        magnitude[i] = r->magnitude[i] + (extra ? fabs(extra[i]) : 0);
    }
    const comparison c = compare_tensor(&r->tensor, expected, magnitude, l->problem.math, r->share);
    free(expected);
    free(magnitude);
    note_ratios(l->problem.math, r->tensor.dtype, c.norm_ratio, c.element_ratio, 0);
    bool ok = c.ok || case_fail("%s: %s: %s", call, r->name, c.text);
    /* The error of an FP32 gw must also fit the tensors' type. support/compare.c does not know that type. */
    const tolerance own = tolerance_of(r->tensor.dtype, l->problem.math),
                    tensors = tolerance_of(l->problem.dtype, l->problem.math);
    if (c.ok && !(c.norm_ratio * own.eps <= tensors.norm * tensors.eps))
        ok = case_fail("%s: %s: norm ratio %.4g, where the type of the tensors allows %g", call, r->name, c.norm_ratio,
                       tensors.norm * tensors.eps / own.eps);
    ok = (tensor_gaps_intact(&r->tensor) ||
          case_fail("%s: bytes beside the elements of %s were written", call, r->name)) &&
         ok;
    return ok;
}

bool layer_check_forward(layer *l, const conv_fft_plan *plan, bool with_bias) {
    const char *call = with_bias ? "conv_fft_forward with bias" : "conv_fft_forward";
    guarded workspace = layer_workspace(l, plan, CONV_FFT_FORWARD);
    tensor_poison(&l->y.tensor);
    bool ok = check_status(conv_fft_forward(plan, l->x.tensor.memory.data, l->w.tensor.memory.data,
                                            with_bias ? l->bias.tensor.memory.data : NULL, l->y.tensor.memory.data,
                                            workspace.data, workspace.bytes, device_stream()),
                           call);
    ok = release_workspace(&workspace, call) && ok;
    double *bias = NULL;
    if (with_bias) {
        bias = test_alloc((size_t)l->y.tensor.count * sizeof(double));
        for (int64_t i = 0; i < l->y.tensor.count; i++)
            bias[i] = 0;
        ref_add_bias(&l->shape, l->bias.values, bias);
    }
    ok = check_result(l, &l->y, bias, call) && check_inputs(l, call) && ok;
    free(bias);
    return ok;
}

/* Fill with NaN, or with the old contents if the call adds to them. */
static void prepare(result *r, bool accumulate) {
    if (accumulate)
        tensor_set(&r->tensor, r->old);
    else
        tensor_poison(&r->tensor);
}

static bool check_wanted(const layer *l, const result *r, bool wanted, bool accumulate, const char *call) {
    if (wanted)
        return check_result(l, r, accumulate ? r->old : NULL, call);
    return tensor_untouched(&r->tensor) || case_fail("%s: %s was written without being asked for", call, r->name);
}

static conv_fft_pass pass_of(const backward_call *c) {
    return c->gx && c->gw ? CONV_FFT_BACKWARD : c->gx ? CONV_FFT_BACKWARD_DATA : CONV_FFT_BACKWARD_WEIGHTS;
}

static bool run_joint(layer *l, const conv_fft_plan *plan, const backward_call *c) {
    /* The gradient of the bias alone needs no workspace. */
    guarded workspace = c->gx || c->gw ? layer_workspace(l, plan, pass_of(c)) : guarded_create(0, 1);
    bool ok = check_status(
        conv_fft_backward(plan, c->gw ? l->x.tensor.memory.data : NULL, c->gx ? l->w.tensor.memory.data : NULL,
                          l->gy.tensor.memory.data, c->gx ? l->gx.tensor.memory.data : NULL,
                          c->gw ? l->gw.tensor.memory.data : NULL, c->gbias ? l->gbias.tensor.memory.data : NULL,
                          c->flags, c->gx || c->gw ? workspace.data : NULL, workspace.bytes, device_stream()),
        "conv_fft_backward");
    return release_workspace(&workspace, "conv_fft_backward") && ok;
}

static bool run_separate(layer *l, const conv_fft_plan *plan, const backward_call *c) {
    bool ok = true;
    if (c->gx) {
        guarded workspace = layer_workspace(l, plan, CONV_FFT_BACKWARD_DATA);
        ok = check_status(conv_fft_backward_data(plan, l->w.tensor.memory.data, l->gy.tensor.memory.data,
                                                 l->gx.tensor.memory.data, c->flags & CONV_FFT_ACCUMULATE_GX,
                                                 workspace.data, workspace.bytes, device_stream()),
                          "conv_fft_backward_data");
        ok = release_workspace(&workspace, "conv_fft_backward_data") && ok;
    }
    if (c->gw) {
        guarded workspace = layer_workspace(l, plan, CONV_FFT_BACKWARD_WEIGHTS);
        ok = check_status(conv_fft_backward_weights(plan, l->x.tensor.memory.data, l->gy.tensor.memory.data,
                                                    l->gw.tensor.memory.data,
                                                    c->gbias ? l->gbias.tensor.memory.data : NULL,
                                                    c->flags & (CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS),
                                                    workspace.data, workspace.bytes, device_stream()),
                          "conv_fft_backward_weights") &&
             ok;
        ok = release_workspace(&workspace, "conv_fft_backward_weights") && ok;
    }
    return ok;
}

bool layer_check_backward(layer *l, const conv_fft_plan *plan, const backward_call *c) {
    char call[96];
    snprintf(call, sizeof call, "%s backward of%s%s%s with flags %u", c->separate ? "separate" : "joint",
             c->gx ? " gx" : "", c->gw ? " gw" : "", c->gbias ? " gbias" : "", c->flags);
    const bool add_gx = c->flags & CONV_FFT_ACCUMULATE_GX, add_gw = c->flags & CONV_FFT_ACCUMULATE_GW,
               add_gbias = c->flags & CONV_FFT_ACCUMULATE_GBIAS;
    prepare(&l->gx, add_gx);
    prepare(&l->gw, add_gw);
    prepare(&l->gbias, add_gbias);
    if (!(c->separate ? run_separate(l, plan, c) : run_joint(l, plan, c)))
        return false;
    bool ok = check_wanted(l, &l->gx, c->gx, add_gx, call);
    ok = check_wanted(l, &l->gw, c->gw, add_gw, call) && ok;
    ok = check_wanted(l, &l->gbias, c->gbias, add_gbias, call) && ok;
    return check_inputs(l, call) && ok;
}

/* The values of a tensor, in memory that the caller frees. */
static double *copy_of(const tensor *t) {
    double *const values = test_alloc((size_t)t->count * sizeof *values);
    tensor_get(t, values);
    return values;
}

bool layer_check_same_bits(layer *l, const conv_fft_plan *plan, bool weights) {
    const backward_call joint = {.gx = true, .gw = true}, separate = {.gx = true, .gw = true, .separate = true};
    const tensor *const results[] = {&l->gx.tensor, &l->gw.tensor};
    double *values[2];
    bool ok = layer_check_backward(l, plan, &separate);
    for (int i = 0; i < 2; i++)
        values[i] = copy_of(results[i]);
    ok = layer_check_backward(l, plan, &joint) && ok;
    for (int i = 0; i < 2; i++) {
        double *const others = copy_of(results[i]);
        if ((i == 0 || weights) && memcmp(values[i], others, (size_t)results[i]->count * sizeof *others) != 0)
            ok = case_fail("%s of a joint call has other bits than that of a separate call", i ? "gw" : "gx");
        free(others);
        free(values[i]);
    }
    return ok;
}

/* The product <a, b> of the contents of two tensors. */
static double product_of(const double *values, const tensor *t) {
    double sum = 0;
    for (int64_t i = 0; i < t->count; i++)
        sum += values[i] * tensor_load(t, i);
    return sum;
}

/* The error of <values, r> if r has an error of one eps in the norm. */
static double bound_of(const double *values, const result *r, conv_fft_math math) {
    double squares = 0, magnitudes = 0;
    for (int64_t i = 0; i < r->tensor.count; i++) {
        squares += values[i] * values[i];
        magnitudes += r->magnitude[i] * r->magnitude[i];
    }
    return tolerance_of(r->tensor.dtype, math).eps * sqrt(squares * magnitudes);
}

static bool check_identity(const layer *l, const char *text, double a, double b, double bound) {
    const conv_fft_dtype dtype = l->problem.dtype;
    double ratio;
    const bool ok = compare_products(a, b, bound, tolerance_of(dtype, l->problem.math).norm, &ratio);
    note_ratios(l->problem.math, dtype, 0, 0, ratio);
    return ok || case_fail("adjoint identity: %s: %.17g and %.17g, ratio %.4g", text, a, b, ratio);
}

bool layer_check_adjoint(layer *l) {
    const conv_fft_math math = l->problem.math;
    const double forward = product_of(l->gy.values, &l->y.tensor), data = product_of(l->x.values, &l->gx.tensor),
                 weights = product_of(l->w.values, &l->gw.tensor);
    const double forward_bound = bound_of(l->gy.values, &l->y, math), data_bound = bound_of(l->x.values, &l->gx, math),
                 weights_bound = bound_of(l->w.values, &l->gw, math);
    const bool ok = check_identity(l, "<gy, y> = <gx, x>", forward, data, forward_bound + data_bound);
    return check_identity(l, "<gy, y> = <gw, w>", forward, weights, forward_bound + weights_bound) && ok;
}

bool layer_check_all(layer *l, const conv_fft_plan *plan) {
    const backward_call plain = {.gx = true, .gw = true, .gbias = true};
    backward_call adding = plain;
    adding.flags = CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS;
    backward_call separate = plain;
    separate.separate = true;
    bool ok = layer_check_forward(l, plan, false);
    ok = layer_check_backward(l, plan, &plain) && ok;
    ok = layer_check_adjoint(l) && ok;
    ok = layer_check_forward(l, plan, true) && ok;
    ok = layer_check_backward(l, plan, &adding) && ok;
    return layer_check_backward(l, plan, &separate) && ok;
}
