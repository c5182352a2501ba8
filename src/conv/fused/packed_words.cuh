/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of 16-bit elements in 32-bit words.
 *
 * A complex point holds one element of each of two neighbouring rows. Before a store, two threads with neighbouring
 * points exchange halves, so that each has a word of two neighbouring elements of one row:
 *
 *     thread 0     | row 0, x     | row 1, x     |      ->     | row 0, x | row 0, x + 1 |
 *     thread 1     | row 0, x + 1 | row 1, x + 1 |      ->     | row 1, x | row 1, x + 1 |
 */
#pragma once

#include "fbfft/shared_memory/kernel.cuh"

/* Rounds two numbers and packs them into one word. */
CF_DEVICE unsigned word_of_two(fp16, real low, real high) { return pack_fp16(float(low), float(high)); }
CF_DEVICE unsigned word_of_two(bf16, real low, real high) { return pack_bf16(float(low), float(high)); }

/*
 * The selector for word_of_fp16(). With high = 0 it takes the low halves of both words, in this order. With high
 * = 1 it takes the high half of the second word, then that of the first. The caller computes it once, because
 * compilers would choose again for each word.
 */
CF_DEVICE unsigned which_fp16(int high) { return 0x5410u - unsigned(high) * (0x5410u - 0x3276u); }
CF_DEVICE unsigned word_of_fp16(unsigned first, unsigned second, unsigned which) {
#ifdef CF_SIMT
    return which == 0x5410u ? (first & 0xffffu) | second << 16 : second >> 16 | (first & 0xffff0000u);
#else
    return __byte_perm(first, second, which);
#endif
}
