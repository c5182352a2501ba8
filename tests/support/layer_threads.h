/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads at once, each on its own stream where there are streams. These fail tests of cmocka. */
#ifndef TEST_LAYER_THREADS_H
#define TEST_LAYER_THREADS_H

#include "support/strategy_lines.h"

/* One plan of this problem, with this product, gives each thread the bits that it gives one. */
void threads_share_plan(conv_fft_context *context, const char *line, const char *product);
/* The same with these strategies. */
void threads_share_forced(conv_fft_context *context, const char *line, const strategies *s);

/* Plans are made and destroyed with a context while another plan of it runs. */
void threads_make_plans(conv_fft_context *context);

#endif
