// SPDX-License-Identifier: Apache-2.0
// What the cases of short kernels must have led to, for kernels that compute both gradients.
#ifndef SIMT_SHORT_KERNEL_BOTH_NOTES_H
#define SIMT_SHORT_KERNEL_BOTH_NOTES_H

#include "kernels/short_kernel_notes.h"

namespace {

void note_both_lines_last(const cf_toeplitz_both &both) {
    const cf_toeplitz_config &data = both.data, &weights = both.weights;
    const std::string kind = ", both gradients, lines of eight channels";
    cover("FP16" + kind, data.dtype == CONV_FFT_FP16);
    cover("BF16" + kind, data.dtype == CONV_FFT_BF16);
    for (const int width : {16, 32})
        cover("rows of " + std::to_string(width) + kind, data.width == width);
    for (const int channels : {8, 16, 32})
        cover(std::to_string(channels) + " channels" + kind, weights.planes == channels);
    cover("channels that blocks do not fill" + kind, weights.groups % weights.planes);
    cover("several blocks of channels" + kind, weights.grid[0] > 1);
    cover("units before gy" + kind, weights.before > 0);
    cover("no units before gy" + kind, weights.before == 0);
    cover("more items of a block than copies ahead" + kind,
          weights.samples * weights.tiles_across > data.buffers * weights.grid[1]);
    for (const int buffers : {1, 2})
        cover(std::to_string(buffers) + " copies ahead" + kind, data.buffers == buffers);
    cover("several tiles" + kind, weights.tiles_across > 1);
    cover("several slices" + kind, weights.grid[1] > 1);
    cover("one slice" + kind, weights.grid[1] == 1);
    cover("128 taps" + kind, weights.kernel[1] == 128);
    cover("scaled weights" + kind, data.scaled);
    cover("FP32 gradients of weights" + kind, weights.weights == CONV_FFT_FP32);
}

void note_both_in_place(const cf_toeplitz_both &both) {
    const cf_toeplitz_config &data = both.data, &weights = both.weights;
    const std::string kind = ", both gradients, channels in place";
    cover("FP16" + kind, data.dtype == CONV_FFT_FP16);
    cover("BF16" + kind, data.dtype == CONV_FFT_BF16);
    for (const int tiles : {1, 2})
        cover(std::to_string(tiles) + " tiles" + kind, data.tiles == tiles);
    cover("several warps of a row" + kind, data.parts > 1);
    cover("one row of taps" + kind, data.kernel[0] == 1);
    cover("an even number of rows of taps" + kind, data.kernel[0] % 2 == 0);
    cover("padding on one side" + kind, data.row_pad != weights.row_pad && data.column_pad != weights.column_pad);
    cover("channels that blocks do not fill" + kind, weights.groups % (4 * weights.quads) != 0);
    cover("several blocks of channels" + kind, weights.grid[0] > 1);
    cover("several blocks of a sample" + kind, weights.samples < weights.grid[1]);
    cover("scaled weights" + kind, data.scaled);
    cover("FP32 gradients of weights" + kind, weights.weights == CONV_FFT_FP32);
}

void note_both(const cf_toeplitz_both &both) {
    const cf_toeplitz_config &data = both.data, &weights = both.weights;
    if (weights.aligned) {
        weights.in_place ? note_both_in_place(both) : note_both_lines_last(both);
        return;
    }
    const std::string kind = ", both gradients", of_type = data.dtype == CONV_FFT_FP32 ? ", FP32" + kind : kind;
    cover("FP16" + kind, data.dtype == CONV_FFT_FP16);
    cover("BF16" + kind, data.dtype == CONV_FFT_BF16);
    if (data.dtype == CONV_FFT_FP32)
        for (const int terms : {1, 2})
            cover(std::to_string(terms) + " terms" + of_type, data.terms == terms);
    cover("units before gy" + of_type, weights.before > 0);
    cover("no units before gy" + of_type, weights.before == 0);
    cover("several items of a block" + of_type, weights.samples * weights.tiles_across > weights.grid[1]);
    cover("several tiles" + of_type, weights.tiles_across > 1);
    cover("several slices" + of_type, weights.grid[1] > 1);
    cover("one slice" + of_type, weights.grid[1] == 1);
    cover("copies of whole units" + of_type, data.x.granule == data.x.numbers);
    cover("copies of single elements" + of_type, data.x.granule == 1);
    cover("scaled weights" + kind, data.scaled);
    cover("FP32 gradients of weights" + kind, data.dtype != CONV_FFT_FP32 && weights.weights == CONV_FFT_FP32);
}

} // namespace

#endif
