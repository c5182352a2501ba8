/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, random problems, and the named problems of tests/data/shapes. */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#include "conv_fft.h"

#include <stdbool.h>

/** Every case has its own generator, so that a case can be replayed alone. */
typedef struct generator {
    uint64_t state;
} generator;

generator generator_create(uint64_t seed);
/** Random values of part `number` of a program. They change with CONV_FFT_TEST_SEED. If the program fails then, it
 * prints how to replay it. */
generator test_generator(uint64_t number);
uint64_t random_bits(generator *g);
/** low..high, both included. */
int64_t random_int(generator *g, int64_t low, int64_t high);
/** True once in `n` times. */
bool random_once_in(generator *g, int64_t n);
/** Uniform in -1..1. */
double random_value(generator *g);
void random_values(generator *g, int64_t count, double *values);

/** A valid random problem of any kind, with at most `products` multiplications per pass. */
conv_fft_problem random_problem(generator *g, double products);

/** Dense strides in the order of conv_fft_problem: {first, second, axes}. */
void layout_strides(conv_fft_layout layout, int dims, const int64_t *extent, int64_t *stride);

/** Strides of a random order of the dimensions, with gaps after some of them. */
void random_strides(generator *g, int dims, const int64_t *extent, int64_t *stride);

typedef struct named_problem {
    char name[96]; /* "file/line's name" */
    conv_fft_problem problem;
} named_problem;

/** All problems of the files *.txt of a folder, in the order of the files' names. The caller frees them. A bad line
 * ends the program. */
named_problem *read_problems(const char *folder, int64_t *count);

#endif
