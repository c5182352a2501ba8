// SPDX-License-Identifier: Apache-2.0
// What the cases of short kernels must have led to, for the families dft, implicit_gemm and spatial.
#ifndef SIMT_SHORT_KERNEL_FAMILY_NOTES_H
#define SIMT_SHORT_KERNEL_FAMILY_NOTES_H

#include "kernels/short_kernel_notes.h"

extern "C" {
#include "conv/dft/dft.h"
#include "conv/implicit_gemm/implicit_gemm.h"
#include "conv/spatial/spatial.h"
}

namespace {

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

} // namespace

#endif
