/* SPDX-License-Identifier: Apache-2.0 */
/* Padding modes in kernels, with the values of conv_fft_padding. */
#pragma once

enum PaddingMode {
    ZEROS,
    CIRCULAR,
    REFLECT,
    REPLICATE
};
