/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/tensor_core/dft_matrix.h"

#include "core/arith.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/shared_memory/geometry.h"
#include "fbfft/tensor_core/geometry.h"

enum {
    THREADS = 256,
    MAX_STEPS = 9,      /* of sixteen taps each; they stay in registers */
    MAX_TWIDDLES = 4096 /* different roots of unity in the matrix */
};

/* Planes of a warp. With more operands, threads have too few registers. Planes that share a launch with others should
 * be few. */
static int planes_of(const cf_transform_desc *t, int64_t steps) {
    const int64_t points = t->spectrum.basis[0] * t->spectrum.basis[1] * t->spectrum.basis[2];
    return t->tensor.dtype == CONV_FFT_FP32 || steps > 6 || points <= 256 ? 16 : 32;
}

static int64_t period_of(const int64_t basis[3]) { return cf_dense_period(basis[0], basis[1], basis[2]); }

static cf_dense_sum sum_of(const cf_transform_desc *t) {
    const cf_axis_window *w = t->window.axis;
    return cf_dense_sum_of(t->spectrum.basis[1], (int)w[1].first, (int)w[1].spread, (int)w[0].count, (int)w[1].count,
                           (int)w[2].count);
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
               types = tensor == spectrum || tensor == CONV_FFT_FP32;
    const int64_t columns = t->spectrum.columns,
                  counts[3] = {t->window.axis[0].count, t->window.axis[1].count, t->window.axis[2].count};
    const bool alone = !p->sliced[0] && !p->sliced[1] && !p->sliced[2] && p->split == 0 && p->row_stride == columns &&
                       p->column_split == columns && p->column_stride == 1;
    if (!is_16bit || !types || !alone || t->inverse || t->scale != 1.0 || tile->kind == CF_SHARED_FFT_COMPLEX ||
        !p->fft.layout.frequency_major || properties->compute_major < 8 || !cf_dense_takes(t->spectrum.basis, counts))
        return false;
    cf_shared_fft_config own = *tile;
    cf_dense_configure(&own, 0, properties);
    return sum_of(t).steps <= MAX_STEPS && own.shared <= properties->shared_per_block;
}

/* The smallest number of registers with which compilers spill nothing. */
static int64_t registers_of(const cf_transform_desc *t, const cf_dense_sum *s, int planes) {
    const int64_t parts = t->tensor.dtype == CONV_FFT_FP32 ? 2 : 1, sums = s->split ? 2 : 1;
    return cf_round_up(44 + planes / 8 * (2 * parts * s->steps + 4 * sums), 8);
}

void cf_dense_configure(cf_shared_fft_config *tile, int threads, const cf_gpu_properties *properties) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    const cf_dense_sum s = sum_of(t);
    const int of_warp = planes_of(t, s.steps);
    const int64_t *basis = t->spectrum.basis;
    const cf_dense_bins bins = cf_dense_bins_of(basis[0], basis[1], basis[2], s.split, s.steps, of_warp);
    tile->bin_tiles = (int)bins.bin_tiles;
    tile->threads = threads > 0 ? threads : THREADS;
    tile->planes = tile->threads / 32 * of_warp;
    tile->vector_width = 1;
    tile->finds_scales = cf_spectrum_is_scaled(t->spectrum.dtype) && t->spectrum.columns % 8 == 0;
    const int parts = t->tensor.dtype == CONV_FFT_FP32 ? 2 : 1;
    const cf_dense_layout l = cf_dense_layout_of(period_of(basis), s.steps, bins.bin_tile, parts, tile->threads / 32);
    tile->shared = (int64_t)CF_SHARED_FFT_TABLE * tile->planes + 4 * (int64_t)l.words;
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
