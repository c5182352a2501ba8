/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP where the compiler has it; the same code on one thread where not. Settings of OpenMP are read, never changed. */
#ifndef CF_CPU_PARALLEL_H
#define CF_CPU_PARALLEL_H

#define CF_PRAGMA(text) _Pragma(#text)

#ifdef _OPENMP
#include <omp.h>
/* The for loop that follows, over independent iterations, on `threads` threads. */
#define CF_PARALLEL_FOR(threads) CF_PRAGMA(omp parallel for num_threads(threads) schedule(dynamic))
#define CF_PARALLEL_FOR_STATIC(threads) CF_PRAGMA(omp parallel for num_threads(threads) schedule(static))
static inline int cf_thread_index(void) { return omp_get_thread_num(); }
static inline int cf_thread_limit(void) { return omp_get_max_threads(); }
#else
#define CF_PARALLEL_FOR(threads)
#define CF_PARALLEL_FOR_STATIC(threads)
static inline int cf_thread_index(void) { return 0; }
static inline int cf_thread_limit(void) { return 1; }
#endif

#endif
