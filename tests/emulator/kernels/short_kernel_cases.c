/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/short_kernel_cases.h"

#include "conv/gpu/backend.h"
#include "kernels/no_driver.h"
#include "support/layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FW = CONV_FFT_FORWARD | CONV_FFT_BACKWARD_WEIGHTS,
    FD = CONV_FFT_FORWARD | CONV_FFT_BACKWARD_DATA
};

static const short_case all[] = {
    /* Planes that a tile holds as a whole: rows of 16, 20, 14 and 7 elements; several samples in a block. */
    {.problem = "in=6x2x10x16 out=2 groups=2 kernel=5x5 pad=2 dtype=fp16", .spoiled = true},
    {.problem = "in=5x3x20x20 out=3 groups=3 kernel=5x5 pad=2 dtype=bf16", .processors = 4},
    {.problem = "in=9x3x14x14 out=3 groups=3 kernel=7x7 pad=3 dtype=fp16", .processors = 2},
    {.problem = "in=7x3x7x7 out=3 groups=3 kernel=13x13 pad=6 dtype=bf16", .spoiled = true},
    {.problem = "in=7x3x20x20 out=3 groups=3 kernel=3x3 pad=1 dtype=fp16", .processors = 2},
    {.problem = "in=5x2x20x20 out=2 groups=2 kernel=3x3 pad=1 dtype=bf16", .shifted = true, .shared = 20000},
    {.problem = "in=1x1x1x1 out=1 kernel=1x1 dtype=fp16"},
    {.problem = "in=17x3x5x9 out=3 groups=3 kernel=1x4 pad=0x2 dtype=bf16", .processors = 3},
    {.problem = "in=2x3x3x5 out=3 groups=3 kernel=9x9 pad=4 dtype=fp16"},
    /* Small planes: rows of 16 and of eight, of even and odd length, x and y of different extents, and both layouts. */
    {.problem = "in=20x3x14x14 out=3 groups=3 kernel=7x7 pad=3 dtype=bf16", .spoiled = true, .processors = 3},
    {.problem = "in=9x5x14x14 out=5 groups=5 kernel=27x27 pad=13 dtype=fp16", .processors = 2},
    {.problem = "in=19x11x7x7 out=11 groups=11 kernel=13x13 pad=6 dtype=fp16", .processors = 2},
    {.problem = "in=6x3x11x9 out=3 groups=3 kernel=3x5 pad=0x2 dtype=bf16", .spoiled = true},
    {.problem = "in=8x2x16x16 out=2 groups=2 kernel=4x3 pad=1:2x0:2 dtype=fp16", .processors = 2},
    {.problem = "in=7x3x5x6 out=3 groups=3 kernel=3x4 pad=2x5 dtype=fp16", .shifted = true},
    {.problem = "in=70x2x6x7 out=2 groups=2 kernel=5x5 pad=2 dtype=fp16 w=fp32 math=half"},
    {.problem = "in=8x2x10x6 out=2 groups=2 kernel=3x7 pad=6x5 dtype=bf16 gw=fp32", .spoiled = true},
    {.problem = "in=70x5x3x3 out=5 groups=5 kernel=3x3 pad=1 dtype=fp16"},
    {.problem = "in=130x8x7x8 out=8 groups=8 kernel=13x13 pad=6 layout=last dtype=fp16"},
    {.problem = "in=10x16x14x14 out=16 groups=16 kernel=11x11 pad=5 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=18x8x7x7 out=8 groups=8 kernel=13x13 pad=6 layout=last dtype=bf16", .processors = 2},
    {.problem = "in=9x24x9x13 out=24 groups=24 kernel=11x14 pad=6x7 layout=last dtype=bf16 w=fp32 math=half"},
    {.problem = "in=6x8x14x13 out=8 groups=8 kernel=27x25 pad=13x12 layout=last dtype=fp16", .passes = FD},
    {.problem = "in=6x8x14x13 out=8 groups=8 kernel=17x3 pad=8x1 layout=last dtype=fp16", .processors = 2},
    {.problem = "in=9x5x14x14 out=5 groups=5 kernel=5x5 pad=2 stride=2 dtype=fp16", .spoiled = true, .processors = 2},
    {.problem = "in=7x3x15x13 out=3 groups=3 kernel=3x4 pad=1x2 stride=3x2 dtype=bf16", .spoiled = true},
    {.problem = "in=20x2x7x6 out=2 groups=2 kernel=3x3 pad=1 stride=2 dtype=bf16", .shifted = true},
    {.problem = "in=9x3x5x16 out=3 groups=3 kernel=5x2 pad=4x0 stride=1x4 dtype=fp16 w=fp32 math=half"},
    /* Planes of several warps and of several tiles, down and across. */
    {.problem = "in=2x2x37x40 out=2 groups=2 kernel=7x7 pad=3 dtype=bf16"},
    {.problem = "in=2x2x70x24 out=2 groups=2 kernel=3x3 pad=1 dtype=fp16", .spoiled = true},
    {.problem = "in=2x2x18x75 out=2 groups=2 kernel=3x3 pad=1 dtype=fp16", .processors = 2},
    {.problem = "in=1x2x66x150 out=2 groups=2 kernel=5x9 pad=2x4 dtype=bf16", .processors = 3},
    /* Fragments in shared memory. */
    {.problem = "in=5x2x20x20 out=2 groups=2 kernel=27x27 pad=13 dtype=fp16", .passes = FD, .processors = 2},
    {.problem = "in=2x1x20x44 out=1 kernel=31x31 pad=15 dtype=bf16"},
    {.problem = "in=2x9x20x20 out=9 groups=9 kernel=17x17 pad=8 layout=last dtype=fp16", .passes = FD},
    /* Asymmetric padding, more padding than taps, kernels of even size, output without padding. */
    {.problem = "in=3x3x19x18 out=3 groups=3 kernel=4x3 pad=2:0x1:3 dtype=fp16", .spoiled = true},
    {.problem = "in=2x2x11x13 out=2 groups=2 kernel=3x2 pad=5x4 dtype=bf16"},
    {.problem = "in=2x2x30x31 out=2 groups=2 kernel=6x8 dtype=fp16"},
    /* Strides. */
    {.problem = "in=4x3x33x31 out=3 groups=3 kernel=3x3 pad=1 stride=2 dtype=fp16", .processors = 2},
    {.problem = "in=3x2x28x28 out=2 groups=2 kernel=5x5 pad=2 stride=2 dtype=bf16", .spoiled = true},
    {.problem = "in=2x2x40x37 out=2 groups=2 kernel=7x5 pad=3x2 stride=3x4 dtype=fp16"},
    {.problem = "in=2x2x40x136 out=2 groups=2 kernel=4x3 pad=1:2x2:0 stride=2x3 dtype=bf16", .spoiled = true},
    {.problem = "in=1x1x141x23 out=1 kernel=3x3 pad=1 stride=2 dtype=fp16 w=fp32 math=half", .processors = 2},
    {.problem = "in=4x2x11x14 out=2 groups=2 kernel=1x2 stride=3x2 dtype=bf16", .shifted = true},
    {.problem = "in=3x2x12x16 out=2 groups=2 kernel=3x2 pad=5x4 stride=2 dtype=fp16"},
    {.problem = "in=3x2x23x26 out=2 groups=2 kernel=19x19 pad=9 stride=2 dtype=fp16", .passes = FD, .processors = 2},
    {.problem = "in=2x16x19x20 out=16 groups=16 kernel=12x11 pad=5 stride=2 layout=last dtype=bf16",
     .passes = FD,
     .spoiled = true},
    {.problem = "in=2x9x23x22 out=9 groups=9 kernel=17x17 pad=8 stride=2 layout=last dtype=fp16", .passes = FD},
    /* Volumes. */
    {.problem = "in=2x2x9x20x24 out=2 groups=2 kernel=7x7x7 pad=3 dtype=fp16", .spoiled = true},
    {.problem = "in=1x2x13x40x36 out=2 groups=2 kernel=7x7x7 pad=3 dtype=bf16", .processors = 4},
    {.problem = "in=1x2x4x70x70 out=2 groups=2 kernel=5x5x5 pad=2 dtype=bf16", .processors = 2},
    {.problem = "in=2x2x5x70x17 out=2 groups=2 kernel=3x3x3 pad=1 dtype=fp16", .spoiled = true},
    {.problem = "in=2x2x11x18x22 out=2 groups=2 kernel=8x8x7 pad=4x3x3 dtype=bf16"},
    {.problem = "in=3x2x10x12x20 out=2 groups=2 kernel=4x6x4 pad=1:2x0:5x3 dtype=fp16", .spoiled = true},
    {.problem = "in=2x2x3x4x5 out=2 groups=2 kernel=2x1x7 pad=4x3x6 dtype=bf16"},
    {.problem = "in=2x2x9x10x16 out=2 groups=2 kernel=3x4x6 dtype=fp16", .shifted = true, .processors = 3},
    {.problem = "in=2x1x8x40x40 out=1 kernel=1x7x7 pad=0x3x3 dtype=fp16", .shared = 40000},
    {.problem = "in=1x2x40x8x8 out=2 groups=2 kernel=7x1x1 pad=3x0x0 dtype=bf16", .processors = 8},
    {.problem = "in=1x40x3x8x8 out=40 groups=40 kernel=3x3x3 pad=1 dtype=bf16"},
    {.problem = "in=2x2x6x10x16 out=2 groups=2 kernel=5x5x5 pad=2 dtype=fp16 w=fp32 math=half"},
    {.problem = "in=2x2x6x10x12 out=2 groups=2 kernel=3x3x3 pad=1 dtype=bf16 w=fp32 math=half gw=fp32"},
    /* The same with channels last: copies of eight, four, two and single channels. */
    {.problem = "in=2x16x9x9x17 out=16 groups=16 kernel=7x7x7 pad=3 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=2x24x5x18x17 out=24 groups=24 kernel=3x3x3 pad=1 layout=last dtype=bf16", .processors = 2},
    {.problem = "in=2x8x10x9x12 out=8 groups=8 kernel=8x8x7 pad=4x3x3 layout=last dtype=bf16"},
    {.problem = "in=2x12x6x8x9 out=12 groups=12 kernel=4x6x4 pad=1:2x0:5x3 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=2x6x3x4x5 out=6 groups=6 kernel=2x1x7 pad=4x3x6 layout=last dtype=bf16"},
    {.problem = "in=3x5x5x7x9 out=5 groups=5 kernel=3x4x6 layout=last dtype=fp16", .spoiled = true, .processors = 1},
    {.problem = "in=1x8x24x5x6 out=8 groups=8 kernel=7x1x1 pad=3x0x0 layout=last dtype=bf16", .processors = 8},
    {.problem = "in=2x8x5x6x9 out=8 groups=8 kernel=5x5x5 pad=2 layout=last dtype=fp16 w=fp32 math=half"},
    {.problem = "in=2x18x4x5x6 out=18 groups=18 kernel=3x3x3 pad=1 layout=last dtype=bf16 w=fp32 math=half gw=fp32"},
    {.problem = "in=2x8x5x6x7 out=8 groups=8 kernel=2x2x3 pad=1 layout=last dtype=fp16", .shifted = true},
    /* Channels last, in place. Copies of 16 bytes and of single channels, several blocks of channels, tiles of a row,
     * and segments of a block; positions in one to three steps; strides; gradients of x with strides. */
    {.problem = "in=3x24x18x37 out=24 groups=24 kernel=7x7 pad=3 layout=last dtype=bf16", .spoiled = true},
    {.problem = "in=2x8x11x70 out=8 groups=8 kernel=3x3 pad=1 layout=last dtype=fp16", .processors = 3},
    {.problem = "in=2x40x10x9 out=40 groups=40 kernel=5x5 pad=2 stride=2 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=5x16x9x12 out=16 groups=16 kernel=3x3 pad=1 stride=2 layout=last dtype=bf16", .processors = 4},
    {.problem = "in=2x8x9x150 out=8 groups=8 kernel=9x9 pad=4 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=2x80x4x20 out=80 groups=80 kernel=3x3 pad=1 layout=last dtype=bf16", .processors = 2},
    {.problem = "in=2x8x9x150 out=8 groups=8 kernel=4x6 pad=2:0x1:3 layout=last dtype=bf16", .shared = 20000},
    {.problem = "in=2x8x5x300 out=8 groups=8 kernel=2x3 pad=3x0 layout=last dtype=fp16", .processors = 2},
    /* The same, both gradients in one kernel. */
    {.problem = "in=3x24x19x37 out=24 groups=24 kernel=3x3 pad=1 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=2x16x9x90 out=16 groups=16 kernel=3x3 pad=1 layout=last dtype=bf16 gw=fp32", .processors = 3},
    {.problem = "in=2x8x12x20 out=8 groups=8 kernel=2x3 pad=1:0x2:0 layout=last dtype=fp16 w=fp32 math=half"},
    {.problem = "in=1x8x20x25 out=8 groups=8 kernel=1x9 pad=0x4 layout=last dtype=bf16", .processors = 2},
    {.problem = "in=2x11x12x14 out=11 groups=11 kernel=3x2 pad=5x4 stride=2x1 layout=last dtype=fp16"},
    {.problem = "in=2x16x14x17 out=16 groups=16 kernel=3x5 pad=1x2 stride=3x4 layout=last dtype=bf16"},
    {.problem = "in=2x8x7x9 out=8 groups=8 kernel=1x1 layout=last dtype=fp16"},
    {.problem = "in=2x8x90x6 out=8 groups=8 kernel=3x1 pad=1x0 stride=3x2 layout=last dtype=fp16"},
    /* Small planes in place: rows of 16 and of eight columns, x and y of different extents, several copies of a block,
     * samples and channels that blocks do not fill. */
    {.problem = "in=7x40x14x14 out=40 groups=40 kernel=5x5 pad=2 layout=last dtype=fp16", .processors = 1},
    {.problem = "in=5x16x9x12 out=16 groups=16 kernel=3x3 pad=1 layout=last dtype=bf16", .spoiled = true},
    {.problem = "in=6x8x16x16 out=8 groups=8 kernel=7x7 pad=3 layout=last dtype=fp16", .processors = 1},
    {.problem = "in=13x24x7x7 out=24 groups=24 kernel=5x5 pad=2 layout=last dtype=bf16", .processors = 1},
    {.problem = "in=2x8x6x8 out=8 groups=8 kernel=9x3 pad=4x1 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=5x8x11x15 out=8 groups=8 kernel=4x3 pad=1:2x0:2 layout=last dtype=bf16", .shared = 20000},
    {.problem = "in=9x16x8x10 out=16 groups=16 kernel=3x4 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=7x24x6x7 out=24 groups=24 kernel=3x3 pad=1 layout=last dtype=fp16 w=fp32 math=half"},
    {.problem = "in=4x8x5x12 out=8 groups=8 kernel=3x5 pad=1x2 layout=last dtype=bf16 w=fp32 math=half gw=fp32"},
    {.problem = "in=3x88x4x5 out=88 groups=88 kernel=3x3 pad=1 layout=last dtype=bf16",
     .spoiled = true,
     .processors = 1},
    {.problem = "in=4x8x9x10 out=8 groups=8 kernel=4x3 pad=2 layout=last dtype=fp16", .spoiled = true},
    {.problem = "in=90x8x3x2 out=8 groups=8 kernel=3x1 pad=1x0 layout=last dtype=fp16", .processors = 1},
    {.problem = "in=7x40x14x14 out=40 groups=40 kernel=5x5 pad=2 stride=2 layout=last dtype=fp16", .processors = 1},
    {.problem = "in=5x16x15x13 out=16 groups=16 kernel=4x3 pad=1:2x0:2 stride=3x2 layout=last dtype=bf16"},
    /* Channels last, transposed: 16, 8, several blocks, and odd numbers of channels. */
    {.problem = "in=2x16x12x13 out=16 groups=16 kernel=11x9 pad=5x4 layout=last dtype=bf16"},
    {.problem = "in=2x8x9x20 out=8 groups=8 kernel=11x11 pad=5 layout=last dtype=fp16"},
    {.problem = "in=2x16x18x20 out=16 groups=16 kernel=5x5 pad=2 layout=last dtype=bf16", .spoiled = true},
    {.problem = "in=3x8x10x14 out=8 groups=8 kernel=3x3 pad=1 layout=last dtype=fp16", .processors = 2},
    {.problem = "in=2x13x9x70 out=13 groups=13 kernel=4x3 pad=2:0x1:3 layout=last dtype=bf16", .spoiled = true},
    {.problem = "in=2x10x17x18 out=10 groups=10 kernel=3x3 pad=1 stride=2 layout=last dtype=fp16", .passes = FW},
    {.problem = "in=2x20x14x14 out=20 groups=20 kernel=3x5 pad=1x2 layout=last dtype=fp16", .shared = 32000},
    {.problem = "in=2x6x9x14 out=6 groups=6 kernel=3x3 pad=1 layout=last dtype=bf16", .shifted = true},
    /* Signals of one axis. */
    {.problem = "in=5x3x200 out=3 groups=3 kernel=31 pad=15 dtype=fp16", .spoiled = true},
    {.problem = "in=3x2x2048 out=2 groups=2 kernel=4 pad=3:0 dtype=bf16", .processors = 2},
    {.problem = "in=2x1x1500 out=1 kernel=128 pad=127:0 dtype=fp16"},
    {.problem = "in=1x1x9001 out=1 kernel=64 pad=63:0 dtype=bf16"},
    {.problem = "in=3x2x1000 out=2 groups=2 kernel=9 pad=4 stride=2 dtype=fp16"},
    {.problem = "in=3x2x37 out=2 groups=2 kernel=37 pad=36:0 dtype=fp16"},
    {.problem = "in=9x2x999 out=2 groups=2 kernel=7 pad=6:0 dtype=bf16", .shifted = true, .shared = 20000},
    {.problem = "in=2x1x17000 out=1 kernel=17 pad=0:16 dtype=fp16", .processors = 2},
    {.problem = "in=3x2x600 out=2 groups=2 kernel=5 pad=4:0 dtype=bf16 gw=fp32", .processors = 4},
    {.problem = "in=2x17x1500 out=17 groups=17 kernel=4 pad=3:0 layout=last dtype=bf16", .spoiled = true},
    {.problem = "in=2x8x300 out=8 groups=8 kernel=64 pad=63:0 layout=last dtype=fp16", .processors = 2},
    {.problem = "in=2x5x300 out=5 groups=5 kernel=6 pad=1:3 stride=3 layout=last dtype=fp16"},
    {.problem = "in=2x2x8300 out=2 groups=2 kernel=9 pad=4 stride=3 dtype=bf16", .spoiled = true},
    /* The same with channels last and 16 bytes at a time: rows of 16 and of 32 outputs, several tiles of a block,
     * blocks that channels do not fill, one and two channels of a warp. */
    {.problem = "in=2x40x700 out=40 groups=40 kernel=31 pad=15 layout=last dtype=bf16", .processors = 1},
    {.problem = "in=1x8x1500 out=8 groups=8 kernel=128 pad=127:0 layout=last dtype=fp16"},
    {.problem = "in=3x16x37 out=16 groups=16 kernel=5 pad=1:3 layout=last dtype=fp16 w=fp32 math=half"},
    {.problem = "in=2x24x601 out=24 groups=24 kernel=64 pad=63:0 layout=last dtype=fp16", .processors = 1},
    {.problem = "in=3x8x40 out=8 groups=8 kernel=9 layout=last dtype=bf16", .spoiled = true, .processors = 2},
    {.problem = "in=2x24x700 out=24 groups=24 kernel=17 pad=0:16 layout=last dtype=bf16", .spoiled = true},
    {.problem = "in=2x16x1100 out=16 groups=16 kernel=4 pad=3:0 layout=last dtype=fp16 w=fp32 math=half gw=fp32",
     .processors = 4},
    {.problem = "in=2x56x600 out=56 groups=56 kernel=4 pad=3:0 layout=last dtype=bf16"},
    {.problem = "in=3x8x90 out=8 groups=8 kernel=25 pad=12:8 layout=last dtype=bf16"},
    {.problem = "in=2x16x300 out=16 groups=16 kernel=8 pad=7:0 layout=last dtype=bf16", .shifted = true},
    /* FP32 weights and gradients of weights. */
    {.problem = "in=5x3x20x20 out=3 groups=3 kernel=5x5 pad=2 dtype=fp16 w=fp32 math=half", .processors = 2},
    {.problem = "in=2x9x12x20 out=9 groups=9 kernel=5x5 pad=2 layout=last dtype=fp16 w=fp32 math=half"},
    {.problem = "in=3x12x10x10 out=12 groups=12 kernel=5x5 pad=2 layout=last dtype=bf16 w=fp32 math=half"},
    {.problem = "in=5x3x20x20 out=3 groups=3 kernel=5x5 pad=2 dtype=bf16 gw=fp32", .processors = 3},
    {.problem = "in=3x2x700 out=2 groups=2 kernel=16 pad=15:0 dtype=fp16 w=fp32 math=half"},
    /* Padding modes: rows of any alignment, strides, lines, and all layouts. */
    {.problem = "in=3x2x20x24 out=2 groups=2 kernel=7x7 pad=3 mode=reflect dtype=fp16 math=half", .spoiled = true},
    {.problem = "in=2x3x19x37 out=3 groups=3 kernel=5x4 pad=2:1x3:2 mode=circular dtype=bf16 math=half",
     .shifted = true},
    {.problem = "in=2x2x16x20 out=2 groups=2 kernel=5x5 pad=2x0 mode=circular"},
    {.problem = "in=5x2x13x14 out=2 groups=2 kernel=13x12 pad=6 mode=circular dtype=fp16", .spoiled = true},
    {.problem = "in=3x2x17x19 out=2 groups=2 kernel=4x5 pad=2:1x2 stride=3x4 mode=replicate dtype=bf16"},
    {.problem = "in=2x2x12x70 out=2 groups=2 kernel=3x4 pad=1:2x2:1 mode=replicate dtype=fp16 math=half"},
    {.problem = "in=2x2x300 out=2 groups=2 kernel=9 pad=4 mode=replicate dtype=fp16 w=fp32 math=half"},
    {.problem = "in=2x16x200 out=16 groups=16 kernel=9 pad=8:0 mode=circular layout=last dtype=bf16 math=half"},
    {.problem = "in=2x24x11x37 out=24 groups=24 kernel=7x7 pad=3 mode=reflect layout=last dtype=bf16 math=half"},
    {.problem = "in=3x8x10x9 out=8 groups=8 kernel=5x5 pad=2 stride=2 mode=replicate layout=last dtype=fp16 math=half"},
    {.problem = "in=2x10x9x14 out=10 groups=10 kernel=11x11 pad=5 mode=reflect layout=last dtype=bf16 math=half"},
    /* FP32 signals, by three TF32 products or by one. */
    {.problem = "in=6x2x10x16 out=2 groups=2 kernel=5x5 pad=2", .spoiled = true},
    {.problem = "in=9x3x14x14 out=3 groups=3 kernel=7x7 pad=3 math=tf32", .spoiled = true, .processors = 2},
    {.problem = "in=5x2x20x20 out=2 groups=2 kernel=3x3 pad=1", .shifted = true, .shared = 30000},
    {.problem = "in=2x2x37x40 out=2 groups=2 kernel=7x7 pad=3", .processors = 2},
    {.problem = "in=1x2x66x150 out=2 groups=2 kernel=5x9 pad=2x4", .processors = 3},
    {.problem = "in=5x2x14x14 out=2 groups=2 kernel=17x17 pad=8", .processors = 2},
    {.problem = "in=2x1x20x44 out=1 kernel=31x31 pad=15 math=tf32"},
    {.problem = "in=3x3x19x18 out=3 groups=3 kernel=4x3 pad=2:0x1:3 math=tf32"},
    {.problem = "in=2x2x30x31 out=2 groups=2 kernel=6x8"},
    {.problem = "in=4x3x33x31 out=3 groups=3 kernel=3x3 pad=1 stride=2", .passes = FW, .processors = 2},
    {.problem = "in=2x2x40x37 out=2 groups=2 kernel=7x5 pad=3x2 stride=3x4", .passes = FW},
    {.problem = "in=5x3x200 out=3 groups=3 kernel=31 pad=15", .spoiled = true},
    {.problem = "in=3x2x2048 out=2 groups=2 kernel=4 pad=3:0 math=tf32", .processors = 2},
    {.problem = "in=2x1x1500 out=1 kernel=128 pad=127:0", .processors = 2},
    {.problem = "in=1x1x9001 out=1 kernel=64 pad=63:0"},
    {.problem = "in=3x2x1000 out=2 groups=2 kernel=9 pad=4 stride=2", .passes = FW},
    {.problem = "in=1x2x1200 out=2 groups=2 kernel=256 pad=255:0 math=tf32"},
    {.problem = "in=9x1x1024 out=1 kernel=12 pad=3:8", .shifted = true, .shared = 24000},
    {.problem = "in=2x1x4500 out=1 kernel=33 pad=16 math=tf32", .processors = 2},

    /* Family dft: copies of 16, 8, 4 and 2 bytes; planes and kernels of different extents; kernels larger than planes;
     * samples that blocks do not fill; several slices and one; several teams. */
    {.problem = "in=10x2x56x50 out=2 groups=2 kernel=31x31 pad=15 dtype=fp16 math=half",
     .dft = true,
     .spoiled = true,
     .processors = 2},
    {.problem = "in=13x2x28x28 out=2 groups=2 kernel=29x29 pad=14 dtype=fp16 math=half", .dft = true, .spoiled = true},
    {.problem = "in=7x2x20x24 out=2 groups=2 kernel=13x9 pad=6x4 dtype=bf16 math=half",
     .dft = true,
     .spoiled = true,
     .processors = 3},
    {.problem = "in=3x1x40x56 out=1 kernel=31x31 pad=15 dtype=fp16 math=half", .dft = true, .processors = 2},
    {.problem = "in=4x3x17x30 out=3 groups=3 kernel=6x8 dtype=fp16 math=half", .dft = true},
    {.problem = "in=3x2x9x11 out=2 groups=2 kernel=12x15 pad=7x9 dtype=bf16 math=half", .dft = true},
    {.problem = "in=5x3x18x20 out=3 groups=3 kernel=5x7 pad=2x3 dtype=fp16 w=fp32 math=half", .dft = true},
    {.problem = "in=3x2x18x20 out=2 groups=2 kernel=7x5 pad=3x2 dtype=fp16 math=half", .dft = true, .shifted = true},
    {.problem = "in=2x2x19x18 out=2 groups=2 kernel=4x3 pad=2:0x1:3 dtype=bf16 gw=fp32 math=half", .dft = true},
    {.problem = "in=7x2x18x18 out=2 groups=2 kernel=5x5 pad=2 dtype=bf16 math=half", .dft = true},
    {.problem = "in=1x1x1x1 out=1 kernel=1x1 dtype=fp16 math=half", .dft = true},
    {.problem = "in=2x1x55x55 out=1 kernel=11x11 pad=5 dtype=fp16 math=half", .dft = true, .constant = true},

    /* Family spatial. Channels last: pairs of channels and single ones, several blocks of channels. */
    {.problem = "in=2x6x13x18 out=6 groups=6 kernel=7x7 pad=3 layout=last dtype=bf16",
     .spatial = true,
     .spoiled = true},
    {.problem = "in=2x6x11x10 out=6 groups=6 kernel=5x3 pad=2x1 layout=last", .spatial = true, .spoiled = true},
    {.problem = "in=3x7x9x10 out=7 groups=7 kernel=3x3 pad=1 layout=last dtype=fp16", .spatial = true},
    {.problem = "in=40x134x4x6 out=134 groups=134 kernel=2x3 pad=1 layout=last", .spatial = true},
    {.problem = "in=20x134x4x6 out=134 groups=134 kernel=2x3 pad=1 layout=last dtype=fp16", .spatial = true},
    {.problem = "in=2x4x9x14 out=4 groups=4 kernel=3x3 pad=1 layout=last dtype=bf16", .spatial = true, .shifted = true},
    {.problem = "in=2x6x14x15 out=6 groups=6 kernel=3x3 pad=1 stride=2 layout=last dtype=bf16", .spatial = true},
    {.problem = "in=2x4x17x16 out=4 groups=4 kernel=5x4 pad=2x1 stride=3x2 layout=last", .spatial = true},
    {.problem = "in=2x4x16x19 out=4 groups=4 kernel=3x5 pad=2x4 dilation=2 layout=last dtype=fp16", .spatial = true},
    {.problem = "in=2x8x300 out=8 groups=8 kernel=37 pad=36:0 layout=last dtype=bf16",
     .spatial = true,
     .processors = 2},
    {.problem = "in=2x3x60 out=3 groups=3 kernel=21 pad=9 stride=3 layout=last", .spatial = true},
    {.problem = "in=2x4x6x7x8 out=4 groups=4 kernel=3x3x3 pad=1 stride=2x1x1 layout=last dtype=fp16", .spatial = true},
    {.problem = "in=2x2x9x8 out=2 groups=2 kernel=11x9 pad=5x4 layout=last dtype=bf16",
     .spatial = true,
     .shared = 20000},
    {.problem = "in=2x4x6x7x8 out=4 groups=4 kernel=3x2x3 pad=1x0x1 layout=last", .spatial = true},
    /* Threads walk: along signals, down planes, with strides, dilations and padding modes, in shares of taps. */
    {.problem = "in=2x4x9x14 out=4 groups=4 kernel=3x3 pad=1 layout=last", .spatial = true, .shifted = true},
    {.problem = "in=3x6x150 out=6 groups=6 kernel=4 pad=3:0 layout=last", .spatial = true, .spoiled = true},
    {.problem = "in=20x67x15x6 out=67 groups=67 kernel=4x3 pad=1 layout=last", .spatial = true},
    {.problem = "in=2x128x300 out=128 groups=128 kernel=4 pad=3:0 layout=last", .spatial = true},
    {.problem = "in=2x8x300 out=8 groups=8 kernel=37 pad=36:0 layout=last", .spatial = true, .processors = 2},
    {.problem = "in=2x140x131 out=140 groups=140 kernel=64 pad=63:0 layout=last", .spatial = true, .shifted = true},
    {.problem = "in=2x4x16x19 out=4 groups=4 kernel=3x5 pad=2x4 dilation=2 layout=last", .spatial = true},
    {.problem = "in=2x4x15x17 out=4 groups=4 kernel=1x2 stride=3 pad=0x1 layout=last", .spatial = true},
    {.problem = "in=2x4x90 out=4 groups=4 kernel=7 pad=9:2 stride=2 dilation=3 layout=last", .spatial = true},
    {.problem = "in=2x4x40 out=4 groups=4 kernel=5 pad=2 mode=circular layout=last", .spatial = true},
    {.problem = "in=2x3x64 out=3 groups=3 kernel=21 layout=last", .spatial = true}, /* gw alone has strips */
    {.problem = "in=70x2x33x9 out=2 groups=2 kernel=5x5 pad=2 mode=replicate layout=last",
     .spatial = true,
     .processors = 4},
    {.problem = "in=1x2x2x3 out=2 groups=2 kernel=5x9 pad=4x8 layout=last", .spatial = true},
    /* Channels first: several strips, tiles and samples of a block. */
    {.problem = "in=2x2x20x37 out=2 groups=2 kernel=7x7 pad=3", .spatial = true, .spoiled = true},
    {.problem = "in=23x2x7x7 out=2 groups=2 kernel=13x13 pad=6 dtype=bf16", .spatial = true, .processors = 2},
    {.problem = "in=3x2x18x17 out=2 groups=2 kernel=3x3 pad=1 stride=2", .spatial = true, .shared = 4000},
    {.problem = "in=2x2x15x22 out=2 groups=2 kernel=5x5 pad=2 stride=3x4 dtype=fp16", .spatial = true},
    {.problem = "in=2x2x19x21 out=2 groups=2 kernel=3x3 pad=4 dilation=4x3", .spatial = true},
    {.problem = "in=2x2x14x15 out=2 groups=2 kernel=4x3 pad=3:1x0:2 stride=2 dilation=3x2", .spatial = true},
    {.problem = "in=3x2x500 out=2 groups=2 kernel=4 pad=3:0", .spatial = true, .spoiled = true},
    {.problem = "in=2x2x700 out=2 groups=2 kernel=70 pad=69:0", .spatial = true, .processors = 2},
    {.problem = "in=2x1x200 out=1 kernel=33 pad=16 stride=2 dtype=bf16", .spatial = true},
    {.problem = "in=2x1x5x6x9 out=1 kernel=3x2x5 pad=1x1x2", .spatial = true},
    {.problem = "in=2x1x5x7x6 out=1 kernel=3x3x3 pad=1 stride=2 dilation=1x2x1 dtype=fp16", .spatial = true},
    {.problem = "in=1x1x1x1 out=1 kernel=1x1", .spatial = true},
    {.problem = "in=2x1x50x260 out=1 kernel=3x3 pad=1 dtype=bf16", .spatial = true},
    {.problem = "in=30x1x9x40 out=1 kernel=2x2", .spatial = true, .shared = 3000},

    /* Groups of several channels, padding modes, FP32 weights and gradients. */
    {.problem = "in=2x3x9x10 out=6 groups=3 kernel=3x3 pad=1", .spatial = true},
    {.problem = "in=2x6x9x10 out=4 groups=2 kernel=3x3 pad=1 layout=last dtype=fp16", .spatial = true},
    {.problem = "in=2x2x9x10 out=3 kernel=3x3 pad=1 stride=2", .spatial = true},
    /* Taps at both ends that meet only padding. */
    {.problem = "in=2x4x1x3 out=4 groups=4 kernel=5x9 pad=4x8 layout=last dtype=fp16", .spatial = true},
    {.problem = "in=2x2x2x3 out=2 groups=2 kernel=5x9 pad=4x8 stride=2", .spatial = true},
    {.problem = "in=1x12x5x3x11 out=12 kernel=1x2x5 stride=2x1x1 dilation=2x2x4 pad=0x0x0:7 groups=3 mode=circular "
                "wlayout=last dtype=fp16 w=fp32",
     .spatial = true},
    {.problem = "in=2x4x8x9 out=4 groups=4 kernel=5x5 pad=2 mode=reflect layout=last", .spatial = true},
    {.problem = "in=3x5x8x9 out=5 groups=5 kernel=4x5 pad=2:1x3:1 mode=replicate layout=last dtype=fp16",
     .spatial = true},
    {.problem = "in=2x6x9x8 out=4 groups=2 kernel=3x3 pad=2 stride=2 mode=circular layout=last dtype=bf16",
     .spatial = true},
    {.problem = "in=2x2x8x9 out=2 groups=2 kernel=5x5 pad=2 mode=circular dtype=bf16", .spatial = true},
    {.problem = "in=2x2x7x40 out=2 groups=2 kernel=3x9 pad=1x4 mode=replicate", .spatial = true},
    {.problem = "in=2x4x8x9 out=4 groups=4 kernel=3x3 pad=1 layout=last dtype=fp16 w=fp32 math=half", .spatial = true},
    {.problem = "in=2x2x8x9 out=2 groups=2 kernel=3x3 pad=1 dtype=bf16 gw=fp32", .spatial = true},
};

enum {
    COUNT = sizeof all / sizeof all[0]
};
static test_part parts[COUNT];

int short_case_list(const short_case **cases) {
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++)
        names[i] = all[i].problem;
    test_parts("short_kernels", names, COUNT, parts);
    *cases = all;
    return COUNT;
}

test_part short_case_part(int number) { return parts[number]; }

/* ------------------------------------------------------------------------------------------------------------ plans */

static conv_fft_status open_case(const short_case *c, const char *properties, short_opened *o) {
    cf_layer made;
    cf_strategy strategy[CF_PASS_COUNT];
    uint64_t smallest;
    const char *const family = c->spatial ? "spatial" : c->dft ? "dft" : "toeplitz";
    memset(o, 0, sizeof *o);
    CF_FORWARD(conv_fft_problem_parse(c->problem, &o->problem, NULL, 0));
    CF_FORWARD(cf_gpu_properties_load(properties, &o->gpu.properties));
    no_driver(&o->gpu);
    o->gpu.properties.multiprocessors = c->processors ? c->processors : 1;
    if (c->shared) {
        o->gpu.properties.shared_per_block = c->shared;
        o->gpu.properties.shared_per_multiprocessor = c->shared + o->gpu.properties.shared_reserved_per_block;
    }
    CF_FORWARD(cf_gpu_layers_create(&o->gpu, &o->device));
    CF_FORWARD(cf_layer_make(&o->problem, &made));
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        CF_FORWARD(cf_strategy_parse(family, o->problem.rank, &strategy[pass]));
    const int passes = c->passes ? c->passes : CONV_FFT_ALL_PASSES;
    return cf_plan_create(&made, o->device, passes, strategy, c->shifted, 0, &smallest, &o->plan);
}

bool short_case_open(const short_case *c, const char *properties, short_opened *o) {
    if (open_case(c, properties, o) == CONV_FFT_SUCCESS)
        return true;
    short_case_close(o);
    return false;
}

void short_case_close(short_opened *o) {
    cf_plan_destroy(o->plan);
    cf_gpu_layers_destroy(o->device);
}

/* --------------------------------------------------------------------------------------------------------- checking */

/* The result of a pass, in memory that the caller frees. */
static double *run_pass(layer *l, const conv_fft_plan *plan, conv_fft_pass pass, result *r) {
    const void *const x = l->x.tensor.memory.data, *const w = l->w.tensor.memory.data,
                      *const gy = l->gy.tensor.memory.data;
    void *const out = r->tensor.memory.data;
    guarded ws = layer_workspace(l, plan, pass);
    tensor_poison(&r->tensor);
    const conv_fft_status status = pass == CONV_FFT_FORWARD
                                       ? conv_fft_forward(plan, x, w, NULL, out, ws.data, ws.bytes, NULL)
                                   : pass == CONV_FFT_BACKWARD_DATA
                                       ? conv_fft_backward_data(plan, w, gy, out, 0, ws.data, ws.bytes, NULL)
                                       : conv_fft_backward_weights(plan, x, gy, out, NULL, 0, ws.data, ws.bytes, NULL);
    check_status(status, "a call");
    release_workspace(&ws, "a call");
    double *const values = test_alloc((size_t)r->tensor.count * sizeof *values);
    tensor_get(&r->tensor, values);
    return values;
}

/* A NaN in one channel of one sample is seen in the result of this channel and sample, and does not change a bit of
 * others. Exception: in y and gx, `together` channels may share it. For the gradient of the weights, it does not change
 * other channels. */
static void check_spoiled(layer *l, const conv_fft_plan *plan, conv_fft_pass pass, int64_t together) {
    operand *const in = pass == CONV_FFT_BACKWARD_DATA ? &l->gy : &l->x;
    result *const r = pass == CONV_FFT_FORWARD ? &l->y : pass == CONV_FFT_BACKWARD_DATA ? &l->gx : &l->gw;
    const int64_t groups = in->tensor.extent[1], inner = in->tensor.count / in->tensor.extent[0] / groups,
                  out = pass == CONV_FFT_BACKWARD_WEIGHTS ? r->tensor.count / groups
                                                          : r->tensor.count / r->tensor.extent[0] / groups,
                  plane = pass == CONV_FFT_BACKWARD_WEIGHTS ? 1 : groups + 1, at = (groups + 1) * inner + inner / 2;
    double *const before = run_pass(l, plan, pass, r), *const values = in->values, good = values[at];
    values[at] = NAN;
    tensor_set(&in->tensor, values);
    double *const after = run_pass(l, plan, pass, r);
    values[at] = good;
    tensor_set(&in->tensor, values);
    int64_t seen = 0, changed = 0;
    for (int64_t i = 0; i < r->tensor.count; i++) {
        const int64_t own = i / out;
        if (own == plane)
            seen += isnan(after[i]);
        else if (own / groups != plane / groups || own % groups / together != plane % groups / together)
            changed += memcmp(&before[i], &after[i], sizeof before[i]) != 0;
    }
    if (seen == 0 || changed > 0)
        case_fail("pass %d: a NaN is seen %lld times, and changes %lld results of other planes", (int)pass,
                  (long long)seen, (long long)changed);
    free(before);
    free(after);
}

/* Channels whose products are computed together. */
static int64_t channels_together(const short_case *c, const conv_fft_plan *plan, int pass) {
    const cf_toeplitz_state *const state = c->spatial || c->dft ? NULL : plan->pass[pass].state;
    return state && state->config.in_place && pass != CF_PASS_WEIGHTS ? 4 : 1;
}

bool short_case_check(const short_case *c, int number, const short_opened *o) {
    const int failures = case_failures();
    char variables[256];
    snprintf(variables, sizeof variables, "CONV_FFT_TEST_CASE='%s'", c->problem);
    case_begin(c->problem, variables);
    generator g = generator_create((uint64_t)number);
    tensor_align(c->shifted ? 0 : 64);
    tolerate_fast_math();
    layer l = layer_create(&o->problem, &g);
    if (o->problem.fp32_weights)
        layer_grade_weights(&l);
    if (c->constant)
        layer_fill(&l, 1.9);
    const bool gx = o->plan->passes & CONV_FFT_BACKWARD_DATA, gw = o->plan->passes & CONV_FFT_BACKWARD_WEIGHTS;
    const backward_call overwrite = {.gx = gx, .gw = gw, .separate = number % 2},
                        add = {.gx = gx,
                               .gw = gw,
                               .separate = !overwrite.separate,
                               .flags = (gx ? CONV_FFT_ACCUMULATE_GX : 0) | (gw ? CONV_FFT_ACCUMULATE_GW : 0)};
    layer_check_forward(&l, o->plan, true);
    layer_check_forward(&l, o->plan, false);
    layer_check_backward(&l, o->plan, &overwrite);
    layer_check_backward(&l, o->plan, &add);
    if (o->plan->shares_gy) { /* kernels of family toeplitz also sum the gradient of the bias */
        backward_call joint = {.gx = true, .gw = true, .gbias = !c->spatial};
        layer_check_backward(&l, o->plan, &joint);
        joint.flags = CONV_FFT_ACCUMULATE_GX | CONV_FFT_ACCUMULATE_GW | CONV_FFT_ACCUMULATE_GBIAS;
        layer_check_backward(&l, o->plan, &joint);
        if (!c->spatial)
            layer_check_same_bits(&l, o->plan, o->problem.rank == 1);
    }
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if (c->spoiled && (o->plan->passes & 1 << pass))
            check_spoiled(&l, o->plan, (conv_fft_pass)(1 << pass), channels_together(c, o->plan, pass));
    layer_destroy(&l);
    tensor_align(0);
    return case_failures() == failures;
}
