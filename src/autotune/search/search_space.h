/* SPDX-License-Identifier: Apache-2.0 */
/* The space of staged strategies: a few bases per axis with the tiles they need, dilation as step or shifts, chunks. */
#ifndef CF_AUTOTUNE_SPACE_H
#define CF_AUTOTUNE_SPACE_H

#include "conv/plan/family.h"

enum {
    CF_SPACE_MAX_BASES = 16,
    CF_SPACE_MAX_POWERS = 9 /* powers of two that tensor cores transform, beyond CF_SPACE_MAX_BASES */
};

typedef struct cf_space_bases {
    int count;
    int64_t basis[CF_SPACE_MAX_BASES + CF_SPACE_MAX_POWERS];
} cf_space_bases;

/*
 * List bases of an axis, in this order:
 *
 *     at most max_count bases in ascending order, each with a smaller total length (tiles x basis) than every smaller
 *     basis; the last one needs one tile
 *     a few bases, largest first, with as few tiles for positions of x as a basis of the first group has for outputs
 *     the next multiples of row_unit, whose transforms may be cheaper
 */
void cf_space_collect(const cf_axis *axis, bool shift, int64_t row_unit, int max_count, cf_space_bases *bases);

/* The bases of all axes of a layer; more axes have fewer bases each. Powers of two are added where they have kernels
 * of their own. If the layer's kernel spans more than half of the device's longest transform, bases shorter than the
 * kernel are added, and its taps are cut into segments. */
void cf_space_bases_of(const cf_layer *layer, const cf_device *device, bool shift, cf_space_bases bases[3]);

/* The tiles that outputs (with `own`: positions of x) need with the grid's basis and segments. 0: the basis is too
 * small. */
int64_t cf_space_tiles(const cf_axis *axis, const cf_axis_grid *grid, bool own);

/* The number of segments with the least total transform size. 1 if the basis holds the whole kernel. */
int64_t cf_space_segments(const cf_axis *axis, bool shift, int64_t basis);

/* Set the tiles of outputs (with `own`: of positions of x) for the strategy's bases. */
void cf_space_set_tiles(const cf_layer *layer, bool own, cf_strategy *strategy);

/* The family with this search space, or NULL. cf_strategy_resolve() may give its strategies to other families. */
const cf_family *cf_space_family(cf_search_space space);

/* The strategy of these bases, with the segments that they need and the tiles of outputs. */
cf_strategy cf_space_strategy(const cf_layer *layer, const int64_t basis[3], bool shift, int keep);

/* Whether some axis can have its dilation as shifts. */
bool cf_space_has_dilation(const cf_layer *layer);

/* Bytes of the smallest chunk of a pass: spectra of w of one group, one row of x and of y. HUGE_VAL: too many to
 * count. */
double cf_space_smallest_bytes(const cf_layer *layer, int pass, const cf_strategy *strategy);

/* Set the rows and groups of a chunk: small enough for the caches, enough for every thread and efficient products. */
void cf_space_choose_chunks(const cf_layer *layer, const cf_device *device, int pass, cf_strategy *strategy);

#endif
