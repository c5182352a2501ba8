/* SPDX-License-Identifier: Apache-2.0 */
/* Padding modes in kernels, with the values of conv_fft_padding. */
#pragma once

#include "fbfft/common/platform.cuh"

enum PaddingMode {
    ZEROS,
    CIRCULAR,
    REFLECT,
    REPLICATE
};

/* The index of the element that padding puts at position i; -1: a zero. */
template <int MODE> CF_DEVICE int padded_index(int i, int size) {
    if (unsigned(i) < unsigned(size))
        return i;
    if (MODE == CIRCULAR) {
        i %= size;
        return i < 0 ? i + size : i;
    }
    if (MODE == REFLECT) {
        i = i < 0 ? -i : 2 * (size - 1) - i;
        return unsigned(i) < unsigned(size) ? i : -1;
    }
    return MODE == REPLICATE ? (i < 0 ? 0 : size - 1) : -1;
}
