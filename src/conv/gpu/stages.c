/* SPDX-License-Identifier: Apache-2.0 */
/* The small stages: their kernels, and what they are launched with. */
#include "conv/gpu/device.h"

#include "conv/gpu/scan_text.h"
#include "conv/gpu/stage_text.h"
#include "core/arith.h"
#include "core/dtype.h"
#include "cuda/jit/nvrtc.h"
#include "fbfft/common/kernel_text.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------ kernels */

enum {
    THREADS = 256,
    BIAS_THREADS = 512,   /* and twice that where there are few blocks */
    BIAS_BLOCKS = 2,      /* of so many threads, for each multiprocessor */
    MOST_SCANNING = 1024, /* threads of a part of a sample, where parts are few */
    MOST_PARTS =
        32,     /* of a sample, whose largest magnitudes are found side by side, a lane of a warp for each later; */
    PART = 8192 /* of about so many elements */
};

/* Of each thread so many sums, and one later. */
static size_t bias_shared(int64_t sums, int64_t threads) {
    return (size_t)(sums * (threads + 1) + threads) * sizeof(double);
}

static const char *const tails[CF_KERNEL_COUNT] = {
    [CF_KERNEL_ZERO] = "extern \"C\" __global__ void cf_stage(const StageTensor t, void *data) {" CF_KERNEL_WAITS
                       "stage_zero(t, data); }",
    [CF_KERNEL_BIAS] =
        "extern \"C\" __global__ void __launch_bounds__(1024) cf_stage(const StageBias b) {" CF_KERNEL_WAITS
            CF_KERNEL_LEADS "stage_bias(b); }",
    [CF_KERNEL_FOLD] = "extern \"C\" __global__ void cf_stage(const StageFold f) {" CF_KERNEL_WAITS "stage_fold(f); }",
    [CF_KERNEL_LARGEST] =
        "extern \"C\" __global__ void cf_stage(const StageLargest s) {" CF_KERNEL_WAITS "stage_largest(s); }",
    [CF_KERNEL_SCAN] = "extern \"C\" __global__ void cf_stage(const ScanCall s) {" CF_KERNEL_WAITS "scan_largest(s); }",
    [CF_KERNEL_PRODUCT] =
        "extern \"C\" __global__ void cf_stage(const StageProduct s) {" CF_KERNEL_WAITS "stage_product_forward(s); }",
    [CF_KERNEL_PRODUCT + 1] =
        "extern \"C\" __global__ void cf_stage(const StageProduct s) {" CF_KERNEL_WAITS "stage_product_data(s); }",
    [CF_KERNEL_PRODUCT + 2] =
        "extern \"C\" __global__ void cf_stage(const StageProduct s) {" CF_KERNEL_WAITS "stage_product_weights(s); }",
};

static conv_fft_status join_text(const char *headers, const char *tail, cf_source *source) {
    char *text;
    CF_FORWARD(cf_fbfft_join_text(headers, tail, &text));
    source->text = text;
    return CONV_FFT_SUCCESS;
}

conv_fft_status cf_gpu_stage_text(const char *tail, cf_source *source) {
    return join_text(cf_stage_kernel_text, tail, source);
}

conv_fft_status cf_gpu_stages_build(cf_gpu_layers *layers) {
    cf_source sources[CF_KERNEL_COUNT] = {{0}};
    conv_fft_status status = CONV_FFT_SUCCESS;
    for (int i = 0; i < CF_KERNEL_COUNT && status == CONV_FFT_SUCCESS; ++i) {
        const bool doubles = i >= CF_KERNEL_PRODUCT + 3;
        sources[i] = (cf_source){
            .name = "cf_stage",
            .options = {"--device-as-default-execution-space", doubles ? "-DCF_REAL=double" : NULL},
            .dynamic_shared = i == CF_KERNEL_BIAS                             ? bias_shared(8, 2 * BIAS_THREADS)
                              : i == CF_KERNEL_LARGEST || i == CF_KERNEL_SCAN ? MOST_SCANNING / 32 * sizeof(unsigned)
                                                                              : 0};
        status = join_text(i == CF_KERNEL_SCAN ? cf_scan_kernel_text : cf_stage_kernel_text, tails[doubles ? i - 3 : i],
                           &sources[i]);
    }
    if (status == CONV_FFT_SUCCESS)
        status = cf_kernels_build(layers->gpu, sources, CF_KERNEL_COUNT, layers->kernel);
    for (int i = 0; i < CF_KERNEL_COUNT; ++i)
        free((char *)sources[i].text);
    return status;
}

conv_fft_status cf_gpu_stage_launch(const cf_kernel *kernel, int64_t work, void *parameter, void *second,
                                    struct CUstream_st *stream) {
    const int64_t most = kernel->gpu->facts.multiprocessors * 32;
    const int64_t blocks = cf_max(1, cf_min(cf_ceil_div(work, THREADS), most));
    const cf_launch shape = {{(unsigned)blocks, 1, 1}, {THREADS, 1, 1}, 0};
    void *parameters[] = {parameter, second};
    return cf_kernel_launch(kernel, &shape, parameters, stream);
}

/* ------------------------------------------------------------------------------------------------------------- stages */

cf_stage_tensor cf_stage_tensor_of(const cf_tensor *t, int64_t samples, int64_t groups, int64_t channels,
                                   const int64_t size[3]) {
    return (cf_stage_tensor){
        .extent = {samples, groups * channels, size[0], size[1], size[2]},
        .stride = {t->sample_stride, t->channel_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]},
        .group_stride = t->group_stride,
        .channels = channels,
        .type = (int)t->dtype};
}

int64_t cf_stage_elements(const cf_stage_tensor *s) {
    return s->extent[0] * s->extent[1] * s->extent[2] * s->extent[3] * s->extent[4];
}

conv_fft_status cf_gpu_zero(cf_device *device, const cf_tensor *tensor, const int64_t extents[5], void *data,
                            struct CUstream_st *stream) {
    cf_stage_tensor s = cf_stage_tensor_of(tensor, extents[0], 1, extents[1], extents + 2);
    return cf_gpu_stage_launch(cf_gpu_layers_of(device)->kernel[CF_KERNEL_ZERO], cf_stage_elements(&s), &s, &data,
                               stream);
}

/* Axes of which one goes on where the next ends become one, the last of the four. */
static void join_axes(int64_t extent[4], int64_t stride[4]) {
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

/* StageBias of stages.cuh. */
typedef struct stage_bias {
    const void *data;
    void *result;
    int64_t extent[4], stride[4], channel_stride, channels, chunks, end;
    int type, result_type, accumulate, down, size, lanes, parts;
} stage_bias;

/* Whether chunks of so many elements, from the first of every row on, stand at multiples of their size. */
static bool is_aligned(const stage_bias *b, int64_t size) {
    bool aligned = (uintptr_t)b->data % 16 == 0;
    for (int a = 0; a < 4; ++a)
        aligned = aligned && (b->extent[a] == 1 || b->stride[a] % size == 0 || (a == 3 && b->stride[3] == 1));
    return aligned;
}

/* How many parts each tile of so many bytes is cut into. All is counted in bytes that a multiprocessor reads in the same time: about as
 * much as one block of BIAS_THREADS alone, and a quarter more. Blocks that begin when others have ended are not waited for by those; more
 * than one part of a tile cost another launch, which tiles that fill the GPU do not need: five parts of 400 channels took 44 microseconds on
 * an H200, whole ones 26. */
static int64_t bias_parts(const cf_gpu *gpu, int64_t tiles, double bytes, int64_t most) {
    const double launch = 64e3, least_part = 16e3;
    const int64_t slots = BIAS_BLOCKS * gpu->facts.multiprocessors;
    if (tiles >= slots)
        return 1;
    const int64_t tried[] = {1, slots / tiles, 8 * slots / tiles};
    int64_t best = 1;
    double least = 0.0;
    most = cf_max(1, cf_min(most, (int64_t)(bytes / least_part)));
    for (int i = 0; i < 3; ++i) {
        const int64_t parts = cf_max(1, cf_min(tried[i], most));
        const double part = bytes / (double)parts, share = bytes * (double)tiles / (double)gpu->facts.multiprocessors;
        const double cost = (share > 1.25 * part ? share : 1.25 * part) + (tiles * parts > slots ? part : 0.0) +
                            (parts > 1 ? launch : 0.0);
        if (i == 0 || cost < least) {
            least = cost;
            best = parts;
        }
    }
    return best;
}

/* How blocks share the sum; `room`: for what they add up to, b->channels numbers for each part. Dense rows of channels whose size is no
 * multiple of a chunk's count as longer rows of more channels, to be summed again. Returns the tiles. */
static int64_t shape_bias(const cf_gpu *gpu, stage_bias *b, bool room) {
    const int64_t bytes = (int64_t)cf_dtype_bytes((conv_fft_dtype)b->type), size = 16 / bytes;
    const double all = (double)b->channels * (double)b->extent[0] * (double)b->extent[1] * (double)b->extent[2] *
                       (double)b->extent[3] * (double)bytes;
    const bool aligned = is_aligned(b, size);
    b->end = (b->channels - 1) * b->channel_stride + 1;
    for (int a = 0; a < 4; ++a)
        b->end += (b->extent[a] - 1) * b->stride[a];
    b->down = b->stride[3] != 1 || b->extent[3] >= 1 << 30 || b->extent[2] * (b->extent[3] / size + 2) >= 1 << 30;
    bool wide = b->down && aligned && b->channel_stride == 1 && b->channels % size == 0;
    const int64_t outer = b->extent[0] * b->extent[1], before = outer * b->extent[2];
    if (b->down && !wide && room && (uintptr_t)b->data % 16 == 0 && b->channel_stride == 1 && before == 1 &&
        b->stride[3] == b->channels && all > 64e3 * (double)gpu->facts.multiprocessors) {
        int64_t fold = 2;
        while (b->channels * fold % size)
            fold *= 2;
        if (b->extent[3] % fold == 0) {
            wide = true;
            b->channels *= fold;
            b->stride[3] *= fold;
            b->extent[3] /= fold;
        }
    }
    int64_t tiles = b->channels;
    b->size = wide ? (int)size : 1;
    b->lanes = 1;
    if (b->down) { /* lines of four sectors, or, where blocks are few, of one */
        const int64_t lane = wide ? 16 : bytes * b->channel_stride;
        const int64_t lanes = cf_min(32, cf_max(1, (room ? 128 : 32) / cf_max(1, lane)));
        b->chunks = wide ? b->channels / size : b->channels;
        tiles = cf_ceil_div(b->chunks, lanes);
        b->lanes = (int)cf_ceil_div(b->chunks, tiles);
        tiles = cf_ceil_div(b->chunks, b->lanes);
    } else {
        const bool whole = aligned && b->extent[3] % size == 0 && (b->channels == 1 || b->channel_stride % size == 0);
        b->chunks = cf_max(1, (b->extent[3] + (whole ? 0 : 2 * size - 2)) / size);
    }
    const int64_t places = b->down ? before : outer;
    b->parts = room ? (int)bias_parts(gpu, tiles, all / (double)tiles, places > 1 ? places : INT32_MAX) : 1;
    return tiles;
}

static stage_bias bias_of(const cf_bias_desc *desc, const void *gy, void *gbias, bool accumulate) {
    const cf_tensor *t = &desc->tensor;
    stage_bias b = {.data = gy,
                    .result = gbias,
                    .extent = {desc->samples, desc->size[0], desc->size[1], desc->size[2]},
                    .stride = {t->sample_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]},
                    .channel_stride = t->channel_stride,
                    .channels = desc->channels,
                    .type = (int)t->dtype,
                    .result_type = (int)desc->result_dtype,
                    .accumulate = accumulate};
    join_axes(b.extent, b.stride);
    return b;
}

size_t cf_gpu_bias_scratch(const cf_device *device, const cf_bias_desc *desc) {
    const cf_gpu *gpu = ((const cf_gpu_layers *)device)->gpu;
    size_t most = 0;
    if (desc->channels == 0)
        return 0;
    for (uintptr_t address = 0; address < 16; address += 8) { /* aligned, and not */
        stage_bias b = bias_of(desc, (const void *)address, NULL, false);
        shape_bias(gpu, &b, true);
        const size_t numbers = (size_t)b.parts * (size_t)b.channels;
        most = numbers > (size_t)desc->channels && numbers > most ? numbers : most;
    }
    return most * sizeof(double);
}

static conv_fft_status launch_bias(cf_gpu_layers *layers, stage_bias *b, int64_t tiles, struct CUstream_st *stream) {
    const int64_t blocks = tiles * b->parts, few = layers->gpu->facts.multiprocessors;
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "there are %lld channels; the gradient of the bias takes at most %d",
                       (long long)b->channels, INT32_MAX);
    const unsigned threads = blocks > few ? BIAS_THREADS : 2 * BIAS_THREADS;
    const cf_launch shape = {{(unsigned)blocks, 1, 1}, {threads, 1, 1}, bias_shared(b->size, threads)};
    void *parameters[] = {b};
    return cf_kernel_launch(layers->kernel[CF_KERNEL_BIAS], &shape, parameters, stream);
}

conv_fft_status cf_gpu_bias_gradient(cf_device *device, const cf_bias_desc *desc, const void *gy, void *gbias,
                                     bool accumulate, void *scratch, struct CUstream_st *stream) {
    cf_gpu_layers *layers = cf_gpu_layers_of(device);
    if (desc->channels == 0)
        return CONV_FFT_SUCCESS;
    stage_bias b = bias_of(desc, gy, gbias, accumulate);
    int64_t tiles = shape_bias(layers->gpu, &b, scratch != NULL);
    const int64_t sums = b.parts * (b.channels / desc->channels);
    if (sums > 1) { /* of each channel */
        b.result = scratch;
        b.result_type = CONV_FFT_FP64;
        b.accumulate = false;
        CF_FORWARD(launch_bias(layers, &b, tiles, stream));
        b = (stage_bias){.data = scratch,
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

conv_fft_status cf_gpu_fold(cf_device *device, const cf_fold_desc *desc, const void *scratch, int64_t samples,
                            int64_t groups, void *tensor, bool accumulate, struct CUstream_st *stream) {
    struct { /* StageFold */
        cf_stage_tensor gx;
        const void *scratch;
        void *data;
        int64_t pad[3], padded[3];
        int mode, type, accumulate;
    } f = {.gx = cf_stage_tensor_of(&desc->tensor, samples, groups, desc->channels, desc->size),
           .scratch = scratch,
           .data = tensor,
           .mode = (int)desc->mode,
           .type = (int)desc->scratch_dtype,
           .accumulate = accumulate};
    memcpy(f.pad, desc->pad, sizeof f.pad);
    memcpy(f.padded, desc->padded, sizeof f.padded);
    return cf_gpu_stage_launch(cf_gpu_layers_of(device)->kernel[CF_KERNEL_FOLD], cf_stage_elements(&f.gx), &f, NULL,
                               stream);
}

/* -------------------------------------------------------------------------------------------------------------- scales */

static int64_t scales_of(const cf_transform_desc *d, int64_t rows) {
    return cf_ceil_div(rows, cf_max(1, d->spectrum.scale_rows)) + 1;
}

static int parts_of(int64_t elements) { return (int)cf_max(1, cf_min(MOST_PARTS, cf_ceil_div(elements, PART))); }

size_t cf_gpu_largest_scratch(const cf_transform_desc *d) {
    const cf_spectrum *s = &d->spectrum;
    return (size_t)(s->groups * scales_of(d, s->rows) * MOST_PARTS) * sizeof(float) + 63;
}

/* Whether elements of these extents are neighbours, in any order of their axes. */
static bool is_dense(const int64_t extent[5], const int64_t stride[5]) {
    int64_t elements = 1, next = 1;
    for (int a = 0; a < 5; ++a)
        elements *= extent[a];
    for (int round = 0; round < 5; ++round) {
        int axis = 0;
        while (axis < 5 && (extent[axis] == 1 || stride[axis] != next))
            ++axis;
        next *= axis < 5 ? extent[axis] : 1;
    }
    return next == elements;
}

conv_fft_status cf_gpu_largest(cf_gpu_layers *layers, const cf_transform_desc *d, const void *signal,
                               const cf_block *block, void *scratch, cf_row_scales *scales,
                               struct CUstream_st *stream) {
    const cf_spectrum *s = &d->spectrum;
    const cf_tensor *t = &d->tensor;
    const int64_t first = block->row / s->scale_rows,
                  samples = (block->row + block->rows - 1) / s->scale_rows - first + 1,
                  rows = s->scale_rows / s->rows_per_sample; /* of the tensor */
    struct {                                                 /* StageLargest, ScanCall */
        const void *data;
        float *largest;
        int64_t samples, sample_stride, group_stride, extent[5], stride[5], elements;
        int parts, dense;
    } l = {.data = (const char *)signal + first * rows * t->sample_stride * (int64_t)cf_dtype_bytes(t->dtype),
           .largest = (float *)cf_align((size_t)scratch),
           .samples = samples,
           .sample_stride = rows * t->sample_stride,
           .group_stride = t->group_stride,
           .extent = {rows, s->channels, d->window.axis[0].size, d->window.axis[1].size, d->window.axis[2].size},
           .stride = {t->sample_stride, t->channel_stride, t->axis_stride[0], t->axis_stride[1], t->axis_stride[2]},
           .elements = 1};
    for (int a = 0; a < 5; ++a)
        l.elements *= l.extent[a];
    l.parts = parts_of(l.elements);
    l.dense = is_dense(l.extent, l.stride);
    *scales = (cf_row_scales){.scales = block->scales,
                              .largest = l.largest,
                              .rows = s->scale_rows,
                              .group_stride = block->scale_stride,
                              .largest_group_stride = samples * l.parts,
                              .parts = l.parts};
    const int64_t blocks = block->groups * samples * l.parts;
    if (blocks > INT32_MAX)
        return cf_fail(CONV_FFT_NOT_SUPPORTED, "the batch has %lld samples; one call takes at most %d",
                       (long long)(block->groups * samples), INT32_MAX / l.parts);
    const unsigned threads = blocks < layers->gpu->facts.multiprocessors ? MOST_SCANNING : THREADS;
    const cf_launch shape = {{(unsigned)blocks, 1, 1}, {threads, 1, 1}, threads / 32 * sizeof(unsigned)};
    void *parameters[] = {&l};
    return cf_kernel_launch(layers->kernel[t->dtype == CONV_FFT_FP32 ? CF_KERNEL_SCAN : CF_KERNEL_LARGEST], &shape,
                            parameters, stream);
}

/* ------------------------------------------------------------------------------------------------------ small products */

/* StageProduct; groups must follow their bins without gaps. */
typedef struct stage_product {
    void *x, *w, *y;
    int64_t bins, rows, in, out, x_stride, w_stride, y_stride;
    int accumulate;
} stage_product;

conv_fft_status cf_gpu_small_product(cf_gpu_layers *layers, const cf_product_desc *desc, const cf_block *x,
                                     const cf_block *w, const cf_block *y, int64_t bins, bool accumulate,
                                     struct CUstream_st *stream) {
    stage_product s = {x->data,           w->data,       y->data,       bins,          x->rows,   desc->in_columns,
                       desc->out_columns, x->bin_stride, w->bin_stride, y->bin_stride, accumulate};
    const int64_t sizes[] = {[CF_PRODUCT_FORWARD] = s.rows * s.out,
                             [CF_PRODUCT_BACKWARD_DATA] = s.rows * s.in,
                             [CF_PRODUCT_BACKWARD_WEIGHTS] = s.in * s.out * 32};
    const int kernel = CF_KERNEL_PRODUCT + (int)desc->kind + (desc->dtype == CONV_FFT_FP64 ? 3 : 0);
    return cf_gpu_stage_launch(layers->kernel[kernel], bins * sizes[desc->kind], &s, NULL, stream);
}
