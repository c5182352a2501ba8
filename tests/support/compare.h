/* SPDX-License-Identifier: Apache-2.0 */
/* The only compare function of the tests, the table of tolerances, and reports of failures. */
#ifndef TEST_HARNESS_H
#define TEST_HARNESS_H

#include "support/tensor.h"

/* What the tests allow. With mag = |x| conv |w|, the same sum over absolute values:
 *
 *     whole tensor   ||y - y64|| <= norm * eps * ||mag||             (the contract of conv_fft.h)
 *     each element   |y - y64|   <= round * |y64| + element * compute * (mag + rms in its slice + rms / 4)
 *                                               rms: of mag
 *
 * A slice is one index of the first dimension: one sample of y and gx, one output channel of gw. The second line exists
 * so that one wrong element of a large tensor cannot hide in its norm. It uses the slice's rms because the error of a
 * transform is spread evenly over what shares the transform, and allows one rounding when the result is stored. The
 * quarter of the whole tensor's rms is for slices that few numbers reach. With outputs in the padding, a transform of
 * gy may cover five elements of which one reaches gw; by chance that one is 100 times smaller than the others. */
typedef struct tolerance {
    double eps, norm;        /* eps: unit roundoff of the tensors */
    double compute, element; /* compute: unit roundoff of the arithmetic inside */
} tolerance;

/** The table of tolerances. `dtype` is the type of the compared tensor, so an FP32 gw of FP16 tensors counts as
 * FP32. */
tolerance tolerance_of(conv_fft_dtype dtype, conv_fft_math math);

/* From now on, TF32 and HALF allow rounded products and spectra, as on a GPU. Other devices compute them as FP32. */
void tolerate_fast_math(void);

/** The smallest share of non-zeros in an expected tensor for a meaningful comparison. */
#define DEFAULT_SHARE 0.25

/** An amount of work, and a smaller one for sanitizers, which make everything five to ten times as slow. */
#define TEST_AMOUNT(plain, sanitized) (TEST_SANITIZED ? (sanitized) : (plain))

typedef struct comparison {
    bool ok;
    double norm_ratio;    /* ||y - y64|| / (eps * ||mag||); passes up to tolerance.norm */
    double element_ratio; /* the largest (|y - y64| - round * |y64|) / (compute * ..); passes up to tolerance.element */
    int64_t worst;        /* its index in the dense order */
    double share;         /* of non-zeros in `expected` */
    char text[320];       /* one sentence; set in any case */
} comparison;

/** Compare `actual` with expected[count] and magnitude[count], as above. If `expected` has a smaller share of non-zeros
 * than `share`, that is a failure. */
comparison compare_tensor(const tensor *actual, const double *expected, const double *magnitude, conv_fft_math math,
                          double share);

/** Compare two numbers of the adjoint identity, each with its norm-wise error bound for one eps. */
bool compare_products(double a, double b, double bound_for_one_eps, double limit, double *ratio);

/** Start a case of this thread: each of its failures prints `text` and a line that replays it. `variables` as in
 * test_replay(). */
void case_begin(const char *text, const char *variables);
/** Set the name of this thread's case in its list, for its replay; NULL: it has none. */
void case_name(const char *name);
/** Print a failure and count it. Always false. */
bool case_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Whether this run takes case `i`: every `step`-th case, from one that the seed chooses; all cases with a share of 100
 * %. */
bool case_in_turn(int64_t i, int64_t step);
/** If this program fails, its last line of output is the command that repeats it. */
void replay_on_failure(void);
/** Failures since the program started. */
int case_failures(void);
/** Number from 1 on in an environment variable; `value` if it is not set. */
uint64_t environment_number(const char *name, uint64_t value);

#endif
