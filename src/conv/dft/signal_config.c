/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of family dft: which ones it computes, and how a pass is divided into tiles and blocks. */
#include "conv/dft/dft.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "core/text.h"

enum {
    UNIT_BYTES = 16,
    MIN_POINTS = 65, /* of the longer one of x and y; shorter signals are planes */
    GRANULE = 8,     /* elements of a copy */
    MIN_VALID = 256, /* results of a tile */
    MAX_RADIX = 16,
    MAX_SLICES = 1024
};

/* Elements of a tile, which is half as many complex numbers. */
static int64_t tile_of(int radix) { return 512ll * radix; }

bool cf_dft_is_signal(const cf_layer *layer) {
    for (int i = 0; i < 2; ++i) {
        const cf_axis *a = &layer->axis[i];
        if (a->input != 1 || a->kernel != 1 || a->output != 1 || a->pad_before != 0)
            return false;
    }
    return cf_max(layer->axis[2].input, layer->axis[2].output) >= MIN_POINTS;
}

bool cf_dft_serves_signal(const cf_layer *layer, const char **why) {
    const cf_axis *a = &layer->axis[2];
    *why = "dft computes signals padded by zeros, without stride or dilation";
    if (a->mode != CONV_FFT_PAD_ZEROS || a->stride != 1 || (a->dilation != 1 && a->kernel > 1))
        return false;
    *why = "dft computes signals with fewer taps, and fewer than 2^30 points";
    if (a->input < 1 || a->output < 1 || a->kernel > tile_of(MAX_RADIX) - MIN_VALID - GRANULE ||
        cf_max(a->input, a->output) + a->kernel >= 1 << 30 || a->pad_before >= 1 << 29 || a->pad_before <= -(1 << 29))
        return false;
    *why = "dft computes signals whose elements are contiguous";
    return layer->x.axis_stride[2] == 1 && layer->y.axis_stride[2] == 1;
}

static bool in_granules(const cf_tensor *t, const cf_layer *layer, int64_t count) {
    return count % GRANULE == 0 && (layer->batch == 1 || t->sample_stride % GRANULE == 0) &&
           (layer->groups == 1 || t->group_stride % GRANULE == 0);
}

/* Tiles with as many results each as the fewest tiles need. */
static void set_tiles(cf_dft_config *c, int radix, int64_t outputs) {
    const int64_t most = (tile_of(radix) - c->kernel[1] - c->signal.shift + 1) / GRANULE * GRANULE,
                  tiles = cf_ceil_div(outputs, cf_max(1, most));
    c->signal.radix = radix;
    c->signal.lines = 4;
    c->signal.valid = (int)cf_round_up(cf_ceil_div(outputs, tiles), GRANULE);
    c->signal.tiles = (int)cf_ceil_div(outputs, c->signal.valid);
}

/* How long the blocks take, by comparison: a spectrum of w, or the taps of a slice, take about as long as a round. */
static int64_t rounds_of(const cf_dft_config *c, int64_t items, int64_t slices, const cf_gpu_properties *p) {
    return cf_ceil_div(c->groups * slices, p->multiprocessors * c->resident) * (cf_ceil_div(items, slices) + 1);
}

conv_fft_status cf_dft_configure_signal(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                        bool any_alignment, cf_dft_config *config) {
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_axis *const a = &layer->axis[2];
    const int granule =
        !any_alignment && in_granules(&layer->x, layer, a->input) && in_granules(&layer->y, layer, a->output) ? GRANULE
                                                                                                              : 1;
    const cf_dft_plane x = {1, (int)a->input, granule}, y = {1, (int)a->output, granule};
    const int64_t pad = data ? a->kernel - 1 - a->pad_before : a->pad_before,
                  before = pad >= 0 ? cf_round_up(pad, GRANULE) : -(-pad / GRANULE * GRANULE);
    cf_dft_config c = {.pass = pass,
                       .dtype = layer->x.dtype,
                       .weights = weights ? layer->gw.dtype : layer->w.dtype,
                       .bias = cf_tensor_bias_dtype(&layer->y),
                       .x = data ? y : x,
                       .y = data ? x : y,
                       .kernel = {1, (int)a->kernel},
                       .samples = layer->batch,
                       .groups = layer->groups,
                       .signal = {.first = (int)-before, .shift = (int)(before - pad)}};
    const int64_t outputs = c.y.columns, longest = tile_of(8) - MIN_VALID - GRANULE;
    set_tiles(&c, a->kernel > longest ? MAX_RADIX : 8, outputs);
    if (c.signal.radix < MAX_RADIX) {
        cf_dft_config other = c;
        set_tiles(&other, MAX_RADIX, outputs);
        if (2 * other.signal.tiles < c.signal.tiles)
            c = other;
    }
    const cf_dft_signal_sizes sizes = cf_dft_signal_sizes_of(c.signal.radix, c.signal.lines, c.dtype == CONV_FFT_BF16);
    c.threads = 32 * c.signal.radix;
    c.resident = 16 / c.signal.radix;
    c.shared = UNIT_BYTES * sizes.units + 4ll * sizes.numbers;
    if (c.shared > properties->shared_per_block || c.groups > INT32_MAX ||
        c.samples * c.signal.tiles > INT32_MAX / 4 * 3)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "tiles take %lld bytes, and a block has %lld", (long long)c.shared,
                       (long long)properties->shared_per_block);
    const int64_t together = weights ? c.signal.lines / 2 : c.signal.lines,
                  items = cf_ceil_div(c.samples * c.signal.tiles, together);
    int64_t slices = 1;
    for (int64_t other = 2; other <= cf_min(items, MAX_SLICES); ++other)
        if (rounds_of(&c, items, other, properties) < rounds_of(&c, items, slices, properties))
            slices = other;
    c.grid[0] = c.groups;
    c.grid[1] = slices;
    c.signal.blocks = cf_min(c.groups * slices, properties->multiprocessors * c.resident);
    *config = c;
    return CONV_FFT_SUCCESS;
}

void cf_dft_signal_text(const cf_dft_config *c, cf_text *t) {
    const cf_dft_signal *s = &c->signal;
    cf_text_add(t,
                "static constexpr int RADIX = %d, LINES = %d, GRANULE = %d, X_COUNT = %d, Y_COUNT = %d, FIRST = %d, "
                "VALID = %d, TILES = %d, KERNEL_Y = 1, KERNEL_X = %d, SHIFT = %d;\n",
                s->radix, s->lines, c->x.granule, c->x.columns, c->y.columns, s->first, s->valid, s->tiles,
                c->kernel[1], s->shift);
}
