/* SPDX-License-Identifier: Apache-2.0 */
/* Family `spatial`: layers of few channels per group with short kernels, by the definition of the convolution. */
#ifndef CF_CONV_SPATIAL_SPATIAL_H
#define CF_CONV_SPATIAL_SPATIAL_H

#include "conv/plan/family.h"
#include "conv/spatial/geometry.h"
#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"

extern const cf_family cf_spatial_family;

/* How a pass is divided into blocks. strips.cuh and gradient.cuh explain the constants. */
typedef struct cf_spatial_config {
    int pass;
    conv_fft_dtype dtype, result, weights, bias; /* of what is read, and written; weights: of w, or of gw */
    conv_fft_padding mode;
    bool last, skewed;
    cf_spatial_axis axis[3];
    int kernel[3], chunks;
    int own, summed, vector, lanes, strips;
    int across, down, planes;
    int rows, shares;      /* gradient of the weights */
    bool walks, exchanged; /* walk.cuh; exchanged: the axes of rows and columns */
    bool both;             /* both gradients; pass: backward data */
    int segment;
    int together[2]; /* walks with channels first: columns that a load takes, of what is read and of what is written or
                        beside it. With channels last 0 */
    int threads, resident; /* resident: blocks of a multiprocessor at a time */
    int64_t shared;        /* bytes of a block */
    int64_t channels;      /* of the result; or filters of the gradient of the weights */
    int64_t samples, items, along[3];
    int64_t column[2]; /* channels last: strides of columns of what is read and written, constants of the kernel */
    int64_t grid[2];   /* blocks of channels, slices of the items */
    double instructions, tile_instructions; /* of all warps, about: for strips; for tiles in shared memory */
    double cycles;                          /* of a multiprocessor, about, if threads walk */
} cf_spatial_config;

/* Choose. any_alignment: tensors may begin at any address. NOT_SUPPORTED: no tile fits the shared memory of a block. */
conv_fft_status cf_spatial_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                     bool any_alignment, cf_spatial_config *config);

/* The configuration up to what threads compute. extent: of the outputs. */
void cf_spatial_set_problem(const cf_layer *layer, int pass, cf_spatial_config *config, int64_t extent[3]);
/* Whether two neighbouring channels can be loaded together. */
bool cf_spatial_has_pairs(const cf_layer *layer, bool any_alignment);

/* walk.c. The configuration of threads that walk; both: both gradients in one kernel, with pass backward data. false:
 * they do not walk, because of the layer, or because they have too few registers. */
bool cf_spatial_configure_walk(const cf_layer *layer, int pass, bool both, const cf_gpu_properties *properties,
                               bool any_alignment, cf_spatial_config *config);
/* The layer with the axes of rows and columns exchanged. */
cf_layer cf_spatial_exchanged(const cf_layer *layer);
/* What one call for both gradients saves against one call for each; 0: nothing, so each has its own kernel. */
double cf_spatial_saved_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                const cf_strategy *weights);

/* Whether the slices of a gradient of the weights are added by another kernel. */
static inline bool cf_spatial_adds(const cf_spatial_config *c) {
    return (c->pass == CF_PASS_WEIGHTS || c->both) && c->grid[1] > 1;
}
/* The source of the kernel, or with `adds` of the one that adds slices. The caller frees its text after the source. */
conv_fft_status cf_spatial_source(const cf_spatial_config *config, bool adds, cf_source *source);

/* Bytes of the sums of all slices; 0: there is one slice. */
size_t cf_spatial_bytes(const cf_spatial_config *config);

/* Whether the kernels for GPUs compute the pass; otherwise *why is a clause. */
bool cf_spatial_serves(const cf_layer *layer, const char **why);

/* The pass for a device that has convolutions of its own. */
cf_convolution_desc cf_spatial_describe(const cf_layer *layer, int pass);

void cf_spatial_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                        cf_stage_cost cost[CF_STAGE_COUNT]);

/* plan->pass[].state. The fold of a gradient of x is in plan->pass[]. */
typedef struct cf_spatial_state {
    cf_layer layer; /* cf_layer_padded() */
    cf_spatial_config config;
    struct cf_kernel *kernel, *add; /* add: NULL if there is one slice */
    cf_convolution *convolution;    /* of a device that has convolutions of its own */
    /* Backward weights only: both gradients in one call, or NULL; the layer as it sees it. */
    cf_spatial_config *both;
    cf_layer both_layer;
    struct cf_kernel *both_kernel, *both_add;
} cf_spatial_state;

conv_fft_status cf_spatial_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
