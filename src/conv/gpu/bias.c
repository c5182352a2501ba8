/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of the bias: what each block sums. */
#include "conv/gpu/device.h"

#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/launch.h"

#include <string.h>

enum {
    BIAS_THREADS = CF_GPU_BIAS_MAX_THREADS / 2, /* of a block; twice as many if there are few blocks */
    BIAS_BLOCKS = 2                             /* of so many threads, for each multiprocessor */
};

/* Merge axes where one continues the other. They become the last of the four. */
static void merge_axes(long long extent[4], long long stride[4]) {
    int last = 3;
    for (int a = 2; a >= 0; --a) {
        if (extent[last] == 1 || stride[a] == extent[last] * stride[last]) {
            stride[last] = extent[last] == 1 ? stride[a] : stride[last];
            extent[last] *= extent[a];
        } else if (extent[a] != 1) {
            --last;
            extent[last] = extent[a];
            stride[last] = stride[a];
        }
    }
    while (last-- > 0)
        extent[last] = 1, stride[last] = 0;
}

static const cf_parameter bias_parameters[] = {
    {sizeof(cf_bias_call), CF_ADDRESS(cf_bias_call, data) | CF_ADDRESS(cf_bias_call, result)}, {0, 0}};

/* Whether chunks of this many elements, from the first of every row on, are aligned to their size. */
static bool is_aligned(const cf_bias_call *b, int64_t size) {
    bool aligned = (uintptr_t)b->data % 16 == 0;
    for (int a = 0; a < 4; ++a)
        aligned = aligned && (b->extent[a] == 1 || b->stride[a] % size == 0 || (a == 3 && b->stride[3] == 1));
    return aligned;
}

/* How many parts each tile of `bytes` bytes is divided into. The unit of cost is the number of bytes that a
 * multiprocessor reads in a given time: about as much as one block of BIAS_THREADS threads alone, and a quarter more.
 * Blocks of a later wave run beside those of earlier ones. More than one part of a tile costs another launch, which
 * tiles that fill the GPU do not need. On an H200, five parts of 400 channels took 44 microseconds, whole tiles 26. */
static int64_t bias_parts(const cf_gpu *gpu, int64_t tiles, double bytes, int64_t max_parts) {
    const double launch = 64e3, min_part = 16e3;
    const int64_t slots = BIAS_BLOCKS * gpu->properties.multiprocessors;
    if (tiles >= slots)
        return 1;
    const int64_t tried[] = {1, slots / tiles, 8 * slots / tiles};
    int64_t best = 1;
    double min_cost = 0.0;
    max_parts = cf_max(1, cf_min(max_parts, (int64_t)(bytes / min_part)));
    for (int i = 0; i < 3; ++i) {
        const int64_t parts = cf_max(1, cf_min(tried[i], max_parts));
        const double part = bytes / (double)parts,
                     share = bytes * (double)tiles / (double)gpu->properties.multiprocessors;
        const double cost = (share > 1.25 * part ? share : 1.25 * part) + (tiles * parts > slots ? part : 0.0) +
                            (parts > 1 ? launch : 0.0);
        if (i == 0 || cost < min_cost) {
            min_cost = cost;
            best = parts;
        }
    }
    return best;
}

/* Decide how blocks share the sum. has_scratch: there is memory for partial sums, b->channels numbers for each part.
 * Dense rows of channels whose size is not a multiple of a chunk's are counted as longer rows of more channels, which
 * are summed again. Returns the tiles. */
static int64_t shape_bias(const cf_gpu *gpu, cf_bias_call *b, bool has_scratch) {
    const int64_t bytes = (int64_t)cf_dtype_bytes((conv_fft_dtype)b->type), size = 16 / bytes;
    const double all = (double)b->channels * (double)b->extent[0] * (double)b->extent[1] * (double)b->extent[2] *
                       (double)b->extent[3] * (double)bytes;
    const bool aligned = is_aligned(b, size);
    b->end = (b->channels - 1) * b->channel_stride + 1;
    for (int a = 0; a < 4; ++a)
        b->end += (b->extent[a] - 1) * b->stride[a];
    b->down = b->stride[3] != 1 || b->extent[3] >= 1 << 30 || b->extent[2] * (b->extent[3] / size + 2) >= 1 << 30;
    bool in_vectors = b->down && aligned && b->channel_stride == 1 && b->channels % size == 0;
    const int64_t outer = b->extent[0] * b->extent[1], before = outer * b->extent[2];
    if (b->down && !in_vectors && has_scratch && (uintptr_t)b->data % 16 == 0 && b->channel_stride == 1 &&
        before == 1 && b->stride[3] == b->channels && all > 64e3 * (double)gpu->properties.multiprocessors) {
        int64_t fold = 2;
        while (b->channels * fold % size)
            fold *= 2;
        if (b->extent[3] % fold == 0) {
            in_vectors = true;
            b->channels *= fold;
            b->stride[3] *= fold;
            b->extent[3] /= fold;
        }
    }
    int64_t tiles = b->channels;
    b->size = in_vectors ? (int)size : 1;
    b->lanes = 1;
    if (b->down) { /* lines of four sectors, or of one if there are few blocks */
        const int64_t lane = in_vectors ? 16 : bytes * b->channel_stride;
        const int64_t lanes = cf_min(32, cf_max(1, (has_scratch ? 128 : 32) / cf_max(1, lane)));
        b->chunks = in_vectors ? b->channels / size : b->channels;
        tiles = cf_ceil_div(b->chunks, lanes);
        b->lanes = (int)cf_ceil_div(b->chunks, tiles);
        tiles = cf_ceil_div(b->chunks, b->lanes);
    } else {
        const bool whole = aligned && b->extent[3] % size == 0 && (b->channels == 1 || b->channel_stride % size == 0);
        b->chunks = cf_max(1, (b->extent[3] + (whole ? 0 : 2 * size - 2)) / size);
    }
    const int64_t splits = b->down ? before : outer;
    b->parts = has_scratch ? (int)bias_parts(gpu, tiles, all / (double)tiles, splits > 1 ? splits : INT32_MAX) : 1;
    return tiles;
}

static cf_bias_call bias_of(const cf_bias_desc *desc, const void *gy, void *gbias, bool accumulate) {
    const cf_tensor *t = &desc->tensor;
    cf_bias_call b = {.data = gy,
                      .result = gbias,
                      .extent = {desc->samples, desc->size[0], desc->size[1], desc->size[2]},
                      .stride = {t->sample_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]},
                      .channel_stride = t->channel_stride,
                      .channels = desc->channels,
                      .type = (int)t->dtype,
                      .result_type = (int)desc->result_dtype,
                      .accumulate = accumulate};
    merge_axes(b.extent, b.stride);
    return b;
}

size_t cf_gpu_bias_scratch(const cf_device *device, const cf_bias_desc *desc) {
    const cf_gpu *gpu = ((const cf_gpu_layers *)device)->gpu;
    size_t max_numbers = 0;
    if (desc->channels == 0)
        return 0;
    for (uintptr_t address = 0; address < 16; address += 8) { /* for an aligned address, and for another */
        cf_bias_call b = bias_of(desc, (const void *)address, NULL, false);
        shape_bias(gpu, &b, true);
        const size_t numbers = (size_t)b.parts * (size_t)b.channels;
        max_numbers = numbers > (size_t)desc->channels && numbers > max_numbers ? numbers : max_numbers;
    }
    return max_numbers * sizeof(double);
}

static conv_fft_status launch_bias(cf_gpu_layers *layers, cf_bias_call *b, int64_t tiles, struct CUstream_st *stream) {
    const int64_t blocks = tiles * b->parts, enough = layers->gpu->properties.multiprocessors;
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "there are %lld channels; the gradient of the bias takes at most %d",
                       (long long)b->channels, INT32_MAX);
    const unsigned threads = blocks > enough ? BIAS_THREADS : 2 * BIAS_THREADS;
    const cf_launch shape = {
        {(unsigned)blocks, 1, 1}, {threads, 1, 1}, cf_gpu_bias_shared(b->size, threads), bias_parameters};
    void *parameters[] = {b};
    return cf_kernel_launch(layers->kernel[CF_KERNEL_BIAS], &shape, parameters, stream);
}

conv_fft_status cf_gpu_bias_gradient(cf_device *device, const cf_bias_desc *desc, const void *gy, void *gbias,
                                     bool accumulate, void *scratch, struct CUstream_st *stream) {
    cf_gpu_layers *layers = cf_gpu_layers_of(device);
    if (desc->channels == 0)
        return CONV_FFT_SUCCESS;
    cf_bias_call b = bias_of(desc, gy, gbias, accumulate);
    int64_t tiles = shape_bias(layers->gpu, &b, scratch != NULL);
    const int64_t sums = b.parts * (b.channels / desc->channels);
    if (sums > 1) { /* of each channel */
        b.result = scratch;
        b.result_type = CONV_FFT_FP64;
        b.accumulate = false;
        CF_FORWARD(launch_bias(layers, &b, tiles, stream));
        b = (cf_bias_call){.data = scratch,
                           .result = gbias,
                           .extent = {1, 1, 1, sums},
                           .stride = {0, 0, 0, desc->channels},
                           .channel_stride = 1,
                           .channels = desc->channels,
                           .type = CONV_FFT_FP64,
                           .result_type = (int)desc->result_dtype,
                           .accumulate = accumulate};
        tiles = shape_bias(layers->gpu, &b, false);
    }
    return launch_bias(layers, &b, tiles, stream);
}
