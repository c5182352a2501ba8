/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of transforms for tests on either device: systematic ones, and random ones over everything that fbfft.h has. */
#ifndef TEST_FBFFT_CASES_H
#define TEST_FBFFT_CASES_H

#include "support/fft_check.h"
#include "support/random_problems.h"

typedef struct fft_list {
    fft_case *cases;
    int count, capacity;
    bool one_by_one; /* the library has all threads; otherwise cases run and compile in parallel */
} fft_list;

/* Both devices must support it, except if it may be too large for a GPU's shared memory. */
fft_case *fft_list_add(fft_list *list, fbfft_desc desc, int64_t batch);

/* Print the failures and a summary, fail the test if there are failures, and empty the list. On a GPU `what` is the
 * name of a list of cases, and the cases that test_select() takes run. On the CPU all cases run. Returns how many are
 * supported. */
int fft_list_check(fft_list *list, const char *what, const cf_gpu *gpu, conv_fft_context *context);

/* True for products of 2, 3, 5 and 7. */
bool fft_is_basis(int64_t n);

/* Every basis from 2 to 256, with whole windows and parts. */
void fft_add_lines(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype);
/* Rows of up to 16384 points. */
void fft_add_long_lines(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype);
/* Squares with whole windows and parts, then rectangles. */
void fft_add_planes(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype);
void fft_add_volumes(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype);
/* Every layout of the signal with every order of the spectrum, for one, a few and many channels. */
void fft_add_layouts(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype);
/* Windows of every padding mode (zeros only if the signal is written): inside, across both ends, and outside. */
void fft_add_windows(fft_list *list, fbfft_kind kind, conv_fft_dtype dtype);

/* A random case whose basis has at most max_points points. */
fft_case fft_random_case(uint64_t seed, int64_t max_points);
/* `count` random cases, from test_seed() on. */
void fft_add_random(fft_list *list, uint64_t count, int64_t max_points);

#endif
