/* SPDX-License-Identifier: Apache-2.0 */
/* Family `dft`: depthwise planes with large kernels and long depthwise signals in 16 bits. Transforms are products with
 * DFT matrices. */
#ifndef CF_CONV_DFT_DFT_H
#define CF_CONV_DFT_DFT_H

#include "conv/dft/geometry.h"
#include "conv/plan/family.h"
#include "core/text.h"
#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"

extern const cf_family cf_dft_family;

/* A plane of a tensor. granule: elements that one copy moves, or one store. */
typedef struct cf_dft_plane {
    int rows, columns, granule;
} cf_dft_plane;

/* How a signal is divided into tiles. signals.cuh explains the constants. */
typedef struct cf_dft_signal {
    int radix; /* 0: a plane */
    int lines, tiles, valid, first, shift;
    int64_t blocks; /* each has an equal share of all slices of all channels */
} cf_dft_signal;

/* How a pass is divided into blocks. planes.cuh explains the constants. A signal is one row of x and y, whose granules
 * are equal. */
typedef struct cf_dft_config {
    int pass;
    conv_fft_dtype dtype, weights, bias; /* weights: the type of w, or of gw */
    cf_dft_plane x, y;                   /* of what is read; y: gy of the gradient of the weights, or what is written */
    int kernel[2], basis[2], shift[2];
    cf_dft_signal signal;
    int teams, planes, resident; /* resident: blocks for which a multiprocessor must have registers */
    int64_t samples, groups;
    int64_t grid[2]; /* channels, slices of the samples */
    int threads;
    int64_t shared; /* bytes of a block */
} cf_dft_config;

/* Whether the family computes the pass; otherwise *why is a clause. */
bool cf_dft_serves(const cf_layer *layer, int pass, const char **why);

/* Choose. any_alignment: tensors may begin at any address. NOT_SUPPORTED: a block or the grid does not fit the GPU. */
conv_fft_status cf_dft_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                 bool any_alignment, cf_dft_config *config);

/* Signals: whether a layer is one, and what the functions above and cf_dft_source() do for them. */
bool cf_dft_is_signal(const cf_layer *layer);
bool cf_dft_serves_signal(const cf_layer *layer, const char **why);
conv_fft_status cf_dft_configure_signal(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                        bool any_alignment, cf_dft_config *config);
void cf_dft_signal_text(const cf_dft_config *config, cf_text *text);

/* The sizes of a block. */
cf_dft_geometry cf_dft_geometry_for(const cf_dft_config *config);

/* Whether the slices of a gradient of the weights are added by another kernel, and the bytes of the sums of all slices
 * (0: there is one slice). */
static inline bool cf_dft_adds(const cf_dft_config *c) { return c->pass == CF_PASS_WEIGHTS && c->grid[1] > 1; }
size_t cf_dft_bytes(const cf_dft_config *config);

/* The source of the kernel, or with `adds` of the one that adds slices. The caller frees its text after the source. */
conv_fft_status cf_dft_source(const cf_dft_config *config, bool adds, cf_source *source);

void cf_dft_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                    cf_stage_cost cost[CF_STAGE_COUNT]);

/* plan->pass[].state */
typedef struct cf_dft_state {
    cf_dft_config config;
    struct cf_kernel *kernel, *add; /* add: NULL if there is one slice */
} cf_dft_state;

conv_fft_status cf_dft_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
