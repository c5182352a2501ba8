/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers the family computes, how a pass is divided into blocks, and the text of its kernels. */
#include "conv/dft/dft.h"

#include "conv/gpu/slice_adder.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "core/text.h"
#include "cuda/jit/kernel_sources.h"
#include "fbfft/common/kernel_text.h"
#include "fbfft/warp/config.h"

#include <math.h>

enum {
    UNIT_BYTES = 16,
    MAX_EXTENT = 64, /* of a plane, and of a kernel */
    MAX_BASIS = 80,
    FEW_WARPS = 3, /* teams with at most so many warps compute four planes together */
    WARPS = 12,    /* of a multiprocessor that registers suffice for */
    GRADIENT_WARPS = 16,
    MAX_GRID = 65535,
    GAINS = 512 /* that are tried */
};

/* ---------------------------------------------------------------------------------------------------------- layers */

static bool is_short(conv_fft_dtype dtype) { return dtype == CONV_FFT_FP16 || dtype == CONV_FFT_BF16; }

/* The points of the circular convolution along an axis: no tap meets an element that it does not meet in the layer. It
 * is a multiple of four, so that one table has sines and cosines. */
static int64_t basis_of(const cf_axis *a) {
    const int64_t needed = cf_max(cf_max(a->input + a->pad_before, a->output + a->kernel - 1 - a->pad_before),
                                  cf_max(a->kernel, cf_max(a->input, a->output)));
    return cf_round_up(needed, 4);
}

static bool has_rows(const cf_layer *layer, const cf_tensor *t) {
    const int64_t sample = layer->batch > 1 ? t->sample_stride : 0;
    return t->axis_stride[2] == 1 && sample < INT32_MAX / 4 && sample > INT32_MIN / 4 &&
           t->axis_stride[1] < INT32_MAX / 256 && t->axis_stride[1] > 0;
}

bool cf_dft_serves(const cf_layer *layer, int pass, const char **why) {
    (void)pass;
    *why = "dft computes layers of single channels in FP16 and BF16";
    if (layer->in_channels != 1 || layer->out_channels != 1 || layer->compute != CONV_FFT_FP32 ||
        !is_short(layer->x.dtype))
        return false;
    *why = "dft rounds spectra to 16 bits, which math HALF allows";
    if (layer->problem.math != CONV_FFT_MATH_HALF)
        return false;
    if (cf_dft_is_signal(layer))
        return cf_dft_serves_signal(layer, why);
    *why = "dft computes planes padded by zeros, without stride or dilation";
    if (layer->axis[0].input != 1 || layer->axis[0].kernel != 1 || layer->axis[0].output != 1 ||
        layer->axis[0].pad_before != 0)
        return false;
    for (int i = 1; i < 3; ++i) {
        const cf_axis *a = &layer->axis[i];
        if (a->mode != CONV_FFT_PAD_ZEROS || a->stride != 1 || (a->dilation != 1 && a->kernel > 1))
            return false;
    }
    *why = "dft computes planes and kernels of up to 64 points an axis, and transforms of up to 80";
    for (int i = 1; i < 3; ++i) {
        const cf_axis *a = &layer->axis[i];
        if (a->input < 1 || a->output < 1 || a->input > MAX_EXTENT || a->output > MAX_EXTENT ||
            a->kernel > MAX_EXTENT || basis_of(a) > MAX_BASIS)
            return false;
    }
    *why = "dft computes tensors whose rows are contiguous, and counts the elements of two samples with 31 bits";
    return has_rows(layer, &layer->x) && has_rows(layer, &layer->y);
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static cf_dft_plane plane_of(const cf_layer *layer, const cf_tensor *t, int64_t rows, int64_t columns,
                             bool any_alignment) {
    int granule = any_alignment ? 1 : 8;
    const int64_t multiples[] = {layer->batch > 1 ? t->sample_stride : 0, layer->groups > 1 ? t->group_stride : 0,
                                 rows > 1 ? t->axis_stride[1] : 0, columns};
    for (int i = 0; i < 4; ++i)
        while (multiples[i] % granule != 0)
            granule /= 2;
    return (cf_dft_plane){(int)rows, (int)columns, granule};
}

cf_dft_geometry cf_dft_geometry_for(const cf_dft_config *c) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const cf_dft_extents e = {.rows = (int)cf_max(c->x.rows, weights ? c->y.rows : c->kernel[0]),
                              .columns = (int)cf_max(c->x.columns, weights ? c->y.columns : c->kernel[1]),
                              .out_rows = weights ? c->kernel[0] : c->y.rows,
                              .out_columns = weights ? c->kernel[1] : c->y.columns,
                              .basis_y = c->basis[0],
                              .basis_x = c->basis[1],
                              .planes = c->planes,
                              .taps = !weights};
    return cf_dft_geometry_of(e);
}

/* The samples that a block computes together. */
static int64_t samples_at_once(const cf_dft_config *c) { return c->teams * c->planes; }

/* Blocks of so many teams, and as many slices of the samples as make the GPU busy once, with equal shares. */
static void set_teams(cf_dft_config *c, const cf_dft_geometry *g, int teams, const cf_gpu_properties *p) {
    const bool weights = c->pass == CF_PASS_WEIGHTS;
    const int64_t of_team = 2 * (weights ? 2 : c->planes) * g->plane + (weights ? 2 : 1) * g->mid;
    c->teams = teams;
    c->threads = 32 * g->tiles * teams;
    c->shared = UNIT_BYTES * (teams * of_team + g->first + g->columns + g->table_x + g->spectrum) +
                4ll * (teams * (g->tiles + c->planes) + c->basis[0] + c->basis[1]);
    c->resident = (int)cf_max(1, cf_min((weights ? GRADIENT_WARPS : WARPS) / (g->tiles * teams),
                                        p->shared_per_multiprocessor / (c->shared + 1024)));
    const int64_t items = cf_ceil_div(c->samples, samples_at_once(c)),
                  wanted = p->multiprocessors * c->resident / c->groups,
                  slices = cf_max(1, cf_min(cf_min(items, MAX_GRID), wanted));
    c->grid[0] = c->groups;
    c->grid[1] = cf_ceil_div(items, cf_ceil_div(items, slices));
}

/* How long the blocks take, by comparison: the matrices and the spectrum of w take as long as two rounds. */
static int64_t rounds_of(const cf_dft_config *c, const cf_gpu_properties *p) {
    const int64_t waves = cf_ceil_div(c->grid[0] * c->grid[1], p->multiprocessors * c->resident);
    return waves * (cf_ceil_div(c->samples, c->grid[1] * samples_at_once(c)) + 2);
}

conv_fft_status cf_dft_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                 bool any_alignment, cf_dft_config *config) {
    if (cf_dft_is_signal(layer))
        return cf_dft_configure_signal(layer, pass, properties, any_alignment, config);
    const bool data = pass == CF_PASS_DATA, weights = pass == CF_PASS_WEIGHTS;
    const cf_axis *const axis = &layer->axis[1];
    const cf_dft_plane x = plane_of(layer, &layer->x, axis[0].input, axis[1].input, any_alignment),
                       y = plane_of(layer, &layer->y, axis[0].output, axis[1].output, any_alignment);
    cf_dft_config c = {.pass = pass,
                       .dtype = layer->x.dtype,
                       .weights = weights ? layer->gw.dtype : layer->w.dtype,
                       .bias = cf_tensor_bias_dtype(&layer->y),
                       .x = data ? y : x,
                       .y = data ? x : y,
                       .planes = weights                                                  ? 1
                                 : cf_ceil_div(basis_of(&axis[1]) / 2 + 1, 8) > FEW_WARPS ? 2
                                                                                          : 4,
                       .samples = layer->batch,
                       .groups = layer->groups};
    for (int i = 0; i < 2; ++i) {
        const int64_t pad = axis[i].pad_before, kernel = axis[i].kernel, basis = basis_of(&axis[i]),
                      shift = weights ? -pad
                              : data  ? pad
                                      : kernel - 1 - pad;
        c.kernel[i] = (int)kernel;
        c.basis[i] = (int)basis;
        c.shift[i] = (int)cf_mod(shift, basis);
    }
    const cf_dft_geometry g = cf_dft_geometry_for(&c);
    set_teams(&c, &g, 1, properties);
    if (c.shared > properties->shared_per_block || c.groups > INT32_MAX || c.samples > INT32_MAX / 2)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "planes take %lld bytes, and a block has %lld", (long long)c.shared,
                       (long long)properties->shared_per_block);
    /* Every team has a sample. Of equal times, more teams transform w fewer times. */
    for (int teams = 2; !weights && teams * g.tiles <= WARPS && (teams - 1) * c.planes < c.samples; ++teams) {
        cf_dft_config other = c;
        set_teams(&other, &g, teams, properties);
        if (other.shared <= properties->shared_per_block && rounds_of(&other, properties) <= rounds_of(&c, properties))
            c = other;
    }
    *config = c;
    return CONV_FFT_SUCCESS;
}

size_t cf_dft_bytes(const cf_dft_config *c) {
    return cf_dft_adds(c) ? (size_t)(c->grid[1] * c->groups * c->kernel[0] * c->kernel[1]) * 4 : 0;
}

/* ---------------------------------------------------------------------------------------------------------- kernels */

/* The gain between 1 and 2 with which cosines of n points lose least if they are rounded to 11 or 8 bits. */
static double gain_of(int n, bool eleven) {
    double best = 1, best_error = HUGE_VAL;
    for (int i = 0; i < GAINS; ++i) {
        const double gain = 1 + (double)i / GAINS;
        double error = 0;
        for (int k = 0; 4 * k < n; ++k) {
            const double value = gain * cos(2 * 3.14159265358979323846 * k / n);
            int exponent;
            frexp(value, &exponent);
            const double lost =
                (value - ldexp(rint(ldexp(value, (eleven ? 11 : 8) - exponent)), exponent - (eleven ? 11 : 8))) / gain;
            error += (k == 0 ? 1 : 2) * lost * lost;
        }
        if (error < best_error) {
            best_error = error;
            best = gain;
        }
    }
    return best;
}

static void add_plane(const char *name, const cf_dft_plane *p, cf_text *t) {
    cf_text_add(t, "struct %s {\nstatic constexpr int ROWS = %d, COLUMNS = %d, GRANULE = %d;\n};\n", name, p->rows,
                p->columns, p->granule);
}

conv_fft_status cf_dft_source(const cf_dft_config *c, bool adds, cf_source *source) {
    const bool weights = c->pass == CF_PASS_WEIGHTS, eleven = c->dtype == CONV_FFT_FP16;
    const cf_slice_adder adder = cf_slice_adder_of(c->grid[1]);
    char tail[2048];
    cf_text t = {tail, sizeof tail, 0};
    cf_text_add(&t, "struct Problem {\ntypedef %s Storage;\ntypedef %s Weights;\ntypedef %s Bias;\n",
                cf_storage_name(c->dtype), cf_storage_name(c->weights), cf_storage_name(c->bias));
    if (c->signal.radix) {
        cf_dft_signal_text(c, &t);
    } else {
        add_plane("X", &c->x, &t);
        add_plane("Y", &c->y, &t);
        cf_text_add(&t,
                    "static constexpr int KERNEL_Y = %d, KERNEL_X = %d, BASIS_Y = %d, BASIS_X = %d, SHIFT_Y = %d, "
                    "SHIFT_X = %d, TEAMS = %d, PLANES = %d;\n",
                    c->kernel[0], c->kernel[1], c->basis[0], c->basis[1], c->shift[0], c->shift[1], c->teams,
                    c->planes);
        cf_text_add(&t, "static constexpr float GAIN_Y = %.9ff, GAIN_X = %.9ff;\n", gain_of(c->basis[0], eleven),
                    gain_of(c->basis[1], eleven));
    }
    cf_text_add(&t, "static constexpr int ADD_SUMS = %d, ADD_SHARES = %d;\n", adder.sums, adder.shares);
    cf_text_add(&t, "static constexpr bool FLIP = %s, GRADIENT = %s;\n};\n",
                c->pass == (c->signal.radix ? CF_PASS_DATA : CF_PASS_FORWARD) ? "true" : "false",
                weights ? "true" : "false");
    cf_text_add(&t, "CF_DFT_KERNEL(%s, %d, %d)\n",
                adds              ? "dft_add"
                : weights         ? c->signal.radix ? "dft_signals_gradient" : "dft_gradient"
                : c->signal.radix ? "dft_signals"
                                  : "dft_planes",
                adds ? adder.sums * adder.shares : c->threads, adds ? 1 : c->resident);
    *source = (cf_source){.name = "cf_dft",
                          .headers = {cf_dft_kernel_text, NULL},
                          .options = {CF_FFT_OPTION, NULL},
                          .dynamic_shared =
                              adds ? (size_t)cf_slice_adder_shared(adder, (int)sizeof(float)) : (size_t)c->shared,
                          .pdl_wait = true};
    return cf_source_set_text(source, &t);
}
