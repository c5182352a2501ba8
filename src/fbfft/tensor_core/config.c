/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/tensor_core/config.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/shared_memory/geometry.h"
#include "fbfft/tensor_core/dft_matrix.h"
#include "fbfft/tensor_core/geometry.h"

enum {
    SHORT_WARPS = 4,
    PLANES = 8 /* of a plane group */
};

static bool is_line(const cf_transform_desc *t) { return t->spectrum.basis[0] * t->spectrum.basis[1] == 1; }

static bool is_short(const cf_transform_desc *t) { return is_line(t) && t->spectrum.basis[2] <= CF_TENSOR_FFT_SHORT; }

/* Rows of a plane, or N1 of a line. */
static int rows_of(const cf_transform_desc *t) {
    return is_line(t) ? cf_tensor_fft_split((int)t->spectrum.basis[2]) : (int)t->spectrum.basis[1];
}

/* Bytes of a plane group. */
static int64_t plane_group_bytes(const cf_shared_fft_config *tile) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    const int bytes = (int)cf_dtype_bytes(t->tensor.dtype), rows = rows_of(t), points = (int)t->spectrum.basis[2];
    int words = 0;
    if (is_short(t)) {
        if (cf_tensor_fft_through(tile->planes_interleaved, tile->vector_width, bytes))
            words = PLANES * cf_tensor_fft_short_row(bytes, points);
    } else {
        const cf_axis_window *w = &t->window.axis[1];
        const int columns = (int)(t->spectrum.basis[1] * points / rows);
        const int64_t end = w->first + (w->count - 1) * w->spread + 1;
        const int tiles = is_line(t) ? rows / 16 : cf_tensor_fft_row_tiles((int)w->first, (int)end);
        const cf_tensor_fft_layout l = cf_tensor_fft_layout_of(tile->planes_interleaved, is_line(t),
                                                               t->tensor.dtype == CONV_FFT_FP32, rows, columns, tiles);
        words = t->inverse ? l.inverse : l.forward;
    }
    return PLANES * CF_SHARED_FFT_TABLE + 4 * words;
}

/* Forward: whether a window is as small as a layer's weights. The steps of shared_memory/steps.cuh then leave out
 * most of the work and round less, or one matrix product computes all. */
static bool is_small(const cf_transform_desc *t) {
    const cf_axis_window *w = t->window.axis;
    const int64_t *n = t->spectrum.basis;
    return !t->inverse && 4 * w[0].count * w[1].count * w[2].count <= n[0] * n[1] * n[2];
}

/* On an H200, layers with 16 x 16 points take as long as with shared_memory/kernel.cuh if planes are not interleaved,
 * and up to 28 % less if they are. */
bool cf_tensor_fft_takes_plane(const int64_t n[3], bool interleaved) {
    const bool large = (n[1] == 32 || n[1] == 64) && (n[2] == 32 || n[2] == 64);
    return n[0] == 1 && (large || (interleaved && n[1] == 16 && n[2] == 16));
}
bool cf_tensor_fft_takes_line(const int64_t n[3], bool interleaved) {
    const bool power = (n[2] & (n[2] - 1)) == 0;
    return n[0] == 1 && n[1] == 1 && n[2] >= 16 &&
           (interleaved ? n[2] <= CF_TENSOR_FFT_SHORT && n[2] % 8 == 0 : n[2] <= 4096 && power);
}

bool cf_tensor_fft_suits(const cf_shared_fft_config *tile, const cf_gpu_properties *properties) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    if (is_small(t))
        return cf_dense_suits(tile, properties);
    const bool is_16bit = t->spectrum.dtype == CONV_FFT_FP16 || t->spectrum.dtype == CONV_FFT_BF16,
               plane = cf_tensor_fft_takes_plane(t->spectrum.basis, tile->planes_interleaved),
               line = tile->kind == CF_SHARED_FFT_PACKED_REAL &&
                      cf_tensor_fft_takes_line(t->spectrum.basis, tile->planes_interleaved);
    /* FP32 planes have FP16 spectra with scales. These keep as many bits as TF32. */
    const bool types = t->tensor.dtype == t->spectrum.dtype ||
                       (t->tensor.dtype == CONV_FFT_FP32 && t->spectrum.dtype == CONV_FFT_FP16);
    /* The kernels count lines in 32 bits. */
    const bool counts_fit = !is_short(t) || t->spectrum.rows * t->spectrum.columns < (int64_t)1 << 30;
    bool data = true;
    for (int x = 0; x < 3; ++x)
        data = data && t->window.axis[x].count > 0 && !tile->problem.sliced[x];
    return is_16bit && types && data && counts_fit && tile->problem.fft.layout.frequency_major &&
           (line || (tile->kind == CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX && plane)) &&
           (!tile->planes_interleaved || t->spectrum.channels % PLANES == 0) && (t->inverse || t->scale == 1.0) &&
           properties->compute_major >= 8 && plane_group_bytes(tile) <= properties->shared_per_block;
}

/* Plane groups of a block. For interleaved 16-bit planes it is two if two blocks of one group would fit a
 * multiprocessor: then they read and write whole sectors. For lines of 256 and 512 points it is several, because
 * blocks would spend most of their time with addresses. */
static int plane_groups_of(const cf_shared_fft_config *tile, const cf_gpu_properties *properties) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    const int64_t *basis = t->spectrum.basis;
    if (is_short(t)) /* as many as the registers of a warp allow */
        return SHORT_WARPS * (basis[2] > 64 && t->tensor.dtype == CONV_FFT_FP32 ? 2 : 4);
    if (is_line(t))
        return basis[2] == 256 ? 4 : basis[2] == 512 ? 2 : 1;
    return tile->planes_interleaved && t->tensor.dtype != CONV_FFT_FP32 && t->spectrum.channels % (2 * PLANES) == 0 &&
                   basis[1] == basis[2] && 2 * plane_group_bytes(tile) <= properties->shared_per_block
               ? 2
               : 1;
}

/* Numbers of a row, or interleaved planes, that a lane reads or writes at once. */
static int widest(const cf_shared_fft_config *tile) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    const bool floats = t->tensor.dtype == CONV_FFT_FP32;
    if (is_line(t) && !is_short(t)) { /* forward, N1 / 16 neighbours; inverse, 2 EACH, in FP32 as two vectors */
        const int rows = rows_of(t), each = rows == 16 ? 2 : 4;
        int vector_width = !t->inverse ? rows / 16 : floats ? each : 2 * each;
        while (vector_width > 1 && !cf_shared_fft_has_vectors(tile, vector_width))
            vector_width /= 2;
        return vector_width;
    }
    if (!tile->planes_interleaved)
        return !floats && t->spectrum.basis[2] > 16 && cf_shared_fft_has_vectors(tile, 8) ? 8
               : cf_shared_fft_has_vectors(tile, 4)                                       ? 4
               : cf_shared_fft_has_vectors(tile, 2)                                       ? 2
                                                                                          : 1;
    int vector_width = !t->inverse ? 2 : is_short(t) ? floats ? 2 : 4 : tile->planes / 4;
    while (t->tensor.sample_stride % vector_width || t->tensor.group_stride % vector_width)
        vector_width /= 2;
    for (int x = 0; x < 3; ++x)
        while (t->window.axis[x].size > 1 && t->tensor.axis_stride[x] % vector_width)
            vector_width /= 2;
    return vector_width;
}

/* Blocks for which the plane groups of short lines fit the registers without spills. */
static int short_blocks(const cf_transform_desc *t) {
    const bool floats = t->tensor.dtype == CONV_FFT_FP32;
    const int64_t points = t->spectrum.basis[2];
    return points > 80   ? t->inverse && !floats ? 3 : 4
           : points > 32 ? t->inverse || floats || points > 64 ? 4 : 6
           : points > 16 ? t->inverse ? 6 : 8
                         : 8;
}

/* Set the blocks and threads that are fastest on an H200. */
void cf_tensor_fft_configure(cf_shared_fft_config *tile, const cf_gpu_properties *properties) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    const int64_t points = t->spectrum.basis[1] * t->spectrum.basis[2];
    if (is_small(t)) {
        cf_dense_configure(tile, 0, properties);
        return;
    }
    const int plane_groups = plane_groups_of(tile, properties);
    tile->planes = plane_groups * PLANES;
    tile->finds_scales = !t->inverse && cf_spectrum_is_scaled(t->spectrum.dtype) && t->spectrum.columns % PLANES == 0;
    if (is_short(t)) {
        tile->threads = 32 * SHORT_WARPS;
        tile->blocks = short_blocks(t);
    } else if (is_line(t)) {
        tile->threads = points == 256 || points == 4096 ? 256 : 128;
        tile->blocks = points == 256 ? 4 : points <= 1024 ? 6 : points == 2048 ? 4 : 2;
    } else {
        tile->threads = plane_groups * (points <= 256 ? 64 : points <= 1024 ? 128 : 256);
        tile->blocks = (points <= 256 ? 16 : points <= 1024 ? 4 : t->spectrum.basis[1] == 32 ? 3 : 2) / plane_groups;
    }
    tile->vector_width = widest(tile);
    tile->shared = plane_groups * plane_group_bytes(tile);
    if (is_short(t)) /* planes that go through shared memory */
        tile->blocks = (int)cf_min(tile->blocks, properties->shared_per_multiprocessor /
                                                     (tile->shared + properties->shared_reserved_per_block));
}

cf_shared_fft_config cf_tensor_fft_unaligned(const cf_shared_fft_config *tile) {
    cf_shared_fft_config c = cf_shared_fft_unaligned(tile);
    if (!c.bin_tiles)
        c.shared = c.planes / PLANES * plane_group_bytes(&c);
    return c;
}

void cf_tensor_fft_emit(const cf_shared_fft_config *tile, cf_text *t) {
    cf_shared_fft_emit_config(tile, "Config", t);
    if (tile->bin_tiles) {
        cf_dense_emit(tile, t);
        return;
    }
    cf_text_add(t, "CF_TENSOR_FFT_KERNEL(%s, %d, %d)\n", tile->problem.fft.transform.inverse ? "inverse" : "forward",
                tile->threads, tile->blocks);
}

void cf_tensor_fft_describe(const cf_shared_fft_config *tile, cf_text *t) {
    if (tile->bin_tiles) {
        cf_dense_describe(tile, t);
        return;
    }
    cf_text_add(t,
                "%s transform, real, by matrix products, planes per block %d, threads %d, shared memory %lld bytes, "
                "%s by %d",
                tile->problem.fft.transform.inverse ? "inverse" : "forward", tile->planes, tile->threads,
                (long long)tile->shared, tile->planes_interleaved ? "planes" : "rows", tile->vector_width);
}
