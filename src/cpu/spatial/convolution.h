/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions by their definition on a CPU, as blocked matrix products without a matrix of windows.
 *
 * A packed signal has channels side by side:     [block of channels][axis 0][axis 1][axis 2][side]
 * Packed weights stand in the order of reading:  [group][block of results][block of channels][tap][side][block]
 *
 * A tile (sum_tile.h) has up to 14 positions of one row as lanes, and channels of the result as vectors. Strides are
 * removed by packing: columns of one phase of the stride stand side by side, so that neighbouring positions read
 * neighbouring columns. Dilations and padding need nothing else. The gradient of x is the same, read from gy: the
 * positions of gx with one remainder by the stride are a LATTICE, which a part of the taps reaches. For the gradient of
 * w, lanes are channels or taps, and the sum is over positions.
 *
 * WEIGHTS VISITED ONCE, for y and gx of few samples and many channels: the signals of all samples are packed first. A
 * thread then packs the weights of a block of results, as many as its caches hold, and adds their products for all
 * samples. Packed weights never leave the caches.
 *
 * CHANNELWISE, for depthwise layers: a vector has one channel of several groups, or of several samples.
 *
 * WHOLE ROWS, for y and gx of depthwise layers whose rows are short, and as long as those of the signal: a tile has all
 * positions of a row as lanes, and a whole row of the signal. Products with padding are left out, so none is packed.
 *
 * POSITIONS AS VECTORS, for y and gx of few channels: lanes are channels of the result, vectors are neighbouring
 * positions. The packed signal is planar: [channel][axis 0][axis 1][axis 2]. So are the sums of a task. Where position
 * (y + 1, x) reads one row after (y, x), the rows of a plane are JOINED: a vector may begin in one row and end in the
 * next. The sums then have as many columns as the packed signal, of which the last have no position.
 *
 * For the gradient of w of few channels vectors are positions, too: of gy, and of x from each tap of a row on. The
 * numbers of a vector of sums are added at the end. Packed gy is zero where there is no position. So an infinity or a
 * NaN of x may reach all taps of its group.
 */
#ifndef CF_CPU_SPATIAL_CONVOLUTION_H
#define CF_CPU_SPATIAL_CONVOLUTION_H

#include "core/arith.h"
#include "cpu/device.h"
#include "cpu/fft/kernels.h"

#include <string.h>

/* The packed signal along an axis. Coordinate c stands at position c % phases * width + c / phases. */
typedef struct cf_packed_axis {
    int64_t count; /* coordinates */
    int64_t phases, width;
    int64_t *index;       /* of the tensor, by position; CF_PADDING, or CF_NOT_READ */
    int64_t (*inside)[2]; /* positions of each phase that have neighbouring indices, from and to */
    /* Several phases: coordinates, from and to, that are neighbours in the tensor from this index on; none if a padding
     * mode repeats the tensor. */
    int64_t straight[2], straight_index;
    int64_t span; /* positions of a phase that one position of the result reads from */
} cf_packed_axis;

enum {
    CF_PADDING = -1,
    CF_NOT_READ = -2,
    CF_PACKED_COLUMNS = 32, /* columns, or taps, that are packed together */
    CF_MAX_PRODUCTS =
        512, /* y, gx: that a tile adds one after the other; the errors of long sums grow with their length */
    CF_MIN_CLIPPED = 32 /* channels whose sum is worth a load and a store of each number of a tile */
};

/* Result positions start + j * step, j < count. Position j and tap[i] read position j * pace + offset[i]. That is not
 * padding for from[i] <= j < to[i]. */
typedef struct cf_lattice {
    int64_t start, step, count, pace;
    int taps;
    int64_t *tap, *offset, *from, *to;
} cf_lattice;

/* Gradient of w: taps of one row of the kernel that read neighbouring positions. */
typedef struct cf_tap_run {
    int64_t first, count, offset;
} cf_tap_run;

struct cf_convolution {
    cf_device *device;
    const cf_real_kernels *kernels;
    cf_convolution_desc desc;
    size_t real; /* bytes of a number */
    bool channelwise, samples_are_lanes, positions_are_vectors, rows_joined;
    bool whole_rows;         /* channelwise y, gx: a tile has all of a row and of the signal's row, see axis.c */
    int64_t summed, own;     /* channels of a group: of the packed signal, of the vectors of the weights */
    int64_t vectors, block;  /* of a tile, and their numbers */
    int64_t side;            /* channels of a packed block; channelwise: of a vector */
    bool planar;             /* the channels of a packed block stand one after the other */
    int64_t column, channel; /* numbers from one packed column, and from one packed channel, to the next */
    int64_t blocks, sides;   /* ceil(own / block), ceil(summed / side) */
    int64_t taps;
    cf_packed_axis axis[3];
    cf_lattice *lattice[3];
    int64_t lattices[3];
    /* Tiles: offsets of the factors. y, gx: of the taps of each lattice; gw: of the rows of gy. */
    int64_t *a_offset, *b_offset;
    int64_t *tap_place; /* where [channel][tap] stands in a packed block of weights, if taps are neighbours in w */
    int64_t plane_elements;
    int64_t *plane_place; /* where each element of a small plane or volume of the signal is packed; NULL: row by row */
    cf_tap_run *run;      /* gw */
    int64_t runs;
    int64_t rows[3];   /* y, gx: positions of a task along each axis; gw: of gy that are packed at a time */
    int64_t extent[3]; /* packed positions of these; axis 2: of each phase */
    int64_t parts; /* y, gx: tasks that share the blocks of results. gw, channelwise or sliced: slices of the cells */
    bool clipped;  /* y, gx: products with padding in a row are left out, tap by tap */
    bool weights_once; /* y, gx: see above */
    bool sliced;       /* gw of few channels of x: slices of the cells have totals of their own */
    bool sums_stay;    /* gw: each thread stores the sums of a pair of blocks before it computes the next */
    int64_t chunk; /* y, gx: packed blocks of channels that one tile sums over. gw: cells that are packed at a time */
    size_t weights_bytes, signal_bytes, result_bytes; /* packed weights; packed signal and results of a task */
};

/* Element offsets of the channels, groups or samples that stand side by side. */
typedef struct cf_lanes {
    int count;
    bool adjacent;
    int64_t offset[CF_MAX_LANES];
} cf_lanes;

static inline cf_lanes cf_lanes_make(int64_t first, int64_t stride, int64_t count) {
    cf_lanes lanes = {.count = (int)(count < CF_MAX_LANES ? count : CF_MAX_LANES),
                      .adjacent = stride == 1 && count > 1};
    for (int l = 0; l < lanes.count; ++l)
        lanes.offset[l] = first + l * stride;
    return lanes;
}

/* Short rows: memcpy takes longer to start. */
static inline void cf_copy_row(char *to, const char *from, int64_t bytes) {
    enum {
        VECTOR = 16,
        LONG = 1024
    };
    if (bytes >= LONG) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    if (bytes < VECTOR) {
        for (int64_t i = 0; i < bytes; i += (int64_t)sizeof(float))
            memcpy(to + i, from + i, sizeof(float));
        return;
    }
    for (int64_t i = 0; i + VECTOR <= bytes; i += VECTOR)
        memcpy(to + i, from + i, VECTOR);
    memcpy(to + bytes - VECTOR, from + bytes - VECTOR, VECTOR);
}

/* axis.c. Memory of zeros. */
conv_fft_status cf_spatial_numbers(int64_t count, int64_t **memory);
/* The lattices of an axis, and where its packed positions are in the tensor. */
conv_fft_status cf_make_axis(cf_convolution *c, int axis);
/* Pairs of an output and a tap of an axis that read the signal, not padding with zeros. */
double cf_signal_products(const cf_convolution_axis *axis);
/* Whether rows are short, as long as those of the signal, and read all of these: for tiles of whole rows. */
bool cf_has_whole_rows(const cf_convolution *c);
/* The longest stretch of each phase with neighbouring indices. */
conv_fft_status cf_find_inside(cf_packed_axis *packed);
/* create.c. What stands in vectors and in packed blocks. The rest is zero. */
cf_convolution cf_convolution_blocks(const cf_device *device, const cf_convolution_desc *desc);
/* The share of the lanes of vectors that `count` numbers use. */
double cf_lanes_used(int64_t count, int64_t width);
/* The same of positions as vectors: their numbers beyond the ends of rows, or of joined rows, are not used. */
double cf_positions_used(const cf_convolution *c);
/* predict.c: seconds of y or gx with one thread. */
double cf_signal_seconds(const cf_convolution *c);
static inline bool cf_is_gradient_of_signal(const cf_convolution *c) { return c->desc.kind == CF_CGEMM_BACKWARD_DATA; }
/* Numbers from one tap to the next in packed weights, and in the sums of their gradient. */
static inline int64_t cf_tap_numbers(const cf_convolution *c) { return (c->channelwise ? 1 : c->side) * c->block; }
/* Packed positions of a task, and the numbers of a packed block of channels. */
static inline int64_t cf_packed_positions(const cf_convolution *c) {
    return c->extent[0] * c->extent[1] * c->axis[2].phases * c->extent[2];
}
static inline int64_t cf_packed_block(const cf_convolution *c) { return cf_packed_positions(c) * c->side; }
/* Positions as vectors: numbers of the sums from one row to the next, and from one plane to the next. Vectors are
 * computed whole. */
static inline int64_t cf_sums_row(const cf_convolution *c, int64_t columns) {
    /* A lattice that no tap reaches may have more columns than the packed signal. */
    return c->rows_joined ? cf_max(c->extent[2], columns) : cf_round_up(columns, c->kernels->tiles->width);
}
static inline int64_t cf_sums_plane(const cf_convolution *c, int64_t rows, int64_t columns) {
    return cf_round_up(rows * cf_sums_row(c, columns), c->kernels->tiles->width);
}
/* The first packed position that position `at` of the result reads. */
static inline void cf_packed_place(const cf_convolution *c, const int64_t at[3], int64_t place[3]) {
    for (int a = 0; a < 3; ++a)
        place[a] = at[a] * c->lattice[a][0].pace;
}

/* A CELL is a part of the positions of y of one sample, rows[] of them along each axis, and fewer at the end. */
static inline int64_t cf_cells_along(const cf_convolution *c, int axis) {
    return cf_ceil_div(c->desc.axis[axis].output, c->rows[axis]);
}
static inline int64_t cf_cells_of_sample(const cf_convolution *c) {
    return cf_cells_along(c, 0) * cf_cells_along(c, 1) * cf_cells_along(c, 2);
}
static inline int64_t cf_cell_positions(const cf_convolution *c) { return c->rows[0] * c->rows[1] * c->rows[2]; }
/* Blocks of lanes of a channelwise convolution, and how many of each share their weights. */
int64_t cf_channelwise_blocks(const cf_convolution *c);
int64_t cf_channelwise_items(const cf_convolution *c);
/* The lanes of a tensor: channel `channel` of block `block`, item `item`. */
cf_lanes cf_channelwise_lanes(const cf_convolution *c, const cf_tensor *tensor, int64_t block, int64_t item,
                              int64_t channel);

/* Whether the taps of a channel are neighbours in w. */
bool cf_has_dense_taps(const cf_convolution *c);

/* pack.c. to <- block `side` of the signal of a sample and group, or the signal of the lanes of a channelwise
 * convolution, from packed position `at` on. */
void cf_pack_signal(const cf_convolution *c, const cf_tensor *tensor, const void *data, int64_t sample, int64_t group,
                    int64_t side, const int64_t at[3], void *to);
void cf_pack_lanes(const cf_convolution *c, const cf_tensor *tensor, const void *data, const cf_lanes *lanes,
                   const int64_t at[3], void *to);
/* to[position of a cell][stride] <- gy, `count` positions along each axis from `at` on. */
void cf_pack_gradient(const cf_convolution *c, const void *data, const cf_lanes *lanes, const int64_t at[3],
                      const int64_t count[3], int64_t stride, void *to);
/* The weights of one block of channels, by the taps of the tensor; see above. */
void cf_pack_weights(const cf_convolution *c, const void *w, int64_t group, int64_t block, int64_t side, void *to);
void cf_pack_channelwise_weights(const cf_convolution *c, const void *w, int64_t block, int64_t channel, void *to);

/* The lanes of each of the tiles that cover `count` lanes. */
static inline int64_t cf_sum_tile_lanes(const cf_convolution *c, int64_t count) {
    const int64_t max = c->kernels->tiles->lanes[c->vectors - 1], tiles = (count + max - 1) / max;
    return tiles ? (count + tiles - 1) / tiles : 1;
}

/* y, gx: parts of the results that have a packed signal of their own. */
int64_t cf_signal_tasks(const cf_convolution *c);
size_t cf_convolve_signal_scratch(const cf_convolution *c);
void cf_convolve_signal(const cf_convolution *c, const void *signal, const void *w, const void *bias, void *result,
                        bool accumulate, void *scratch, int threads);
void cf_convolve_weights(const cf_convolution *c, const void *x, const void *gy, void *gw, bool accumulate,
                         void *scratch, int threads);
size_t cf_convolve_weights_scratch(const cf_convolution *c);

#endif
