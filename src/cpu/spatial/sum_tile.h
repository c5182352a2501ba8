/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of convolutions by their definition: a tile of sums stays in registers.
 *
 *     c[p][v] += sum over outer, inner, i of a[outer][inner][i][v] * b[outer][inner][i][p]
 *
 * p is a lane, v a number of a vector.
 *
 * a has up to CF_TILE_MAX_VECTORS vectors for each i, side by side. b has one number for each lane, and with
 * CF_TILE_OWN one vector. All offsets and steps count numbers.
 */
#ifndef CF_CPU_SPATIAL_SUM_TILE_H
#define CF_CPU_SPATIAL_SUM_TILE_H

#include <stdint.h>

enum {
    CF_TILE_CHANNELS = 16, /* channels that stand side by side in a packed signal */
    CF_TILE_MAX_LANES = 16,
    CF_TILE_MAX_ROW = 14, /* lanes of CF_TILE_ROW */
    CF_TILE_MAX_VECTORS = 4
};

typedef struct cf_sum_tile {
    const void *a, *b;
    void *c;
    int64_t outer, a_step, b_step;
    int64_t inner;
    const int64_t *a_offset, *b_offset; /* [inner] */
    int64_t run, a_run_step, b_run_step;
    int64_t c_step;                       /* from lane to lane */
    int64_t a_vector_step, c_vector_step; /* CF_TILE_SLIDING: from vector to vector */
    int64_t shift[2];                     /* CF_TILE_ROW */
} cf_sum_tile;

/* Where the lanes of b are. */
typedef enum cf_sum_tile_kind {
    CF_TILE_NEAR,  /* neighbouring numbers */
    CF_TILE_APART, /* CF_TILE_CHANNELS numbers apart */
    CF_TILE_OWN,   /* a vector each, side by side */
    /* A vector each, and each begins one number after the one before. The vectors of a stand apart, and so do their
     * sums. The sums of lanes are not added up. */
    CF_TILE_SLIDING,
    /* As CF_TILE_OWN, for all lanes of a row. A lane and a tap read the vector of lane + shift of the row, if it has
     * that one. `inner` taps are in rows of `run`. The shifts of a row are shift[0] to shift[1]. Its offsets are
     * those of the tap with shift 0, and of the row of b. a_run_step leads to the next shift. */
    CF_TILE_ROW,
    CF_TILE_KINDS
} cf_sum_tile_kind;

typedef struct cf_sum_tiles {
    int width;                      /* numbers of a vector */
    int lanes[CF_TILE_MAX_VECTORS]; /* of a tile, at most; with one vector and more */
    /* [kind][vectors of a - 1][lanes - 1]. CF_TILE_NEAR and CF_TILE_SLIDING have all vectors, CF_TILE_APART two,
     * CF_TILE_OWN and CF_TILE_ROW one. */
    void (*sum[CF_TILE_KINDS][CF_TILE_MAX_VECTORS][CF_TILE_MAX_LANES])(const cf_sum_tile *tile);
} cf_sum_tiles;

#endif
