/* SPDX-License-Identifier: Apache-2.0 */
/* Every strategy computes the same layer on device_context(): tiles, overlap, dilation, products, chunks. Tests for
 * cmocka. */
#ifndef TEST_LAYER_WAYS_H
#define TEST_LAYER_WAYS_H

void ways_tiled(void **state);
/* Taps in segments. */
void ways_cut(void **state);
/* Workspace limits. */
void ways_chunked(void **state);
void ways_forced_chunks(void **state);

#endif
