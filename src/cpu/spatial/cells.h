/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of w: cells, which convolution.h explains, and the sums of a pair of blocks. */
#ifndef CF_CPU_SPATIAL_CELLS_H
#define CF_CPU_SPATIAL_CELLS_H

#include "cpu/spatial/convolution.h"

/* A part of the positions of one sample. */
typedef struct cf_cell {
    int64_t sample; /* channelwise: item of lanes */
    int64_t at[3], count[3];
} cf_cell;

/* Numbers of the sums of a block of gy's channels and a packed block of x's. */
static inline int64_t cf_block_sums(const cf_convolution *c) { return c->taps * cf_tap_numbers(c); }

/* Numbers of a packed block of gy's channels. */
static inline int64_t cf_block_of_gy(const cf_convolution *c) { return cf_cell_positions(c) * c->block; }

/* Cell `number` of all samples. */
cf_cell cf_cell_of(const cf_convolution *c, int64_t number);
/* sums[tap][side][block] += products of a cell, by runs of taps [from, to). channels: of x that are used. */
void cf_add_cell(const cf_convolution *c, const cf_cell *one, const char *x, const char *gy, int64_t channels,
                 int64_t from, int64_t to, char *sums);
void cf_add_to_totals(const cf_convolution *c, const void *sums, double *totals, int64_t count);
/* line <- totals, in the compute type. */
void cf_narrow(const cf_convolution *c, const double *totals, int64_t count, void *line);
/* One tap of some channels of gw; `first`: the element of their first tap. */
cf_piece cf_tap_piece(const cf_convolution *c, void *gw, int64_t tap, int64_t first, const cf_lanes *lanes);
/* A cell's block of channels of x, and of gy. */
void cf_pack_cell_of_x(const cf_convolution *c, const void *x, const cf_cell *one, int64_t group, int64_t side,
                       char *to);
void cf_pack_cell_of_gy(const cf_convolution *c, const void *gy, const cf_cell *one, int64_t group, int64_t block,
                        char *to);
/* gw <- the sums of one pair of blocks. */
void cf_store_pair(const cf_convolution *c, int64_t pair, const char *sums, void *gw, bool accumulate);

/* Positions as vectors. Numbers of packed gy, of those that tiles read after the packed signal, and of the sums:
 * [channel of gy][channel of x][tap][vector]. */
int64_t cf_sliding_gy(const cf_convolution *c);
int64_t cf_sliding_slack(const cf_convolution *c);
int64_t cf_sliding_sums(const cf_convolution *c);
void cf_pack_sliding_gy(const cf_convolution *c, const void *gy, const cf_cell *one, int64_t group, char *to);
void cf_add_sliding_cell(const cf_convolution *c, const cf_cell *one, const char *x, const char *gy, char *sums);
void cf_add_up_sliding(const cf_convolution *c, const void *sums, double *totals);

#endif
