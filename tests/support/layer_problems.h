/* SPDX-License-Identifier: Apache-2.0 */
/* Whole checks of one problem on device_context(). Nothing of cmocka is called: threads may run them side by side. */
#ifndef TEST_LAYER_PROBLEMS_H
#define TEST_LAYER_PROBLEMS_H

#include "support/random_problems.h"

/** All passes, with and without bias, accumulated, kept, and in the least workspace. */
bool check_named_problem(const named_problem *named);

/** The random problem of this seed in all passes, with random options. */
void check_random_problem(uint64_t seed);

/** Random problems from test_seed() on, CONV_FFT_TEST_COUNT (`count`) of them, of which a GPU has a share, until there are too many
 * failures. False if there was a failure. Prints what has been covered. */
bool check_random_problems(uint64_t count);

#endif
