/* SPDX-License-Identifier: Apache-2.0 */
/* Both gradients in one kernel: which layers have it, how it is divided into blocks, and its text. */
#include "conv/toeplitz/toeplitz.h"

#include "core/arith.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>

enum {
    SUMS_BYTES = 512,  /* of D of a warp, for eight columns of x */
    REGISTERS = 168,   /* of a thread: so three blocks of four warps fit */
    MAX_HELD = 92,     /* of them, for fragments of B and sums of gw. With more, two kernels are faster. */
    MAX_HELD_FP32 = 48 /* the same for FP32 signals, whose operands need more */
};

static int tile_units(const cf_toeplitz_access *a) { return cf_toeplitz_tile_of(a->rows, a->units, a->step).size; }

/* Signals with channels first, whose gradients have the same tiles in kernels of their own. B is in registers. */
static bool have_same_tiles(const cf_toeplitz_config *data, const cf_toeplitz_config *weights) {
    return weights->mode == CONV_FFT_PAD_ZEROS && data->line && weights->line && !data->last && !weights->last &&
           !data->in_shared_memory && data->width == weights->width && data->warps == weights->warps &&
           data->tiles_across == weights->tiles_across && weights->planes == 1 && weights->shares == 1 &&
           weights->stride[1] == 1;
}

static bool is_line_last(const cf_toeplitz_config *c) { return c->line && c->aligned; }

/* Registers of a thread that keep their contents over all items. */
static int held_registers(const cf_toeplitz_both *both) {
    return 2 * both->data.steps * both->data.terms + 4 * both->weights.reach;
}

bool cf_toeplitz_configure_both(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                cf_toeplitz_both *both) {
    cf_toeplitz_config *const data = &both->data, *const weights = &both->weights;
    if (cf_toeplitz_configure(layer, CF_PASS_DATA, properties, any_alignment, data) != CONV_FFT_SUCCESS ||
        cf_toeplitz_configure(layer, CF_PASS_WEIGHTS, properties, any_alignment, weights) != CONV_FFT_SUCCESS)
        return false;
    if (is_line_last(data) && is_line_last(weights))
        return cf_toeplitz_join_lines_last(properties, both);
    if (data->in_place && weights->in_place)
        return cf_toeplitz_join_in_place(layer, properties, both);
    if (!have_same_tiles(data, weights) ||
        held_registers(both) > (data->dtype == CONV_FFT_FP32 ? MAX_HELD_FP32 : MAX_HELD))
        return false;
    const int before = data->column_pad, step = data->x.step;
    if (before < 0 || before % data->x.numbers != 0 || before / data->x.numbers + step > data->x.units)
        return false;
    data->of_both = weights->of_both = true;
    data->planes = 1;
    weights->before = before / data->x.numbers;
    weights->y = data->x;
    const int out = (16 * data->warps * cf_toeplitz_out_pitch(data->blocks, data->x.numbers)) | 1,
              x = cf_toeplitz_both_x(tile_units(&weights->x), out);
    both->shared = cf_max((int64_t)2 * (x + tile_units(&data->x)) * CF_TOEPLITZ_UNIT,
                          (int64_t)weights->warps * weights->reach * SUMS_BYTES);
    return both->shared <= properties->shared_per_block;
}

conv_fft_status cf_toeplitz_both_source(const cf_toeplitz_both *both, cf_source *source) {
    cf_source of_gx, of_gw;
    CF_FORWARD(cf_toeplitz_source(&both->data, false, &of_gx));
    const conv_fft_status status = cf_toeplitz_source(&both->weights, false, &of_gw);
    if (status != CONV_FFT_SUCCESS) {
        free((void *)of_gx.text);
        return status;
    }
    char tail[8192];
    cf_text t = {tail, sizeof tail, 0};
    const cf_toeplitz_config *w = &both->weights;
    const bool own_blocks = w->in_place || is_line_last(w);
    cf_text_add(&t, "namespace of_gx {\n%s}\nnamespace of_gw {\n%s}\nCF_TOEPLITZ_BOTH_KERNEL(%s, %d, %d)\n", of_gx.text,
                of_gw.text,
                w->in_place       ? "toeplitz_last_both"
                : is_line_last(w) ? "lines_last_both"
                                  : "toeplitz_both",
                w->threads, own_blocks ? w->resident : 65536 / (REGISTERS * w->threads));
    *source = of_gw;
    free((void *)of_gx.text);
    free((void *)of_gw.text);
    source->dynamic_shared = (size_t)both->shared;
    return cf_source_set_text(source, &t);
}
