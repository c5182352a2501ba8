/* SPDX-License-Identifier: Apache-2.0 */
/* Layers with 16-bit spectra: their strategies, plans and contents. */
#ifndef TEST_LAYER_FP16_H
#define TEST_LAYER_FP16_H

#include "support/layer.h"
#include "support/strategy_lines.h"

#define HALF_LAYER "in=4x24x20x20 out=16 kernel=5x5 pad=2"

/* Parts of problem lines for such layers. */
enum {
    HALF_CLASSES = 3
};
extern const char *const half_classes[HALF_CLASSES];

/* The library's strategies for the problem with spectra of the tensors' type, or FP16. Returns false if there are
 * none. */
bool half_strategies(const conv_fft_problem *p, int64_t tiles, const char *overlap, const char *dilation,
                     strategies *s);
/* Strategies whose bases are transformed by tensor-core FFT, with one tile. */
bool matrix_strategies(const conv_fft_problem *p, const char *basis, strategies *s);
/* Strategies that transform columns of planes, each in a tile of its own: tiles=1xCOLUMNS. */
bool column_strategies(const conv_fft_problem *p, const char *basis, const char *tiles, strategies *s);
/* Strategies for any rank, whatever the cost model would choose. */
bool one_tile_strategies(const conv_fft_problem *p, const char *basis, strategies *s);

conv_fft_plan_options half_options(const strategies *s);
conv_fft_plan *half_plan(const conv_fft_problem *p, const strategies *s, int passes);

/* Makes numbers of an operand. */
typedef double (*number_maker)(generator *g, int64_t sample, int64_t channel);
double small_number(generator *g, int64_t sample, int64_t channel);
double tiny_number(generator *g, int64_t sample, int64_t channel);   /* subnormal in FP16 */
double minute_number(generator *g, int64_t sample, int64_t channel); /* zero in FP16 */
void fill_operand(layer *l, operand *o, number_maker make, generator *g);

#endif
