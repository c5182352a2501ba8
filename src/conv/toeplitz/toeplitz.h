/* SPDX-License-Identifier: Apache-2.0 */
/* Family `toeplitz`: depthwise layers with short kernels, without transforms, on tensor cores. */
#ifndef CF_CONV_TOEPLITZ_TOEPLITZ_H
#define CF_CONV_TOEPLITZ_TOEPLITZ_H

#include "conv/plan/family.h"
#include "conv/toeplitz/geometry.h"
#include "conv/toeplitz/small_geometry.h"
#include "core/arith.h"
#include "core/text.h"
#include "cuda/driver/properties.h"
#include "cuda/jit/nvrtc.h"

extern const cf_family cf_toeplitz_family;

enum {
    CF_TOEPLITZ_UNIT = 16 /* bytes */
};

/* How a tensor is read or written: the tile, and the elements that one copy moves. */
typedef struct cf_toeplitz_access {
    int rows, units, step; /* of cf_toeplitz_tile_of() */
    int numbers;           /* of a unit */
    int granule;
    bool whole; /* the tile holds a plane of height x breadth elements, the first one in row top, column left */
    int height, breadth, top, left;
    int above, below, before, behind; /* rows and columns of padding around it that a padding mode fills */
} cf_toeplitz_access;

/* How a pass is divided into blocks. signals.cuh and weights.cuh explain the constants. */
typedef struct cf_toeplitz_config {
    int pass;
    conv_fft_dtype dtype, weights, bias; /* weights: the type of w, or of gw */
    conv_fft_padding mode;               /* of x that is read. A gradient of x is that of the padded x. */
    bool last, line, in_shared_memory, scaled;
    bool folded;       /* the kernel folds the padding of gx (folded_planes.cuh) */
    cf_fold_desc fold; /* folded only */
    int kernel[2], stride[2], lead, width, warps, planes;
    int up[2], lead_y;                             /* UP_Y and UP_X: the strides of a gradient of x */
    int terms, steps, span, blocks, count;         /* signals.cuh, tf32.cuh */
    int across, together, reach, shares, of_share; /* weights.cuh; of_share: ROWS */
    bool of_both; /* one of the two problems of a kernel for both gradients, which also sums the gradient of the bias */
    int before;   /* both.cuh: BEFORE */
    /* small_planes.cuh: `planes` channels and `loaded` samples of a block, `each`, `blocks` and `shares` as there;
     * `warps`: WARPS or SPLITS. The planes are height x breadth elements of x and y. */
    bool small;
    int loaded, each;
    cf_toeplitz_access x, y; /* of what is read; y: gy of the gradient of the weights, or what is written */
    int row_pad, column_pad;
    bool in_place, aligned; /* channels_last.cuh, which explains what follows */
    int tiles, parts, quads, batch, buffers, offset[2], columns[2], resident; /* columns: WIDTH and WIDTH_Y */
    int pack, row_step;           /* planes_in_place.cuh, if the planes are also small */
    bool by_rows;                 /* plane_rows.cuh, with `pack` and `parts`, too; x.left, y.left: FIRST */
    int segments, shift, of_part; /* of_part: PART_ROWS */
    int64_t samples, groups, tiles_down, tiles_across;
    /* Volumes (volumes.cuh). depths: KERNEL_Z, or 0 for planes and lines. The depths of outputs are in depth_parts. */
    int depths, depth_pad, depth_parts, part_depths;
    int64_t out_row; /* OUT_ROW */
    int64_t grid[2]; /* blocks of channels, slices of the items */
    int threads;
    int64_t shared; /* bytes of a block */
} cf_toeplitz_config;

/* Choose. any_alignment: tensors may begin at any address. NOT_SUPPORTED: a block or the grid does not fit the GPU. */
conv_fft_status cf_toeplitz_configure(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                      bool any_alignment, cf_toeplitz_config *config);

/* The same for small planes (small_planes.c). common: what all configurations have. false: the layer has none. */
bool cf_toeplitz_configure_small(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                 const cf_toeplitz_config *common, cf_toeplitz_config *config);
static inline cf_toeplitz_bands cf_toeplitz_small_bands(const cf_toeplitz_config *c) {
    return cf_toeplitz_bands_of(c->x.height, c->x.breadth, c->y.height, c->y.breadth, c->kernel[0], c->row_pad,
                                c->stride[0], c->up[0], c->stride[0] * c->stride[1] * c->up[0] * c->up[1] > 1);
}
/* The constants and the entry point of a kernel of small planes. */
void cf_toeplitz_print_small(const cf_toeplitz_config *config, bool adds, cf_text *text);
/* The extents of the planes of one side. */
void cf_toeplitz_print_plane(const char *name, const cf_toeplitz_access *plane, cf_text *text);
/* The same for planes that are computed row by row (plane_rows.c). */
bool cf_toeplitz_configure_rows(const cf_layer *layer, const cf_gpu_properties *properties,
                                const cf_toeplitz_config *common, cf_toeplitz_config *config);
double cf_toeplitz_cycles_rows(const cf_toeplitz_config *config, double multiprocessors);
void cf_toeplitz_print_rows(const cf_toeplitz_config *config, bool adds, cf_text *text);
/* The same for signals of one axis with channels last (lines_last.c). Such a config is `aligned` and not `in_place`. */
bool cf_toeplitz_configure_lines_last(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                      const cf_toeplitz_config *common, cf_toeplitz_config *config);
double cf_toeplitz_cycles_lines_last(const cf_toeplitz_config *config, double multiprocessors);
void cf_toeplitz_print_lines_last(const cf_toeplitz_config *config, cf_text *text);
/* The same for layers of volumes, which cf_toeplitz_configure() calls. */
conv_fft_status cf_toeplitz_configure_volumes(const cf_layer *layer, int pass, const cf_gpu_properties *properties,
                                              bool any_alignment, cf_toeplitz_config *config);

/* The sums of a slice: all taps, and the gradient of the bias of a kernel for both gradients. */
static inline int64_t cf_toeplitz_sums(const cf_toeplitz_config *c) {
    return c->groups * (cf_max(1, c->depths) * c->kernel[0] * c->kernel[1] + (c->of_both ? 1 : 0));
}
/* Whether the slices of a gradient of the weights are added by another kernel. */
static inline bool cf_toeplitz_adds(const cf_toeplitz_config *c) {
    return c->pass == CF_PASS_WEIGHTS && c->grid[1] > 1;
}
/* Planes with channels last that stay in place (channels_last.c): whether a pass is computed so; the configuration, for
 * a config whose pass, types, kernel, samples and groups are set; the constants and the entry point of its kernels. */
bool cf_toeplitz_in_place(const cf_layer *layer, int pass);
conv_fft_status cf_toeplitz_configure_in_place(const cf_layer *layer, const cf_gpu_properties *properties,
                                               bool any_alignment, cf_toeplitz_config *config);
/* The same for small planes (planes_in_place.c), for a config that has the paddings, too. false: the layer has none. */
bool cf_toeplitz_configure_small_in_place(const cf_layer *layer, const cf_gpu_properties *properties,
                                          cf_toeplitz_config *config);
double cf_toeplitz_cycles_small_in_place(const cf_toeplitz_config *config, double multiprocessors);
void cf_toeplitz_print_in_place(const cf_toeplitz_config *config, bool adds, cf_text *text);
/* Cycles of a pass. */
double cf_toeplitz_cycles_in_place(const cf_layer *layer, const cf_toeplitz_config *config, double multiprocessors);

/* The source of the kernel, or with `adds` of the one that adds slices. The caller frees its text after the source. */
conv_fft_status cf_toeplitz_source(const cf_toeplitz_config *config, bool adds, cf_source *source);

/* Both gradients, and that of the bias, in one kernel (both.c). */
typedef struct cf_toeplitz_both {
    cf_toeplitz_config data, weights; /* those of gx and gw, with the same tiles. The grid is that of `weights`. */
    int64_t shared;                   /* bytes of a block */
} cf_toeplitz_both;

/* false: the layer has no such kernel. */
bool cf_toeplitz_configure_both(const cf_layer *layer, const cf_gpu_properties *properties, bool any_alignment,
                                cf_toeplitz_both *both);
/* The same of signals with channels last, whose configurations are set (lines_last.c). */
bool cf_toeplitz_join_lines_last(const cf_gpu_properties *properties, cf_toeplitz_both *both);
double cf_toeplitz_cycles_both_lines_last(const cf_toeplitz_both *both, double multiprocessors);
/* The same of planes that stay in place (channels_last.c). */
bool cf_toeplitz_join_in_place(const cf_layer *layer, const cf_gpu_properties *properties, cf_toeplitz_both *both);
/* The caller frees its text after the source. */
conv_fft_status cf_toeplitz_both_source(const cf_toeplitz_both *both, cf_source *source);
/* What one call for both gradients saves against one call for each; 0: nothing, so each has its own kernel. */
double cf_toeplitz_saved_seconds(const cf_layer *layer, const cf_device *device, const cf_strategy *data,
                                 const cf_strategy *weights);

/* Bytes of the sums of all slices; 0: there is one slice. */
size_t cf_toeplitz_bytes(const cf_toeplitz_config *config);

/* Whether the family computes the pass; otherwise *why is a clause. */
bool cf_toeplitz_serves(const cf_layer *layer, int pass, const char **why);
/* Whether a kernel of tiles computes the gradient of x with a padding mode, and folds the padding: a tile has a whole
 * padded plane. Otherwise the gradient of the padded x is in the workspace. */
bool cf_toeplitz_folds_planes(const cf_layer *layer, int pass);
void cf_toeplitz_print_fold(const cf_fold_desc *fold, cf_text *text);
/* The conditions that only layers of volumes have. */
bool cf_toeplitz_serves_volumes(const cf_layer *layer, const char **why);

/* The padding of what is read. For the gradient of x, it is that of gy. */
static inline bool cf_toeplitz_is_trivial(const cf_axis *a) {
    return a->input == 1 && a->kernel == 1 && a->output == 1;
}

static inline int64_t cf_toeplitz_pad(const cf_axis *axis, bool data) {
    return data ? axis->kernel - 1 - axis->pad_before : axis->pad_before;
}

/* access.c. The numbers of a unit. */
int cf_toeplitz_numbers(conv_fft_dtype dtype);
/* The elements that one copy can move: all of its starts are multiples of them. */
int cf_toeplitz_granule(const cf_layer *layer, const cf_tensor *t, bool last, int64_t rows, bool any_alignment);
/* Whether the tile of `access` holds a whole plane of height x breadth elements, and where its first element is. */
void cf_toeplitz_set_whole(const cf_toeplitz_config *config, cf_toeplitz_access *access, int64_t height,
                           int64_t breadth, int64_t top, int64_t left);
/* The padding that a padding mode fills, if the tile of x holds a whole plane. */
void cf_toeplitz_set_padding(cf_toeplitz_config *config, const cf_axis *down, const cf_axis *across);

/* Cycles of a multiprocessor for a pass of volumes. */
double cf_toeplitz_volume_cycles(const cf_toeplitz_config *config, const cf_gpu_properties *properties);

void cf_toeplitz_predict(const cf_layer *layer, const cf_device *device, int pass, const cf_strategy *strategy,
                         cf_stage_cost cost[CF_STAGE_COUNT]);

/* plan->pass[].state. The fold of a gradient of x is in plan->pass[]. */
typedef struct cf_toeplitz_state {
    cf_layer layer; /* cf_layer_padded_same_type() */
    cf_toeplitz_config config;
    struct cf_kernel *kernel, *add; /* add: NULL if there is one slice */
    /* Backward weights only: both gradients in one call; or NULL. */
    cf_toeplitz_both *both;
    struct cf_kernel *both_kernel, *both_add;
} cf_toeplitz_state;

conv_fft_status cf_toeplitz_run(const conv_fft_plan *plan, int set, const cf_call *call);

#endif
