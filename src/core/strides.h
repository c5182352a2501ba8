/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of extents and strides that callers pass. Dimensions are {sample, channel, axes}. */
#ifndef CF_CORE_STRIDES_H
#define CF_CORE_STRIDES_H

#include "core/status.h"

/* Element offsets stay below this, so that byte offsets of 16-byte elements fit 63 bits. */
#define CF_MAX_ELEMENTS (INT64_MAX / 16)

/* INVALID_ARGUMENT: "field[index] is value; it must be low to high". index < 0: a field that is no array. */
conv_fft_status cf_check_range(const char *field, int index, int64_t value, int64_t low, int64_t high);

/* Fill strides[2 + rank] with the given strides, or with the strides of the dense layout if all given ones are zero.
 * `field` is the caller's name of the strides, `name` is the tensor's. An extent of 0 counts as 1. */
conv_fft_status cf_strides_resolve(const char *field, const char *name, const int64_t *given, int rank,
                                   const int64_t *extents, conv_fft_layout layout, int64_t *strides);

/* INVALID_ARGUMENT: two elements of the tensor may share an address. Tensors that are written must not allow that. */
conv_fft_status cf_strides_check_distinct(const char *field, const char *name, const int64_t strides[5],
                                          const int64_t extents[5]);

#endif
