/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of fused cases for a GPU that is not installed, and checks of their results. */
#include "kernels/fused_cases.h"

#include "conv/gpu/backend.h"
#include "kernels/no_driver.h"
#include "support/layer.h"

#include <stdio.h>

static void set_strides(int number, conv_fft_problem *p) {
    generator g = generator_create((uint64_t)number);
    const ref_shape s = ref_shape_of(p);
    int64_t x[TENSOR_MAX_DIMS] = {s.batch, s.in_channels}, y[TENSOR_MAX_DIMS] = {s.batch, s.out_channels},
            w[TENSOR_MAX_DIMS] = {s.out_channels, s.in_channels / s.groups};
    for (int a = 0; a < p->rank; ++a) {
        x[2 + a] = p->input[a];
        y[2 + a] = s.output[3 - p->rank + a];
        w[2 + a] = p->kernel[a];
    }
    random_strides(&g, 2 + p->rank, x, p->x_stride);
    random_strides(&g, 2 + p->rank, y, p->y_stride);
    random_strides(&g, 2 + p->rank, w, p->w_stride);
}

static conv_fft_status open_case(const fused_case *c, int number, const char *properties, fused_opened *o) {
    cf_layer made;
    cf_strategy strategy[CF_PASS_COUNT];
    char line[256];
    uint64_t smallest;
    memset(o, 0, sizeof *o);
    if (c->drawn)
        o->problem = *c->drawn;
    else
        CF_FORWARD(conv_fft_problem_parse(c->problem, &o->problem, NULL, 0));
    if (c->strided)
        set_strides(number, &o->problem);
    CF_FORWARD(cf_gpu_properties_load(properties, &o->gpu.properties));
    no_driver(&o->gpu);
    o->gpu.properties.multiprocessors = c->processors ? c->processors : 2;
    if (c->shared) {
        o->gpu.properties.shared_per_block = c->shared;
        o->gpu.properties.shared_per_multiprocessor = c->shared + o->gpu.properties.shared_reserved_per_block;
    }
    if (c->older)
        o->gpu.properties.compute_major = 8;
    if (c->memory)
        o->gpu.properties.memory_bytes = c->memory;
    CF_FORWARD(cf_gpu_layers_create(&o->gpu, &o->device));
    snprintf(line, sizeof line, "fused %s%s spectrum=%s", c->grid, strstr(c->grid, "dilation") ? "" : " dilation=step",
             fused_case_is_double(c) ? "fp64" : "fp32");
    CF_FORWARD(cf_layer_make(&o->problem, &made));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass) {
        CF_FORWARD(cf_strategy_parse(line, o->problem.rank, &strategy[pass]));
        cf_strategy_resolve(&made, pass, &strategy[pass]);
    }
    return cf_plan_create(&made, o->device, c->passes, strategy, true, 0, &smallest, &o->plan);
}

bool fused_case_open(const fused_case *c, int number, const char *properties, fused_opened *o) {
    if (open_case(c, number, properties, o) == CONV_FFT_SUCCESS)
        return true;
    fused_case_close(o);
    return false;
}

void fused_case_close(fused_opened *o) {
    cf_plan_destroy(o->plan);
    cf_gpu_layers_destroy(o->device);
}

uint64_t fused_text_hash(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; ++text)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* --------------------------------------------------------------------------------------------------------- checking */

bool fused_case_check(const fused_case *c, int number, const fused_opened *o) {
    char text[FUSED_NAME_BYTES], variables[FUSED_NAME_BYTES + 100];
    fused_case_name(c, text, sizeof text);
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", text);
    case_begin(text, variables);
    generator g = generator_create((uint64_t)number);
    tensor_align(c->shifted ? 0 : 64);
    layer l = layer_create(&o->problem, &g);
    bool good = true;
    if (c->passes & CONV_FFT_FORWARD)
        good = layer_check_forward(&l, o->plan, number % 3 != 0);
    backward_call call = {.gx = c->passes & CONV_FFT_BACKWARD_DATA,
                          .gw = c->passes & CONV_FFT_BACKWARD_WEIGHTS,
                          .separate = number % 2,
                          .flags = number % 4 < 2 ? CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW : 0};
    if (call.gx || call.gw)
        good = layer_check_backward(&l, o->plan, &call) && good;
    call.separate = !call.separate;
    /* Kernels for both gradients at once, and for one; planes of gy that one gradient makes for the other, and planes
     * that each gradient makes itself. */
    if (o->plan->shares_gy ||
        (call.gx && call.gw && o->problem.tensor_layout == CONV_FFT_CHANNELS_LAST && o->problem.groups == 1))
        good = layer_check_backward(&l, o->plan, &call) && good;
    layer_destroy(&l);
    tensor_align(0);
    return good;
}
