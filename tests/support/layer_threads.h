/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of several threads at the same time, each with its own stream if the device has streams. They use cmocka. */
#ifndef TEST_LAYER_THREADS_H
#define TEST_LAYER_THREADS_H

#include "support/strategy_lines.h"

/* One plan of this problem, with this product, gives each of several threads the same bits as one thread. */
void threads_share_plan(conv_fft_context *context, const char *line, const char *product);
/* The same with these strategies. */
void threads_share_forced(conv_fft_context *context, const char *line, const strategies *s);

/* Plans are made and destroyed in a context while another of its plans runs. */
void threads_make_plans(conv_fft_context *context);

#endif
