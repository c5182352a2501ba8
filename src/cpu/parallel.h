/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP if the compiler has it, otherwise the same code on one thread. The caller's OpenMP settings never change. */
#ifndef CF_CPU_PARALLEL_H
#define CF_CPU_PARALLEL_H

#define CF_PRAGMA(text) _Pragma(#text)

#include <stdbool.h>

#ifdef _OPENMP
#include <omp.h>
/* The for loop that follows, over independent iterations, on `threads` threads. */
#define CF_PARALLEL_FOR(threads) CF_PRAGMA(omp parallel for num_threads(threads) schedule(dynamic))
#define CF_PARALLEL_FOR_STATIC(threads) CF_PRAGMA(omp parallel for num_threads(threads) schedule(static))
/* A region on `threads` threads, and a for loop that they share inside it. */
#define CF_PARALLEL(threads) CF_PRAGMA(omp parallel num_threads(threads))
#define CF_SHARED_FOR CF_PRAGMA(omp for schedule(static))
/* Inside a region: functions that this thread calls start no threads of their own. The setting ends with the region. */
static inline void cf_no_further_threads(void) { omp_set_num_threads(1); }
static inline int cf_thread_index(void) { return omp_get_thread_num(); }
static inline int cf_thread_limit(void) { return omp_get_max_threads(); }
/* Whether a library's omp_set_num_threads is of the OpenMP runtime that this library uses. */
static inline bool cf_is_our_openmp(void (*set_threads)(int)) { return set_threads == omp_set_num_threads; }
#else
#define CF_PARALLEL_FOR(threads) (void)(threads);
#define CF_PARALLEL_FOR_STATIC(threads) (void)(threads);
#define CF_PARALLEL(threads) (void)(threads);
#define CF_SHARED_FOR
static inline void cf_no_further_threads(void) {}
static inline int cf_thread_index(void) { return 0; }
static inline int cf_thread_limit(void) { return 1; }
static inline bool cf_is_our_openmp(void (*set_threads)(int)) { return set_threads == 0; }
#endif

#endif
