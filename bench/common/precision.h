/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of precision, and the passes that are measured. */
#ifndef BENCH_PRECISION_H
#define BENCH_PRECISION_H

#include "conv_fft.h"

#include <stdbool.h>

/* Implementations of one class are compared with each other: the type of the tensors and the arithmetic. */
typedef struct bench_class {
    const char *name; /* column `precision` of the results */
    conv_fft_dtype dtype;
    conv_fft_math math;
    double max_error;      /* the library is wrong if its error is larger */
    double baseline_error; /* a baseline with a larger error computes in another class */
} bench_class;

#define BENCH_CLASSES 4
extern const bench_class bench_classes[BENCH_CLASSES];

typedef struct bench_pass {
    const char *name;
    conv_fft_pass pass;
    bool kept; /* with kept spectra of the tensors that do not change */
} bench_pass;

#define BENCH_PASSES 8
#define BENCH_DEFAULT_PASSES 0x0fu /* those without kept spectra */
extern const bench_pass bench_passes[BENCH_PASSES];

#endif
