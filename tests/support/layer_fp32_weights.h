/* SPDX-License-Identifier: Apache-2.0 */
/* FP32 weights beside 16-bit tensors are read with all their bits. */
#ifndef TEST_LAYER_FP32_WEIGHTS_H
#define TEST_LAYER_FP32_WEIGHTS_H

/** A test of cmocka, on the device of support/device.h: the sum of a weight and a bias is far smaller than the
 * roundoff of a 16-bit weight. */
void fp32_weights_keep_their_bits(void **state);

#endif
