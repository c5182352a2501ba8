/* SPDX-License-Identifier: Apache-2.0 */
/* The 8x8 digits of data/digits.csv.gz. */
#ifndef DIGITS_H
#define DIGITS_H

#include "rng.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DIGITS_SIDE = 8,
    DIGITS_PIXELS = DIGITS_SIDE * DIGITS_SIDE,
    DIGITS_CLASSES = 10
};

typedef struct digits {
    int64_t count;
    float *images; /* [count][8][8], 0 = paper, 1 = ink */
    int *labels;   /* [count] */
} digits;

/** Read lines of 64 pixels (0..16) and the label. False: a message was written to stderr. */
bool digits_load(const char *path, digits *set);

void digits_free(digits *set);

/** 0..count-1, freed by the caller. NULL: a message was written to stderr. */
int64_t *digits_order(int64_t count);

/**
 * Hold out one image in four of every class, chosen by a fixed seed. The caller frees both sets, also after a
 * failure. False: a message was written to stderr.
 */
bool digits_split(const digits *all, digits *train, digits *held_out);

/**
 * Copy the images order[0..count) to x[count][8][8] and their labels to labels[count]. With a generator each
 * image is moved by a random fraction of a pixel, so that the network sees no image twice.
 */
void digits_batch(const digits *set, const int64_t *order, int64_t count, rng *random, float *x, int *labels);

#endif
