/* SPDX-License-Identifier: Apache-2.0 */
/* Memory with canaries, and strided tensors in it. */
#ifndef TEST_TENSOR_H
#define TEST_TENSOR_H

#include "conv_fft.h"

#include <stdbool.h>

#define TENSOR_MAX_DIMS (2 + CONV_FFT_MAX_RANK)

/** malloc() that ends the program on failure; never NULL. */
void *test_alloc(size_t bytes);

/** `bytes` at `data`, between canaries, all filled with a byte pattern; memory of support/device.h. */
typedef struct guarded {
    unsigned char *base, *data, *snapshot;
    size_t bytes, total;
} guarded;

/** Filled and remembered. `data` is a multiple of `alignment`, but of no larger power of two. */
guarded guarded_create(size_t bytes, size_t alignment);
void guarded_destroy(guarded *g);
/** Later checks compare with the current contents. */
void guarded_remember(guarded *g);
bool guarded_untouched(const guarded *g);
/** True if only the memory between the canaries has changed. */
bool guarded_canaries_intact(const guarded *g);

/** A tensor; dims are {batch, channel, axes}, {out_channel, in_channel, axes} or {out_channel}. */
typedef struct tensor {
    conv_fft_dtype dtype;
    int dims;
    int64_t extent[TENSOR_MAX_DIMS], stride[TENSOR_MAX_DIMS];
    int64_t count;
    bool dense; /* in the dense order */
    guarded memory;
} tensor;

/** From now on, tensors that this thread makes start at multiples of `bytes`, a power of two of at most 64. 0 is the
 * default: they start at a multiple of their element size, and of no larger power of two. */
void tensor_align(size_t bytes);
/** The alignment of such a tensor with elements of this size. */
size_t tensor_alignment(size_t element);

/** Strides in elements, >= 0. All-zero strides: dense, the last dimension fastest. */
tensor tensor_create(conv_fft_dtype dtype, int dims, const int64_t *extent, const int64_t *stride);
/** Dense, with the same values. */
tensor tensor_copy(const tensor *t);
void tensor_destroy(tensor *t);

/** Address of element `index` of the dense order (last dimension fastest). */
void *tensor_at(const tensor *t, int64_t index);
double tensor_load(const tensor *t, int64_t index);

/** Set all elements, rounded to the type; remembers. */
void tensor_set(tensor *t, const double *dense);
/** NaN in every element; remembers. */
void tensor_poison(tensor *t);
/** values[count]. */
void tensor_get(const tensor *t, double *dense);

/** True if no byte has changed since tensor_set() or tensor_poison(). */
bool tensor_untouched(const tensor *t);
/** True if only bytes of elements have changed. */
bool tensor_gaps_intact(const tensor *t);
/** True if both have the same bits in elements first..first+count-1. */
bool tensor_same_bits(const tensor *a, const tensor *b, int64_t first, int64_t count);

#endif
