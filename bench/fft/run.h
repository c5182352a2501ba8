/* SPDX-License-Identifier: Apache-2.0 */
/* A run of bench_fft. */
#ifndef BENCH_FFT_RUN_H
#define BENCH_FFT_RUN_H

#include "fft/cases.h"

typedef struct fft_options {
    const char *out, *only, *commit, *precision; /* NULL: the standard output, all cases, what git says, any */
    const char *cache;                           /* folder of kernels; NULL: a folder of this run */
    bool quick;
} fft_options;

/* False: a measurement is missing or gave a wrong result. Messages have been written. */
bool fft_bench(const fft_options *o, const fft_case *cases, size_t count);

#endif
