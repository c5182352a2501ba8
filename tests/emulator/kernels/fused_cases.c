/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/fused_cases.h"

#include "support/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    F = CONV_FFT_FORWARD,
    D = CONV_FFT_BACKWARD_DATA,
    W = CONV_FFT_BACKWARD_WEIGHTS,
    FW = F | W,
    DW = D | W,
    FD = F | D,
    ALL = F | D | W
};

static const fused_case all[] = {
    /* Rows: packed real, and unpacked because they are odd; one, two and three FFT stages. */
    {.problem = "in=5x7x40 out=7 groups=7 kernel=9 pad=4", .grid = "basis=48 tiles=1", .passes = FW},
    {.problem = "in=5x7x40 out=7 groups=7 kernel=6 pad=4:1", .grid = "basis=45 tiles=1", .passes = DW, .shifted = true},
    {.problem = "in=3x3x100 out=5 kernel=9 pad=4", .grid = "basis=24 tiles=7", .passes = ALL},
    {.problem = "in=3x4x60 out=2 kernel=5 stride=2 pad=3:1", .grid = "basis=35 tiles=1", .passes = ALL},
    {.problem = "in=2x3x300 out=3 groups=3 kernel=300 pad=299:0", .grid = "basis=600 tiles=1", .passes = ALL},
    {.problem = "in=3x2x130 out=2 groups=2 kernel=120 pad=119:0", .grid = "basis=256 tiles=1", .passes = ALL},
    {.problem = "in=1x1x1250 out=1 kernel=1250 pad=1249:0", .grid = "basis=2500 tiles=1", .passes = F},
    /* Long signals: rows of a warp and of a block, four-step; taps that wrap around, outputs in both halves. */
    {.problem = "in=3x3x1000 out=3 groups=3 kernel=1000 pad=999:0", .grid = "basis=2048 tiles=1", .passes = ALL},
    {.problem = "in=5x2x1500 out=2 groups=2 kernel=501 pad=250",
     .grid = "basis=2048 tiles=1",
     .passes = ALL,
     .shifted = true},
    {.problem = "in=2x3x700 out=3 groups=3 kernel=900 pad=700:900", .grid = "basis=2048 tiles=1", .passes = ALL},
    {.problem = "in=2x5x1300 out=5 groups=5 kernel=700 pad=300:10 layout=last",
     .grid = "basis=4096 tiles=1",
     .passes = ALL},
    {.problem = "in=3x2x2300 out=2 groups=2 kernel=1700 dtype=fp16", .grid = "basis=4096 tiles=1", .passes = ALL},
    {.problem = "in=2x2x4096 out=2 groups=2 kernel=4096 pad=4095:0 dtype=bf16",
     .grid = "basis=8192 tiles=1",
     .passes = ALL},
    {.problem = "in=1x2x4000 out=2 groups=2 kernel=1000 pad=200",
     .grid = "basis=8192 tiles=1",
     .passes = ALL,
     .strided = true},
    {.problem = "in=2x1x8000 out=1 kernel=5000 pad=4999:0", .grid = "basis=16384 tiles=1", .passes = ALL},
    {.problem = "in=2x2x9000 out=2 groups=2 kernel=1500 pad=1499:0", .grid = "basis=32768 tiles=1", .passes = ALL},
    {.problem = "in=2x2x50000 out=2 groups=2 kernel=99 pad=49 dtype=fp16",
     .grid = "basis=65536 tiles=1",
     .passes = ALL},
    {.problem = "in=1x3x200000 out=3 groups=3 kernel=20 pad=7 layout=last",
     .grid = "basis=524288 tiles=1",
     .passes = ALL,
     .memory = 192 << 20},
    /* FP32 weights and biases beside 16-bit elements. */
    {.problem = "in=3x2x2300 out=2 groups=2 kernel=1700 dtype=fp16 w=fp32",
     .grid = "basis=4096 tiles=1",
     .passes = ALL},
    {.problem = "in=2x2x50000 out=2 groups=2 kernel=99 pad=49 dtype=bf16 w=fp32",
     .grid = "basis=65536 tiles=1",
     .passes = FW},
    {.problem = "in=3x4x14x16 out=4 groups=4 kernel=5x5 pad=2 dtype=fp16 w=fp32",
     .grid = "basis=18x20 tiles=1x1",
     .passes = ALL},
    {.problem = "in=3x3x20x16 out=4 kernel=5x5 pad=2 dtype=fp16 w=fp32", .grid = "basis=12x20 tiles=3x1", .passes = FD},
    {.problem = "in=2x16x13x12 out=16 groups=16 kernel=4x3 pad=1 layout=last dtype=bf16 w=fp32",
     .grid = "basis=10x10 tiles=2x2",
     .passes = FW,
     .shifted = true},
    {.problem = "in=3x3x20x16 out=40 kernel=5x5 pad=2 layout=last dtype=fp16 w=fp32",
     .grid = "basis=12x20 tiles=3x1",
     .passes = FD},
    {.problem = "in=2x16x9x10 out=4 kernel=3x3 pad=1 groups=2 dtype=bf16 w=fp32",
     .grid = "basis=12x12 tiles=1x1",
     .passes = FW},
    /* Planes, one channel to one: even and odd bases, powers of two, two FFT stages. */
    {.problem = "in=5x7x20x20 out=7 groups=7 kernel=5x5 pad=2", .grid = "basis=24x24 tiles=1x1", .passes = FW},
    {.problem = "in=5x7x20x20 out=7 groups=7 kernel=5x5 pad=2",
     .grid = "basis=24x24 tiles=1x1",
     .passes = DW,
     .shifted = true},
    {.problem = "in=5x3x20x20 out=3 groups=3 kernel=5x5 pad=2", .grid = "basis=12x16 tiles=3x2", .passes = ALL},
    {.problem = "in=2x7x20x20 out=7 groups=7 kernel=3x5 pad=1x2", .grid = "basis=21x27 tiles=1x1", .passes = FW},
    {.problem = "in=3x2x14x14 out=2 groups=2 kernel=3x3", .grid = "basis=16x16 tiles=1x1", .passes = DW},
    {.problem = "in=2x2x50x6 out=2 groups=2 kernel=15x3 pad=7x1", .grid = "basis=64x8 tiles=1x1", .passes = ALL},
    {.problem = "in=1x3x50x66 out=3 groups=3 kernel=15x21 pad=7x10", .grid = "basis=72x96 tiles=1x1", .passes = FW},
    {.problem = "in=2x2x60x8 out=2 groups=2 kernel=13x3 pad=6x1", .grid = "basis=72x10 tiles=1x1", .passes = DW},
    {.problem = "in=2x2x8x60 out=2 groups=2 kernel=3x13 pad=1x6", .grid = "basis=9x75 tiles=1x1", .passes = ALL},
    {.problem = "in=2x3x7x1 out=3 groups=3 kernel=2x1", .grid = "basis=8x1 tiles=1x1", .passes = FW},
    {.problem = "in=2x3x7x7 out=3 groups=3 kernel=15x15 pad=7", .grid = "basis=14x15 tiles=1x1", .passes = DW},
    /* More channels: one to several, groups, few to many, many to few. */
    {.problem = "in=3x5x12x14 out=15 groups=5 kernel=7x5 pad=3x2", .grid = "basis=15x16 tiles=1x1", .passes = ALL},
    {.problem = "in=2x6x12x11 out=9 groups=3 kernel=3x4", .grid = "basis=14x15 tiles=1x1", .passes = ALL},
    {.problem = "in=2x6x12x11 out=9 groups=3 kernel=3x4 pad=1x0", .grid = "basis=8x9 tiles=2x2", .passes = ALL},
    {.problem = "in=2x3x16x16 out=24 kernel=5x5", .grid = "basis=16x16 tiles=1x1", .passes = ALL},
    {.problem = "in=2x16x9x10 out=3 kernel=3x3 pad=1", .grid = "basis=12x12 tiles=1x1", .passes = ALL, .shifted = true},
    {.problem = "in=2x9x9x10 out=8 kernel=3x3", .grid = "basis=12x12 tiles=1x1", .passes = F, .shared = 5000},
    {.problem = "in=2x3x9x10 out=4 kernel=3x3 pad=1", .grid = "basis=12x12 tiles=1x1", .passes = W, .shared = 16000},
    {.problem = "in=7x2x18 out=6 kernel=3 pad=1", .grid = "basis=20 tiles=1", .passes = W, .shared = 5000},
    /* Many multiprocessors: outputs are divided, and every row is a slice. */
    {.problem = "in=2x2x12x12 out=16 kernel=3x3 pad=1",
     .grid = "basis=14x14 tiles=1x1",
     .passes = FW,
     .processors = 100},
    {.problem = "in=2x8x30 out=4 kernel=3 pad=1", .grid = "basis=16 tiles=3", .passes = W, .processors = 1},
    /* Many slices, which several threads add: of a short and of a long signal. */
    {.problem = "in=147x1x11 out=1 kernel=3 pad=1", .grid = "basis=12 tiles=1", .passes = W, .processors = 100},
    {.problem = "in=21x1x1024 out=1 kernel=33 pad=16", .grid = "basis=2048 tiles=1", .passes = W, .processors = 3},
    {.problem = "in=2x1x2 out=9 kernel=2 layout=last dtype=bf16",
     .grid = "basis=3 tiles=1",
     .passes = ALL,
     .shifted = true,
     .shared = 40000,
     .processors = 2},
    /* Register-resident kernels: a thread has one plane, several planes or a part of a plane; whole rows; a GPU without
     * bulk copies. */
    {.problem = "in=9x1x16x16 out=6 kernel=3x3", .grid = "basis=18x18 tiles=1x1", .passes = FD, .processors = 1},
    {.problem = "in=9x3x20x20 out=8 kernel=5x5 pad=2", .grid = "basis=24x24 tiles=1x1", .passes = ALL, .processors = 1},
    {.problem = "in=3x3x20x16 out=4 kernel=5x5 pad=2", .grid = "basis=12x20 tiles=3x1", .passes = ALL},
    {.problem = "in=3x3x19x16 out=4 kernel=5x5 pad=2", .grid = "basis=12x20 tiles=3x1", .passes = ALL},
    {.problem = "in=3x3x5x14 out=4 kernel=3x3 pad=1", .grid = "basis=7x16 tiles=1x1", .passes = ALL},
    {.problem = "in=4x2x54x54 out=4 kernel=5x5", .grid = "basis=54x54 tiles=1x1", .passes = ALL, .processors = 1},
    {.problem = "in=3x3x16x16 out=8 kernel=5x5", .grid = "basis=16x16 tiles=1x1", .passes = ALL, .older = true},
    /* Whole rows of 16-bit elements: planes of 16 bytes; rows, planes and a tensor that end inside 16 bytes. */
    {.problem = "in=3x3x20x16 out=4 kernel=5x5 pad=2 dtype=fp16", .grid = "basis=12x20 tiles=3x1", .passes = ALL},
    {.problem = "in=3x3x18x14 out=4 kernel=5x5 dtype=bf16", .grid = "basis=10x16 tiles=3x1", .passes = ALL},
    {.problem = "in=4x2x54x54 out=4 kernel=5x5 dtype=fp16",
     .grid = "basis=54x54 tiles=1x1",
     .passes = ALL,
     .processors = 1},
    {.problem = "in=3x3x16x16 out=3 kernel=3x3 dtype=fp16", .grid = "basis=16x16 tiles=1x1", .passes = ALL},
    /* The same with few warps; weights are prefetched for all products of the next plane, for some, for none. */
    {.problem = "in=2x3x70x128 out=12 kernel=11x11", .grid = "basis=40x128 tiles=2x1", .passes = FW, .processors = 1},
    {.problem = "in=2x3x70x128 out=12 kernel=11x11 dtype=fp16",
     .grid = "basis=40x128 tiles=2x1",
     .passes = FW,
     .shared = 220000,
     .processors = 1},
    {.problem = "in=2x3x70x128 out=12 kernel=11x11",
     .grid = "basis=40x128 tiles=2x1",
     .passes = FW,
     .shared = 186000,
     .processors = 1},
    {.problem = "in=2x3x70x128 out=12 kernel=11x11",
     .grid = "basis=42x128 tiles=3x1",
     .passes = D,
     .shared = 190000,
     .processors = 1},
    {.problem = "in=2x3x70x128 out=12 kernel=11x11",
     .grid = "basis=42x128 tiles=3x1",
     .passes = D,
     .shared = 166000,
     .processors = 1},
    /* Strides: phases are columns. */
    {.problem = "in=3x2x15x17 out=4 kernel=5x4 stride=2x3 pad=2", .grid = "basis=12x10 tiles=1x1", .passes = ALL},
    {.problem = "in=2x2x25x27 out=3 kernel=5x4 stride=2 pad=2", .grid = "basis=9x10 tiles=2x2", .passes = ALL},
    {.problem = "in=2x3x16x16 out=3 groups=3 kernel=3x3 stride=2 pad=1",
     .grid = "basis=10x10 tiles=1x1",
     .passes = ALL},
    {.problem = "in=2x1x15x16 out=6 kernel=3x4 stride=1x2 pad=1", .grid = "basis=18x10 tiles=1x1", .passes = FD},
    {.problem = "in=2x2x11x12 out=2 groups=2 kernel=1x2 stride=2x3", .grid = "basis=6x5 tiles=1x1", .passes = ALL},
    /* Dilation as steps and as shifts. */
    {.problem = "in=2x4x18x20 out=4 groups=4 kernel=3x4 dilation=2x3 pad=3",
     .grid = "basis=24x27 tiles=1x1",
     .passes = ALL},
    {.problem = "in=2x4x18x20 out=4 groups=4 kernel=3x4 dilation=2x3 pad=3",
     .grid = "basis=12x9 tiles=1x1 dilation=shift",
     .passes = FW},
    {.problem = "in=1x2x18x20 out=4 groups=2 kernel=3x4 dilation=2x3 pad=3 stride=1x2",
     .grid = "basis=8x10 tiles=2x1 dilation=shift",
     .passes = ALL},
    /* Padding and layouts. */
    {.problem = "in=3x8x13x12 out=8 groups=8 kernel=4x3 pad=2:0x1:3 layout=last",
     .grid = "basis=16x16 tiles=1x1",
     .passes = DW},
    {.problem = "in=2x9x13x12 out=9 groups=9 kernel=4x3 pad=2:0x1:3 layout=last",
     .grid = "basis=10x10 tiles=2x2",
     .passes = ALL},
    {.problem = "in=2x6x12x12 out=4 groups=2 kernel=3x3 pad=1 layout=last dtype=fp16",
     .grid = "basis=14x14 tiles=1x1",
     .passes = ALL},
    {.problem = "in=3x10x21 out=10 groups=10 kernel=4 pad=2 layout=last", .grid = "basis=25 tiles=1", .passes = FW},
    /* Channels last: as many channels at once as alignment allows, channel groups beyond the last channel, pointers at
     * any address. */
    {.problem = "in=3x24x13x12 out=24 groups=24 kernel=4x3 pad=2:0x1:3 layout=last dtype=fp16",
     .grid = "basis=16x16 tiles=1x1",
     .passes = ALL},
    {.problem = "in=2x16x13x12 out=16 groups=16 kernel=4x3 pad=1 layout=last dtype=bf16",
     .grid = "basis=10x10 tiles=2x2",
     .passes = ALL,
     .shifted = true},
    {.problem = "in=2x12x15x11 out=12 groups=12 kernel=3x3 pad=1 layout=last dtype=bf16",
     .grid = "basis=15x9 tiles=2x2",
     .passes = ALL},
    {.problem = "in=3x6x41 out=6 groups=6 kernel=6 pad=2:3 layout=last dtype=fp16",
     .grid = "basis=48 tiles=1",
     .passes = ALL},
    {.problem = "in=2x4x21x20 out=4 groups=4 kernel=5x5 pad=2 layout=last",
     .grid = "basis=24x24 tiles=1x1",
     .passes = ALL},
    {.problem = "in=2x8x5x6x7 out=8 groups=8 kernel=3x2x3 pad=1 layout=last",
     .grid = "basis=5x4x6 tiles=2x3x2",
     .passes = ALL},
    {.problem = "in=2x8x12x13 out=8 groups=8 kernel=3x3 pad=1 mode=reflect layout=last dtype=fp16",
     .grid = "basis=16x18 tiles=1x1",
     .passes = FW},
    {.problem = "in=2x8x16x17 out=8 groups=8 kernel=3x3 stride=2 pad=1 layout=last dtype=fp16",
     .grid = "basis=10x10 tiles=1x1",
     .passes = ALL},
    {.problem = "in=3x5x11x12 out=5 groups=5 kernel=3x3 pad=2 mode=reflect",
     .grid = "basis=15x16 tiles=1x1",
     .passes = FW},
    {.problem = "in=2x2x11x12 out=3 kernel=3x3 pad=1 mode=circular dtype=bf16",
     .grid = "basis=14x14 tiles=1x1",
     .passes = FW},
    {.problem = "in=2x2x12x12 out=2 groups=2 kernel=3x3 pad=1 mode=circular",
     .grid = "basis=12x12 tiles=1x1",
     .passes = DW},
    {.problem = "in=2x3x20x11 out=3 groups=3 kernel=4x3 pad=1:2x2 mode=replicate",
     .grid = "basis=10x15 tiles=3x1",
     .passes = FW,
     .shifted = true},
    /* Channels last with sums over channels; one channel to several, so that only one side is interleaved. */
    {.problem = "in=3x3x14x13 out=8 kernel=3x3 pad=1 layout=last", .grid = "basis=15x16 tiles=1x1", .passes = ALL},
    {.problem = "in=2x9x12x10 out=3 kernel=3x3 pad=1 layout=last dtype=fp16",
     .grid = "basis=14x12 tiles=1x1",
     .passes = ALL,
     .shifted = true},
    /* Channels last with many channels, from which a kernel makes planes: all channels at once, few, a part of a block,
     * whole blocks; gradients of x without planes for positions that no tap meets. */
    {.problem = "in=3x3x20x16 out=40 kernel=5x5 pad=2 layout=last dtype=fp16",
     .grid = "basis=12x20 tiles=3x1",
     .passes = ALL},
    {.problem = "in=2x2x15x13 out=18 kernel=3x3 pad=1 layout=last",
     .grid = "basis=18x15 tiles=1x1",
     .passes = ALL,
     .shifted = true},
    {.problem = "in=3x8x14x13 out=8 kernel=3x3 pad=1 layout=last", .grid = "basis=15x16 tiles=1x1", .passes = ALL},
    {.problem = "in=2x6x12x11 out=4 kernel=3x4 dtype=fp64 layout=last", .grid = "basis=14x15 tiles=1x1", .passes = DW},
    {.problem = "in=3x37x12x12 out=2 kernel=3x3 layout=last", .grid = "basis=12x12 tiles=1x1", .passes = FD},
    {.problem = "in=2x16x15x17 out=2 kernel=2x2 stride=2x3 layout=last dtype=bf16",
     .grid = "basis=12x10 tiles=1x1",
     .passes = FD},
    {.problem = "in=2x8x12x11 out=16 groups=8 kernel=3x3 pad=1 layout=last dtype=bf16",
     .grid = "basis=14x15 tiles=1x1",
     .passes = ALL},
    /* Neighbouring threads have neighbouring planes. Data end with the basis. Lengths have two and three prime
     * factors. */
    {.problem = "in=16x3x7x7 out=3 groups=3 kernel=13x13 pad=6", .grid = "basis=14x15 tiles=1x1", .passes = ALL},
    {.problem = "in=16x3x7x7 out=3 groups=3 kernel=13x13 pad=6", .grid = "basis=14x14 tiles=1x1", .passes = ALL},
    {.problem = "in=3x3x20x22 out=3 groups=3 kernel=9x15 pad=4x7", .grid = "basis=30x42 tiles=1x1", .passes = ALL},
    {.problem = "in=2x4x10x12 out=4 groups=2 kernel=3x3 pad=1",
     .grid = "basis=12x15 tiles=1x1",
     .passes = ALL,
     .strided = true},
    {.problem = "in=2x3x9x14 out=3 groups=3 kernel=2x5 pad=1",
     .grid = "basis=10x16 tiles=1x1",
     .passes = ALL,
     .strided = true},
    /* 16-bit elements. */
    {.problem = "in=3x4x14x16 out=4 groups=4 kernel=5x5 pad=2 dtype=fp16",
     .grid = "basis=18x20 tiles=1x1",
     .passes = ALL},
    {.problem = "in=3x2x14x16 out=4 groups=2 kernel=5x5 pad=2 dtype=bf16",
     .grid = "basis=12x14 tiles=2x2",
     .passes = ALL,
     .shifted = true},
    {.problem = "in=16x3x7x7 out=3 groups=3 kernel=13x13 pad=6 dtype=fp16",
     .grid = "basis=14x14 tiles=1x1",
     .passes = ALL},
    /* Sums over several samples. One sample is loaded while another one is transformed. */
    {.problem = "in=15x9x7x7 out=9 groups=9 kernel=13x13 pad=6 dtype=fp16",
     .grid = "basis=14x14 tiles=1x1",
     .passes = W,
     .processors = 1},
    {.problem = "in=15x9x7x7 out=9 groups=9 kernel=13x13 pad=6",
     .grid = "basis=14x14 tiles=1x1",
     .passes = W,
     .processors = 1},
    {.problem = "in=3x5x9x13 out=5 groups=5 kernel=3x3 pad=1 dtype=bf16", .grid = "basis=7x9 tiles=2x2", .passes = ALL},
    {.problem = "in=2x3x9x9 out=3 groups=3 kernel=3x3 pad=1 mode=circular dtype=fp16",
     .grid = "basis=12x12 tiles=1x1",
     .passes = FW},
    {.problem = "in=4x8x50 out=3 kernel=9 pad=4 dtype=fp16", .grid = "basis=27 tiles=3", .passes = ALL},
    /* Volumes. */
    {.problem = "in=2x3x5x6x7 out=3 groups=3 kernel=3x2x3 pad=1", .grid = "basis=6x8x9 tiles=1x1x1", .passes = FW},
    {.problem = "in=2x3x5x6x7 out=3 groups=3 kernel=3x2x3 pad=1", .grid = "basis=5x4x6 tiles=2x3x2", .passes = DW},
    {.problem = "in=2x2x6x6x6 out=3 kernel=3x3x3 pad=1", .grid = "basis=8x8x8 tiles=1x1x1", .passes = ALL},
    {.problem = "in=1x2x9x5x6 out=3 kernel=3x2x3 stride=2x1x2 pad=1", .grid = "basis=6x7x5 tiles=1x1x1", .passes = ALL},
    {.problem = "in=2x2x6x1x9 out=2 groups=2 kernel=3x1x3", .grid = "basis=7x1x12 tiles=1x1x1", .passes = ALL},
    {.problem = "in=2x2x5x6x1 out=2 groups=2 kernel=2x3x1", .grid = "basis=6x7x1 tiles=1x1x1", .passes = FW},
    {.problem = "in=1x2x60x3x4 out=2 groups=2 kernel=11x2x3", .grid = "basis=70x4x6 tiles=1x1x1", .passes = DW},
    /* FP64. */
    {.problem = "in=5x3x20 out=3 groups=3 kernel=5 pad=2 dtype=fp64", .grid = "basis=24 tiles=1", .passes = ALL},
    {.problem = "in=3x2x30 out=4 kernel=5 stride=2 pad=2 dtype=fp64", .grid = "basis=21 tiles=1", .passes = ALL},
    {.problem = "in=3x5x20x20 out=5 groups=5 kernel=5x5 pad=2 dtype=fp64",
     .grid = "basis=12x16 tiles=3x2",
     .passes = FW},
    {.problem = "in=2x2x30x30 out=2 groups=2 kernel=9x9 pad=4 dtype=fp64",
     .grid = "basis=35x36 tiles=1x1",
     .passes = DW},
    {.problem = "in=2x3x12x11 out=8 kernel=3x4 dtype=fp64",
     .grid = "basis=14x15 tiles=1x1",
     .passes = ALL,
     .shifted = true},
    {.problem = "in=2x2x12x11 out=6 kernel=3x4 dtype=fp64 layout=last", .grid = "basis=14x15 tiles=1x1", .passes = ALL},
    {.problem = "in=2x8x12x11 out=8 groups=8 kernel=3x4 pad=1 layout=last dtype=fp64",
     .grid = "basis=14x14 tiles=1x1",
     .passes = ALL},
    {.problem = "in=2x2x5x6x7 out=4 groups=2 kernel=3x2x3 pad=1 dtype=fp64",
     .grid = "basis=6x8x9 tiles=1x1x1",
     .passes = ALL},
};

/* -------------------------------------------------------------------------------------------------- cases by chance */

enum {
    COUNT = sizeof all / sizeof all[0],
    DRAWN = 40,
    MAX_POINTS = 5000 /* of a plane: they take time */
};
static struct {
    conv_fft_problem problem;
    char line[512], grid[128];
} drawn[DRAWN];
static fused_case list[COUNT + DRAWN];

static bool fits(const cf_axis *axis, const cf_axis_grid *grid, int passes) {
    static const cf_role results[CF_PASS_COUNT] = {CF_ROLE_Y, CF_ROLE_GX, CF_ROLE_W};
    for (int pass = 0; pass < CF_PASS_COUNT; ++pass)
        if ((passes & 1 << pass) && !cf_grid_fits(axis, grid, results[pass]))
            return false;
    return true;
}

/* The smallest size that the passes allow, or a little larger. */
static bool draw_axis(generator *g, const cf_axis *axis, int passes, bool shifts, cf_axis_grid *grid) {
    *grid =
        (cf_axis_grid){.basis = 1, .tiles = random_once_in(g, 3) ? random_int(g, 2, 3) : 1, .shift_dilation = shifts};
    while (grid->basis <= MAX_POINTS && !fits(axis, grid, passes))
        grid->basis = cf_next_basis(grid->basis + 1);
    for (int64_t more = random_once_in(g, 2) ? 0 : random_int(g, 1, 3); more > 0; --more)
        grid->basis = cf_next_basis(grid->basis + 1);
    return fits(axis, grid, passes);
}

static bool draw_grids(generator *g, const cf_layer *made, fused_case *c, char *text, size_t bytes) {
    const bool shifts = random_once_in(g, 2);
    const int rank = made->problem.rank;
    int64_t points = 1;
    cf_axis_grid grid[3];
    for (int a = 0; a < rank; ++a) {
        if (!draw_axis(g, &made->axis[3 - rank + a], c->passes, shifts, &grid[a]))
            return false;
        points *= grid[a].basis;
    }
    cf_text t = {text, bytes, 0};
    for (int a = 0; a < rank; ++a)
        cf_text_add(&t, "%s%lld", a ? "x" : "basis=", (long long)grid[a].basis);
    for (int a = 0; a < rank; ++a)
        cf_text_add(&t, "%s%lld", a ? "x" : " tiles=", (long long)grid[a].tiles);
    cf_text_add(&t, " dilation=%s", shifts ? "shift" : "step");
    return points <= MAX_POINTS;
}

/* Draw until fused kernels support the case. Each seed draws others. */
static void draw(int number, const char *properties, fused_case *c) {
    static const int64_t shared[] = {0, 0, 6000, 12000, 40000};
    generator g = generator_create(test_seed() + (uint64_t)number);
    cf_layer made;
    fused_opened opened;
    for (bool good = false; !good;) {
        drawn[number].problem = random_problem(&g, 20000);
        *c = (fused_case){.problem = drawn[number].line,
                          .grid = drawn[number].grid,
                          .drawn = &drawn[number].problem,
                          .passes = random_once_in(&g, 2) ? ALL : 1 << random_int(&g, 0, 2),
                          .shifted = random_once_in(&g, 3),
                          .shared = shared[random_int(&g, 0, 4)],
                          .processors = random_int(&g, 1, 10)};
        describe_problem(c->drawn, drawn[number].line, sizeof drawn[number].line);
        good = cf_layer_make(c->drawn, &made) == CONV_FFT_SUCCESS &&
               draw_grids(&g, &made, c, drawn[number].grid, sizeof drawn[number].grid) &&
               fused_case_open(c, number, properties, &opened);
        if (good)
            fused_case_close(&opened);
    }
}

void fused_case_name(const fused_case *c, char *text, size_t bytes) {
    cf_text t = {text, bytes, 0};
    cf_text_add(&t, "%s%s; %s; passes %d%s%s%s", c->drawn ? "drawn " : "", c->problem, c->grid, c->passes,
                c->shifted ? " shifted" : "", c->strided ? " strided" : "", c->older ? " older" : "");
    if (c->shared > 0)
        cf_text_add(&t, " shared %lld", (long long)c->shared);
    if (c->memory > 0)
        cf_text_add(&t, " memory %lld", (long long)c->memory);
    if (c->processors > 0)
        cf_text_add(&t, " processors %lld", (long long)c->processors);
}

static test_part parts[COUNT + DRAWN];

int fused_case_list(const char *properties, const fused_case **cases) {
    static char text[COUNT + DRAWN][FUSED_NAME_BYTES];
    const char *names[COUNT + DRAWN];
    for (int i = 0; i < COUNT + DRAWN; i++) {
        if (i < COUNT)
            list[i] = all[i];
        else
            draw(i - COUNT, properties, &list[i]);
        fused_case_name(&list[i], text[i], sizeof text[i]);
        names[i] = text[i];
    }
    test_parts("fused", names, COUNT + DRAWN, parts);
    *cases = list;
    return COUNT + DRAWN;
}

test_part fused_case_part(int number) { return parts[number]; }
