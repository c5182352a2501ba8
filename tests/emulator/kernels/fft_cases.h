/* SPDX-License-Identifier: Apache-2.0 */
/* The list of transforms whose kernels fft_emit.c writes and test_shared_memory_fft*.cpp run in the emulator, and the
 * planner's choices for them. */
#ifndef SIMT_TILE_CASES_H
#define SIMT_TILE_CASES_H

#include "fbfft/plan/kernel_split.h"
#include "support/selection.h"

typedef struct tile_case {
    fbfft_desc desc;
    int64_t batch;
    bool shifted;   /* signal and spectrum off by one element: kernels for any alignment */
    bool forced;    /* shared_memory/kernel.cuh also where the planner takes the kernels of plain planes */
    bool added;     /* inverse: onto what is there, with a bias */
    int64_t groups; /* 1, or several signals of their own */
    int64_t shared; /* bytes of shared memory of a block, for several passes; 0: all that the GPU has */
    int64_t chunk;  /* rows that go through several passes at a time; 0: all */
    int passes;     /* that it must take; 0: any number */
    /* As layers have them, of frequency-major spectra: rows are (sample, shift, tile) and columns (phase, channel). */
    const cf_window *window; /* in place of desc's; NULL: none */
    bool overlapping;        /* inverse: tiles of a sample add up, one of every sample at a time */
    bool halves;             /* the spectrum has 16 bits: the type of the signal, or FP16 of FP32 */
    bool matrix;             /* which matrix products make */
    bool dense;              /* which one product makes */
    bool one_multiprocessor; /* of the GPU: a launch has few blocks, if each can transform many planes */
    bool drawn;              /* by the seed of the run */
} tile_case;

/* All cases of both programs. */
int tile_case_list(const tile_case **cases);
static inline bool tile_case_is_double(const tile_case *c) { return c->desc.dtype == CONV_FFT_FP64; }

/* Whether this run takes a case. Valid after tile_case_list() and tile_pair_list(), which selects the cases of its
 * pairs. */
test_part tile_case_part(int number);

/* A line that identifies a case. */
enum {
    TILE_NAME_BYTES = 512
};
void tile_case_name(const tile_case *c, char *text, size_t bytes);

/* facts: the file of the GPU's properties. On false, conv_fft_last_error() has the reason. */
bool tile_case_plan(const tile_case *c, const char *properties, cf_fft_problem *problem, cf_fft_passes *passes);

/* Pairs of forward transforms of layers that one launch computes, as indices of cases, after tile_case_list(). At most
 * TILE_PAIRS. On false, conv_fft_last_error() has the reason. */
enum {
    TILE_PAIRS = 21,
    TILE_PAIR_NUMBER = 100000 /* of the first pair's kernel; cases count from 0 */
};
bool tile_pair_list(const char *properties, int pairs[TILE_PAIRS][2], int *made);
test_part tile_pair_part(int pair);

/* The number of rows of the spectrum. */
int64_t tile_case_rows(const tile_case *c);

/* The variant of a kernel that the memory of this case needs. Memory between kernels is always aligned. */
int tile_case_variant(const tile_case *c, const cf_fft_passes *passes, int pass);

#endif
