/* SPDX-License-Identifier: Apache-2.0 */
/* y and gx: the products of a task, row by row of the result, as tiles of sums. */
#include "core/arith.h"
#include "cpu/spatial/signal.h"

bool cf_next_part(const cf_convolution *c, const cf_signal_task *t, int64_t *index, cf_signal_part *p) {
    const int64_t i = (*index)++, all = c->lattices[0] * c->lattices[1] * c->lattices[2];
    if (i >= all)
        return false;
    const int64_t which[3] = {i / c->lattices[2] / c->lattices[1], i / c->lattices[2] % c->lattices[1],
                              i % c->lattices[2]};
    p->a_offset = i == 0 ? c->a_offset : p->a_offset + p->taps;
    p->b_offset = i == 0 ? c->b_offset : p->b_offset + p->taps;
    p->taps = 1;
    for (int a = 0; a < 3; ++a) {
        p->axis[a] = &c->lattice[a][which[a]];
        p->count[a] = cf_max(0, cf_min(c->rows[a], p->axis[a]->count - t->at[a]));
        p->taps *= p->axis[a]->taps;
    }
    p->row = c->positions_are_vectors ? cf_sums_row(c, p->count[2]) : p->count[2] * c->block;
    p->plane = c->positions_are_vectors ? cf_sums_plane(c, p->count[1], p->count[2]) : p->count[1] * p->row;
    p->channel = c->positions_are_vectors ? p->count[0] * p->plane : 1;
    return true;
}

/* The same as add_row, for positions as vectors: weights and signal change places. */
static void add_positions(const cf_convolution *c, cf_sum_tile *tile, const char *row, char *sums, int64_t positions) {
    const int64_t width = c->kernels->tiles->width, all = cf_ceil_div(positions, width),
                  vectors = cf_ceil_div(all, cf_ceil_div(all, c->vectors)), real = (int64_t)c->real;
    for (int64_t v = 0; v < all; v += vectors) {
        tile->a = row + v * width * real;
        tile->c = sums + v * width * real;
        c->kernels->tiles->sum[CF_TILE_NEAR][cf_min(vectors, all - v) - 1][c->block - 1](tile);
    }
}

/* sums += the products of the taps [from, to) of the part with positions [x, end) of row (z, y). */
static void add_row(const cf_convolution *c, const cf_signal_part *p, cf_sum_tile *tile, const char *row, char *sums,
                    int64_t from, int64_t to, int64_t x, int64_t end) {
    const cf_sum_tile_kind kind = c->whole_rows    ? CF_TILE_ROW
                                  : c->channelwise ? CF_TILE_OWN
                                  : c->planar      ? CF_TILE_NEAR
                                                   : CF_TILE_APART;
    tile->inner = to - from;
    if (c->positions_are_vectors) {
        tile->a_offset = p->b_offset + from;
        tile->b_offset = p->a_offset + from;
        add_positions(c, tile, row, sums, end);
        return;
    }
    const int64_t lanes = c->whole_rows ? end : cf_sum_tile_lanes(c, end - x);
    tile->a_offset = p->a_offset + from;
    tile->b_offset = p->b_offset + from;
    for (; x < end; x += lanes) {
        tile->b = row + x * c->column * (int64_t)c->real;
        tile->c = sums + x * c->block * (int64_t)c->real;
        c->kernels->tiles->sum[kind][c->vectors - 1][cf_min(lanes, end - x) - 1](tile);
    }
}

/* A tile for whole rows: tap -origin has shift 0. */
static void describe_rows(const cf_convolution *c, const cf_lattice *l, cf_sum_tile *tile) {
    const bool data = cf_is_gradient_of_signal(c);
    const int64_t before = -c->desc.axis[2].origin, after = c->desc.axis[2].taps - 1 - before;
    tile->run = l->taps;
    tile->shift[0] = -(data ? after : before);
    tile->shift[1] = data ? before : after;
    tile->a_run_step = data ? -c->block : c->block;
}

/* The taps of an axis that read some of the signal at position j, not padding. */
static void taps_at(const cf_lattice *l, int64_t j, int64_t *from, int64_t *to) {
    *from = 0;
    *to = l->taps;
    while (*from < *to && (j < l->from[*from] || j >= l->to[*from]))
        ++*from;
    while (*to > *from && (j < l->from[*to - 1] || j >= l->to[*to - 1]))
        --*to;
}

void cf_add_products(const cf_convolution *c, const cf_signal_task *t, const cf_signal_part *p, const char *signal,
                     const char *weights, int64_t outer, int64_t run, char *sums) {
    const cf_lattice *const axis[2] = {p->axis[0], p->axis[1]}, *const last_axis = p->axis[2];
    const int64_t width = c->axis[2].phases * c->extent[2] * c->column * (int64_t)c->real,
                  rows = c->rows_joined ? cf_min(1, p->count[1]) : p->count[1],
                  columns = c->rows_joined ? (p->count[1] - 1) * p->row + p->count[2] : p->count[2],
                  max = cf_max(1, CF_MAX_PRODUCTS / (outer * run)),
                  taps = c->clipped      ? 1
                         : c->whole_rows ? cf_max(1, max / last_axis->taps) * last_axis->taps
                                         : max;
    cf_sum_tile tile = {.outer = outer, .run = run};
    if (c->positions_are_vectors) {
        tile.b = weights;
        tile.b_step = c->taps * cf_tap_numbers(c);
        tile.a_step = cf_packed_block(c);
        tile.a_run_step = c->channel;
        tile.b_run_step = c->block;
        tile.c_step = p->channel;
    } else {
        tile.a = weights;
        tile.a_step = c->taps * cf_tap_numbers(c);
        tile.b_step = cf_packed_block(c);
        tile.a_run_step = c->block;
        tile.b_run_step = c->channel;
        tile.c_step = c->block;
    }
    if (c->whole_rows)
        describe_rows(c, last_axis, &tile);
    for (int64_t z = 0; z < p->count[0]; ++z)
        for (int64_t y = 0; y < rows; ++y) {
            const char *const row = signal + (z * axis[0]->pace * c->extent[1] + y * axis[1]->pace) * width;
            char *const to = sums + (z * p->plane + y * p->row) * (int64_t)c->real;
            int64_t tz, end_z, ty, end_y;
            taps_at(axis[0], t->at[0] + z, &tz, &end_z);
            taps_at(axis[1], t->at[1] + y, &ty, &end_y);
            if (c->rows_joined) { /* for all rows */
                ty = 0;
                end_y = axis[1]->taps;
            }
            /* All planes of taps at once, if no row of taps is left out between them. */
            const int64_t planes = ty == 0 && end_y == axis[1]->taps ? end_z - tz : 1;
            for (; tz < end_z; tz += planes) {
                const int64_t first = (tz * axis[1]->taps + ty) * last_axis->taps,
                              last = ((tz + planes - 1) * axis[1]->taps + end_y) * last_axis->taps;
                for (int64_t i = first; i < last; i += taps) {
                    const int64_t tap = i % last_axis->taps,
                                  from = c->clipped ? cf_max(0, last_axis->from[tap] - t->at[2]) : 0,
                                  end = c->clipped ? cf_min(columns, last_axis->to[tap] - t->at[2]) : columns;
                    add_row(c, p, &tile, row, to, i, cf_min(i + taps, last), from, end);
                }
            }
        }
}
