/* SPDX-License-Identifier: Apache-2.0 */
/* What callers say about the places of a tensor's elements, checked. Dimensions are {sample, channel, axes}. */
#ifndef CF_CORE_STRIDES_H
#define CF_CORE_STRIDES_H

#include "core/status.h"

/* Element offsets stay below this, so that byte offsets of 16-byte elements fit 63 bits. */
#define CF_MAX_ELEMENTS (INT64_MAX / 16)

/* INVALID_ARGUMENT: "field[index] is value; it must be low to high". index < 0: a field that is no array. */
conv_fft_status cf_check_range(const char *field, int index, int64_t value, int64_t low, int64_t high);

/* strides[2 + rank]: the given ones, which are `field` of the caller's struct; if these are all zero, those of the
 * dense layout. `name` is the tensor's. An extent of 0 counts as 1. */
conv_fft_status cf_strides_resolve(const char *field, const char *name, const int64_t *given, int rank,
                                   const int64_t *extents, conv_fft_layout layout, int64_t *strides);

/* No two elements of a tensor that is written may share a place. */
conv_fft_status cf_strides_check_distinct(const char *field, const char *name, const int64_t strides[5],
                                          const int64_t extents[5]);

#endif
