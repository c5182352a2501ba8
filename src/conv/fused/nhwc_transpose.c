/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor of many channels of a dense layer whose few planes stay in registers (register_resident.cuh), where the channels of a point stand side by side.
 * Such kernels take one channel after the other, and would move a sector of memory for each number. So a kernel before or behind them makes planes
 * of it (turn of nhwc_transpose.cuh), which stand in the workspace, in the type that the kernels compute in: rows of these are pieces of
 * memory also where the tensor has 16 bits.
 */
#include "conv/fused/fused.h"

#include "conv/plan/spectra.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"

#include <string.h>

enum {
    SECTOR = 32, /* bytes of memory */
    ACROSS = 32, /* Turn of nhwc_transpose.cuh */
    POINTS = 128,
    QUAD = 16 /* bytes */
};

/* Which tensor passes by: x and gx, or y and gy. */
static bool is_x(int pass, cf_fused_form form) {
    return pass == CF_PASS_FORWARD ? form == CF_FUSED_GATHER : pass == CF_PASS_DATA && form == CF_FUSED_SCATTER;
}

/* Channels of one point, as many as its distances from others are multiples of. */
static int widest(const cf_tensor *t, int64_t channels) {
    const int64_t distances[] = {channels, t->sample_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]};
    int wide = 16 / (int)cf_dtype_bytes(t->dtype);
    for (size_t i = 0; i < sizeof distances / sizeof distances[0]; ++i)
        while (distances[i] % wide)
            wide /= 2;
    return wide;
}

/* Of a whole sample. */
static bool is_near(const cf_tensor *t, const int64_t size[3]) {
    int64_t span = 0;
    for (int a = 0; a < 3; ++a)
        span += (size[a] - 1) * t->axis_stride[a];
    return span < INT32_MAX;
}

cf_fused_turn cf_fused_turn_of(const cf_layer *layer, int pass, const cf_strategy *s) {
    cf_fused_turn turn = {0};
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
    /* Elements of gx that no tap meets have no plane's numbers. */
    const bool whole = pass != CF_PASS_DATA || !x || cf_strategy_gx_store(layer, s) == CF_GX_DIRECT;
    if (!together || !whole || points >= INT32_MAX || extent[0] == 0)
        return turn;
    const int64_t plane = cf_round_up(points, QUAD / number);
    turn.blocks = cf_ceil_div(extent[1], ACROSS) * cf_ceil_div(points, POINTS) * extent[0];
    if (turn.blocks > INT32_MAX)
        return (cf_fused_turn){0};
    turn.x = x;
    turn.reads = pass == CF_PASS_WEIGHTS || form == CF_FUSED_GATHER;
    turn.tensor = *t;
    memcpy(turn.extent, extent, sizeof turn.extent);
    turn.planes = (cf_tensor){.dtype = dtype,
                              .sample_stride = extent[1] * plane,
                              .channel_stride = plane,
                              .group_stride = extent[1] * plane,
                              .axis_stride = {extent[3] * extent[4], extent[4], 1}};
    turn.wide = widest(t, extent[1]);
    turn.bytes = (size_t)(extent[0] * extent[1] * plane * number);
    turn.shared = ACROSS * (POINTS + 1) * number;
    return turn;
}

void cf_fused_turn_emit(const cf_fused_turn *turn, int variant, cf_text *t) {
    static const char *const storages[] = {"plain", "fp16", "bf16", "plain"};
    const int64_t *const e = turn->extent, *const stride = turn->tensor.axis_stride;
    cf_text_add(
        t,
        "struct Tensor {\ntypedef %s Storage;\ntypedef %s Offset;\nstatic constexpr int CHANNELS = %lld, WIDE = %d;\n",
        storages[turn->tensor.dtype], is_near(&turn->tensor, e + 2) ? "int" : "long long", (long long)e[1],
        variant == 0 ? turn->wide : 1);
    cf_text_add(
        t,
        "static constexpr unsigned EXTENT[3] = {%lld, %lld, %lld};\nstatic constexpr long long SAMPLE = %lld, PLANE = "
        "%lld, AXIS[3] = {%lld, %lld, %lld};\n};\n",
        (long long)e[2], (long long)e[3], (long long)e[4], (long long)turn->tensor.sample_stride,
        (long long)turn->planes.channel_stride, (long long)stride[0], (long long)stride[1], (long long)stride[2]);
    cf_text_add(t,
                "extern \"C\" __global__ void __launch_bounds__(256) cf_fused(const TurnCall call) {" CF_KERNEL_WAITS
                "    turn_%s_planes<Tensor>(call);\n}\n",
                turn->reads ? "to" : "from");
}

/* TurnCall of nhwc_transpose.cuh. */
typedef struct turn_call {
    const void *from;
    void *to;
    const void *bias;
    int accumulate;
} turn_call;

conv_fft_status cf_fused_turn_run(const cf_fused_turn *turn, cf_kernel *const kernels[2], const void *tensor,
                                  void *planes, const void *bias, bool accumulate, struct CUstream_st *stream) {
    turn_call call = {.from = turn->reads ? tensor : planes,
                      .to = turn->reads ? planes : (void *)(uintptr_t)tensor,
                      .bias = bias,
                      .accumulate = accumulate};
    const size_t unit = (size_t)turn->wide * cf_dtype_bytes(turn->tensor.dtype);
    const cf_launch shape = {{(unsigned)turn->blocks, 1, 1}, {256, 1, 1}, (size_t)turn->shared};
    void *parameters[] = {&call};
    return cf_kernel_launch(kernels[turn->wide > 1 && (uintptr_t)tensor % unit != 0], &shape, parameters, stream);
}
