/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hot loops, compiled once per instruction set and once each for float and double, and what they work on.
 *
 * A unit is up to CF_MAX_LANES planes (one row and column of a spectrum each) that are transformed together, one per
 * lane: lanes are the fastest index of every array inside, so all loops over lanes vectorise and lanes share no
 * arithmetic.
 *
 *     tensor --load--> line [position][lane] --axis 2--> work [i0][i1][re, im][k2][lane] --axes 1, 0--> spectrum block
 *
 * and back for the inverse. A complex line is [position][re, im][lane]. It holds all bins.
 */
#ifndef CF_CPU_KERNELS_H
#define CF_CPU_KERNELS_H

#include "core/device_ops.h"
#include "cpu/fft/line_plan.h"
#include "cpu/spatial/sum_tile.h"

enum {
    CF_MAX_LANES = 16,
    CF_PRODUCT_CHANNELS = 8
};

struct cf_transform {
    cf_device *device;
    cf_transform_desc desc;
    conv_fft_dtype dtype; /* of the computation */
    int parts;            /* numbers of one element of the tensor: 1, or 2 if these are complex */
    bool halved;          /* real lines of even length are transformed as complex lines of half the length */
    cf_line_plan line[3]; /* complex lengths; axis 2: half the basis if halved */
    void *twiddles[3];
    void *roots;      /* exp(-2 pi i k / basis[2]), k <= basis[2] / 4; halved lines */
    int64_t row_bins; /* basis[2] / 2 + 1; basis[2] if complex */
    int lanes;        /* of a full unit */
    int64_t batch[2]; /* lines of axis 0 and 1 that are transformed together */
    size_t work_bytes, line_bytes, border_bytes, thread_bytes;
};

/* The elements of one axis of one window: tensor index of element e. */
typedef struct cf_range {
    int64_t low, high, start;    /* start + e * step for low <= e < high */
    const int64_t *border;       /* border[e] for the others, -1: none. NULL: no others */
    int64_t used_low, used_high; /* every e with an index lies here */
} cf_range;

/* Lanes whose planes have the same row within the sample and the same phase. So their windows have the same ranges. */
typedef struct cf_run {
    int lane, lanes;
    int64_t row, phase;
    bool adjacent; /* neighbouring lanes are neighbours in the tensor */
    cf_range range[3];
} cf_run;

/* Lanes that are neighbours in every bin of the spectrum. */
typedef struct cf_segment {
    int lane, lanes;
    int64_t offset; /* of the first lane in bin 0, complex elements */
} cf_segment;

typedef struct cf_unit {
    int lanes, runs, segments;
    cf_run run[CF_MAX_LANES];
    cf_segment segment[CF_MAX_LANES];
    int64_t offset[CF_MAX_LANES];      /* of each lane's element with indices 0, in numbers of the tensor */
    int64_t channel[CF_MAX_LANES];     /* over all groups */
    int64_t used_low[3], used_high[3]; /* over all runs */
    void *spectrum;
    int64_t bin_stride[3];
    bool stream;      /* forward: the spectrum is too large for the caches */
    void *tensor;     /* forward: only read */
    const void *bias; /* inverse */
    bool accumulate;  /* inverse */
    void *work, *line[3];
    int64_t *borders;
} cf_unit;

/* A two-dimensional piece of a tensor: element e of lane l is at index offset[l] + e * step. In the line, it is at
 * place[e] + l, or at e * stride + l without places. No two elements have the same place. */
typedef struct cf_piece {
    conv_fft_dtype dtype;
    void *data; /* a load only reads it */
    const int64_t *offset;
    int64_t step, elements;
    int lanes;
    bool adjacent; /* offset[l + 1] = offset[l] + 1 */
    const int64_t *place;
} cf_piece;

typedef struct cf_real_kernels {
    void (*forward)(const cf_transform *transform, const cf_unit *unit);
    void (*inverse)(const cf_transform *transform, const cf_unit *unit);
    /* line <- piece, and piece <- line (+ old contents). */
    void (*load)(void *line, int64_t stride, const cf_piece *piece);
    void (*store)(const void *line, int64_t stride, const cf_piece *piece, bool accumulate);
    /* One bin of a product. */
    void (*product)(const cf_cgemm_desc *desc, void *x, void *w, void *y, int64_t rows, bool accumulate);
    /* The same for few rows and numbers of channels that are multiples of CF_PRODUCT_CHANNELS. NULL: there is none. */
    void (*few_rows)(const cf_cgemm_desc *desc, void *x, void *w, void *y, int64_t rows, bool accumulate);
    const cf_sum_tiles *tiles; /* convolutions by their definition */
} cf_real_kernels;

typedef struct cf_kernels {
    const char *name;
    cf_real_kernels f32, f64;
} cf_kernels;

extern const cf_kernels cf_kernels_generic;
#ifdef CF_HAVE_AVX2
extern const cf_kernels cf_kernels_avx2;
#endif
#ifdef CF_HAVE_AVX512
extern const cf_kernels cf_kernels_avx512;
#endif

static inline const cf_real_kernels *cf_real(const cf_kernels *kernels, conv_fft_dtype dtype) {
    return dtype == CONV_FFT_FP64 ? &kernels->f64 : &kernels->f32;
}

static inline int64_t cf_range_index(const cf_range *range, int64_t step, int64_t e) {
    if (e >= range->low && e < range->high)
        return range->start + e * step;
    return range->border ? range->border[e] : -1;
}

#endif
