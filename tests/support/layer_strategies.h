/* SPDX-License-Identifier: Apache-2.0 */
/* Every strategy computes the same layer on device_context(): tiles, overlap, dilation, products, chunks. Tests for
 * cmocka. */
#ifndef TEST_LAYER_WAYS_H
#define TEST_LAYER_WAYS_H

#include <stdbool.h>
#include <stdint.h>

/** A case: the layer of this line with random numbers, whose passes (forward, backward data, backward weights) are of
 * these families without parameters, against the reference. NULL: of any family. same_bits: what
 * layer_check_same_bits() of support/layer.h checks, too. */
void check_layer_of_families(const char *line, int64_t seed, const char *const family[3], bool same_bits);

void ways_tiled(void **state);
/* Taps in segments. */
void ways_cut(void **state);
/* Workspace limits. */
void ways_chunked(void **state);
void ways_forced_chunks(void **state);

#endif
