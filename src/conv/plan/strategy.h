/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strategy is one way to compute one pass. It is a plain struct, and a line of text with its fields in fixed order:
 *
 *     staged basis=64x64 tiles=1x1 dilation=shift overlap=save product=blas spectrum=fp32 chunk=128 groups=1 keep=none
 *
 * basis, tiles   per axis of the problem (tiling/tiling.h). With basis=72x1 each column of a plane is a tile.
 * segments       into which the taps of each axis are divided (tiling/tiling.h); left out if it is 1 for all axes
 * dilation       step: dilated taps in the basis; shift: a smaller dense problem per output phase
 * overlap        save or add: how tiles of backward data overlap
 * product        blas, loop or tensor. tensor: tensor cores, with split numbers for math FP32, with rounded numbers for
 *                TF32 and HALF
 * spectrum       fp32 or fp64, the type of the arithmetic. With math HALF and product=tensor it may be the type of the
 *                tensors, fp16 or bf16; sums over rows that make gw stay in FP32.
 * chunk          rows (batch x shifts x tiles) of x and y whose spectra exist at the same time; 0: all
 * groups         groups whose spectra exist at the same time; 0: all
 * keep           none, x, w or xw: spectra that the caller may keep
 *
 * Lines of other families have fields of their own:
 *
 *     fused basis=72x72 tiles=1x1 dilation=step spectrum=fp32
 *     long1d basis=2048 tiles=1 dilation=step spectrum=fp32
 *     toeplitz                                   (no fields: conv/toeplitz/config.c chooses)
 *     dft                                        (no fields: conv/dft/config.c chooses)
 *     implicit_gemm                              (no fields: conv/implicit_gemm/config.c chooses)
 *     spatial                                    (no fields: conv/spatial/config.c chooses)
 *     cufft basis=64x64 chunk=128
 *     cudnn algorithm=graph:29:k2=27,k13=1       (conv/cudnn/cudnn.h)
 *
 * Lines of older records name some families otherwise: `reference` is cufft, `direct` is cudnn, and `fused` is long1d
 * where that family computes the layer (cf_strategy_resolve()).
 */
#ifndef CF_CONV_STRATEGY_H
#define CF_CONV_STRATEGY_H

#include "conv/problem/layer.h"
#include "core/device_ops.h"

/* One way to compute a pass; conv/plan/family.h. */
typedef struct cf_family cf_family;

/* The fields of a strategy line, in their order. */
enum {
    CF_FIELD_BASIS,
    CF_FIELD_TILES,
    CF_FIELD_SEGMENTS,
    CF_FIELD_DILATION,
    CF_FIELD_OVERLAP,
    CF_FIELD_PRODUCT,
    CF_FIELD_SPECTRUM,
    CF_FIELD_CHUNK,
    CF_FIELD_GROUPS,
    CF_FIELD_KEEP,
    CF_FIELD_ALGORITHM,
    CF_FIELD_COUNT
};

#define CF_ALGORITHM_BYTES 160

typedef struct cf_strategy {
    const cf_family *family;
    int64_t basis[3], tiles[3]; /* of the three internal axes */
    int64_t segments[3];        /* 0 and 1: the whole kernel is one segment */
    bool shift_dilation, overlap_add;
    cf_cgemm_variant product;
    conv_fft_dtype spectrum;
    int64_t chunk, groups;
    int keep; /* a set of conv_fft_operand */
    char algorithm[CF_ALGORITHM_BYTES];
} cf_strategy;

conv_fft_status cf_strategy_parse(const char *line, int rank, cf_strategy *strategy);
/* Give a strategy to the family that computes this pass in place of the family that it names, if there is one. */
void cf_strategy_resolve(const cf_layer *layer, int pass, cf_strategy *strategy);
void cf_strategy_format(const cf_strategy *strategy, int rank, char *text, size_t bytes);

static inline cf_axis_grid cf_strategy_grid(const cf_strategy *s, int axis) {
    const cf_axis_grid grid = {s->basis[axis], s->tiles[axis], s->overlap_add, s->shift_dilation, s->segments[axis]};
    return grid;
}

#endif
