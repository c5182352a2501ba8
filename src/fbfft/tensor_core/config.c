/* SPDX-License-Identifier: Apache-2.0 */
#include "fbfft/tensor_core/config.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/tensor_core/dft_matrix.h"

enum {
    SHORT = 128, /* points of the longest line that one warp transforms as a single row */
    SHORT_WARPS = 4,
    PLANES = 8,              /* of a plane group */
    TABLE = 32,              /* bytes of the table entry of a plane */
    WARPS = 64,              /* bytes for the maxima of the warps of shared_memory/kernel.cuh */
    MAXIMA = 16,             /* words for the maxima of a plane group */
    MAXIMA_INTERLEAVED = 128 /* the same if planes are interleaved */
};

static bool is_line(const cf_transform_desc *t) { return t->spectrum.basis[0] * t->spectrum.basis[1] == 1; }

static bool is_short(const cf_transform_desc *t) { return is_line(t) && t->spectrum.basis[2] <= SHORT; }

/* Rows of a plane, or N1 of a line: mma_split(). */
static int64_t rows_of(const cf_transform_desc *t) {
    const int64_t points = t->spectrum.basis[2];
    return !is_line(t) ? t->spectrum.basis[1] : points >= 2048 ? 64 : points >= 512 ? 32 : 16;
}

/* Bytes of a plane group: its part of MmaFft::SHARED_FORWARD or SHARED_INVERSE. */
static int64_t plane_group_bytes(const cf_shared_fft_config *tile) {
    const cf_transform_desc *t = &tile->problem.fft.transform;
    if (is_short(t)) { /* the same as MmaFft::ROW */
        const int64_t bytes = (int64_t)cf_dtype_bytes(t->tensor.dtype), row = bytes * t->spectrum.basis[2];
        const bool through = !tile->planes_interleaved && tile->vector_width * bytes < 8;
        return PLANES * (TABLE + (through ? row + (row % 128 ? 0 : 64) : 0));
    }
    const int64_t rows = rows_of(t), columns = t->spectrum.basis[1] * t->spectrum.basis[2] / rows;
    const cf_axis_window *w = &t->window.axis[1];
    const int64_t tiles = is_line(t) ? rows / 16 : (w->first + (w->count - 1) * w->spread) / 16 - w->first / 16 + 1;
    const int64_t apart = is_line(t) && t->tensor.dtype == CONV_FFT_FP32 ? 4 : 8;
    const int64_t words = !t->inverse ? rows / 16 * (columns / 2 + 1) * (PLANES * 16 + 8) +
                                            (tile->planes_interleaved ? MAXIMA_INTERLEAVED : MAXIMA)
                          : tile->planes_interleaved ? columns / 2 * (PLANES * 16 * tiles + 8)
                                                     : PLANES * (columns / 2 * (16 * tiles + apart) + 4);
    return PLANES * TABLE + 4 * words;
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
    return n[0] == 1 && n[1] == 1 && n[2] >= 16 && n[2] <= (interleaved ? SHORT : 4096) && (n[2] & (n[2] - 1)) == 0;
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
        return SHORT_WARPS * (basis[2] == SHORT && t->tensor.dtype == CONV_FFT_FP32 ? 2 : 4);
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
        const int rows = (int)rows_of(t), each = rows == 16 ? 2 : 4;
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
    switch (t->spectrum.basis[2]) {
    case SHORT:
        return t->inverse && !floats ? 3 : 4;
    case 64:
        return t->inverse || floats ? 4 : 6;
    case 32:
        return t->inverse ? 6 : 8;
    default:
        return 8;
    }
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

void cf_tensor_fft_emit_config(const cf_shared_fft_config *tile, const char *name, cf_text *t) {
    const cf_transform_desc *d = &tile->problem.fft.transform;
    cf_shared_fft_config plan = *tile;
    /* The shared memory that the kernels of shared_memory/kernel.cuh would need. */
    plan.shared = tile->planes * (TABLE + tile->plane * 8) + (cf_spectrum_is_scaled(d->spectrum.dtype) ? WARPS : 0);
    cf_shared_fft_emit_config(&plan, name, t);
    cf_text_add(t, "static_assert(%s<%s>::SHARED%s == %lld, \"the host counts otherwise\");\n",
                tile->bin_tiles ? "Dense" : "MmaFft", name,
                tile->bin_tiles ? ""
                : d->inverse    ? "_INVERSE"
                                : "_FORWARD",
                (long long)tile->shared);
    if (tile->bin_tiles)
        cf_text_add(t, "static_assert(Dense<%s>::MAX_BIN_TILES == %d, \"the host counts otherwise\");\n", name,
                    tile->bin_tiles);
}

void cf_tensor_fft_emit(const cf_shared_fft_config *tile, cf_text *t) {
    cf_tensor_fft_emit_config(tile, "Config", t);
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
