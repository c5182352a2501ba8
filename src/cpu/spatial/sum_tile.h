/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of convolutions by their definition: a tile of sums stays in registers.
 *
 *     c[p][v] += sum over outer, inner, i of a[outer][inner][i][v] * b[outer][inner][i][p]
 *
 * p is a lane, v a number of a vector.
 *
 * a is read in order: one or two vectors for each i. b has one number for each lane, and with CF_TILE_OWN one vector.
 * All offsets and steps count numbers.
 */
#ifndef CF_CPU_SPATIAL_SUM_TILE_H
#define CF_CPU_SPATIAL_SUM_TILE_H

#include <stdint.h>

enum {
    CF_TILE_CHANNELS = 16, /* channels that stand side by side in a packed signal */
    CF_TILE_MAX_LANES = 16
};

typedef struct cf_sum_tile {
    const void *a, *b;
    void *c;
    int64_t outer, a_step, b_step;
    int64_t inner;
    const int64_t *a_offset, *b_offset; /* [inner] */
    int64_t run, run_step;              /* of b; a advances by its vectors */
    int64_t c_step;                     /* from lane to lane */
} cf_sum_tile;

/* Where the lanes of b are. */
typedef enum cf_sum_tile_kind {
    CF_TILE_NEAR,  /* neighbouring numbers */
    CF_TILE_APART, /* CF_TILE_CHANNELS numbers apart */
    CF_TILE_OWN,   /* a vector each, side by side */
    CF_TILE_KINDS
} cf_sum_tile_kind;

typedef struct cf_sum_tiles {
    int width;    /* numbers of a vector */
    int lanes[2]; /* of a tile, at most; with one and two vectors */
    /* [kind][vectors of a - 1][lanes - 1] */
    void (*sum[CF_TILE_KINDS][2][CF_TILE_MAX_LANES])(const cf_sum_tile *tile);
} cf_sum_tiles;

#endif
