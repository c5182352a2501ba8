/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of reflect, circular and replicate padding: the gradient of each padded position is added to the
 * element that it was copied from.
 *
 * The host gives the dimensions of gx and of the padded gradient in the order {inner, along, outer, ...}. Neighbouring
 * threads have neighbouring elements of `inner`. A thread walks along strips of `along`. Most elements have one
 * position. Those of CF_FOLD_LOADS elements are loaded together, so that many loads are on their way. */
#pragma once

#include "conv/gpu/tensor.cuh"
#include "fbfft/common/padding.cuh"

/* The i-th position of an element; -1: it has fewer. The first one is its own. Those of the padding before the signal
 * follow, then those behind it. The padding is at most one period or mirror image. */
CF_DEVICE int fold_position(const cf_fold_dimension &d, int mode, int element, int i) {
    const int last = int(d.extent) - 1, own = element + d.pad;
    int before = mode == CIRCULAR ? own - last - 1
                 : element > 0    ? d.pad - element
                                  : -1,
        behind = mode == CIRCULAR ? own + last + 1
                 : element < last ? d.pad + 2 * last - element
                                  : d.padded,
        befores = before >= 0;
    if (mode == REPLICATE) {
        befores = element > 0 ? 0 : d.pad;
        before = i - 1;
        behind = element < last ? d.padded : own + i - befores;
    }
    const int padding = i <= befores ? before : mode == REPLICATE || i == befores + 1 ? behind : d.padded;
    return i == 0 ? own : padding < d.padded ? padding : -1;
}

/* How elements of the scratch are loaded. Their sums are FP64, because a corner can have millions of positions. */
template <int TYPE> struct FoldNumber { typedef float type; };
template <> struct FoldNumber<FP64> { typedef double type; };

/* A strip of a thread: its element of each other dimension, and the first numbers of its plane. */
struct FoldStrip {
    int inner, middle, outer;
    long long from, to;
};

/* Calls add() with the place of each position, of element 0 of the strip without padding. */
template <class Add> CF_DEVICE void fold_each(const cf_fold_call &f, const FoldStrip &strip, const Add &add) {
    const cf_fold_dimension &inner = f.dimension[0], &middle = f.dimension[2], &outer = f.dimension[3];
    int x, y, z;
#pragma unroll 1
    for (int o = 0; (z = fold_position(outer, f.mode, strip.outer, o)) >= 0; ++o)
#pragma unroll 1
        for (int m = 0; (y = fold_position(middle, f.mode, strip.middle, m)) >= 0; ++m)
#pragma unroll 1
            for (int i = 0; (x = fold_position(inner, f.mode, strip.inner, i)) >= 0; ++i)
                add(strip.from + z * outer.from + y * middle.from + x * inner.from);
}

/* Elements `first` to `end` of a strip, at most LOADS. */
template <int FROM, int TO, int LOADS>
CF_DEVICE void fold_elements(const cf_fold_call &f, const FoldStrip &strip, int first, int end) {
    typedef typename FoldNumber<FROM>::type Number;
    const cf_fold_dimension &along = f.dimension[1];
    const int size = int(along.extent), border = max(along.pad, along.padded - size - along.pad);
    double sum[LOADS] = {};
    fold_each(f, strip, [&](long long from) {
        from += (first + along.pad) * along.from;
        Number loaded[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            loaded[k] = Number(load_as(f.scratch, from, FROM));
            from += first + k + 1 < end ? along.from : 0;
        }
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            sum[k] += loaded[k];
    });
    if (border > 0 && (first <= border || end >= size - border))
#pragma unroll 1
        for (int element = first, position; element < end; ++element) {
            double more = 0;
#pragma unroll 1
            for (int i = 1; (position = fold_position(along, f.mode, element, i)) >= 0; ++i)
                fold_each(f, strip, [&](long long from) {
                    more += double(load_as(f.scratch, from + position * along.from, FROM));
                });
#pragma unroll
            for (int k = 0; k < LOADS; ++k)
                sum[k] += first + k == element ? more : 0.0;
        }
#pragma unroll
    for (int k = 0; k < LOADS; ++k)
        if (first + k < end) {
            const long long at = strip.to + (first + k) * along.to;
            store_as(f.data, at, TO, f.accumulate ? sum[k] + double(load_as(f.data, at, TO)) : sum[k]);
        }
}

/* The scratch has the type of gx, or FP32. */
CF_DEVICE void fold_typed(const cf_fold_call &f, const FoldStrip &strip, int first, int end) {
    constexpr int LOADS = CF_FOLD_LOADS;
    if (f.type == FP64) {
#pragma unroll 1
        for (; first < end; first += 2)
            fold_elements<FP64, FP64, 2>(f, strip, first, min(first + 2, end));
    } else if (f.type == FP16)
        fold_elements<FP16, FP16, LOADS>(f, strip, first, end);
    else if (f.type == BF16)
        fold_elements<BF16, BF16, LOADS>(f, strip, first, end);
    else if (f.gx_type == FP32)
        fold_elements<FP32, FP32, LOADS>(f, strip, first, end);
    else if (f.gx_type == FP16)
        fold_elements<FP32, FP16, LOADS>(f, strip, first, end);
    else
        fold_elements<FP32, BF16, LOADS>(f, strip, first, end);
}

CF_DEVICE void fold_padding(const cf_fold_call &f) {
    const cf_fold_dimension &inner = f.dimension[0], &along = f.dimension[1], &middle = f.dimension[2],
                            &outer = f.dimension[3], &channel = f.dimension[4], &sample = f.dimension[5];
    const int thread = int(blockIdx.x * blockDim.x + threadIdx.x);
    int width = 32;
    while (width > 1 && width / 2 >= inner.extent)
        width /= 2;
    const long long strips = (along.extent + f.strip - 1) / f.strip,
                    count = strips * middle.extent * outer.extent * channel.extent * sample.extent;
    for (long long unit = thread / width; unit < count; unit += (long long)gridDim.x * blockDim.x / width) {
        long long rest = unit / strips;
        const int begin = int(unit % strips) * f.strip, end = int(min(begin + (long long)f.strip, along.extent)),
                  m = int(rest % middle.extent);
        rest /= middle.extent;
        const int o = int(rest % outer.extent);
        rest /= outer.extent;
        const long long c = rest % channel.extent, n = rest / channel.extent,
                        to = c * channel.to + n * sample.to + m * middle.to + o * outer.to;
#pragma unroll 1
        for (int column = thread % width; column < inner.extent; column += width) {
            const FoldStrip strip = {column, m, o, c * channel.from + n * sample.from, to + column * inner.to};
#pragma unroll 1
            for (int first = begin; first < end; first += CF_FOLD_LOADS)
                fold_typed(f, strip, first, min(first + CF_FOLD_LOADS, end));
        }
    }
}

/* The entry point. */
#define CF_FOLD_KERNEL                                          \
    extern "C" __global__ void cf_stage(const cf_fold_call f) { \
        cf_pdl_wait();                                          \
        fold_padding(f);                                        \
    }
