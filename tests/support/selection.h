/* SPDX-License-Identifier: Apache-2.0 */
/* Which cases of a list one run takes: the core, the cases that ever failed, and a share of the rest that changes with the seed.
 *
 *     CONV_FFT_TEST_SEED    a whole number of up to 64 bits; the Makefile takes it from the commit; 1 where it is not set
 *     CONV_FFT_TEST_SHARE   percent of the rest, 10 to 100, or `core`: no share; 10 where it is not set
 *     CONV_FFT_TEST_CASE    only the cases whose names contain this text
 *
 * The core of a list is tests/data/core/LIST.txt, a name per line. tests/data/failed.txt has a line `LIST: NAME` for each case that ever
 * failed. A name in one of these files that no case has is an error, and so is a value that a variable cannot have: the program prints the
 * sentence and ends with status 2. Cases that are drawn have names that begin with `drawn` or `seed`: in failed.txt such a name counts only in
 * runs that draw it. To keep such a case for all runs, make it one of the list's own. */
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

/** The command that runs something again: `make replay` with the preset of this build, this program, the seed, and the share where one is set.
 * `variables` (NULL: none) are what else chooses it, as assignments; a seed among them takes the place of this run's. */
void test_replay(char *text, size_t bytes, const char *variables);

/** The share of this run in percent; 0: the core alone. */
int test_share(void);

typedef enum test_part {
    TEST_LEFT_OUT,
    TEST_CORE, /* named by the core or among the failed ones */
    TEST_SHARE
} test_part;

/** Sets part[i] for each of `count` cases by their names, prints one line of counts to stderr, and returns how many are taken. The share is
 * exact: of n cases that are neither in the core nor among the failed ones, the ceil(n * share / 100) with the smallest hash of name and
 * seed. So the same seed takes the same cases, wherever they stand in the list. */
int test_parts(const char *list, const char *const *names, int count, test_part *part);

/** The same for who only asks which cases are taken. */
int test_select(const char *list, const char *const *names, int count, bool *taken);

#ifdef __cplusplus
}
#endif

#endif
