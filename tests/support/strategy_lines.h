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

/** The staged strategies that the library chooses. If there are none, the program ends. */
strategies chosen_strategies(conv_fft_context *context, const conv_fft_problem *p);

/** The fused strategies with the basis, tiles and dilation of these staged ones. */
strategies fused_strategies(const strategies *staged);

/** Write the line to `out` with another value for `key`. A missing key ends the program. */
void edit_strategy(const char *line, const char *key, const char *value, char *out, size_t bytes);

/** For each pass the smallest basis, equal on all axes, with which each axis can have this many tiles. Returns false if
 * there is none up to 128. */
bool find_strategies(conv_fft_context *context, const conv_fft_problem *p, int64_t tiles, const char *overlap,
                     const char *dilation, const char *product, strategies *out);

/** The same with the taps of each axis cut into `segments` segments, or into single taps if there are fewer. The plan
 * must not have segments already. */
bool find_cut_strategies(conv_fft_context *context, const conv_fft_problem *p, int64_t tiles, int64_t segments,
                         const char *overlap, const char *dilation, const char *product, strategies *out);

#endif
