/* SPDX-License-Identifier: Apache-2.0 */
/* The three pictures of the training program. */
#ifndef PLOTS_H
#define PLOTS_H

#include "digits.h"

enum {
    HISTORY_MAX_EPOCHS = 1000
};

/** One entry per epoch. Accuracies in percent. */
typedef struct history {
    int epochs;
    double train_loss[HISTORY_MAX_EPOCHS], train_accuracy[HISTORY_MAX_EPOCHS];
    double held_out_loss[HISTORY_MAX_EPOCHS], held_out_accuracy[HISTORY_MAX_EPOCHS];
} history;

/** The filters of a layer with one input channel per filter, weights[count][rows][columns]. */
typedef struct filter_bank {
    char title[64];
    int count, rows, columns;
    const float *weights;
} filter_bank;

/** A digit that the network read wrongly. */
typedef struct mistake {
    const float *image; /* [8][8] */
    int label, prediction;
    double probability; /* of the prediction */
} mistake;

/* Each writes a PNG file. False: a message was written to stderr. */

/** Loss and accuracy over the epochs; `required` is the accuracy to reach, in percent. */
bool plot_history(const char *path, const history *h, double required);
bool plot_filters(const char *path, const filter_bank *banks, int bank_count);

/** The first `count` of `wrong` mistakes among `total` digits. */
bool plot_mistakes(const char *path, const mistake *mistakes, int count, int wrong, int total);

#endif
