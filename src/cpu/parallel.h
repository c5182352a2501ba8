/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops on several threads. The caller computes, too, and never waits for a thread that has not begun: on a busy host
 * it may do all tasks itself. Threads without work wait for some microseconds and then sleep. (OpenMP's threads wait
 * for milliseconds, and a loop ends only when each of them has been scheduled.)
 *
 * All callers share the threads. A loop inside a task, and every loop of a child process whose parent had threads,
 * runs on the caller alone.
 */
#ifndef CF_CPU_PARALLEL_H
#define CF_CPU_PARALLEL_H

#include <stdint.h>

/* One iteration. `thread` is below the number of threads. At one time, each number has one thread of a loop. */
typedef void (*cf_task)(const void *user, int64_t i, int thread);

/* Do the tasks 0 to count - 1, which are independent, on at most `threads` threads. */
void cf_parallel_for(int threads, int64_t count, cf_task task, const void *user);

#endif
