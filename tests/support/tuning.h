/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts that tune on the CPU: plans and their choices, counts, records written by hand. A failed step is a failure
 * of the test. */
#ifndef TEST_TUNING_H
#define TEST_TUNING_H

#include "conv_fft.h"

/* A small layer. */
extern const char tuned_line[];

/* A context of two threads, whose runs take virtual time. */
conv_fft_context *tuning_context(const char *directory);
conv_fft_problem problem_of(const char *line);
conv_fft_plan_options options_with(conv_fft_tuning tuning);

/* The strategies of a plan's passes, in one line. */
typedef struct choice {
    char text[800];
    double forward_ms, backward_ms;
} choice;

choice choose(conv_fft_context *context, const char *line, const conv_fft_plan_options *options);

conv_fft_tune_statistics statistics_of(conv_fft_context *context);
#define EXPECT_COUNTS(context, expected_records, expected_hits, expected_misses, expected_unusable) \
    do {                                                                                            \
        const conv_fft_tune_statistics s_ = statistics_of(context);                                 \
        assert_int_equal(s_.records, expected_records);                                             \
        assert_int_equal(s_.hits, expected_hits);                                                   \
        assert_int_equal(s_.misses, expected_misses);                                               \
        assert_int_equal(s_.unusable, expected_unusable);                                           \
        assert_int_equal(s_.corrupt, 0);                                                            \
    } while (0)

/* Add a record as if it had been measured. The strategy of a pass that the record does not have is NULL. */
void put_record(conv_fft_context *context, const char *line, int passes, int keep, uint64_t limit, uint64_t workspace,
                const char *const strategy[3]);

#define STAGED_LINE(basis, tiles)                                                                   \
    "staged basis=" basis " tiles=" tiles " dilation=step overlap=save product=loop spectrum=fp32 " \
    "chunk=1 groups=1 keep=none"

#endif
