/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases of a list one run takes: the core, the cases that ever failed, and a share of the other cases. The share
 * changes with the seed.
 *
 *     CONV_FFT_TEST_SEED    a whole number of up to 64 bits; the Makefile takes it from the commit; not set: 1
 *     CONV_FFT_TEST_SHARE   percent of the rest, 10 to 100, or `core`: no share; 10 where it is not set
 *     CONV_FFT_TEST_CASE    only the cases whose names contain this text
 *
 * The core of a list is tests/data/core/LIST.txt, a name per line. tests/data/failed.txt has a line `LIST: NAME` for
 * each case that ever failed. A name in these files that no case has is an error, and so is an invalid value of a
 * variable: the program prints a message and ends with status 2. Names of random cases begin with `drawn` or `seed`. In
 * failed.txt such a name counts only in runs that draw it. To run such a case always, add it to the list itself. */
#ifndef TEST_SELECTION_H
#define TEST_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The seed of this run. */
uint64_t test_seed(void);

/** The command that runs something again: `make replay` with this build's preset, this program, the seed, and the share
 * if one is set. `variables` (NULL: none) are further assignments; a seed among them replaces the seed of this run. */
void test_replay(char *text, size_t bytes, const char *variables);

/** The share of this run in percent; 0: only the core. */
int test_share(void);

typedef enum test_part {
    TEST_LEFT_OUT,
    TEST_CORE, /* named by the core or among the failed ones */
    TEST_SHARE
} test_part;

/** Set part[i] for each of `count` cases by their names, print one line of counts to stderr, and return how many are
 * taken. The share is exact: of n cases that are neither in the core nor among the failed ones, it takes the ceil(n
 * * share / 100) cases with the smallest hash of name and seed. So a seed takes the same cases in any order of the
 * list. */
int test_parts(const char *list, const char *const *names, int count, test_part *part);

/** The same, if only the selected cases matter. */
int test_select(const char *list, const char *const *names, int count, bool *taken);

#ifdef __cplusplus
}
#endif

#endif
