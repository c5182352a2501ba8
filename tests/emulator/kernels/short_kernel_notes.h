// SPDX-License-Identifier: Apache-2.0
// What the cases of short kernels must have led to: formats, copies and shapes that their passes have.
#ifndef SIMT_SHORT_KERNEL_NOTES_H
#define SIMT_SHORT_KERNEL_NOTES_H

#include "kernels/emitted.h"
#include "kernels/short_kernel_registration.h"

#include <map>
#include <string>

extern "C" {
#include "conv/toeplitz/toeplitz.h"
}

namespace {

std::map<std::string, bool> covered;
void cover(const std::string &what, bool seen) {
    if (seen && coverage_feature)
        coverage_feature(what.c_str());
    covered[what] = covered[what] || seen;
}

void note_access(const std::string &what, const cf_toeplitz_access &a) {
    for (const int granule : {1, 2, 4, 8})
        cover(what + ", granules of " + std::to_string(granule), a.granule == granule);
}

std::string of_pass(const char *family, int pass) {
    static const char *const passes[] = {"y", "gx", "gw"};
    return std::string(" of ") + passes[pass] + ", " + family;
}

void note_in_place(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("toeplitz, channels in place", c.pass);
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    cover("copies of 16 bytes" + pass, c.aligned);
    cover("channels one by one" + pass, !c.aligned);
    cover("a stride" + pass, c.stride[0] > 1 && c.stride[1] > 1);
    cover("different strides" + pass, c.stride[0] != c.stride[1]);
    cover("several slices" + pass, c.grid[1] > c.tiles_across);
    cover("several blocks of channels" + pass, c.grid[0] > 1);
    cover("channels that blocks do not fill" + pass, c.groups % (4 * c.quads) != 0);
    cover("tiles across" + pass, c.tiles_across > 1);
    cover("several warps of a row" + pass, c.parts > 1);
    cover("several tiles of a warp" + pass, c.tiles > 1);
    cover("batches of one row" + pass, c.batch == 1);
    cover("batches of two rows" + pass, c.batch == 2);
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("one slice" + pass, c.grid[1] == 1);
        return;
    }
    for (const int steps : {1, 2, 3})
        cover(std::to_string(steps) + " steps" + pass, c.steps == steps);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    cover("scaled weights" + pass, c.scaled);
}

void note_small_in_place(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("small planes in place", c.pass);
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    cover("rows of 16" + pass, c.y.breadth > 8);
    cover("rows of eight" + pass, c.y.breadth <= 8);
    cover("planes of different extents" + pass, c.x.height != c.y.height && c.x.breadth != c.y.breadth);
    cover("samples that blocks do not fill" + pass, c.samples % c.loaded);
    cover("channels that blocks do not fill" + pass, c.groups % (4 * c.quads) != 0);
    cover("several copies of a block" + pass, c.samples > c.loaded * c.grid[1]);
    cover("several blocks of samples" + pass, c.grid[1] > 1);
    cover("several blocks of channels" + pass, c.grid[0] > 1);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("one slice" + pass, c.grid[1] == 1);
        return;
    }
    for (const int steps : {1, 2})
        cover(std::to_string(steps) + " steps" + pass, c.steps == steps);
    cover("scaled weights" + pass, c.scaled);
}

void note_lines_last(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("lines of eight channels", c.pass);
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    for (const int width : {16, 32})
        cover("rows of " + std::to_string(width) + pass, c.width == width);
    for (const int channels : {8, 16, 32, 64})
        if (channels < 32 || c.pass != CF_PASS_WEIGHTS)
            cover(std::to_string(channels) + " channels" + pass, c.planes == channels);
    cover("channels that blocks do not fill" + pass, c.groups % c.planes);
    cover("several blocks of channels" + pass, c.grid[0] > 1);
    cover("several tiles of a block" + pass, c.samples * c.tiles_across > c.grid[1]);
    cover("several slices" + pass, c.grid[1] > 1);
    cover("128 taps" + pass, c.kernel[1] == 128);
    if (c.pass == CF_PASS_WEIGHTS)
        cover("one slice" + pass, c.grid[1] == 1);
    else
        cover("scaled weights" + pass, c.scaled);
}

void note_small(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("small planes", c.pass),
                      layout = (c.last ? ", channels last" : ", channels first") + pass;
    const bool wide = c.x.breadth > 8 || c.y.breadth > 8;
    cover("FP16" + layout, c.dtype == CONV_FFT_FP16);
    cover("BF16" + layout, c.dtype == CONV_FFT_BF16);
    cover("rows of 16" + layout, wide);
    cover("rows of eight" + layout, !wide);
    cover("rows of odd length" + layout, c.x.breadth % 2 && c.y.breadth % 2);
    cover("rows of even length" + layout, c.x.breadth % 2 == 0 && c.y.breadth % 2 == 0);
    cover("an odd number of rows of eight" + layout, !wide && c.x.height % 2);
    cover("planes of different extents" + pass, c.x.height != c.y.height && c.x.breadth != c.y.breadth);
    cover("samples that blocks do not fill" + layout, c.samples % c.loaded);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    cover("several blocks of channels" + layout, c.grid[0] > 1);
    cover("several blocks of samples" + layout, c.grid[1] > 1);
    if (!c.last) {
        cover("channels that blocks do not fill" + pass, c.groups % c.planes);
        cover("several channels of a block" + pass, c.planes > 1);
        cover("one channel of a block" + pass, c.planes == 1);
        note_access("loads of small planes", c.x);
        note_access(c.pass == CF_PASS_WEIGHTS ? "loads of small gy" : "stores of small planes", c.y);
    }
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("one slice" + layout, c.grid[1] == 1);
        cover("shares of delta" + layout, c.shares > 1);
        cover("several loads of a block" + layout, (c.samples + c.loaded - 1) / c.loaded > c.grid[1]);
    } else {
        cover("scaled weights" + pass, c.scaled);
    }
}

/* What volumes of both layouts have. */
void note_depths(const cf_toeplitz_config &c, const std::string &pass) {
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    cover("even numbers of kernel rows" + pass, c.kernel[0] % 2 == 0);
    cover("odd numbers of kernel rows" + pass, c.kernel[0] % 2);
    cover("eight depths of a kernel" + pass, c.depths == 8);
    cover("more padding than taps" + pass, c.pass == CF_PASS_DATA ? c.depth_pad < 0 : c.depth_pad >= c.depths);
    cover("no padding of depths" + pass, c.depth_pad == 0);
    cover("tiles down and across" + pass, c.tiles_down > 1 && c.tiles_across > 1);
    cover("parts of the depths" + pass, c.depth_parts > 1);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("one slice" + pass, c.grid[1] == 1);
        cover("several slices" + pass, c.grid[1] > 1);
    } else {
        cover("scaled weights" + pass, c.scaled);
    }
    note_access("loads" + pass, c.x);
    note_access((c.pass == CF_PASS_WEIGHTS ? "loads of gy" : "stores") + pass, c.y);
}

void note_volumes(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("toeplitz, volumes", c.pass);
    note_depths(c, pass);
    cover("seven taps of a row, from an odd column on" + pass, c.kernel[1] == 7 && c.lead % 2);
    cover("fewer taps of a row, from an odd column on" + pass, c.kernel[1] < 7 && c.lead % 2);
    cover("taps from an even column on" + pass, c.lead % 2 == 0);
    cover("several warps down and across" + pass, c.warps > 1 && c.across > 1);
    cover("several parts of more than nine depths" + pass, c.depth_parts > 1 && c.depth_parts * c.part_depths > 9);
    if (c.pass == CF_PASS_WEIGHTS)
        cover("several items of a block" + pass, c.samples * c.depth_parts * c.tiles_down * c.tiles_across > c.grid[1]);
}

void note_volumes_last(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("toeplitz, volumes, channels last", c.pass);
    note_depths(c, pass);
    cover("several blocks of channels" + pass, c.grid[0] > 1);
    cover("channels that blocks do not fill" + pass, c.groups % c.planes);
    cover("several items of a block" + pass, c.samples * c.depth_parts * c.tiles_down * c.tiles_across > c.grid[1]);
}

void note_rows(const cf_toeplitz_config &c) {
    const std::string pass = of_pass("planes by rows", c.pass);
    const std::int64_t items = (c.samples + c.pack - 1) / c.pack * c.parts;
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    cover("one sample of a product" + pass, c.pack == 1);
    cover("several samples of a product" + pass, c.pack > 1);
    cover("samples that products do not fill" + pass, c.samples % c.pack);
    cover("lanes without a segment" + pass, c.pack * c.segments < 16);
    cover("one part of the rows" + pass, c.parts == 1);
    cover("several parts of the rows" + pass, c.parts > 1);
    cover("several items of a warp" + pass, items > c.grid[1] * c.warps);
    cover("warps without an item" + pass, items % c.warps);
    cover("few rows of taps" + pass, c.kernel[0] < 4);
    cover("nine rows of taps" + pass, c.kernel[0] == 9);
    cover("planes of different extents" + pass, c.x.height != c.y.height && c.x.breadth != c.y.breadth);
    for (const int granule : {2, 4, 8})
        cover("copies of " + std::to_string(granule) + pass, c.x.granule == granule);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("one slice" + pass, c.grid[1] == 1);
        cover("several slices" + pass, c.grid[1] > 1);
    } else {
        cover("scaled weights" + pass, c.scaled);
    }
}

void note_config(const cf_toeplitz_config &c) {
    if (c.by_rows) {
        note_rows(c);
        return;
    }
    if (c.in_place) {
        c.small ? note_small_in_place(c) : note_in_place(c);
        return;
    }
    if (c.aligned) {
        note_lines_last(c);
        return;
    }
    if (c.depths) {
        c.last ? note_volumes_last(c) : note_volumes(c);
        return;
    }
    const std::string pass = of_pass("toeplitz", c.pass);
    const std::int64_t items =
        (c.last ? c.samples : (c.samples + c.planes - 1) / c.planes) * c.tiles_down * c.tiles_across;
    const bool weights = c.pass == CF_PASS_WEIGHTS;
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    if (c.dtype == CONV_FFT_FP32) {
        const std::string fp32 = ", FP32" + pass;
        for (const int terms : {1, 2})
            cover(std::to_string(terms) + " terms" + fp32, c.terms == terms);
        for (const int granule : {1, 2, 4})
            cover("granules of " + std::to_string(granule) + fp32, c.x.granule == granule);
        cover("lines" + fp32, c.line);
        cover("whole planes" + fp32, c.x.whole);
        cover("parts of planes" + fp32, !c.x.whole && !c.line);
        cover("several slices" + fp32, c.grid[1] > 1);
        cover(weights ? "shares of kernel rows" + fp32 : "fragments in shared memory" + fp32,
              weights ? c.shares > 1 : c.in_shared_memory);
        if (!weights)
            cover("several spans" + fp32, c.steps > c.span);
        for (const int together : {1, 2, 4})
            if (weights)
                cover(std::to_string(together) + " times 16 columns together" + fp32, c.together == together);
    }
    cover("lines, channels first" + pass, c.line && !c.last);
    cover("lines, channels last" + pass, c.line && c.last);
    cover("lines of several tiles" + pass, c.line && c.tiles_across > 1);
    cover("planes, channels last" + pass, !c.line && c.last);
    cover("16 channels" + pass, c.last && c.planes == 16);
    cover("8 channels" + pass, c.last && c.planes == 8);
    cover("channels that blocks do not fill" + pass, c.last && c.groups % c.planes);
    cover("channels one by one" + pass, c.last && c.x.granule == 1);
    cover("whole planes" + pass, c.x.whole);
    cover("parts of planes" + pass, !c.x.whole && !c.line && !c.last);
    cover("tiles down and across" + pass, c.tiles_down > 1 && c.tiles_across > 1);
    cover("several warps" + pass, c.warps > 1 && !c.last);
    cover("several items of a block" + pass, items > c.grid[1]);
    cover("several slices" + pass, c.grid[1] > 1);
    cover("shares of different items" + pass, c.grid[1] > 1 && items % c.grid[1]);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    if (!weights) {
        cover("fragments in shared memory, channels first" + pass, c.in_shared_memory && !c.last);
        cover("fragments in shared memory, channels last" + pass, c.in_shared_memory && c.last);
        cover("several groups of outputs" + pass, c.count > 1);
        cover("scaled weights" + pass, c.scaled);
        cover("several samples of a block" + pass, !c.last && c.planes > 1);
        cover("samples that blocks do not fill" + pass, !c.last && c.samples % c.planes);
    } else {
        cover("one slice", c.grid[1] == 1);
        cover("shares of kernel rows", c.shares > 1);
        cover("shares that kernel rows do not fill", c.kernel[0] % c.of_share);
        cover("whole planes of gy", c.y.whole);
        cover("parts of planes of gy", !c.y.whole && !c.line && !c.last);
        for (const int links : {2, 3, 4})
            cover("chains of " + std::to_string(links), c.across % links == 0);
    }
    const conv_fft_padding mode = c.folded ? c.fold.mode : c.mode;
    for (const conv_fft_padding padding : {CONV_FFT_PAD_CIRCULAR, CONV_FFT_PAD_REFLECT, CONV_FFT_PAD_REPLICATE})
        cover("padding mode " + std::to_string(padding) + pass, mode == padding && !c.last);
    if (c.pass == CF_PASS_DATA) {
        const bool across = c.up[1] > 1, both = across && c.up[0] > 1;
        cover("folded planes, several warps" + pass, c.folded && c.warps > 1);
        cover("folded planes, several samples of a block" + pass, c.folded && c.planes > 1);
        cover("folded planes, a stride" + pass, c.folded && both);
        cover("a stride" + pass, both);
        cover("a stride, parts of planes" + pass, both && !c.x.whole && !c.last);
        cover("a stride, tiles down" + pass, both && c.tiles_down > 1);
        cover("a stride, tiles across" + pass, both && c.tiles_across > 1);
        cover("a stride, fragments in shared memory" + pass, both && c.in_shared_memory && !c.last);
        cover("a stride, fragments in registers" + pass, both && !c.in_shared_memory && !c.last);
        cover("a stride, several samples of a block" + pass, both && !c.last && c.planes > 1);
        cover("a stride, channels last" + pass, both && c.last && !c.in_shared_memory);
        cover("a stride, channels last, fragments in shared memory" + pass, both && c.last && c.in_shared_memory);
        cover("a stride, lines" + pass, across && c.line && !c.last);
        cover("a stride, lines of several groups" + pass, across && c.line && c.count > 1);
        cover("a stride, lines, channels last" + pass, across && c.line && c.last);
        cover("a stride, scaled weights" + pass, both && c.scaled);
        cover("rows without taps" + pass, c.kernel[0] < c.up[0]);
        cover("rows of inputs before the first kernel row" + pass, c.lead_y > 0);
        cover("different strides" + pass, across && c.up[0] != c.up[1]);
        for (const int stride : {2, 3, 4})
            cover("stride " + std::to_string(stride) + pass, c.up[0] == stride || c.up[1] == stride);
    }
    for (const int stride : {2, 3, 4})
        cover("stride " + std::to_string(stride), c.stride[0] == stride || c.stride[1] == stride);
    if (!c.last) {
        note_access("loads", c.x);
        note_access(weights ? "loads of gy" : "stores", c.y);
    }
}

} // namespace

#endif
