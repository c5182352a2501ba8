/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_layers.h"

const char *const fake_layer_lines[FAKE_LAYERS] = {
    "in=5x12x13x14 out=10 kernel=3x4 pad=1",
    "in=3x8x30x31 out=8 kernel=7x7 pad=3 groups=8 layout=last dtype=fp16 gw=fp32",
    "in=2x4x19x18 out=4 kernel=4x3 pad=2 mode=reflect groups=2 stride=2 dtype=bf16",
    "in=2x3x2000 out=4 kernel=300 pad=10:20 mode=circular dtype=fp64",
    "in=2x3x9x10x11 out=4 kernel=3x3x3 pad=1 mode=replicate dilation=2",
    "in=2x3x100000 out=4 kernel=7000",
    "in=0x3x9x10 out=4 kernel=3x3",
    "in=64x64x64x64 out=64 kernel=9x9",
};
