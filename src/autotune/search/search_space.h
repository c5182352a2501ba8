/* SPDX-License-Identifier: Apache-2.0 */
/* The space of staged strategies: per axis a few bases with the tiles they need, dilation as step or as shifts, chunks. */
#ifndef CF_AUTOTUNE_SPACE_H
#define CF_AUTOTUNE_SPACE_H

#include "conv/plan/family.h"

enum {
    CF_SPACE_MAX_BASES = 16,
    CF_SPACE_MAX_LINES = 9 /* more of them: powers of two that matrix products transform */
};

typedef struct cf_space_bases {
    int count;
    int64_t basis[CF_SPACE_MAX_BASES + CF_SPACE_MAX_LINES];
} cf_space_bases;

/* Bases of an axis in ascending order, each with less total length (tiles x basis) than every smaller one, up to one tile; behind them,
 * largest first, a few that have no more tiles for positions of x than those have for outputs, and the next multiples of row_unit, whose
 * transforms may be cheaper. */
void cf_space_collect(const cf_axis *axis, bool shift, int64_t row_unit, int most, cf_space_bases *bases);

/* The bases of all axes of a layer, fewer for each the more axes there are; a power of two behind them where such lines have kernels of
 * their own. Where a kernel takes more than half of the device's longest transform, a few that are shorter than the kernel: its taps are
 * cut into segments then. */
void cf_space_bases_of(const cf_layer *layer, const cf_device *device, bool shift, cf_space_bases bases[3]);

/* Tiles that outputs, or with `own` positions of x, need with the grid's basis and segments; 0 if it is too small. */
int64_t cf_space_tiles(const cf_axis *axis, const cf_axis_grid *grid, bool own);

/* Segments that leave the least to transform with a basis that is too short for the kernel; 1 for all others. */
int64_t cf_space_segments(const cf_axis *axis, bool shift, int64_t basis);

/* Tiles of the outputs, or with `own` of x, for the strategy's bases. */
void cf_space_set_tiles(const cf_layer *layer, bool own, cf_strategy *strategy);

/* The family that is searched so. cf_strategy_resolve() may give its strategies to other families. NULL: there is none. */
const cf_family *cf_space_family(cf_search_space space);

/* The strategy of these bases, with the segments that they need and tiles of the outputs. */
cf_strategy cf_space_strategy(const cf_layer *layer, const int64_t basis[3], bool shift, int keep);

/* Whether some axis can have its dilation as shifts. */
bool cf_space_has_dilation(const cf_layer *layer);

/* Bytes of the smallest chunk of a pass's spectra: w of one group, one row of x and y. HUGE_VAL: beyond any memory. */
double cf_space_smallest_bytes(const cf_layer *layer, int pass, const cf_strategy *strategy);

/* Set rows and groups at a time: as much as stays near the caches, but enough for every thread and for efficient products. */
void cf_space_choose_chunks(const cf_layer *layer, const cf_device *device, int pass, cf_strategy *strategy);

#endif
