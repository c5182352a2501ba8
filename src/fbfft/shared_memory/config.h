/* SPDX-License-Identifier: Apache-2.0 */
/* The config of shared_memory/kernel.cuh for one transform on one GPU. It takes any basis, window and layout. */
#ifndef CF_FBFFT_SHARED_MEMORY_H
#define CF_FBFFT_SHARED_MEMORY_H

#include "cuda/driver/properties.h"
#include "fbfft/common/desc.h"
#include "fbfft/shared_memory/call.h"

typedef enum cf_shared_fft_kind {
    CF_SHARED_FFT_TWO_ROWS_AS_COMPLEX,
    CF_SHARED_FFT_PACKED_REAL,
    CF_SHARED_FFT_UNPACKED_REAL,
    CF_SHARED_FFT_COMPLEX
} cf_shared_fft_kind;

/* The index of a spectrum in which neighbouring threads differ. */
typedef enum cf_shared_fft_order {
    CF_SHARED_FFT_BY_PLANE,
    CF_SHARED_FFT_BY_COLUMN,
    CF_SHARED_FFT_BY_ROW
} cf_shared_fft_order;

/* A transform, or the part of it that one kernel computes, and where the kernel stores it. */
typedef struct cf_shared_fft_problem {
    cf_fft_problem fft; /* the kernel uses the axis strides of its layout */
    bool sliced[3];     /* each element of this axis is a row of its own; these rows vary fastest; the basis is 1 */
    int64_t rows;       /* rows of this kernel for each row of the transform */
    /* The address of bin 0 of (row, column). Frequency-major, where the transform has S / split rows: row / S * unit
     * + row % S * row_stride + column. Other layouts: row * row_stride + column / column_split * column_split_stride
     * + column % column_split * column_stride. */
    int64_t split, row_stride, column_split, column_split_stride, column_stride;
    int64_t unit; /* frequency-major: the unit of axis strides, for each row of the transform; 0: the caller has it */
    bool scaled;  /* rows of the spectrum have scales, which this kernel applies */
    int interleaved; /* products: the planes of a block are a multiple of this and are moved together; 0: any number */
} cf_shared_fft_problem;

typedef struct cf_shared_fft_config {
    cf_shared_fft_problem problem;
    cf_shared_fft_kind kind;
    cf_shared_fft_order order;
    int radix[3][3];             /* of the steps along each axis; 1: no step */
    int planes, threads, blocks; /* of a block; blocks: that the registers of a multiprocessor must allow */
    bool mirrors;                /* one plane is read and one is written: MirrorTask of fused/shared_memory.cuh */
    bool sums;                   /* threads hold the sums of their tasks of the last step */
    bool direct;                 /* the spectrum does not go through shared memory */
    bool packs_nyquist;          /* TWO_ROWS_AS_COMPLEX: column N2 / 2 is the imaginary part of column 0 */
    bool in_registers;           /* a thread has a whole complex line, and shared memory has only the table of planes */
    bool staged;                 /* rows are copied unconverted to shared memory first */
    bool finds_scales;           /* the kernel finds the scales itself; if not, another kernel does */
    bool planes_interleaved;     /* channels-last: elements of neighbouring planes are neighbours in memory */
    /* Numbers of an aligned access, along a row or across neighbouring planes. */
    int vector_width;
    int alignment_shift;  /* staged: numbers copied before the first point, so that the first vector is aligned */
    int bin_tiles;        /* parts of the bins, each with blocks of its own: dft_matrix.h; 0: blocks have all bins */
    int64_t pitch, plane; /* distances of lines and planes in shared memory, complex numbers */
    int64_t shared;       /* bytes of a block */
    int prefetched;       /* rows of bins that are copied ahead: prefetch.cuh; 0: none */
    int64_t grid;         /* blocks of a launch at most, which transform all planes; 0: each block has planes */
} cf_shared_fft_config;

/* A whole transform. */
cf_shared_fft_problem cf_shared_fft_problem_of(const cf_fft_problem *fft);

/* NOT_SUPPORTED: a plane is too large for a block's shared memory, or an extent for 31 bits. */
conv_fft_status cf_shared_fft_configure(const cf_shared_fft_problem *problem, const cf_gpu_properties *properties,
                                        cf_shared_fft_config *config);

/* Kernels that transform planes of several signals, multiply them and transform back, all in shared memory. A block
 * has `buffers` buffers of its planes. The configs differ only in the signal. The caller sets planes_interleaved, and
 * vector_width if planes are interleaved. sums: threads hold sums in registers. *cycles: the expected cycles of a
 * multiprocessor for one plane of each signal. NOT_SUPPORTED: as above. */
conv_fft_status cf_shared_fft_configure_product(const cf_shared_fft_problem *problems, int count, int buffers,
                                                bool sums, const cf_gpu_properties *properties,
                                                cf_shared_fft_config *configs, double *cycles);
int64_t cf_shared_fft_product_shared(const cf_shared_fft_config *config, int count, int buffers);

/* The places in shared memory that the first warps of each step access, as multiples of pitch, plane and number. */
enum {
    CF_SHARED_FFT_WARPS = 6,
    CF_SHARED_FFT_MAX_STEPS = 9,
    CF_SHARED_FFT_BANKS = 16, /* for complex numbers of FP32; also the lanes of one wavefront. FP64: half of it */
    CF_SHARED_FFT_MAX_WAVEFRONTS = CF_SHARED_FFT_MAX_STEPS * CF_SHARED_FFT_WARPS * 2 * 4
};
/* Accesses that need the same wavefronts for all distances. Distances count from the place of the first lane, modulo
 * the banks. */
typedef struct cf_shared_fft_wavefront {
    int times, places; /* places: different ones */
    uint8_t pitches[CF_SHARED_FFT_BANKS], planes[CF_SHARED_FFT_BANKS], numbers[CF_SHARED_FFT_BANKS];
} cf_shared_fft_wavefront;
typedef struct cf_shared_fft_accesses {
    int together; /* lanes of one wavefront */
    int steps, end[CF_SHARED_FFT_MAX_STEPS];
    double points[CF_SHARED_FFT_MAX_STEPS];
    int count;
    cf_shared_fft_wavefront wavefronts[CF_SHARED_FFT_MAX_WAVEFRONTS];
} cf_shared_fft_accesses;

/* The config needs radices and the number of planes, but no distances. */
void cf_shared_fft_find_accesses(const cf_shared_fft_config *config, cf_shared_fft_accesses *accesses);

/* Wavefronts of these accesses, divided by those needed without bank conflicts. pitch, plane: the distances of lines
 * and planes. */
double cf_shared_fft_wavefronts(const cf_shared_fft_accesses *accesses, int64_t pitch, int64_t plane);

/* Blocks of a launch for this many planes, of which each block has the config's number. A config with a `grid` may have
 * fewer blocks. */
int64_t cf_shared_fft_blocks(const cf_shared_fft_config *config, int64_t planes);

/* Blocks copy bins ahead (prefetch.cuh) where only one block fits the shared memory of a multiprocessor, because its
 * loads, arithmetic and stores hardly overlap. Neighbouring planes are copied together by 16 bytes: the number of
 * columns is a multiple of what these hold, and the spectrum begins at a multiple of 16 bytes. The buffers take what
 * the planes leave: at least two fifths of the bins. If the rows are known, some block has two groups of planes. Other
 * configs stay as they are. */
void cf_shared_fft_choose_prefetch(cf_shared_fft_config *config, const cf_gpu_properties *properties);

/* The same config for a signal at any address. */
cf_shared_fft_config cf_shared_fft_unaligned(const cf_shared_fft_config *config);

/* Make two configs agree for blocks of one launch: they get the larger number of threads, and the blocks that both
 * allow. */
void cf_shared_fft_pair(cf_shared_fft_config pair[2], const cf_gpu_properties *properties);

/* The text of the kernel cf_fft, which follows the device headers. */
void cf_shared_fft_emit(const cf_shared_fft_config *config, cf_text *text);
/* Print only its constants, as a struct of this name. */
void cf_shared_fft_emit_config(const cf_shared_fft_config *config, const char *name, cf_text *text);

/* Whether every row of every plane, inside the signal, consists of aligned vectors of this width. The pointers are
 * taken as aligned. */
bool cf_shared_fft_has_vectors(const cf_shared_fft_config *config, int64_t vector_width);

/* Whether windows reach at most 2^30 elements along each axis, as kernels require. */
bool cf_shared_fft_reaches(const cf_window *window);

/* Whether some coordinate of some plane may lie outside the signal. */
bool cf_shared_fft_checked(const cf_axis_window *axis);

void cf_shared_fft_describe(const cf_shared_fft_config *config, cf_text *text);

/* The arguments for the first `rows` rows of the transform. unit: of the caller's spectrum. The caller fills in
 * `in` and `out`. */
cf_shared_fft_call cf_shared_fft_call_of(const cf_shared_fft_problem *problem, int64_t rows, int64_t unit);

#endif
