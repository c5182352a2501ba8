/* SPDX-License-Identifier: Apache-2.0 */
/* Families toeplitz and spatial on a GPU: problems of all kinds, against the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/gpu.h"
#include "support/layer.h"
#include "support/layer_strategies.h"

#include <errno.h>

static const char *const toeplitz_problems[] = {
    /* Planes of one warp, of several, of several tiles. */
    "in=5x7x20x20 out=7 groups=7 kernel=5x5 pad=2 dtype=fp16",
    "in=3x5x56x56 out=5 groups=5 kernel=7x7 pad=3 dtype=bf16",
    "in=2x3x130x75 out=3 groups=3 kernel=3x3 pad=1 dtype=fp16",
    "in=2x2x70x150 out=2 groups=2 kernel=9x9 pad=4 dtype=bf16",
    "in=9x5x14x14 out=5 groups=5 kernel=7x7 pad=3 dtype=fp16",
    "in=4x9x7x7 out=9 groups=9 kernel=13x13 pad=6 dtype=bf16",
    "in=5x4x14x14 out=4 groups=4 kernel=27x27 pad=13 dtype=fp16",
    "in=2x3x40x44 out=3 groups=3 kernel=31x31 pad=15 dtype=fp16",
    "in=1x1x1x1 out=1 kernel=1x1 dtype=fp16",
    "in=17x3x5x9 out=3 groups=3 kernel=1x4 pad=0x2 dtype=bf16",
    "in=65x300x9x56 out=300 groups=300 kernel=2x7 pad=1x3 dtype=fp16",
    /* Small planes: rows of 16 and of eight, of even and odd length, x and y of different extents, both layouts, blocks
     * that samples or channels do not fill, several loads of a block. */
    "in=64x20x14x14 out=20 groups=20 kernel=7x7 pad=3 dtype=bf16",
    "in=21x11x7x7 out=11 groups=11 kernel=13x13 pad=6 dtype=fp16",
    "in=19x6x14x14 out=6 groups=6 kernel=27x27 pad=13 dtype=bf16",
    "in=700x3x7x7 out=3 groups=3 kernel=5x5 pad=2 dtype=fp16",
    "in=300x5x16x16 out=5 groups=5 kernel=3x3 pad=1 dtype=fp16",
    "in=6x3x11x9 out=3 groups=3 kernel=3x5 pad=0x2 dtype=bf16",
    "in=8x4x16x16 out=4 groups=4 kernel=4x3 pad=1:2x0:2 dtype=fp16",
    "in=9x4x5x6 out=4 groups=4 kernel=3x4 pad=2x5 dtype=fp16",
    "in=64x20x14x14 out=20 groups=20 kernel=5x5 pad=2 stride=2 dtype=fp16",
    "in=21x11x15x13 out=11 groups=11 kernel=3x4 pad=1x2 stride=3x2 dtype=bf16",
    "in=33x7x7x7 out=7 groups=7 kernel=3x3 pad=1 stride=2 dtype=bf16 w=fp32 math=half",
    "in=64x48x14x14 out=48 groups=48 kernel=7x7 pad=3 layout=last dtype=fp16",
    "in=21x24x7x7 out=24 groups=24 kernel=13x13 pad=6 layout=last dtype=bf16",
    "in=9x16x14x13 out=16 groups=16 kernel=17x3 pad=8x1 layout=last dtype=fp16",
    "in=13x24x9x13 out=24 groups=24 kernel=5x4 pad=3x2 layout=last dtype=bf16 w=fp32 math=half",
    "in=20x6x14x14 out=6 groups=6 kernel=7x7 pad=3 dtype=fp16 w=fp32 math=half",
    /* Asymmetric padding, more padding than taps, kernels of even size, output without padding. */
    "in=3x6x19x18 out=6 groups=6 kernel=4x3 pad=2:0x1:3 dtype=fp16",
    "in=2x4x11x13 out=4 groups=4 kernel=3x2 pad=5x4 dtype=bf16",
    "in=2x4x30x31 out=4 groups=4 kernel=6x8 dtype=fp16",
    /* Strides. */
    "in=4x6x33x31 out=6 groups=6 kernel=3x3 pad=1 stride=2 dtype=fp16",
    "in=3x5x56x56 out=5 groups=5 kernel=5x5 pad=2 stride=2 dtype=bf16",
    "in=3x4x40x37 out=4 groups=4 kernel=7x5 pad=3x2 stride=3x4 dtype=fp16",
    "in=3x4x40x37 out=4 groups=4 kernel=4x4 stride=4 dtype=fp16",
    "in=9x24x56x56 out=24 groups=24 kernel=5x5 pad=2 stride=2 dtype=fp16",
    "in=2x5x270x301 out=5 groups=5 kernel=7x7 pad=3 stride=2 dtype=bf16",
    "in=5x4x43x46 out=4 groups=4 kernel=19x18 pad=9 stride=2 dtype=fp16",
    "in=5x4x43x46 out=4 groups=4 kernel=2x3 pad=4x0 stride=3x2 dtype=fp16 w=fp32 math=half",
    "in=4x6x9000 out=6 groups=6 kernel=9 pad=4 stride=3 dtype=bf16",
    "in=3x20x43x46 out=20 groups=20 kernel=4x5 pad=1x2 stride=3x4 layout=last dtype=fp16",
    /* Channels last, in place. */
    "in=7x96x56x56 out=96 groups=96 kernel=7x7 pad=3 layout=last dtype=fp16",
    "in=5x32x112x112 out=32 groups=32 kernel=3x3 pad=1 layout=last dtype=bf16",
    "in=7x48x40x56 out=48 groups=48 kernel=3x3 pad=1 layout=last dtype=fp16",
    "in=5x40x33x70 out=40 groups=40 kernel=3x3 pad=1 layout=last dtype=fp16 w=fp32 math=half gw=fp32",
    "in=7x24x21x30 out=24 groups=24 kernel=4x2 pad=2:1x1:0 layout=last dtype=bf16",
    "in=5x96x112x112 out=96 groups=96 kernel=3x3 pad=1 stride=2 layout=last dtype=fp16",
    "in=9x144x56x56 out=144 groups=144 kernel=5x5 pad=2 stride=2 layout=last dtype=bf16",
    "in=9x240x28x28 out=240 groups=240 kernel=5x5 pad=2 layout=last dtype=fp16",
    "in=3x12x40x37 out=12 groups=12 kernel=4x5 pad=1x3 stride=3x2 layout=last dtype=fp16",
    "in=2x16x19x270 out=16 groups=16 kernel=9x9 pad=4 layout=last dtype=bf16",
    "in=40x8x60x30 out=8 groups=8 kernel=3x3 pad=1 layout=last dtype=fp16 w=fp32 math=half",
    /* Small planes in place. */
    "in=65x48x14x14 out=48 groups=48 kernel=5x5 pad=2 layout=last dtype=fp16",
    "in=64x144x14x14 out=144 groups=144 kernel=3x3 pad=1 layout=last dtype=bf16",
    "in=67x96x7x7 out=96 groups=96 kernel=5x5 pad=2 layout=last dtype=fp16",
    "in=31x40x16x9 out=40 groups=40 kernel=7x7 pad=3 layout=last dtype=bf16",
    "in=9x24x11x15 out=24 groups=24 kernel=4x3 pad=1:2x0:2 layout=last dtype=fp16 w=fp32 math=half",
    "in=300x8x5x6 out=8 groups=8 kernel=9x3 pad=4x1 layout=last dtype=bf16 w=fp32 math=half gw=fp32",
    "in=65x48x14x14 out=48 groups=48 kernel=5x5 pad=2 stride=2 layout=last dtype=fp16",
    "in=19x40x15x13 out=40 groups=40 kernel=4x3 pad=1:2x0:2 stride=3x2 layout=last dtype=bf16",
    /* Channels last: some, many and odd numbers of channels. */
    "in=2x48x56x56 out=48 groups=48 kernel=7x7 pad=3 layout=last dtype=bf16",
    "in=5x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=fp16",
    "in=3x10x17x18 out=10 groups=10 kernel=3x3 pad=1 stride=2 layout=last dtype=fp16",
    "in=3x13x19x70 out=13 groups=13 kernel=4x3 pad=2:0x1:3 layout=last dtype=bf16",
    "in=2x20x14x14 out=20 groups=20 kernel=13x13 pad=6 layout=last dtype=fp16",
    "in=2x9x40x44 out=9 groups=9 kernel=9x9 pad=4 layout=last dtype=fp16",
    /* Signals. */
    "in=5x7x200 out=7 groups=7 kernel=31 pad=15 dtype=fp16",
    "in=4x6x2048 out=6 groups=6 kernel=4 pad=3:0 dtype=bf16",
    "in=3x5x1500 out=5 groups=5 kernel=128 pad=127:0 dtype=fp16",
    "in=2x3x9001 out=3 groups=3 kernel=64 pad=63:0 dtype=bf16",
    "in=2x2x4096 out=2 groups=2 kernel=256 pad=255:0 dtype=bf16",
    "in=3x4x1000 out=4 groups=4 kernel=9 pad=4 stride=2 dtype=fp16",
    "in=3x4x37 out=4 groups=4 kernel=37 pad=36:0 dtype=fp16",
    "in=2x3x17000 out=3 groups=3 kernel=17 pad=0:16 dtype=fp16",
    "in=40x2x1024 out=2 groups=2 kernel=5 pad=4:0 dtype=bf16 gw=fp32",
    "in=5x4x1003 out=4 groups=4 kernel=7 pad=6:0 dtype=fp16 w=fp32 math=half",
    "in=4x24x2048 out=24 groups=24 kernel=4 pad=3:0 layout=last dtype=bf16",
    "in=3x11x500 out=11 groups=11 kernel=64 pad=63:0 layout=last dtype=fp16",
    "in=3x72x3001 out=72 groups=72 kernel=128 pad=127:0 layout=last dtype=bf16",
    "in=9x40x5000 out=40 groups=40 kernel=32 pad=31:0 layout=last dtype=fp16 w=fp32 math=half",
    "in=40x64x1900 out=64 groups=64 kernel=100 pad=99:0 layout=last dtype=bf16",
    "in=1x2304x600 out=2304 groups=2304 kernel=4 pad=3:0 layout=last dtype=bf16",
    "in=2x24x9000 out=24 groups=24 kernel=17 pad=0:16 layout=last dtype=bf16 gw=fp32",
    "in=2x40x700 out=40 groups=40 kernel=31 pad=15 layout=last dtype=fp16",
    "in=5x16x137 out=16 groups=16 kernel=5 pad=1:3 layout=last dtype=fp16 w=fp32 math=half",
    /* Volumes: of one tile, of several, with parts of the depths; rows at all alignments; kernels of all parities. */
    "in=2x3x20x40x48 out=3 groups=3 kernel=7x7x7 pad=3 dtype=fp16",
    "in=3x5x16x16x16 out=5 groups=5 kernel=7x7x7 pad=3 dtype=bf16",
    "in=2x2x64x64x64 out=2 groups=2 kernel=7x7x7 pad=3 dtype=fp16",
    "in=2x3x9x70x150 out=3 groups=3 kernel=5x5x5 pad=2 dtype=bf16",
    "in=2x3x31x33x37 out=3 groups=3 kernel=5x5x5 pad=2 dtype=fp16",
    "in=2x160x24x24x24 out=160 groups=160 kernel=3x3x3 pad=1 dtype=fp16",
    "in=3x4x11x18x22 out=4 groups=4 kernel=8x8x7 pad=4x3x3 dtype=bf16",
    "in=3x4x10x12x20 out=4 groups=4 kernel=4x6x4 pad=1:2x0:5x3 dtype=fp16",
    "in=2x4x3x4x5 out=4 groups=4 kernel=2x1x7 pad=4x3x6 dtype=bf16",
    "in=2x4x9x10x16 out=4 groups=4 kernel=3x4x6 dtype=fp16",
    "in=2x4x40x9x8 out=4 groups=4 kernel=7x1x1 pad=3x0x0 dtype=bf16",
    "in=2x4x8x40x40 out=4 groups=4 kernel=1x7x7 pad=0x3x3 dtype=fp16",
    "in=2x8x12x20x24 out=8 groups=8 kernel=5x5x5 pad=2 dtype=fp16 w=fp32 math=half",
    "in=2x8x12x20x24 out=8 groups=8 kernel=3x3x3 pad=1 dtype=bf16 gw=fp32",
    /* The same with channels last: copies of eight, four, two and single channels. */
    "in=2x32x20x40x48 out=32 groups=32 kernel=7x7x7 pad=3 layout=last dtype=fp16",
    "in=2x16x64x64x64 out=16 groups=16 kernel=5x5x5 pad=2 layout=last dtype=bf16",
    "in=3x72x11x18x22 out=72 groups=72 kernel=8x8x7 pad=4x3x3 layout=last dtype=bf16",
    "in=2x54x9x33x37 out=54 groups=54 kernel=3x3x3 pad=1 layout=last dtype=fp16",
    "in=3x20x10x12x20 out=20 groups=20 kernel=4x6x4 pad=1:2x0:5x3 layout=last dtype=fp16",
    "in=2x7x9x10x16 out=7 groups=7 kernel=3x4x6 layout=last dtype=bf16",
    "in=2x24x40x9x8 out=24 groups=24 kernel=7x1x1 pad=3x0x0 layout=last dtype=bf16",
    "in=2x8x12x20x24 out=8 groups=8 kernel=5x5x5 pad=2 layout=last dtype=fp16 w=fp32 math=half",
    "in=2x40x12x20x24 out=40 groups=40 kernel=3x3x3 pad=1 layout=last dtype=bf16 gw=fp32",
    /* Padding modes. */
    "in=3x5x56x56 out=5 groups=5 kernel=7x7 pad=3 mode=reflect dtype=fp16 math=half",
    "in=5x4x19x37 out=4 groups=4 kernel=5x4 pad=2:1x3:2 mode=circular dtype=bf16 math=half",
    "in=9x4x14x14 out=4 groups=4 kernel=5x5 pad=2 stride=2 mode=reflect dtype=fp16",
    "in=9x5x7x7 out=5 groups=5 kernel=3x3 pad=1 mode=replicate dtype=bf16 w=fp32 math=half",
    "in=3x4x53x121 out=4 groups=4 kernel=5x5 pad=2 stride=3x4 mode=replicate dtype=fp16 math=half",
    "in=3x4x150x51 out=4 groups=4 kernel=4x3 pad=2:1x1 stride=3x1 mode=circular dtype=fp16",
    "in=5x6x70x66 out=6 groups=6 kernel=5x5 pad=2 stride=2 mode=reflect dtype=bf16 math=half",
    "in=3x5x40x44 out=5 groups=5 kernel=31x31 pad=15 mode=circular dtype=fp16 math=half",
    "in=3x5x33x44 out=5 groups=5 kernel=9x9 pad=0x4 mode=replicate",
    "in=1x2x9x12 out=2 groups=2 kernel=3x3 pad=200 mode=replicate",
    "in=3x4x2048 out=4 groups=4 kernel=31 pad=15 mode=reflect dtype=fp16 w=fp32 math=half",
    "in=3x24x700 out=24 groups=24 kernel=9 pad=8:0 mode=circular layout=last dtype=bf16 math=half",
    "in=5x48x56x56 out=48 groups=48 kernel=7x7 pad=3 mode=reflect layout=last dtype=bf16 math=half",
    "in=64x72x14x14 out=72 groups=72 kernel=5x5 pad=2 stride=2 mode=replicate layout=last dtype=fp16 math=half",
    "in=3x10x19x24 out=10 groups=10 kernel=11x11 pad=5 mode=reflect layout=last dtype=bf16 math=half",
    /* FP32 weights and gradients of weights. */
    "in=5x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=fp16 w=fp32 math=half",
    "in=5x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=bf16 w=fp32 math=half",
    "in=5x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=bf16 gw=fp32",
    /* FP32 signals. */
    "in=5x7x20x20 out=7 groups=7 kernel=5x5 pad=2",
    "in=3x5x56x56 out=5 groups=5 kernel=7x7 pad=3",
    "in=3x5x56x56 out=5 groups=5 kernel=7x7 pad=3 math=tf32",
    "in=2x2x70x150 out=2 groups=2 kernel=9x9 pad=4",
    "in=9x5x14x14 out=5 groups=5 kernel=7x7 pad=3",
    "in=5x4x14x14 out=4 groups=4 kernel=27x27 pad=13",
    "in=2x3x40x44 out=3 groups=3 kernel=31x31 pad=15 math=tf32",
    "in=3x6x19x18 out=6 groups=6 kernel=4x3 pad=2:0x1:3",
    "in=2x4x30x31 out=4 groups=4 kernel=6x8",
    "in=4x6x33x31 out=6 groups=6 kernel=3x3 pad=1 stride=2",
    "in=3x4x40x37 out=4 groups=4 kernel=7x5 pad=3x2 stride=3x4",
    "in=5x7x200 out=7 groups=7 kernel=31 pad=15",
    "in=4x6x2048 out=6 groups=6 kernel=4 pad=3:0 math=tf32",
    "in=3x5x1500 out=5 groups=5 kernel=128 pad=127:0",
    "in=2x3x9001 out=3 groups=3 kernel=64 pad=63:0",
    "in=2x2x4096 out=2 groups=2 kernel=256 pad=255:0 math=tf32",
    "in=3x4x1000 out=4 groups=4 kernel=9 pad=4 stride=2",
};

static const char *const spatial_problems[] = {
    /* Channels last: pairs of channels, single ones, blocks of channels that channels do not fill. */
    "in=5x48x56x56 out=48 groups=48 kernel=7x7 pad=3 layout=last dtype=bf16",
    "in=9x72x28x30 out=72 groups=72 kernel=3x3 pad=1 layout=last dtype=fp16",
    "in=3x13x19x21 out=13 groups=13 kernel=4x3 pad=2:0x1:3 layout=last dtype=fp16",
    "in=3x150x14x14 out=150 groups=150 kernel=5x5 pad=2 layout=last",
    "in=4x36x33x31 out=36 groups=36 kernel=3x3 pad=1 stride=2 layout=last dtype=fp16",
    "in=4x10x40x37 out=10 groups=10 kernel=5x7 pad=2x3 stride=3x2 layout=last",
    "in=4x10x40x37 out=10 groups=10 kernel=3x3 pad=5 dilation=5x2 layout=last dtype=bf16",
    "in=4x24x7x7 out=24 groups=24 kernel=13x13 pad=6 layout=last dtype=fp16",
    "in=4x64x2048 out=64 groups=64 kernel=4 pad=3:0 layout=last dtype=bf16",
    "in=3x11x500 out=11 groups=11 kernel=64 pad=63:0 layout=last",
    "in=4x130x5000 out=130 groups=130 kernel=32 pad=31:0 layout=last",
    "in=3x64x3000 out=64 groups=64 kernel=4 pad=3:0 layout=last",
    "in=3x6x700 out=6 groups=6 kernel=9 pad=20:4 stride=2 dilation=3 layout=last",
    "in=9x72x56x54 out=72 groups=72 kernel=3x3 pad=1 layout=last",
    "in=5x96x29x56 out=96 groups=96 kernel=7x7 pad=3 layout=last",
    "in=7x48x57x31 out=48 groups=48 kernel=5x5 pad=2 stride=2 layout=last",
    "in=3x40x30x31 out=40 groups=40 kernel=9x9 pad=4 layout=last",
    "in=3x10x40x37 out=10 groups=10 kernel=3x3 pad=5 dilation=5x2 layout=last",
    "in=3x16x700 out=16 groups=16 kernel=31 pad=15 mode=replicate layout=last",
    "in=2x6x9x10x11 out=6 groups=6 kernel=3x3x3 pad=1 stride=2x1x2 layout=last dtype=fp16",
    /* Channels first. */
    "in=5x6x56x56 out=6 groups=6 kernel=7x7 pad=3",
    "in=64x3x28x28 out=3 groups=3 kernel=3x3 pad=1",
    "in=3x5x112x112 out=5 groups=5 kernel=3x3 pad=1 stride=2",
    "in=9x5x28x28 out=5 groups=5 kernel=5x5 pad=2 stride=2",
    "in=70x3x14x14 out=3 groups=3 kernel=3x3 pad=1",
    "in=3x4x33x60 out=4 groups=4 kernel=9x9 pad=4",
    "in=3x4x40x36 out=4 groups=4 kernel=4x5 pad=5x1 stride=3x4",
    "in=3x6x33x31 out=6 groups=6 kernel=3x3 pad=1 stride=2",
    "in=21x5x7x7 out=5 groups=5 kernel=13x13 pad=6 dtype=bf16",
    "in=4x6x33x31 out=6 groups=6 kernel=3x3 pad=1 stride=2 dtype=fp16",
    "in=3x4x40x37 out=4 groups=4 kernel=7x5 pad=3x2 stride=3x4",
    "in=3x4x40x37 out=4 groups=4 kernel=3x3 pad=6 dilation=4x3",
    "in=2x2x70x300 out=2 groups=2 kernel=5x5 pad=2",
    "in=4x6x8192 out=6 groups=6 kernel=4 pad=3:0",
    "in=3x5x1500 out=5 groups=5 kernel=128 pad=127:0",
    "in=3x4x1000 out=4 groups=4 kernel=33 pad=16 stride=2",
    "in=2x3x9x10x40 out=3 groups=3 kernel=3x5x5 pad=1x2x2",
    /* Groups of several channels, padding modes, FP32 weights and gradients. */
    "in=3x6x19x20 out=12 groups=6 kernel=3x3 pad=1",
    "in=3x8x19x20 out=12 groups=4 kernel=3x3 pad=1 stride=2 layout=last dtype=fp16",
    "in=3x3x40x41 out=8 kernel=3x3 pad=1 stride=2",
    "in=2x10x18x19 out=10 groups=10 kernel=5x5 pad=2 mode=reflect layout=last",
    "in=2x4x18x19 out=4 groups=4 kernel=5x5 pad=2 mode=circular dtype=bf16",
    "in=4x24x30x31 out=24 groups=24 kernel=7x7 pad=3 mode=reflect layout=last dtype=fp16",
    "in=4x11x30x31 out=11 groups=11 kernel=3x4 pad=1:2x2:1 mode=replicate layout=last dtype=bf16",
    "in=4x8x30x31 out=8 groups=2 kernel=3x3 pad=1 stride=2 mode=circular layout=last dtype=fp16",
    "in=4x6x30x31 out=6 groups=6 kernel=7x7 pad=3 mode=reflect dtype=fp16",
    "in=2x16x700 out=16 groups=16 kernel=31 pad=15 mode=replicate layout=last dtype=fp16",
    "in=2x4x7x60 out=4 groups=4 kernel=3x9 pad=1x4 mode=replicate",
    "in=3x4x20x21 out=8 groups=2 kernel=5x4 pad=2:1x3:0 stride=2x1 mode=circular",
    "in=5x24x20x20 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=fp16 w=fp32",
    "in=5x8x20x20 out=8 groups=8 kernel=5x5 pad=2 dtype=bf16 gw=fp32",
};

static bool is_feasible(const char *family, const char *line, int pass) {
    return pass != 1 || strcmp(family, "spatial") == 0 || !strstr(line, "stride") || strstr(line, "dtype");
}

static void check_family(const char *family, const char *line, int64_t i) {
    const char *families[3];
    for (int pass = 0; pass < 3; pass++)
        families[pass] = is_feasible(family, line, pass) ? family : NULL;
    check_layer_of_families(line, i, families, strcmp(family, "toeplitz") == 0 && families[1]);
}

static void check_toeplitz(int64_t i, void *unused) {
    (void)unused;
    check_family("toeplitz", toeplitz_problems[i], i);
}

static void check_spatial(int64_t i, void *unused) {
    (void)unused;
    check_family("spatial", spatial_problems[i], i);
}

static void layers_of_family_toeplitz(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_toeplitz"};
    for (size_t i = 0; i < sizeof toeplitz_problems / sizeof toeplitz_problems[0]; i++)
        case_list_add(&list, "%s", toeplitz_problems[i]);
    device_each(&list, check_toeplitz, NULL);
    assert_int_equal(case_failures(), 0);
}

enum {
    RANDOM_VOLUMES = 40,
    RANDOM_SIGNALS = 48,
    RANDOM_MODES = 36,
    RANDOM_PLANES = 24
};
static char random_lines[RANDOM_SIGNALS][192]; /* of one of the tests below */

static void check_random(int64_t i, void *family) { check_family(family, random_lines[i], i); }

/* Random volumes in both layouts, also with little padding or more of it than taps, and rows at all alignments. */
static void random_volumes_of_family_toeplitz(void **state) {
    NEED_DEVICE(state);
    static const char *const types[] = {"dtype=fp16", "dtype=bf16", "dtype=fp16 w=fp32 math=half",
                                        "dtype=bf16 gw=fp32"};
    case_list list = {.name = "gpu_layers_volumes"};
    generator g = test_generator(1);
    for (int i = 0; i < RANDOM_VOLUMES; i++) {
        const int samples = (int)random_int(&g, 1, 3);
        int groups = (int)random_int(&g, 2, 5), kernel[3] = {0}, pad[3] = {0}, input[3] = {0};
        for (int a = 0; a < 3; a++) {
            kernel[a] = (int)random_int(&g, a == 0 ? 2 : 1, a == 2 ? 7 : 8);
            pad[a] = random_once_in(&g, 4) ? (int)random_int(&g, 0, kernel[a] + 2) : kernel[a] / 2;
            input[a] = (int)random_int(&g, kernel[a], a == 0 ? 16 : a == 1 ? 40 : 70);
        }
        if (random_once_in(&g, 2))
            input[2] = (input[2] + 7) / 8 * 8;
        const bool last = i % 2;
        if (last)
            groups = (int)random_int(&g, 2, 40);
        snprintf(random_lines[i], sizeof random_lines[i],
                 "in=%dx%dx%dx%dx%d out=%d groups=%d kernel=%dx%dx%d pad=%dx%dx%d %s%s", samples, groups, input[0],
                 input[1], input[2], groups, groups, kernel[0], kernel[1], kernel[2], pad[0], pad[1], pad[2],
                 types[random_int(&g, 0, 3)], last ? " layout=last" : "");
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, "toeplitz");
    assert_int_equal(case_failures(), 0);
}

/* Random signals: causal ones, and others, in both layouts. */
static void random_signals_of_family_toeplitz(void **state) {
    NEED_DEVICE(state);
    static const char *const types[] = {"dtype=fp16",         "dtype=bf16", "dtype=fp16 w=fp32 math=half",
                                        "dtype=bf16 gw=fp32", "math=fp32",  "math=tf32"};
    case_list list = {.name = "gpu_layers_signals"};
    generator g = test_generator(2);
    for (int i = 0; i < RANDOM_SIGNALS; i++) {
        const bool last = i % 2;
        const int samples = (int)random_int(&g, 1, 9),
                  groups = last ? 8 * (int)random_int(&g, 1, 12) : (int)random_int(&g, 2, 300),
                  kernel = (int)random_int(&g, 1, random_once_in(&g, 3) ? 128 : 12),
                  before = random_once_in(&g, 3) ? (int)random_int(&g, 0, kernel - 1) : kernel - 1;
        int input = (int)random_int(&g, kernel, random_once_in(&g, 2) ? 20000 / samples : 1500);
        if (random_once_in(&g, 2))
            input = (input + 7) / 8 * 8;
        snprintf(random_lines[i], sizeof random_lines[i], "in=%dx%dx%d out=%d groups=%d kernel=%d pad=%d:%d %s%s",
                 samples, groups, input, groups, groups, kernel, before, kernel - 1 - before,
                 types[random_int(&g, 0, last ? 3 : 5)], last ? " layout=last" : "");
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, "toeplitz");
    assert_int_equal(case_failures(), 0);
}

/* Random planes with channels first and kernels of up to 9x9. */
static void random_planes_of_family_toeplitz(void **state) {
    NEED_DEVICE(state);
    static const char *const types[] = {"dtype=fp16", "dtype=bf16", "dtype=fp16 w=fp32", "dtype=bf16 gw=fp32"};
    case_list list = {.name = "gpu_layers_planes"};
    generator g = test_generator(5);
    for (int i = 0; i < RANDOM_PLANES; i++) {
        const int samples = (int)random_int(&g, 1, 40), groups = (int)random_int(&g, 2, 9);
        int kernel[2] = {0}, pad[2] = {0}, input[2] = {0};
        for (int a = 0; a < 2; a++) {
            kernel[a] = (int)random_int(&g, 1, 9);
            pad[a] = random_once_in(&g, 4) ? (int)random_int(&g, 0, kernel[a] - 1) : kernel[a] / 2;
            input[a] = (int)random_int(&g, kernel[a], 70);
        }
        if (random_once_in(&g, 2))
            input[1] = (input[1] + 7) / 8 * 8;
        snprintf(random_lines[i], sizeof random_lines[i],
                 "in=%dx%dx%dx%d out=%d groups=%d kernel=%dx%d pad=%dx%d %s math=half", samples, groups, input[0],
                 input[1], groups, groups, kernel[0], kernel[1], pad[0], pad[1], types[random_int(&g, 0, 3)]);
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, "toeplitz");
    assert_int_equal(case_failures(), 0);
}

/* Random planes with a padding mode, in both layouts. */
static void random_padding_modes_of_family_toeplitz(void **state) {
    NEED_DEVICE(state);
    static const char *const types[] = {"dtype=fp16", "dtype=bf16", "dtype=fp16 w=fp32", "dtype=bf16 gw=fp32"},
                             *const modes[] = {"circular", "reflect", "replicate"};
    case_list list = {.name = "gpu_layers_modes"};
    generator g = test_generator(3);
    for (int i = 0; i < RANDOM_MODES; i++) {
        const bool last = i % 2;
        const int samples = (int)random_int(&g, 1, 9), stride = random_once_in(&g, 3) ? 2 : 1,
                  groups = last ? (int)random_int(&g, 2, 40) : (int)random_int(&g, 2, 9);
        int kernel[2] = {0}, pad[2] = {0}, input[2] = {0};
        for (int a = 0; a < 2; a++) {
            kernel[a] = (int)random_int(&g, 1, stride == 1 && random_once_in(&g, 3) ? 15 : 7);
            input[a] = (int)random_int(&g, kernel[a] + 1, random_once_in(&g, 2) ? 80 : 20);
            pad[a] = random_once_in(&g, 3) ? (int)random_int(&g, 0, input[a] - 1) : kernel[a] / 2;
        }
        if (random_once_in(&g, 2))
            input[1] = (input[1] + 7) / 8 * 8;
        snprintf(random_lines[i], sizeof random_lines[i],
                 "in=%dx%dx%dx%d out=%d groups=%d kernel=%dx%d pad=%dx%d:%d stride=%d mode=%s %s math=half%s", samples,
                 groups, input[0], input[1], groups, groups, kernel[0], kernel[1], pad[0], pad[1], pad[1] / 2, stride,
                 modes[random_int(&g, 0, 2)], types[random_int(&g, 0, 3)], last ? " layout=last" : "");
        case_list_add(&list, "%s", random_lines[i]);
    }
    device_each(&list, check_random, "toeplitz");
    assert_int_equal(case_failures(), 0);
}

static void layers_of_family_spatial(void **state) {
    NEED_DEVICE(state);
    case_list list = {.name = "gpu_layers_spatial"};
    for (size_t i = 0; i < sizeof spatial_problems / sizeof spatial_problems[0]; i++)
        case_list_add(&list, "%s", spatial_problems[i]);
    device_each(&list, check_spatial, NULL);
    assert_int_equal(case_failures(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_family_toeplitz),
        cmocka_unit_test(random_planes_of_family_toeplitz),
        cmocka_unit_test(random_volumes_of_family_toeplitz),
        cmocka_unit_test(random_signals_of_family_toeplitz),
        cmocka_unit_test(random_padding_modes_of_family_toeplitz),
        cmocka_unit_test(layers_of_family_spatial),
    };
    gpu_read_filters();
    const int status = gpu_exit_status(
        cmocka_run_group_tests_name("short kernels on a GPU", tests, device_gpu_setup, device_teardown));
    print_worst_ratios("short kernels on a GPU");
    return status;
}
