/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Register-resident kernels (register_resident.cuh) stream one channel after another. In an NHWC tensor they would move
 * a sector of memory for each number. So a kernel before or after them transposes the tensor to planes or from planes
 * (nhwc_transpose.cuh). The planes are in the workspace, in the type of the arithmetic, so that rows are aligned also
 * if the tensor has 16 bits.
 */
#include "conv/fused/call.h"
#include "conv/fused/fused.h"

#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"

#include <string.h>

enum {
    SECTOR = 32, /* bytes */
    ACROSS = 32, /* the same as in nhwc_transpose.cuh */
    POINTS = 128,
    QUAD = 16 /* bytes */
};

/* Whether the streamed tensor is x or gx, not y or gy. */
static bool is_x(int pass, cf_fused_form form) {
    return pass == CF_PASS_FORWARD ? form == CF_FUSED_GATHER : pass == CF_PASS_DATA && form == CF_FUSED_SCATTER;
}

/* Channels of one point that can move at once: all strides of the tensor are multiples of this number. */
static int widest(const cf_tensor *t, int64_t channels) {
    const int64_t distances[] = {channels, t->sample_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]};
    int vector_width = 16 / (int)cf_dtype_bytes(t->dtype);
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; ++i)
        while (distances[i] % vector_width)
            vector_width /= 2;
    return vector_width;
}

/* Whether the elements of a sample are dense. */
static bool is_near(const cf_tensor *t, const int64_t size[3]) {
    int64_t span = 0;
    for (int a = 0; a < 3; ++a)
        span += (size[a] - 1) * t->axis_stride[a];
    return span < INT32_MAX;
}

cf_nhwc_transpose cf_nhwc_transpose_of(const cf_layer *layer, int pass, const cf_strategy *s) {
    cf_nhwc_transpose transpose = {0};
    cf_spectrum spectrum[CF_OPERAND_COUNT];
    cf_strategy_spectra(layer, pass, s, spectrum);
    const cf_fused_form form = cf_fused_form_of(pass, spectrum);
    const bool x = is_x(pass, form);
    const cf_tensor *t = x ? &layer->x : &layer->y;
    int64_t of_x[5], of_y[5], of_w[5];
    cf_layer_extents(layer, of_x, of_y, of_w);
    const int64_t *const extent = x ? of_x : of_y, points = extent[2] * extent[3] * extent[4];
    const conv_fft_dtype dtype = layer->compute;
    const int64_t number = (int64_t)cf_dtype_bytes(dtype);
    const bool together = layer->groups == 1 && t->channel_stride == 1 && t->axis_stride[2] != 1 &&
                          extent[1] * (int64_t)cf_dtype_bytes(t->dtype) >= SECTOR;
    /* Elements of gx that no tap reaches have no numbers in the planes. */
    const bool whole = pass != CF_PASS_DATA || !x || cf_strategy_gx_store(layer, s) == CF_GX_DIRECT;
    if (!together || !whole || points >= INT32_MAX || extent[0] == 0)
        return transpose;
    const int64_t plane = cf_round_up(points, QUAD / number);
    transpose.blocks = cf_ceil_div(extent[1], ACROSS) * cf_ceil_div(points, POINTS) * extent[0];
    if (transpose.blocks > INT32_MAX)
        return (cf_nhwc_transpose){0};
    transpose.x = x;
    transpose.reads = pass == CF_PASS_WEIGHTS || form == CF_FUSED_GATHER;
    transpose.tensor = *t;
    memcpy(transpose.extent, extent, sizeof transpose.extent);
    transpose.planes = (cf_tensor){.dtype = dtype,
                                   .sample_stride = extent[1] * plane,
                                   .channel_stride = plane,
                                   .group_stride = extent[1] * plane,
                                   .axis_stride = {extent[3] * extent[4], extent[4], 1}};
    transpose.vector_width = widest(t, extent[1]);
    transpose.bytes = (size_t)(extent[0] * extent[1] * plane * number);
    transpose.shared = ACROSS * (POINTS + 1) * number;
    return transpose;
}

void cf_nhwc_transpose_emit(const cf_nhwc_transpose *transpose, int variant, cf_text *t) {
    const int64_t *const e = transpose->extent, *const stride = transpose->tensor.axis_stride;
    cf_text_add(t,
                "struct Tensor {\ntypedef %s Storage;\ntypedef %s Bias;\ntypedef %s Offset;\nstatic constexpr int "
                "CHANNELS = %lld, "
                "VECTOR = %d;\n",
                cf_storage_name(transpose->tensor.dtype), cf_storage_name(cf_tensor_bias_dtype(&transpose->tensor)),
                is_near(&transpose->tensor, e + 2) ? "int" : "long long", (long long)e[1],
                variant == 0 ? transpose->vector_width : 1);
    cf_text_add(
        t,
        "static constexpr unsigned EXTENT[3] = {%lld, %lld, %lld};\nstatic constexpr long long SAMPLE = %lld, PLANE = "
        "%lld, AXIS[3] = {%lld, %lld, %lld};\n};\n",
        (long long)e[2], (long long)e[3], (long long)e[4], (long long)transpose->tensor.sample_stride,
        (long long)transpose->planes.channel_stride, (long long)stride[0], (long long)stride[1], (long long)stride[2]);
    cf_text_add(t, "CF_NHWC_TRANSPOSE_KERNEL(%s)\n", transpose->reads ? "to" : "from");
}

static const cf_parameter transpose_parameters[] = {
    {sizeof(cf_transpose_call),
     CF_ADDRESS(cf_transpose_call, from) | CF_ADDRESS(cf_transpose_call, to) | CF_ADDRESS(cf_transpose_call, bias)},
    {0, 0}};

conv_fft_status cf_nhwc_transpose_run(const cf_nhwc_transpose *transpose, cf_kernel *const kernels[2],
                                      const void *tensor, void *planes, const void *bias, bool accumulate,
                                      struct CUstream_st *stream) {
    cf_transpose_call call = {.from = transpose->reads ? tensor : planes,
                              .to = transpose->reads ? planes : (void *)(uintptr_t)tensor,
                              .bias = bias,
                              .accumulate = accumulate};
    const size_t unit = (size_t)transpose->vector_width * cf_dtype_bytes(transpose->tensor.dtype);
    const cf_launch shape = {
        {(unsigned)transpose->blocks, 1, 1}, {256, 1, 1}, (size_t)transpose->shared, transpose_parameters};
    void *parameters[] = {&call};
    return cf_kernel_launch(kernels[transpose->vector_width > 1 && (uintptr_t)tensor % unit != 0], &shape, parameters,
                            stream);
}
