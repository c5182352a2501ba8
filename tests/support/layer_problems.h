/* SPDX-License-Identifier: Apache-2.0 */
/* Whole checks of one problem on device_context(). They do not call cmocka, so threads may run them in parallel. */
#ifndef TEST_LAYER_PROBLEMS_H
#define TEST_LAYER_PROBLEMS_H

#include "support/random_problems.h"

/** All passes, with and without bias, accumulated, with kept spectra, and in the smallest workspace. */
bool check_named_problem(const named_problem *named);

/** The random problem of this seed, in all passes, with random options. */
void check_random_problem(uint64_t seed);

/** CONV_FFT_TEST_COUNT (`count`) random problems from test_seed() on, a share of them on a GPU, until there are too
 * many failures. Returns false after a failure. Prints what was covered. */
bool check_random_problems(uint64_t count);

#endif
