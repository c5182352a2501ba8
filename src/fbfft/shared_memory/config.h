/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of shared_memory/kernel.cuh for one transform on one GPU: any basis, window and layout. */
#ifndef CF_FBFFT_TILE_H
#define CF_FBFFT_TILE_H

#include "cuda/driver/properties.h"
#include "fbfft/common/desc.h"

typedef enum cf_tile_kind {
    CF_TILE_PAIRS,
    CF_TILE_HALVES,
    CF_TILE_SINGLE,
    CF_TILE_COMPLEX
} cf_tile_kind;

/* Which index of a spectrum neighbouring threads differ in. */
typedef enum cf_tile_order {
    CF_TILE_BY_PLANE,
    CF_TILE_BY_COLUMN,
    CF_TILE_BY_ROW
} cf_tile_order;

/* What one kernel computes, and where it leaves it: a transform, or a part of it. */
typedef struct cf_tile_problem {
    cf_fft_problem fft; /* of its layout, the kernel takes the axis strides */
    bool sliced[3];     /* the elements of this axis are rows of their own, fastest among rows; its basis is 1 */
    int64_t rows;       /* for each row of the transform */
    /* Bin 0 of (row, column), frequency-major: row / S * unit + row % S * row_stride + column, where the transform has S / split rows.
     * Else row * row_stride + column / column_split * column_split_stride + column % column_split * column_stride. */
    int64_t split, row_stride, column_split, column_split_stride, column_stride;
    int64_t unit; /* frequency-major: what axis strides count, for each row of the transform; 0: the caller knows */
    bool scaled;  /* rows of the spectrum have scales, which this kernel applies */
    int abreast; /* products: a block's planes are a multiple of so many, which are moved at once; 0: no matter how many */
} cf_tile_problem;

typedef struct cf_tile_config {
    cf_tile_problem problem;
    cf_tile_kind kind;
    cf_tile_order order;
    int radix[3][3];             /* of the steps along each axis; 1: none */
    int planes, threads, blocks; /* per block; blocks of a multiprocessor that registers must allow */
    bool mirrors;                /* one plane goes in, one out: MirrorTask of conv/fused/bins.cuh */
    bool sums;                   /* threads keep what they add up of their tasks of the last step */
    bool direct;                 /* the spectrum goes through registers alone */
    bool rides;                  /* PAIRS: column N2 / 2 on column 0 */
    bool staged;                 /* rows wait as they come */
    bool finds_scales;           /* of scaled spectra, from what it loads; else another kernel does */
    bool planes_touch;           /* elements of one plane and the next are neighbours */
    int early; /* staged: numbers before the first point with which rows wait, so that pieces of `wide` begin at multiples of their size */
    int wide;  /* so many numbers at a time, at multiples of their size, of a row or of planes that touch */
    int slabs; /* of bins, each of which has blocks of its own: dft_matrix.h; 0: blocks have all */
    int64_t pitch, plane; /* distances of lines and planes in shared memory, complex numbers */
    int64_t shared;       /* bytes of a block */
} cf_tile_config;

/* Arguments of one launch: TileCall of geometry.cuh. */
typedef struct cf_tile_call {
    const void *in;
    void *out;
    const void *bias;
    int64_t planes, columns, row_first, row_step, row_base;
    int64_t sample_stride, group_stride;
    int64_t row_split, row_split_stride, row_stride, column_split, column_split_stride, column_stride;
    int64_t bin_unit, spectrum_group_stride;
    double scale;
    int accumulate;
    int first_block; /* of a launch that several transforms share */
    int parts;
    float *scales;
    const float *largest;
    int64_t scale_rows, scale_group_stride, largest_group_stride;
} cf_tile_call;

/* A whole transform. */
cf_tile_problem cf_tile_problem_of(const cf_fft_problem *fft);

/* NOT_SUPPORTED: a plane is too large for a block's shared memory, or an extent for 31 bits. */
conv_fft_status cf_tile_configure(const cf_tile_problem *problem, const cf_gpu_facts *facts, cf_tile_config *config);

/* Kernels that transform planes of several signals, multiply and transform back without leaving shared memory, where they have so many
 * buffers of the block's planes: the configs agree in everything but the signal. The caller sets planes_touch, and wide where planes do. sums:
 * threads keep sums in registers. *cycles: what one plane of each signal is expected to cost a multiprocessor. NOT_SUPPORTED as above. */
conv_fft_status cf_tile_configure_product(const cf_tile_problem *problems, int count, int buffers, bool sums,
                                          const cf_gpu_facts *facts, cf_tile_config *configs, double *cycles);
int64_t cf_tile_product_shared(const cf_tile_config *config, int count, int buffers);

/* Where the lanes of the first warps of each step of a plane are in shared memory, in pitches, planes and numbers. */
enum {
    CF_TILE_WARPS = 6,
    CF_TILE_MOST_STEPS = 9,
    CF_TILE_MOST_ACCESSES = CF_TILE_MOST_STEPS * CF_TILE_WARPS * 2
};
typedef struct cf_tile_accesses {
    int together; /* lanes that one wavefront can serve */
    int steps, end[CF_TILE_MOST_STEPS];
    double points[CF_TILE_MOST_STEPS];
    int count, lanes[CF_TILE_MOST_ACCESSES];
    int pitches[CF_TILE_MOST_ACCESSES][32], planes[CF_TILE_MOST_ACCESSES][32], numbers[CF_TILE_MOST_ACCESSES][32];
} cf_tile_accesses;

/* From the radices and how many planes there are, whatever their distances. */
void cf_tile_find_accesses(const cf_tile_config *config, cf_tile_accesses *accesses);

/* Wavefronts of these accesses where 1 are needed, with lines and planes that are so many numbers apart: more if threads of a warp meet in
 * banks. */
double cf_tile_wavefronts(const cf_tile_accesses *accesses, int64_t pitch, int64_t plane);

/* Blocks for so many planes. */
int64_t cf_tile_blocks(const cf_tile_config *config, int64_t planes);

/* The same for a signal at any address. */
cf_tile_config cf_tile_unaligned(const cf_tile_config *config);

/* Two configs for blocks of one launch: as many threads, and so many blocks of a multiprocessor as both allow. */
void cf_tile_pair(cf_tile_config pair[2], const cf_gpu_facts *facts);

/* The kernel's text behind the device headers; its name is cf_fft. */
void cf_tile_emit(const cf_tile_config *config, cf_text *text);
/* Its constants alone, as a struct of this name. */
void cf_tile_emit_config(const cf_tile_config *config, const char *name, cf_text *text);

/* Whether every row of every plane, as much of it as lies in the signal, is whole pieces of so many numbers at multiples of their size,
 * if the pointers are. */
bool cf_tile_has_pieces(const cf_tile_config *config, int64_t wide);

/* Whether kernels can count the elements that windows touch: they are at most 2^30 along each axis. */
bool cf_tile_reaches(const cf_window *window);

/* Whether some coordinate of some plane may lie outside the signal. */
bool cf_tile_checked(const cf_axis_window *axis);

void cf_tile_describe(const cf_tile_config *config, cf_text *text);

/* Over so many rows of the transform, from its first on; unit: of the caller's spectrum. in and out are still to be filled in. */
cf_tile_call cf_tile_call_of(const cf_tile_problem *problem, int64_t rows, int64_t unit);

#endif
