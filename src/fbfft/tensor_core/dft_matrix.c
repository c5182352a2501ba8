/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/tensor_core/dft_matrix.h"

#include "core/arith.h"
#include "cuda/jit/nvrtc.h"

enum {
    TABLE = 32, /* bytes of the table entry of a plane */
    THREADS = 256,
    MAX_STEPS = 9,      /* of sixteen taps each; they stay in registers */
    MAX_TWIDDLES = 4096 /* different roots of unity in the matrix */
};

/* The numbers that Dense of the kernel computes too: steps of a sum, tiles of eight bins or pairs of bins, and bin
 * tiles. */
typedef struct dense_shape {
    int64_t period, steps, tiles, bin_tiles, bin_tile;
    bool split;
} dense_shape;

static int64_t steps_of(int64_t taps) { return cf_ceil_div(taps, 16); }

/* Elements at even (0) or odd (1) positions. */
static int64_t rows_of(int64_t first, int64_t spread, int64_t count, int64_t parity) {
    int64_t rows = 0;
    for (int64_t e = 0; e < count; ++e)
        rows += (first + e * spread) % 2 == parity;
    return rows;
}

/* Planes of a warp. With more operands, threads have too few registers. Planes that share a launch with others should
 * be few. */
static int planes_of(const cf_transform_desc *t, int64_t steps) {
    const int64_t points = t->spectrum.basis[0] * t->spectrum.basis[1] * t->spectrum.basis[2];
    return t->tensor.dtype == CONV_FFT_FP32 || steps > 6 || points <= 256 ? 16 : 32;
}

static int64_t period_of(const int64_t basis[3]) {
    int64_t period = 1;
    for (int x = 0; x < 3; ++x)
        period = period / cf_gcd(period, basis[x]) * basis[x];
    return period;
}

/* The part of the matrix that a bin tile has. Layers of 64 x 64 and 128 x 128 with windows of 9 x 9 then have about
 * as many blocks as an H200 can run at once. */
static dense_shape shape_of(const cf_transform_desc *t) {
    const int64_t *basis = t->spectrum.basis;
    const cf_axis_window *w = t->window.axis;
    const int64_t across = w[0].count * w[2].count, whole = steps_of(across * w[1].count);
    const int64_t split_steps = steps_of(across * rows_of(w[1].first, w[1].spread, w[1].count, 0)) +
                                steps_of(across * rows_of(w[1].first, w[1].spread, w[1].count, 1));
    dense_shape s = {.period = period_of(basis), .split = basis[1] % 2 == 0 && split_steps < 2 * whole};
    s.steps = s.split ? split_steps : whole;
    s.tiles = cf_ceil_div(basis[0] * (s.split ? basis[1] / 2 : basis[1]) * (basis[2] / 2 + 1), 8);
    s.bin_tiles = cf_ceil_div(s.tiles, cf_max(1, (planes_of(t, s.steps) == 32 ? 56 : 112) / s.steps));
    s.bin_tile = cf_ceil_div(s.tiles, s.bin_tiles);
    return s;
}

bool cf_dense_takes(const int64_t basis[3], const int64_t counts[3]) {
    const int64_t taps = counts[0] * counts[1] * counts[2];
    return period_of(basis) <= MAX_TWIDDLES && taps > 0 && taps <= 16 * (MAX_STEPS - 1) &&
           4 * taps <= basis[0] * basis[1] * basis[2];
}

bool cf_dense_suits(const cf_shared_fft_config *tile, const cf_gpu_properties *properties) {
    const cf_shared_fft_problem *p = &tile->problem;
    const cf_transform_desc *t = &p->fft.transform;
    const conv_fft_dtype spectrum = t->spectrum.dtype, tensor = t->tensor.dtype;
    const bool is_16bit = spectrum == CONV_FFT_FP16 || spectrum == CONV_FFT_BF16,
               types = tensor == spectrum || (tensor == CONV_FFT_FP32 && spectrum == CONV_FFT_FP16);
    const int64_t columns = t->spectrum.columns,
                  counts[3] = {t->window.axis[0].count, t->window.axis[1].count, t->window.axis[2].count};
    const bool alone = !p->sliced[0] && !p->sliced[1] && !p->sliced[2] && p->split == 0 && p->row_stride == columns &&
                       p->column_split == columns && p->column_stride == 1;
    if (!is_16bit || !types || !alone || t->inverse || t->scale != 1.0 || tile->kind == CF_SHARED_FFT_COMPLEX ||
        !p->fft.layout.frequency_major || properties->compute_major < 8 || !cf_dense_takes(t->spectrum.basis, counts))
        return false;
    const dense_shape s = shape_of(t);
    cf_shared_fft_config own = *tile;
    cf_dense_configure(&own, 0, properties);
    return s.steps <= MAX_STEPS && own.shared <= properties->shared_per_block;
}

/* The smallest number of registers with which compilers spill nothing. */
static int64_t registers_of(const cf_transform_desc *t, const dense_shape *s, int planes) {
    const int64_t parts = t->tensor.dtype == CONV_FFT_FP32 ? 2 : 1, sums = s->split ? 2 : 1;
    return cf_round_up(44 + planes / 8 * (2 * parts * s->steps + 4 * sums), 8);
}

void cf_dense_configure(cf_shared_fft_config *tile, int threads, const cf_gpu_properties *properties) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    const dense_shape s = shape_of(t);
    const int of_warp = planes_of(t, s.steps);
    tile->bin_tiles = (int)s.bin_tiles;
    tile->threads = threads > 0 ? threads : THREADS;
    tile->planes = tile->threads / 32 * of_warp;
    tile->vector_width = 1;
    tile->finds_scales = cf_spectrum_is_scaled(t->spectrum.dtype) && t->spectrum.columns % 8 == 0;
    const int64_t part = t->tensor.dtype == CONV_FFT_FP32 ? 2 : 1,
                  stage = 8 * part * (8 * s.steps + (s.steps % 2 ? 0 : 8));
    tile->shared = TABLE * tile->planes + 4 * (cf_round_up(s.period, 4) + 64 * s.steps + s.bin_tile * s.steps * 128 +
                                               tile->threads / 32 * stage);
    const int64_t by_registers =
                      properties->registers_per_multiprocessor / (tile->threads * registers_of(t, &s, of_warp)),
                  by_shared =
                      properties->shared_per_multiprocessor / (tile->shared + properties->shared_reserved_per_block);
    tile->blocks = (int)cf_max(1, cf_min(by_registers, by_shared));
}

void cf_dense_emit(const cf_shared_fft_config *tile, cf_text *t) {
    cf_text_add(t, "CF_DENSE_FFT_KERNEL(%d, %d)\n", tile->threads, tile->blocks);
}

void cf_dense_describe(const cf_shared_fft_config *tile, cf_text *t) {
    cf_text_add(t,
                "forward transform, real, by one matrix product, planes per block %d, tiles of bins %d, threads %d, "
                "shared memory %lld bytes",
                tile->planes, tile->bin_tiles, tile->threads, (long long)tile->shared);
}
