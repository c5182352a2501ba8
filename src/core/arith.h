/* SPDX-License-Identifier: Apache-2.0 */
/* Integer arithmetic on extents. All operands are non-negative unless a comment says otherwise. */
#ifndef CF_CORE_ARITH_H
#define CF_CORE_ARITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline int64_t cf_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t cf_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* The largest divisor of n that is below `below`; at least 1. */
static inline int64_t cf_smaller_divisor(int64_t n, int64_t below) {
    while (--below > 1 && n % below != 0)
        continue;
    return below;
}

/* Divisors are often 1, and then a branch is faster than a division. */
static inline int64_t cf_ceil_div(int64_t a, int64_t b) { return b == 1 ? a : a / b + (a % b != 0); }

/* floor(a / b) and a mod b in [0, b) for b > 0 and any sign of a. */
static inline int64_t cf_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t cf_mod(int64_t a, int64_t b) { return a % b < 0 ? a % b + b : a % b; }

static inline int64_t cf_gcd(int64_t a, int64_t b) {
    while (b > 1) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return b == 1 ? 1 : a;
}

/* *product *= factor. If the result exceeds 63 bits, *product stays unchanged, and false is returned. */
static inline bool cf_multiply(int64_t *product, int64_t factor) {
    int64_t result;
    if (__builtin_mul_overflow(*product, factor, &result))
        return false;
    *product = result;
    return true;
}

static inline bool cf_add(int64_t *sum, int64_t term) {
    if (*sum > INT64_MAX - term)
        return false;
    *sum += term;
    return true;
}

/* The smallest multiple of unit that is not below n. */
static inline int64_t cf_round_up(int64_t n, int64_t unit) { return cf_ceil_div(n, unit) * unit; }
static inline size_t cf_align(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

#endif
