// SPDX-License-Identifier: Apache-2.0
// What the cases of short kernels must have led to: formats, copies and shapes that their passes have.
#ifndef SIMT_SHORT_KERNEL_NOTES_H
#define SIMT_SHORT_KERNEL_NOTES_H

#include "kernels/emitted.h"
#include "kernels/short_kernel_registration.h"

#include <map>
#include <string>

extern "C" {
#include "conv/dft/dft.h"
#include "conv/implicit_gemm/implicit_gemm.h"
#include "conv/spatial/spatial.h"
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

void note_signals(const cf_dft_config &c) {
    const std::string pass = of_pass("dft, signals", c.pass);
    const cf_dft_signal &s = c.signal;
    const std::int64_t together = c.pass == CF_PASS_WEIGHTS ? s.lines / 2 : s.lines, tiles = c.samples * s.tiles;
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    cover("granules of 8" + pass, c.x.granule == 8);
    cover("any alignment" + pass, c.x.granule == 1);
    cover("short tiles" + pass, s.radix == 8);
    cover("long tiles" + pass, s.radix == 16);
    cover("several tiles of a signal" + pass, s.tiles > 1);
    cover("a last tile with fewer results" + pass, c.y.columns % s.valid != 0);
    cover("taps that begin behind the tile" + pass, s.shift > 0);
    cover("tiles that begin behind the signal" + pass, s.first < 0);
    cover("several items of a block" + pass, tiles > together * c.grid[1]);
    cover("tiles that items do not fill" + pass, tiles % together != 0);
    cover("several slices" + pass, c.grid[1] > 1);
    cover("one slice" + pass, c.grid[1] == 1);
}

void note_dft(const cf_dft_config &c) {
    if (c.signal.radix)
        return note_signals(c);
    const std::string pass = of_pass("dft", c.pass);
    const std::int64_t together = c.teams * c.planes, items = (c.samples + together - 1) / together;
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    cover("FP32 weights" + pass, c.weights == CONV_FFT_FP32);
    cover("several items of a block" + pass, items > c.grid[1]);
    cover("kernels larger than planes" + pass, c.kernel[0] > c.x.rows && c.kernel[1] > c.x.columns);
    cover("different bases" + pass, c.basis[0] != c.basis[1]);
    for (const int granule : {1, 2, 4, 8}) {
        cover("granules of " + std::to_string(granule) + " of x" + pass, c.x.granule == granule);
        cover("granules of " + std::to_string(granule) + " of y" + pass, c.y.granule == granule);
    }
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("several slices" + pass, c.grid[1] > 1);
        cover("one slice" + pass, c.grid[1] == 1);
    } else {
        cover("samples that teams do not fill" + pass, c.samples % c.planes);
        cover("samples that blocks do not fill" + pass, c.samples % together);
        cover("several teams" + pass, c.teams > 1);
        cover("one team" + pass, c.teams == 1);
        cover("32 columns twice" + pass, c.y.columns > 32);
    }
}

void note_igemm(const cf_igemm_config &c) {
    const std::string pass = of_pass("implicit_gemm", c.pass),
                      layout = (c.last ? ", channels last" : ", channels first") + pass;
    const cf_igemm_geometry g = cf_igemm_geometry_for(&c);
    cover("FP16" + pass, c.dtype == CONV_FFT_FP16);
    cover("BF16" + pass, c.dtype == CONV_FFT_BF16);
    for (const int columns : {32, 48, 64, 96})
        if (columns != 48 || c.pass == CF_PASS_WEIGHTS)
            cover(std::to_string(columns) + " columns of a product" + pass, c.columns == columns);
    for (const int channels : {1, 2, 4, 8})
        cover(std::to_string(channels) + " channels of a unit" + pass, g.channels == channels);
    for (const int granule : {1, 2, 8})
        if (granule < 8 || c.last || c.pass == CF_PASS_WEIGHTS)
            cover("granules of " + std::to_string(granule) + layout, c.granule == granule);
    cover("channels that do not exist" + pass, c.channels < g.channels);
    cover("channels of y that products do not fill" + layout, c.out_channels % c.columns != 0);
    cover("several blocks of channels of a group" + layout, c.out_channels > c.columns);
    cover("several groups" + pass, c.groups > 1);
    cover("pairs of columns" + pass, c.pairs && c.lead == 0);
    cover("pairs of columns that begin before the kernel" + pass, c.lead > 0);
    cover("taps that units do not fill" + pass, c.kernel[1] % g.taps != 0);
    cover("phases" + pass, g.phases > 1);
    cover("phases that repeat" + pass, g.phases > 1 && g.units > g.all_phases);
    cover("a stride larger than the kernel" + pass, c.stride[0] > c.kernel[0]);
    cover("several tiles across" + pass, c.tiles[1] > 1);
    cover("several tiles of a block" + pass, c.samples * c.tiles[0] * c.tiles[1] > c.grid[0]);
    cover("several blocks share the tiles" + pass, c.grid[0] > 1);
    cover("several teams" + pass, c.teams > 1);
    if (c.pass == CF_PASS_FORWARD) {
        cover("an odd number of units" + pass, c.kernel[0] * g.units % 2 != 0);
        cover("several patches down" + layout, c.tile[0] > cf_igemm_patch_rows(c.last));
        cover("several patches across" + layout, c.tile[1] > 64 / cf_igemm_patch_rows(c.last));
        cover("patches that teams do not fill" + pass, c.tile[0] * c.tile[1] / 64 % c.teams != 0);
    } else {
        const cf_igemm_products p = cf_igemm_products_of(g, c.kernel[0], c.stride[1]);
        cover("an odd number of groups of outputs" + pass, c.tile[0] * (c.tile[1] / 8) % 2 != 0);
        cover("products down eights of rows" + pass, p.bands > 0);
        cover("products down the rows that are left" + pass, p.left > 0 && !p.across);
        cover("products across" + pass, p.across);
        cover("products that teams do not fill" + pass, p.count % c.teams != 0);
    }
}

void note_walk(const cf_spatial_config &c, bool folds) {
    const std::string pass = c.both ? " of both gradients, spatial" : of_pass("spatial, walks", c.pass);
    cover("planes" + pass, !c.exchanged);
    cover("signals of one axis" + pass, c.exchanged);
    if (c.both || c.pass == CF_PASS_FORWARD) {
        cover("a stride down" + pass, c.axis[1].stride > 1);
        cover("a stride across" + pass, c.axis[2].stride > 1);
        cover("a stride larger than the kernel" + pass, c.axis[1].stride > c.axis[1].taps);
    }
    cover("a dilation down" + pass, c.axis[1].dilation > 1);
    cover("several rows of a step" + pass, c.axis[1].outs > c.axis[1].stride);
    cover("strips across" + pass, c.along[2] > 1);
    cover("several segments" + pass, c.along[1] > 1);
    if (c.both || c.pass == CF_PASS_WEIGHTS)
        cover("several items of a strip" + pass, c.items > c.strips * c.grid[1]);
    cover("several blocks of channels" + pass, c.grid[0] > 1);
    for (const int together : {1, 2, 4}) {
        cover(std::to_string(together) + " columns of a load, spatial", c.together[0] == together);
        cover(std::to_string(together) + " columns of a store or of what is beside, spatial",
              c.together[1] == together);
    }
    if (c.together[0] > 0) {
        cover("a stride, channels first" + pass, c.axis[1].stride > 1 && c.axis[2].stride > 1);
        cover("several segments, channels first" + pass, c.along[1] > 1);
        cover("threads without a strip" + pass, c.items % c.strips != 0);
    } else {
        cover("pairs of channels" + pass, c.vector == 2);
        cover("single channels" + pass, c.vector == 1);
        cover("channels that blocks do not fill" + pass, c.channels % (c.lanes * c.vector) != 0);
    }
    if (c.both) {
        cover("one slice" + pass, c.grid[1] == 1);
        cover("several slices" + pass, c.grid[1] > 1);
        return;
    }
    if (c.pass == CF_PASS_DATA)
        cover("padding that is folded" + pass, folds);
    else
        cover("padding that repeats x" + pass, c.mode != CONV_FFT_PAD_ZEROS);
    if (c.pass != CF_PASS_WEIGHTS)
        return;
    cover("one slice" + pass, c.grid[1] == 1);
    cover("several slices" + pass, c.grid[1] > 1);
}

void note_spatial(const cf_spatial_config &c, bool folds) {
    if (c.walks) {
        note_walk(c, folds);
        return;
    }
    const std::string pass = of_pass("spatial", c.pass);
    const std::string layout = (c.last ? ", channels last" : ", channels first") + pass;
    const std::int64_t rounds = c.last ? (c.items + c.strips - 1) / c.strips : c.items;
    cover("FP32" + layout, c.dtype == CONV_FFT_FP32);
    cover("16 bits" + layout, c.dtype != CONV_FFT_FP32);
    cover("a stride" + layout, c.axis[1].stride > 1 || c.axis[2].stride > 1);
    cover("a dilation" + layout, c.axis[1].dilation > 1 || c.axis[2].dilation > 1);
    cover("several chunks" + layout, c.chunks > 1);
    cover("chunks that taps do not fill" + layout, c.kernel[2] % c.axis[2].taps != 0);
    cover("depths" + layout, c.kernel[0] > 1);
    cover("several channels of a group" + layout, c.own > 1 && c.summed > 1);
    cover("several items of a block" + layout, rounds > c.grid[1]);
    cover("strips that planes do not fill" + layout, c.along[2] > 1 && c.along[1] > 1);
    if (c.pass != CF_PASS_DATA)
        cover("padding that repeats x" + layout, c.mode != CONV_FFT_PAD_ZEROS);
    else
        for (const conv_fft_dtype dtype : {CONV_FFT_FP32, CONV_FFT_FP16})
            if (!c.last || dtype == CONV_FFT_FP16)
                cover(std::string("padding of ") + (dtype == CONV_FFT_FP32 ? "FP32" : "16 bits") + layout +
                          " is folded",
                      folds && (c.dtype == CONV_FFT_FP32) == (dtype == CONV_FFT_FP32));
    if (c.last) {
        cover("pairs of channels" + pass, c.vector == 2);
        cover("single channels" + pass, c.vector == 1);
        cover("several blocks of channels" + pass, c.grid[0] > 1);
        cover("channels that blocks do not fill" + pass, c.channels % (c.lanes * c.vector) != 0);
    } else {
        cover("tiles with gaps" + pass, c.skewed);
        cover("tiles without gaps" + pass, !c.skewed);
        cover("several samples of a block" + pass, c.planes > 1);
        cover("samples that blocks do not fill" + pass, c.samples % c.planes != 0);
    }
    if (c.pass == CF_PASS_WEIGHTS) {
        cover("one slice" + layout, c.grid[1] == 1);
        cover("several slices" + layout, c.grid[1] > 1);
        cover("shares of kernel rows" + layout, c.shares > 1);
        cover("shares that kernel rows do not fill" + layout, c.kernel[1] % c.rows != 0);
    }
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
