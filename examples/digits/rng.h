/* SPDX-License-Identifier: Apache-2.0 */
/* A seeded random number generator (splitmix64): the same numbers on every machine. */
#ifndef RNG_H
#define RNG_H

#include <math.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng;

static inline uint64_t rng_next(rng *random) {
    uint64_t z = random->state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/** Uniform in [0, 1). */
static inline double rng_uniform(rng *random) { return (double)(rng_next(random) >> 11) * 0x1p-53; }

/** Standard normal, by Box and Muller. */
static inline double rng_normal(rng *random) {
    const double radius = sqrt(-2.0 * log(1.0 - rng_uniform(random)));
    return radius * cos(6.283185307179586 * rng_uniform(random));
}

/** Put order[0..count) into a random order (Fisher and Yates). */
static inline void rng_shuffle(rng *random, int64_t *order, int64_t count) {
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = (int64_t)(rng_uniform(random) * (double)(i + 1));
        const int64_t swapped = order[i];
        order[i] = order[j];
        order[j] = swapped;
    }
}

#endif
