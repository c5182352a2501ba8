/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy lines, edited as text. */
#ifndef TEST_STRATEGIES_H
#define TEST_STRATEGIES_H

#include "conv_fft.h"

#include <stdbool.h>

/** Forward, backward data, backward weights. */
extern const conv_fft_pass strategy_passes[3];

typedef struct strategies {
    char line[3][256];
} strategies;

/** What the library chooses by itself among staged strategies. Ends the program if it cannot. */
strategies chosen_strategies(conv_fft_context *context, const conv_fft_problem *p);

/** Of staged strategies the fused ones with the same basis, tiles and dilation. */
strategies fused_strategies(const strategies *staged);

/** Write to `out` the line with the value of `key` replaced. Ends the program if it has no such key. */
void edit_strategy(const char *line, const char *key, const char *value, char *out, size_t bytes);

/** For each pass the smallest basis, the same on every axis, with which this many tiles on every axis are possible.
 * False if there is none up to 128. */
bool find_strategies(conv_fft_context *context, const conv_fft_problem *p, int64_t tiles, const char *overlap,
                     const char *dilation, const char *product, strategies *out);

/** The same with the taps of each axis cut into `segments` segments, or into single taps if there are fewer. The plan
 * must not have segments already. */
bool find_cut_strategies(conv_fft_context *context, const conv_fft_problem *p, int64_t tiles, int64_t segments,
                         const char *overlap, const char *dilation, const char *product, strategies *out);

#endif
