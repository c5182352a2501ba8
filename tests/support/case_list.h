/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of cases that have names. test_select() decides which of them a run takes (selection.h).
 *
 *     CONV_FFT_TEST_CASE     only the cases whose names contain this text; a list that has none of them takes none
 *     CONV_FFT_TEST_LOG      anything: each case prints its list, its name and its seconds
 *     CONV_FFT_TEST_THREADS  1 to 64: threads that run cases in parallel; not set: one for each processor
 */
#ifndef TEST_CASE_LIST_H
#define TEST_CASE_LIST_H

#include <stdint.h>

typedef struct case_list {
    const char *name;
    char **cases;
    int count, capacity;
} case_list;

/** Add a case with this name. It describes the case and does not depend on the case's position in the list. */
void case_list_add(case_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Call check(i, argument) for each selected case i, one after the other, and empty the list. Returns how many were
 * selected. */
int case_list_each(case_list *list, void (*check)(int64_t i, void *argument), void *argument);

/** The same on several threads. check() must not call cmocka. */
int case_list_side_by_side(case_list *list, void (*check)(int64_t i, void *argument), void *argument);

/** Empties the list. */
void case_list_clear(case_list *list);

/** The number of selected cases of all lists so far. */
int case_list_taken(void);

/** Call check(i, argument) for all i below `count` on several threads. */
void side_by_side(int64_t count, void (*check)(int64_t i, void *argument), void *argument);

#endif
